// Expansion: the runs of a typed program in order of execution, with the names under which people see its values.
//
// Private to Emit. The text and the JSON of `types` share it. A name is stable: it depends on module paths and on the names
// that the model gives, never on ids. It is not a pass of the compiler: nothing below Emit expands layers.
#pragma once

#include "shardc/Infer/Gradients.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/GlobPattern.h"

namespace shardc {

// How the values and calls of one function are called.
struct LocalNames {
  std::vector<std::string> values; // per value; unique where not `hidden`; "x.before" for what a boundary replaced
  std::vector<std::string> plain;  // per value: as the model calls it
  std::vector<bool> hidden;        // results: the caller shows them under the module's path
  std::vector<std::string> calls;  // per op: "attention", "layers.3", "output#2" when called twice; "" for others
};

// A change in one direction, in words.
struct MoveText {
  std::string from, to;
  std::string collective; // "" where nothing is done
  std::string axes;       // "dp,tp"
  int64_t ranks = 1;
  std::optional<int64_t> bytes; // sent by each rank; nothing where the extent is known only at run time
};
MoveText forwardText(const TypedModule &typed, const Move &move, llvm::StringRef view);
// Nothing where no gradient flows.
std::optional<MoveText> gradientText(const TypedModule &typed, const Instance &instance, const Move &move, llvm::StringRef view);

class Expansion {
public:
  explicit Expansion(const TypedModule &typed);

  const LocalNames &names(FunctionId function) const { return localNames[function.index]; }
  // "layers.3.moe" + "h" -> "layers.3.moe.h"; the result of a module is the module.
  std::string fullName(llvm::StringRef path, const Instance &instance, ValueId value) const;
  std::string callPath(llvm::StringRef path, const Instance &instance, uint32_t op) const;

  struct Visitor {
    // False leaves out the module's own values and moves; what it calls is still visited.
    llvm::function_ref<bool(llvm::StringRef path, const Instance &instance)> enter;
    llvm::function_ref<void(llvm::StringRef path, const Instance &instance, ValueId value, uint32_t run)> value;
    llvm::function_ref<void(llvm::StringRef path, const Instance &instance, const Move &move)> move;
  };
  // Everything in order of execution, every layer on its own.
  void visit(const Visitor &visitor) const { visitInstance("", typed.root, rootRun(), visitor); }

  // Backward passes, told apart by the gradients that they start from: that of the whole program, and the one of a call in `run`.
  uint32_t rootRun() const { return uint32_t(gradients.runs.size()) - 1; }
  uint32_t callRun(uint32_t run, uint32_t op) const;
  // What tells gradients of one run apart, as a key; and its text.
  uint32_t gradientOf(uint32_t run, ValueId value) const;
  std::string gradientText(const Type &type, uint32_t gradient, llvm::StringRef view) const;

private:
  void visitInstance(const std::string &path, uint32_t index, uint32_t run, const Visitor &visitor) const;

  const TypedModule &typed;
  ValueGradients gradients;
  std::vector<LocalNames> localNames;
};

// Which modules a pattern selects: those whose path matches, and all below them.
class ModuleFilter {
public:
  explicit ModuleFilter(llvm::StringRef pattern);
  bool all() const { return everything; }
  bool valid() const { return everything || glob.has_value(); }
  bool selects(llvm::StringRef path) const;

private:
  bool everything;
  std::optional<llvm::GlobPattern> glob;
};

} // namespace shardc
