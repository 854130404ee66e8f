// Sync: a gradient's state per axis runs through the rules of its family, exactly.
//
// A sum over n ranks finishes P, multiplies by n what every rank held whole or as parts of a mean, and mixes what ranks hold
// different shards of. An average divides by n in the same cases. Factors are rational numbers of group sizes, so what is
// left at the end is the exact factor against the true gradient. The worst fault of a parameter is its verdict.
#include "shardc/Verify/Sync.h"
#include "shardc/IR/Text.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc {
namespace {

// What one rule does to a gradient; marks what went wrong.
class Reduction {
public:
  Reduction(const Axes &a, SyncRow &r, Gradient g) : axes(a), row(r), gradient(std::move(g)) {}

  void apply(const SyncRule &rule, int64_t microSteps) {
    gradient.scale = gradient.scale.times(rule.scale);
    if (rule.op == SyncOp::None) {
      return;
    }
    if (rule.everyMicroStep && microSteps > 1) {
      fault(SyncVerdict::Early, {}, rule);
    }
    for (AtomId a : rule.over) {
      reduce(rule, a);
    }
  }

  void finish() {
    for (AtomId a : activeAtoms(gradient.type)) {
      State s = stateOf(gradient.type, a);
      if (s == State::P || s == State::PAvg) {
        if (row.verdict == SyncVerdict::Right || row.verdict == SyncVerdict::Missing) {
          row.verdict = SyncVerdict::Missing;
          row.atoms.push_back(a);
        }
      }
    }
    row.scale = gradient.scale;
    if (row.verdict == SyncVerdict::Right && !row.scale.isOne()) {
      row.verdict = SyncVerdict::Scaled;
    }
    // A repeated sum whose factor another rule takes back leaves a right gradient.
    if (row.verdict == SyncVerdict::Repeated && row.scale.isOne()) {
      row.verdict = SyncVerdict::Right;
      row.atoms.clear();
    }
  }

private:
  void reduce(const SyncRule &rule, AtomId a) {
    int64_t n = axes.atom(a).size;
    State s = stateOf(gradient.type, a);
    bool sum = rule.op == SyncOp::Sum;
    switch (s) {
    case State::S:
      fault(SyncVerdict::Mixed, {a}, rule);
      return;
    case State::P:
      gradient.scale = sum ? gradient.scale : gradient.scale.times(1, n);
      break;
    case State::R:
    case State::I:
      if (sum) {
        gradient.scale = gradient.scale.times(n, 1);
        fault(SyncVerdict::Repeated, {a}, rule);
      }
      break;
    case State::PAvg:
      gradient.scale = sum ? gradient.scale.times(n, 1) : gradient.scale;
      break;
    case State::V:
    case State::PMax:
    case State::PMin:
      fault(SyncVerdict::Mixed, {a}, rule);
      return;
    }
    setState(gradient.type, a, State::R);
  }

  // The first fault of the worst kind stays; several axes of one fault are gathered.
  void fault(SyncVerdict v, llvm::ArrayRef<AtomId> atoms, const SyncRule &rule) {
    bool worse = row.verdict == SyncVerdict::Right || (v == SyncVerdict::Mixed && row.verdict != SyncVerdict::Mixed);
    if (worse) {
      row.atoms.clear();
      row.verdict = v;
      row.rule = rule.range;
    }
    if (row.verdict == v) {
      row.atoms.append(atoms.begin(), atoms.end());
    }
  }

  const Axes &axes;
  SyncRow &row;
  Gradient gradient;
};

const SyncFamily *familyOf(const SyncPlan &plan, llvm::StringRef path) {
  for (const SyncFamily &f : plan.families) {
    if (llvm::any_of(f.patterns, [&](const std::string &p) { return matchesPattern(path, p); })) {
      return &f;
    }
  }
  return nullptr;
}

std::string ruleText(const SyncRule &r) {
  std::string text = r.op == SyncOp::Sum ? "sum over " + r.overText : r.op == SyncOp::Average ? "average over " + r.overText : "";
  if (!r.scale.isOne()) {
    text += (text.empty() ? "times " : " times ") + r.scale.text();
  }
  return text.empty() ? "left alone" : text;
}

// Numbers in a path become `*`, so that layers alike share a row.
std::string pathPattern(llvm::StringRef path) {
  std::string out;
  llvm::SmallVector<llvm::StringRef, 8> parts;
  path.split(parts, '.');
  for (llvm::StringRef p : parts) {
    bool number = !p.empty() && llvm::all_of(p, [](char c) { return c >= '0' && c <= '9'; });
    out += (out.empty() ? "" : ".") + (number ? std::string("*") : p.str());
  }
  return out;
}

} // namespace

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

std::vector<SyncRow> synchronise(const TypedModule &typed, const std::vector<ParamGradient> &params, const SyncPlan &plan) {
  std::vector<SyncRow> rows;
  const Axes &axes = typed.module.axes;
  for (const ParamGradient &p : params) {
    const Instance &instance = typed.instances[p.instance];
    const Value &value = typed.module.function(instance.function).values[p.param.index];
    if (!value.declared.valid() || !typed.module.types[value.declared].grad) {
      continue; // a buffer
    }
    SyncRow row;
    row.parameters = pathPattern(p.path);
    row.count = p.uses;
    row.gradient = p.gradient;
    const SyncFamily *family = familyOf(plan, p.path);
    row.family = family ? family->name : "none";
    row.sync = "none";
    if (p.gradient) {
      row.verdict = SyncVerdict::Right;
      Reduction reduction(axes, row, *p.gradient);
      std::string text;
      for (const SyncRule &r : family ? llvm::ArrayRef(family->rules) : llvm::ArrayRef<SyncRule>()) {
        reduction.apply(r, plan.microSteps);
        text += (text.empty() ? "" : "; ") + ruleText(r);
        row.condition = r.condition.empty() ? row.condition : r.condition;
      }
      row.sync = text.empty() ? "none" : text;
      reduction.finish();
    }
    auto same = llvm::find_if(rows, [&](const SyncRow &r) {
      bool gradients = r.gradient.has_value() == row.gradient.has_value() &&
                       (!r.gradient || (r.gradient->type == row.gradient->type && r.gradient->scale == row.gradient->scale));
      return r.family == row.family && r.parameters == row.parameters && gradients && r.verdict == row.verdict;
    });
    if (same != rows.end()) {
      same->count += row.count;
    } else {
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

void reportSync(const TypedModule &typed, llvm::ArrayRef<SyncRow> rows, DiagnosticEngine &diags) {
  const Module &m = typed.module;
  for (const SyncRow &row : rows) {
    std::string axes = m.axes.describe(row.atoms, m.view);
    int64_t n = m.axes.product(row.atoms);
    auto finish = [&](DiagnosticBuilder b) {
      b.note("gradient `" + print(row.gradient->type, m, m.view) + "`; synchronised: " + row.sync).count(row.count, "parameters");
    };
    switch (row.verdict) {
    case SyncVerdict::Right:
    case SyncVerdict::Unknown:
      break;
    case SyncVerdict::Missing:
      finish(diags.emit<Diag::UnreducedGradient>(row.rule, row.parameters, axes)
                 .note(llvm::formatv("each of the {0} ranks of `{1}` keeps its own part: replicas drift apart", n, axes).str())
                 .help(llvm::formatv("sum the gradients of family `{0}` over `{1}` as well", row.family, axes).str()));
      break;
    case SyncVerdict::Repeated:
      finish(diags.emit<Diag::RepeatedReduction>(row.rule, row.parameters, axes, row.scale.text()));
      break;
    case SyncVerdict::Mixed:
      finish(diags.emit<Diag::MixedReduction>(row.rule, row.parameters, axes));
      break;
    case SyncVerdict::Scaled:
      finish(diags.emit<Diag::ScaledGradient>(row.rule, row.parameters, row.scale.text()));
      break;
    case SyncVerdict::Early:
      finish(diags.emit<Diag::EarlyReduction>(row.rule, row.parameters));
      break;
    }
  }
}

} // namespace shardc
