// CatalogTerms: what catalogue files may say about numbers and conditions: `N / G`, `layers - dense_layers`,
// `if: {sp: true, E: "> 0"}`. No more than that: whatever needs a real language belongs into the program that reads the files.
#pragma once

#include "shardc/Frontend/Job.h"
#include <functional>

namespace shardc {

// The names that terms may use: sizes are numbers, switches are text. A switch hides a size of the same name.
class TermScope {
public:
  TermScope(const Job &j, const std::map<std::string, std::string> &more) : job(j), fallback(more) {}

  // The text of a switch or size; nothing if nobody defined it.
  std::optional<std::string> text(llvm::StringRef name) const;
  std::optional<int64_t> size(llvm::StringRef name) const;
  std::vector<std::string> names() const; // sorted

private:
  const Job &job;
  const std::map<std::string, std::string> &fallback; // for switches that the job does not name
};

// One `if:` mapping. All its terms must hold.
struct Condition {
  struct Term {
    Located<std::string> name;
    Located<std::string> wanted; // `true`, `softmax`, `> 0`, `!= 1`
  };
  std::vector<Term> terms;
};

// Adds the terms of an `if:` node; what is no mapping of scalars is reported.
void readCondition(const ConfigNode &node, Condition &condition, DiagnosticEngine &diags);
// Nothing if a name is unknown or a comparison cannot be made (reported).
std::optional<bool> holds(const Condition &condition, const TermScope &scope, DiagnosticEngine &diags);
// on, yes -> true; off, no -> false; everything else stays.
std::string normalSwitch(llvm::StringRef text);

using NumberOf = std::function<std::optional<int64_t>(llvm::StringRef name)>;
// + - * / ceil() and brackets over whole numbers and names; a division must come out even, but for one inside `ceil`.
// Nothing if the text is wrong, a name is unknown or a number is too large; reported.
std::optional<int64_t> evaluate(llvm::StringRef text, SourceRange range, const NumberOf &number, DiagnosticEngine &diags);
// The names that a term uses, in order.
std::vector<std::string> namesIn(llvm::StringRef text);

// A YAML scalar with its place; empty for other nodes.
inline Located<std::string> scalarOf(const ConfigNode &node) { return {node.scalar, node.range}; }

} // namespace shardc
