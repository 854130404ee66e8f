// Strategy: a strategy file, reduced to the rules that apply to one job, and the matching of rules to modules.
#pragma once

#include "CatalogTerms.h"

namespace shardc {

// `x: "L@tp -> R@tp"`: what a rule says about one input, parameter, value or result.
struct RuleEntry {
  Located<std::string> name; // empty: the first result
  Located<std::string> text;
  bool used = false;
};

struct StrategyRule {
  Located<std::string> module;
  std::vector<std::vector<std::string>> components; // per component its alternatives; `*` is any
  std::vector<RuleEntry> params, in, values, out;
  bool matched = false;
};

// A rule of which some leading components have been matched on the way down to a module.
struct RuleState {
  uint32_t rule = 0;
  uint32_t matched = 0;
  auto operator<=>(const RuleState &) const = default;
};

class Strategy {
public:
  // Whether the name is that of a shipped strategy or a file. Reported at its place if not.
  static bool exists(const Located<std::string> &name, DiagnosticEngine &diags);
  // Reads a shipped strategy by name or one on disk; rules whose conditions do not hold are left out.
  static std::optional<Strategy> read(const Job &job, DiagnosticEngine &diags);

  std::vector<RuleEntry> inputs;
  std::vector<StrategyRule> rules;
  std::map<std::string, Located<int64_t>> sizes; // that the strategy computes for the model: padded lengths

  // Of the whole model; and what is left of them below a submodule of that name.
  std::vector<RuleState> start() const;
  std::vector<RuleState> below(llvm::ArrayRef<RuleState> states, llvm::StringRef component) const;
  // Rules that end at a module. They count as matched from now on.
  std::vector<uint32_t> endingAt(llvm::ArrayRef<RuleState> states);
  // The first of the rules that says something about `name`; all that do count as used.
  const RuleEntry *find(llvm::ArrayRef<uint32_t> ending, std::vector<RuleEntry> StrategyRule::*where, llvm::StringRef name);
  // Rules that matched no module, and entries that named nothing in it.
  void reportUnused(DiagnosticEngine &diags) const;
};

} // namespace shardc
