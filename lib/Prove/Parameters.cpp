// Parameters: each one's gradient against the true one, before and after the framework has synchronised it.
//
// A gradient that is k times the true one, in every element and with k a ratio of small integers, is reported as that ratio:
// nothing is compared within a tolerance. After synchronisation the ranks are looked at one by one, so that "each rank wrong,
// their mean right" is seen as such.
#include "Execution.h"
#include "shardc/Verify/Sync.h"
#include "llvm/ADT/STLExtras.h"
#include <map>
#include <set>

namespace shardc {
namespace {

constexpr int64_t Largest = 1 << 20;

// k as a ratio of two small integers.
std::optional<Rational> asRational(Element k) {
  for (int64_t den = 1; den <= 4096; ++den) {
    const Element num = multiply(k, fromInteger(den));
    if (num < Largest || Prime - num < Largest) {
      const int64_t signedNum = num < Largest ? static_cast<int64_t>(num) : -static_cast<int64_t>(Prime - num);
      const int64_t common = std::max<int64_t>(std::gcd(signedNum, den), 1);
      Rational r;
      r.num = signedNum / common;
      r.den = den / common;
      return r;
    }
  }
  return std::nullopt;
}

// held = k * part in every element. Elements may be few or none: then any ratio fits, and 1 is said.
struct RatioFinder {
  std::optional<Element> ratio;
  bool possible = true;

  // One inverse per finder: the first element gives k, the others are checked by products.
  void check(llvm::ArrayRef<Element> held, llvm::ArrayRef<Element> part) {
    possible &= held.size() == part.size();
    for (size_t i = 0; possible && i < held.size(); ++i) {
      if (!ratio && part[i] != 0) {
        ratio = multiply(held[i], inverse(part[i]));
      }
      possible = ratio ? multiply(*ratio, part[i]) == held[i] : held[i] == 0;
    }
  }
  std::optional<Rational> result() const { return possible ? asRational(ratio.value_or(1)) : std::nullopt; }
};

void multiplyAll(Tensor &t, const Rational &by) {
  const Element k = multiply(fromInteger(by.num), inverse(fromInteger(by.den)));
  for (Element &e : t.data) {
    e = multiply(e, k);
  }
}

} // namespace

void Execution::visitParams(const Frame &frame, llvm::function_ref<void(const Frame &, ValueId)> visit) {
  for (const auto &callee : frame.callees) {
    if (callee && !callee->grads.empty()) {
      visitParams(*callee, visit);
    }
  }
  for (ValueId v : functionOf(frame).params) {
    visit(frame, v);
  }
}

void Execution::judgeParameters(Frame &root) {
  SourceManager sources;
  DiagnosticEngine discarded(sources);
  const std::vector<ParamGradient> claims = inferGradients(typed, discarded);
  // Behind a gradient that the checker finds wrong it goes on as if that were mended: it claims nothing of this program.
  const bool claimed = !discarded.hasErrors();
  std::map<std::pair<uint32_t, uint32_t>, std::vector<const ParamGradient *>> known;
  for (const ParamGradient &c : claims) {
    known[{c.instance, c.param.index}].push_back(&c);
  }
  proof.synchronised = module.sync.has_value();
  visitParams(root, [&](const Frame &frame, ValueId v) {
    if (!typeOf(frame, v)->grad || isVarying(*typeOf(frame, v))) {
      return;
    }
    const auto &list = known[{frame.instance, v.index}];
    const std::string name = nameOf(frame, v);
    const ParamGradient *claim = list.empty() ? nullptr : list.front();
    for (const ParamGradient *c : list) {
      claim = c->path == name ? c : claim;
    }
    judgeParameter(frame, v, claimed && claim && claim->gradient ? &*claim->gradient : nullptr);
    if (claim && module.sync) {
      const SyncRow row = shardc::synchronise(typed, {*claim}, &*module.sync).front();
      compareVerdict(frame, v, row, claimed);
      compareNorm(frame, v, row);
    }
  });
}

// Both roads on a synchronised gradient. What the checker calls right must be the true one; a factor that it gives must be
// the factor. What it leaves open (a missing reduction, which ranks differ by) only has to be wrong.
void Execution::compareVerdict(const Frame &frame, ValueId v, const SyncRow &row, bool claimed) {
  ParameterProof &p = proof.parameters.back();
  p.verdict = row.verdict;
  const bool factor = row.verdict == SyncVerdict::Right || row.verdict == SyncVerdict::Scaled || row.verdict == SyncVerdict::Repeated;
  if (!factor || p.none || !p.judged || proof.cut) {
    return;
  }
  const std::string claim = row.scale.describe(module.axes, module.view);
  if (p.synced == row.scale.value) {
    p.claimed = claim;
  } else if (claimed) {
    refute(frame, v,
           "the checker gives " + claim + " of the true gradient after synchronisation, the run " +
               (p.synced ? p.synced->text()
                : p.mean ? "another on each rank, their mean " + p.mean->text()
                         : "no multiple of it"),
           true);
  }
}

// The clip norm as ranks really add it up: of rank 0's group over the norm's axes each rank gives the squares of what it keeps,
// copies over `once` give nothing. Where a framework shards gradients, any partition of the elements will do.
void Execution::compareNorm(const Frame &frame, ValueId v, const SyncRow &row) {
  ParameterProof &p = proof.parameters.back();
  const SyncFamily *family = row.familyIndex ? &module.sync->families[*row.familyIndex] : nullptr;
  const Axes &axes = module.axes;
  bool variants = false;
  for (uint32_t b = 0; b < axes.blockCount(); ++b) {
    variants |= axes.variantCount(b) > 1;
  }
  if (!family || !family->norm || !p.synced || !p.synced->isOne() || row.verdict != SyncVerdict::Right || proof.cut || variants) {
    return;
  }
  const Type &t = *typeOf(frame, v);
  const Tensor &whole = *frame.wholeGrads[v.index];
  const llvm::SmallVector<AtomId, 8> distinct = distinctOver(row, axes);
  Element counted = 0;
  for (int64_t rank : ranks.list) {
    bool adds = true;
    for (size_t i = 0; i < axes.atoms().size(); ++i) {
      const AtomId a(i);
      const bool copy = llvm::is_contained(family->norm->once, a) && !llvm::is_contained(distinct, a);
      adds &= axes.isStage(a) || axes.coordinate(rank, a) == 0 || (llvm::is_contained(family->norm->over, a) && !copy);
    }
    const std::optional<Tensor> part = adds ? cut(whole, t, rank, axes) : std::nullopt;
    const int64_t shards = axes.product(row.shardedOver);
    for (size_t e = 0; part && e < part->data.size(); ++e) {
      const bool kept = static_cast<int64_t>(e) % shards == axes.coordinate(rank, row.shardedOver);
      counted = kept ? add(counted, multiply(part->data[e], part->data[e])) : counted;
    }
  }
  p.normTaken = true;
  p.norm = asRational(multiply(counted, inverse(dot(whole.data.data(), whole.data.data(), whole.data.size()))));
  SourceManager sources;
  DiagnosticEngine findings(sources);
  reportNorm(typed, {row}, findings);
  if (findings.all().empty() && (!p.norm || !p.norm->isOne())) {
    refute(frame, v, "the clip norm does not count each element once, which the checker does not say", true);
  }
}

// After synchronisation each rank holds its part of the gradient; or else the mean over the ranks of a part is it.
void Execution::compareSynced(const Spread &g, const Tensor &whole, const Type &t, ParameterProof &result) {
  RatioFinder all;
  RatioFinder mean;
  llvm::SmallVector<AtomId, 8> sharding;
  for (AtomId a : activeAtoms(t)) {
    if (stateOf(t, a) == State::S) {
      sharding.push_back(a);
    }
  }
  std::map<std::vector<int64_t>, std::pair<Tensor, int64_t>> sums; // per part: of all ranks that hold it
  for (size_t i = 0; i < ranks.list.size(); ++i) {
    const std::optional<Tensor> part = cut(whole, t, ranks.list[i], module.axes);
    all.check(g.ranks[i].data, part ? part->data : std::vector<Element>());
    std::vector<int64_t> key;
    for (AtomId a : sharding) {
      key.push_back(module.axes.coordinate(ranks.list[i], a));
    }
    auto [it, isNew] = sums.try_emplace(key, g.ranks[i], 1);
    for (size_t e = 0; !isNew && e < it->second.first.data.size(); ++e) {
      it->second.first.data[e] = add(it->second.first.data[e], g.ranks[i].data[e]);
    }
    it->second.second += isNew ? 0 : 1;
  }
  result.synced = all.result();
  for (size_t i = 0; !result.synced && i < ranks.list.size(); ++i) {
    std::vector<int64_t> key;
    for (AtomId a : sharding) {
      key.push_back(module.axes.coordinate(ranks.list[i], a));
    }
    Tensor average = sums[key].first;
    Rational share;
    share.den = sums[key].second;
    multiplyAll(average, share);
    const std::optional<Tensor> part = cut(whole, t, ranks.list[i], module.axes);
    mean.check(average.data, part ? part->data : std::vector<Element>());
  }
  result.mean = result.synced ? std::nullopt : mean.result();
}

void Execution::judgeParameter(const Frame &frame, ValueId v, const Gradient *claimed) {
  const Type &t = *typeOf(frame, v);
  ParameterProof result;
  result.path = nameOf(frame, v);
  result.range = functionOf(frame).values[v.index].range;
  if (frame.grads[v.index].failed || !frame.wholeGrads[v.index]) {
    result.none = true;
    proof.parameters.push_back(std::move(result));
    return;
  }
  ++proof.compared;
  Spread g = frame.grads[v.index];
  const Tensor &whole = *frame.wholeGrads[v.index];
  if (claimed && !proof.cut) {
    Tensor expected = whole;
    multiplyAll(expected, claimed->scale.value);
    for (AtomId a : activeAtoms(t)) { // of a mean over n ranks each rank's own part has 1/n of the gradient
      if (stateOf(t, a) == State::PAvg) {
        multiplyAll(expected, Rational{1, module.axes.atom(a).size});
      }
    }
    std::string wrong = compareSpread(g, expected, claimed->type, ranks, module);
    result.ratio = wrong.empty() ? std::optional(claimed->scale.value) : std::nullopt;
    if (!wrong.empty()) {
      refute(frame, v, std::move(wrong), true);
    }
  }
  if (module.sync && synchronise(result.path, g, t)) {
    result.judged = true;
    compareSynced(g, whole, t, result);
  }
  proof.parameters.push_back(std::move(result));
}

// Runs the rules of the parameter's family; false if no family has it.
bool Execution::synchronise(const std::string &path, Spread &g, const Type &type) {
  for (const SyncFamily &family : module.sync->families) {
    if (llvm::none_of(family.patterns, [&](const std::string &p) { return matchesPattern(path, p); })) {
      continue;
    }
    std::set<std::string> done; // of each step the first rule that takes a parameter in this state
    for (const SyncRule &rule : family.rules) {
      const bool takes = !rule.typed || llvm::all_of(rule.over, [&](AtomId a) { return stateOf(type, a) == *rule.typed; });
      if (!takes || !done.insert(rule.step).second) {
        continue;
      }
      // One stage runs, with the whole model on it: what several stages would add up is already added.
      llvm::SmallVector<AtomId, 6> over;
      llvm::copy_if(rule.over, std::back_inserter(over), [&](AtomId a) { return !module.axes.isStage(a); });
      if (rule.op != SyncOp::None && !over.empty()) {
        Spread next;
        std::string error;
        const Primitive p = rule.op == SyncOp::Average ? Primitive::AllReduceMean : Primitive::AllReduce;
        if (!exchange({p, &type, &type, over}, g, ranks, module, next, error)) {
          return false;
        }
        g = std::move(next);
      }
      for (Tensor &t : g.ranks) {
        multiplyAll(t, rule.scale.value);
      }
    }
    return true;
  }
  return false;
}

} // namespace shardc
