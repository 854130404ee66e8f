// Body: lines such as `y = linear(mul(silu(linear(x, w1)), linear(x, w3)), w2)` become operations of a function.
//
// Graph files and the catalogue's models share this one small language. A line is results, `=`, an expression; an
// expression is a value's name or a call; arguments after the tensors are dimensions (`K`, `N@tp`, `(g r)`), integers,
// scalars, a change (`E@ep`, `I@tp -> R@tp`) or key=value, as the operation's row says (`Takes`).
#pragma once

#include "shardc/IR/Text.h"
#include <functional>

namespace shardc {

// What a called name that is no operation means: a submodule.
struct Callee {
  FunctionId function;
  NameId instance;
};

// A body under construction: scope, sizes, and how other names are resolved.
class BodyBuilder {
public:
  // `resolve` may be null. It answers the calls to make, one after the other, each taking the first operand from the one
  // before (`layers` -> layers.0, layers.1, ...); an empty answer: no such module; one without a function: reported already.
  using Resolve = std::function<std::vector<Callee>(llvm::StringRef name, SourceRange range)>;

  BodyBuilder(Module &module, FunctionId function, const SizeTable &sizes, DiagnosticEngine &diags, Resolve resolve = nullptr);

  // Makes a name known. A name that is taken already is reported.
  void define(llvm::StringRef name, ValueId value, SourceRange range);
  std::optional<ValueId> lookup(llvm::StringRef name) const;

  // Adds one line; `text` is the text of `range`. False if something was wrong (and was reported); the results are then
  // defined all the same, so that later lines do not fail for want of them.
  bool line(llvm::StringRef text, SourceRange range);

  // Adds `redistribute` to a value at a module boundary and makes the value's name mean the result.
  std::optional<ValueId> boundary(ValueId value, llvm::StringRef spec, SourceRange range);

private:
  struct Impl;
  std::shared_ptr<Impl> impl;
};

// `E@ep`, `T@tp -> R@tp`, `P@tp -> T@(dp,tp)`; several separated by `;` happen in order.
std::optional<Change> parseChange(llvm::StringRef text, SourceRange range, ParseEnv &env);

} // namespace shardc
