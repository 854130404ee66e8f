// Sync: a gradient's state per axis runs through the rules of its family, exactly.
//
// A sum over n ranks finishes P, multiplies by n what every rank held whole or as parts of a mean, and mixes what ranks hold
// different shards of. An average divides by n in the same cases. Factors are rational numbers of group sizes, so what is
// left at the end is the exact factor against the true gradient. The worst fault of a parameter is its verdict.
//
// Here is the judgement; what is said about it stands in SyncReport.cpp, the clip norm in Norm.cpp.
#include "shardc/Verify/Sync.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

namespace shardc {

llvm::StringRef verdictName(SyncVerdict v) {
  switch (v) {
  case SyncVerdict::Right:
    return "right";
  case SyncVerdict::Missing:
    return "missing";
  case SyncVerdict::Repeated:
    return "repeated";
  case SyncVerdict::Mixed:
    return "mixed";
  case SyncVerdict::Scaled:
    return "scaled";
  case SyncVerdict::Early:
    return "early";
  case SyncVerdict::Unknown:
    return "unknown";
  case SyncVerdict::Unchecked:
    return "unchecked";
  }
  return "";
}

bool matchesPattern(llvm::StringRef text, llvm::StringRef pattern) {
  // Iterative matching with one point of return per star.
  size_t t = 0, p = 0, star = llvm::StringRef::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = ++t; // a star takes at least one character
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != llvm::StringRef::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  return p == pattern.size();
}

namespace {

// What the rules do to one gradient, step by step; marks what went wrong.
class Reduction {
public:
  Reduction(const Axes &a, const SyncPlan &p, SyncRow &r, Gradient g) : axes(a), plan(p), row(r), gradient(std::move(g)) {}

  void apply(const SyncRule &rule) {
    checkEarly(rule);
    gradient.scale.multiply(rule.scale);
    last = rule.range;
    if (rule.op != SyncOp::None) {
      llvm::SmallVector<AtomId, 8> before = finished;
      for (AtomId a : rule.over) {
        reduce(rule, a);
      }
      noteGroups(before, rule);
    }
    for (AtomId a : rule.shardedOver) {
      if (stateOf(gradient.type, a) == State::S) {
        fault(SyncVerdict::Mixed, {a}, rule);
      }
    }
    if (!rule.shardedOver.empty()) {
      row.shardedOver = rule.shardedOver;
      row.shardDim = rule.shardDim;
      row.shardEven = rule.shardEven;
      row.keptBy = rule.range;
      row.keptAt = rule.shardDecided;
    }
  }

  void finish() {
    row.scale = gradient.scale;
    // A repeated sum whose factor another rule takes back does no harm.
    if (row.verdict == SyncVerdict::Repeated && row.scale.isOne()) {
      row.verdict = SyncVerdict::Right;
      row.atoms.clear();
      row.rule = SourceRange();
    }
    for (AtomId a : activeAtoms(gradient.type)) {
      const State s = stateOf(gradient.type, a);
      const bool unfinished = s == State::P || s == State::PAvg;
      if (unfinished && (row.verdict == SyncVerdict::Right || row.verdict == SyncVerdict::Missing)) {
        row.verdict = SyncVerdict::Missing;
        row.atoms.push_back(a);
      }
    }
    if (row.verdict == SyncVerdict::Right && !row.scale.isOne()) {
      row.verdict = SyncVerdict::Scaled;
      row.rule = last;
    }
    row.synchronised = std::move(gradient.type);
  }

private:
  // An average of what has been added up leaves what was averaged before as it is; a sum or a factor does not.
  void checkEarly(const SyncRule &rule) {
    if (!rule.everyMicroStep || plan.microSteps <= 1) {
      return;
    }
    const bool sums = rule.op == SyncOp::Sum && !rule.over.empty();
    if (sums || !rule.scale.isOne()) {
      row.early = sums ? "summed" : "scaled";
      fault(SyncVerdict::Early, {}, rule);
    }
  }

  void reduce(const SyncRule &rule, AtomId a) {
    const uint32_t block = axes.atom(a).block;
    if (axes.variantCount(block) > 1) { // the rule's axes may cut these ranks differently
      std::optional<Type> cut = recut(gradient.type, block, axes.atom(a).variant, axes);
      if (!cut) {
        fault(SyncVerdict::Mixed, {a}, rule);
        return;
      }
      gradient.type = std::move(*cut);
    }
    const bool sum = rule.op == SyncOp::Sum;
    switch (axes.isStage(a) && !isTiedOver(a) ? State::S : stateOf(gradient.type, a)) {
    case State::S: // also stages: each has parameters of its own
    case State::V:
    case State::PMax:
    case State::PMin:
      fault(SyncVerdict::Mixed, {a}, rule);
      return;
    case State::P:
      if (!sum) {
        gradient.scale.multiplyRanks(axes, a, -1);
      }
      finished.push_back(a);
      break;
    case State::R:
    case State::I:
      if (sum) {
        gradient.scale.multiplyRanks(axes, a, 1);
        fault(SyncVerdict::Repeated, {a}, rule);
      }
      break;
    case State::PAvg:
      if (sum) {
        gradient.scale.multiplyRanks(axes, a, 1);
      }
      finished.push_back(a);
      break;
    }
    setState(gradient.type, a, State::R);
  }

  bool isTiedOver(AtomId a) const { return row.familyIndex && llvm::is_contained(plan.families[*row.familyIndex].tiedOver, a); }

  // Copies that an earlier rule made equal, reduced once more in groups of their own.
  void noteGroups(llvm::ArrayRef<AtomId> before, const SyncRule &rule) {
    llvm::SmallVector<AtomId, 6> apart;
    for (AtomId a : llvm::ArrayRef(finished).drop_front(before.size())) {
      apart.push_back(a);
    }
    if (before.empty() || apart.empty() || !row.copies.empty()) {
      return;
    }
    row.copies.append(before.begin(), before.end());
    llvm::sort(row.copies);
    row.apart = std::move(apart);
    row.apartBy = rule.range;
  }

  // The first fault of the worst kind stays; several axes of one fault are gathered.
  void fault(SyncVerdict v, llvm::ArrayRef<AtomId> atoms, const SyncRule &rule) {
    const bool worse = row.verdict == SyncVerdict::Right || (v == SyncVerdict::Mixed && row.verdict != SyncVerdict::Mixed);
    if (worse) {
      row.atoms.clear();
      row.verdict = v;
      row.rule = rule.range;
    }
    for (AtomId a : atoms) {
      if (row.verdict == v && !llvm::is_contained(row.atoms, a)) {
        row.atoms.push_back(a);
      }
    }
  }

  const Axes &axes;
  const SyncPlan &plan;
  SyncRow &row;
  Gradient gradient;
  SourceRange last;                      // the last rule that ran
  llvm::SmallVector<AtomId, 8> finished; // by rules so far
};

std::optional<uint32_t> familyOf(const SyncPlan &plan, const ParamGradient &p) {
  for (uint32_t i = 0; i < plan.families.size(); ++i) {
    if (llvm::any_of(plan.families[i].patterns,
                     [&](const std::string &s) { return matchesPattern(p.path, s) || matchesPattern(p.first, s); })) {
      return i;
    }
  }
  return std::nullopt;
}

std::string ruleText(const SyncRule &r) {
  std::string text;
  if (r.op != SyncOp::None && !r.over.empty()) {
    text = (r.op == SyncOp::Sum ? "sum over " : "average over ") + r.overText;
    text += r.shardedOver.empty() ? "" : " (kept on dim " + std::to_string(r.shardDim) + ")";
    text += r.dtype.empty() ? "" : " in " + r.dtype;
  }
  if (!r.scale.isOne()) {
    text += (text.empty() ? "times " : " times ") + r.scale.text();
  }
  return text;
}

// The rules that apply to a parameter of this type: of each step the first that does.
std::vector<const SyncRule *> rulesFor(const SyncFamily &family, const Type &type) {
  std::vector<const SyncRule *> rules;
  for (const SyncRule &r : family.rules) {
    const bool fits = !r.typed || llvm::all_of(r.over, [&](AtomId a) { return stateOf(type, a) == *r.typed; });
    if (fits && llvm::none_of(rules, [&](const SyncRule *taken) { return taken->step == r.step; })) {
      rules.push_back(&r);
    }
  }
  return rules;
}

void judge(SyncRow &row, const Type &type, const Axes &axes, const SyncPlan &plan) {
  const SyncFamily *family = row.familyIndex ? &plan.families[*row.familyIndex] : nullptr;
  row.verdict = SyncVerdict::Right;
  for (AtomId a : family ? llvm::ArrayRef(family->tiedOver) : llvm::ArrayRef<AtomId>()) {
    setState(row.gradient->type, a, State::P); // each stage that uses it adds a part
  }
  Reduction reduction(axes, plan, row, *row.gradient);
  std::vector<std::string> texts, conditions;
  for (const SyncRule *r : family ? rulesFor(*family, type) : std::vector<const SyncRule *>()) {
    reduction.apply(*r);
    if (std::string text = ruleText(*r); !text.empty()) {
      texts.push_back(std::move(text));
    }
    if (!r->condition.empty()) {
      conditions.push_back(r->condition);
    }
  }
  row.sync = texts.empty() ? "none" : llvm::join(texts, "; ");
  row.condition = llvm::join(conditions, "; ");
  reduction.finish();
}

bool alike(const SyncRow &a, const SyncRow &b) {
  if (a.gradient.has_value() != b.gradient.has_value() ||
      (a.gradient && (!(a.gradient->type == b.gradient->type) || !(a.gradient->scale == b.gradient->scale)))) {
    return false;
  }
  return a.family == b.family && a.parameters == b.parameters && a.verdict == b.verdict && a.sync == b.sync;
}

} // namespace

std::vector<SyncRow> synchronise(const TypedModule &typed, const std::vector<ParamGradient> &params, const SyncPlan *plan) {
  std::vector<SyncRow> rows;
  std::map<std::string, std::vector<size_t>> byName;
  std::vector<std::string> firsts;
  for (const ParamGradient &p : params) {
    const Instance &instance = typed.instances[p.instance];
    const Value &value = typed.module.function(instance.function).values[p.param.index];
    SyncRow row;
    row.parameters = p.path;
    row.count = p.uses;
    row.gradient = p.gradient;
    row.sync = "none";
    row.parameter = value.range;
    row.faulty = p.faulty;
    row.familyIndex = plan ? familyOf(*plan, p) : std::nullopt;
    row.family = row.familyIndex ? plan->families[*row.familyIndex].name : "none";
    if (p.gradient) {
      row.scale = p.gradient->scale;
      row.verdict = SyncVerdict::Unchecked;
      if (plan) {
        judge(row, typed.module.types[value.declared], typed.module.axes, *plan);
      }
    }
    std::vector<size_t> &known = byName[row.parameters];
    auto same = llvm::find_if(known, [&](size_t i) { return alike(rows[i], row); });
    if (same == known.end()) {
      known.push_back(rows.size());
      firsts.push_back(p.first);
      rows.push_back(std::move(row));
    } else if (__builtin_add_overflow(rows[*same].count, row.count, &rows[*same].count)) {
      rows[*same].count = INT64_MAX;
    }
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].parameters = rows[i].count == 1 ? firsts[i] : rows[i].parameters;
  }
  return rows;
}

} // namespace shardc
