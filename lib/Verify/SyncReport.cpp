// SyncReport: what is said about gradients that are not reduced rightly. One finding per cause: parameters that one rule
// treats wrongly in the same way are one message with a count.
#include "shardc/IR/Text.h"
#include "shardc/Verify/Sync.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc {
namespace {

// "{0,1} {2,3}", or how many there are where nobody could read them.
std::string groupsText(const Axes &axes, llvm::ArrayRef<AtomId> atoms) {
  const int64_t ranks = axes.product(atoms), groups = axes.world() / ranks;
  if (ranks > 8 || groups > 4) {
    return llvm::formatv("{0} groups of {1} ranks", groups, ranks).str();
  }
  std::string text = "groups";
  for (const std::vector<int64_t> &group : axes.groups(atoms)) {
    std::string one;
    for (int64_t rank : group) {
      one += (one.empty() ? "" : ",") + std::to_string(rank);
    }
    text += " {" + one + "}";
  }
  return text;
}

class SyncReporter {
public:
  SyncReporter(const TypedModule &t, DiagnosticEngine &d) : module(t.module), axes(t.module.axes), diags(d) {}

  // Rows of one cause; the first stands for all.
  void report(llvm::ArrayRef<const SyncRow *> rows) {
    const SyncRow &row = *rows[0];
    std::vector<std::string> names;
    int64_t count = 0;
    for (const SyncRow *r : rows) {
      count = __builtin_add_overflow(count, r->count, &count) ? INT64_MAX : count;
      if (!llvm::is_contained(names, r->parameters)) {
        names.push_back(r->parameters);
      }
    }
    DiagnosticBuilder b = emit(row);
    if (const SyncRule *rule = decidedBy(row)) {
      b.label(rule->decided, row.family + ": " + rule->decidedText + (row.verdict == SyncVerdict::Missing ? " only" : ""));
    }
    b.note("gradient `" + print(row.gradient->type, module, module.view) + "`; synchronised: " + row.sync);
    if (const auto left = unfinished(row); row.verdict != SyncVerdict::Missing && !left.empty()) {
      b.note("besides, it is still partial over `" + axes.describe(left, module.view) + "`, and nothing sums it");
    }
    if (names.size() > 1) {
      std::string others;
      for (size_t i = 1; i < names.size() && i < 4; ++i) {
        others += (i > 1 ? ", `" : "`") + names[i] + "`";
      }
      b.note("the same of " + others + (names.size() > 4 ? " and " + std::to_string(names.size() - 4) + " more" : ""));
    }
    if (count > 1) {
      b.count(count, "parameters");
    }
  }

private:
  // What no rule has finished, whatever else is wrong.
  static llvm::SmallVector<AtomId, 6> unfinished(const SyncRow &row) {
    llvm::SmallVector<AtomId, 6> left;
    for (AtomId a : row.synchronised ? activeAtoms(*row.synchronised) : llvm::SmallVector<AtomId, 8>()) {
      if (isPartial(stateOf(*row.synchronised, a))) {
        left.push_back(a);
      }
    }
    return left;
  }

  // The rule that is wrong, or the first one where none is, if something that the user wrote decided it.
  const SyncRule *decidedBy(const SyncRow &row) const {
    const SyncRule *found = nullptr;
    for (const SyncRule &r :
         module.sync &&row.familyIndex ? llvm::ArrayRef(module.sync->families[*row.familyIndex].rules) : llvm::ArrayRef<SyncRule>()) {
      found = !found && r.decided.valid() && (!row.rule.valid() || row.rule == r.range) ? &r : found;
    }
    return found;
  }

  // A rule that is wrong is the place; for what no rule does it is where the user wrote rules, or the parameter.
  SourceRange placeOf(const SyncRow &row) const {
    if (const SyncRule *rule = decidedBy(row)) {
      return rule->decided;
    }
    if (row.rule.valid()) {
      return row.rule;
    }
    const SourceRange plan = module.sync ? module.sync->range : SourceRange();
    return plan.valid() && plan.file != row.parameter.file ? plan : row.parameter;
  }

  DiagnosticBuilder emit(const SyncRow &row) {
    const std::string over = axes.describe(row.atoms, module.view);
    const int64_t n = axes.product(row.atoms);
    const SourceRange place = placeOf(row);
    switch (row.verdict) {
    case SyncVerdict::Missing: {
      DiagnosticBuilder b = diags.emit<Diag::UnreducedGradient>(place, row.parameters, over);
      b.note(llvm::formatv("each of the {0} ranks of `{1}` keeps its own part: replicas drift apart", n, over).str());
      b.help(
          llvm::formatv("sum the gradients of family `{0}` over `{1}` as well ({2})", row.family, over, groupsText(axes, row.atoms)).str());
      return b;
    }
    case SyncVerdict::Repeated: {
      DiagnosticBuilder b = diags.emit<Diag::RepeatedReduction>(place, row.parameters, over, row.scale.describe(axes, module.view));
      b.help("leave `" + over + "` out of the sum, or average over it");
      return b;
    }
    case SyncVerdict::Mixed: {
      DiagnosticBuilder b = diags.emit<Diag::MixedReduction>(place, row.parameters, over);
      b.help("leave `" + over + "` out");
      return b;
    }
    case SyncVerdict::Scaled: {
      DiagnosticBuilder b = diags.emit<Diag::ScaledGradient>(place, row.parameters, row.scale.describe(axes, module.view));
      b.help("scale it by " + Rational{}.times(row.scale.value.den, row.scale.value.num).text());
      return b;
    }
    case SyncVerdict::Early:
      break;
    case SyncVerdict::Right:
    case SyncVerdict::Unknown:
    case SyncVerdict::Unchecked:
      llvm_unreachable("only what is wrong is reported");
    }
    DiagnosticBuilder b = diags.emit<Diag::EarlyReduction>(place, row.parameters, row.early);
    b.help("do it once after the last micro-step, or to each contribution before it is added (`when: contribution`)");
    return b;
  }

  const Module &module;
  const Axes &axes;
  DiagnosticEngine &diags;
};

bool isWrong(SyncVerdict v) { return v != SyncVerdict::Right && v != SyncVerdict::Unknown && v != SyncVerdict::Unchecked; }

bool sameCause(const SyncRow &a, const SyncRow &b) {
  return a.verdict == b.verdict && a.familyIndex == b.familyIndex && a.rule == b.rule && a.atoms == b.atoms && a.scale == b.scale &&
         a.early == b.early;
}

// Copies that two reductions over different groups made: warned of unless somebody says why they stay equal.
void reportApart(const Module &module, llvm::ArrayRef<SyncRow> rows, DiagnosticEngine &diags) {
  if (module.sync && !module.sync->sameBits.empty()) {
    return;
  }
  std::vector<const SyncRow *> told;
  for (const SyncRow &row : rows) {
    const bool again = llvm::any_of(told, [&](const SyncRow *t) { return t->apartBy == row.apartBy && t->copies == row.copies; });
    if (row.apart.empty() || again || isWrong(row.verdict)) {
      continue;
    }
    told.push_back(&row);
    diags
        .emit<Diag::UnequalReductions>(row.apartBy, row.parameters, module.axes.describe(row.copies, module.view),
                                       module.axes.describe(row.apart, module.view))
        .help("reduce over both at once, or say why they stay equal: `same_bits: REASON` among the rules");
  }
}

} // namespace

void reportSync(const TypedModule &typed, llvm::ArrayRef<SyncRow> rows, DiagnosticEngine &diags) {
  std::vector<bool> told(rows.size());
  SyncReporter reporter(typed, diags);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (told[i] || !isWrong(rows[i].verdict)) {
      continue;
    }
    std::vector<const SyncRow *> cause;
    for (size_t j = i; j < rows.size(); ++j) {
      if (!told[j] && sameCause(rows[i], rows[j])) {
        told[j] = true;
        cause.push_back(&rows[j]);
      }
    }
    reporter.report(cause);
  }
  for (const SyncRow &row : rows) {
    if (row.verdict == SyncVerdict::Unknown && !row.faulty && typed.module.loss) {
      DiagnosticBuilder b = diags.emit<Diag::NoGradient>(row.parameter, row.parameters);
      if (row.count > 1) {
        b.count(row.count, "parameters");
      }
    }
  }
  reportApart(typed.module, rows, diags);
}

void reportPlan(const TypedModule &typed, const std::vector<ParamGradient> &params, DiagnosticEngine &diags) {
  const SyncPlan &plan = *typed.module.sync;
  auto matches = [](const ParamGradient &p, const std::string &pattern) {
    return matchesPattern(p.path, pattern) || matchesPattern(p.first, pattern);
  };
  auto expectSome = [&](llvm::ArrayRef<std::string> patterns, SourceRange range) {
    for (const std::string &pattern : patterns) {
      if (llvm::none_of(params, [&](const ParamGradient &p) { return matches(p, pattern); })) {
        diags.emit<Diag::PatternMatchesNothing>(range, pattern);
      }
    }
  };
  for (const SyncFamily &family : plan.families) {
    expectSome(family.written ? llvm::ArrayRef(family.patterns) : llvm::ArrayRef<std::string>(), family.range);
  }
  for (const SyncUnit &unit : plan.units) {
    expectSome(unit.patterns, unit.range);
  }
  for (const ParamGradient &p : params) {
    const SyncUnit *first = nullptr;
    for (const SyncUnit &unit : plan.units) {
      if (llvm::none_of(unit.patterns, [&](const std::string &s) { return matches(p, s); })) {
        continue;
      }
      if (first) {
        diags.emit<Diag::TwoUnits>(unit.range, p.uses == 1 ? p.first : p.path, first->name, unit.name).label(first->range, "and here");
      }
      first = &unit;
    }
  }
}

} // namespace shardc
