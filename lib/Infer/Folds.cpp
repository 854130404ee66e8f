// Folds: operations whose rule takes something from the call: reductions over a chosen dimension, einsum, dropout, and what
// creates values from nothing. Their typing is the general rule's, or follows from what a kernel without an offset can know.
#include "Typing.h"
#include "shardc/IR/Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace shardc {

const Attrs &attrsOf(const TypingContext &context) {
  static const Attrs nothing;
  return context.op.attrs.valid() ? context.module.attrs[context.op.attrs.index] : nothing;
}

// The one dimension of that name, whatever cuts it: `T` is `T@dp`, and `(b@dp l)` too if it is their product.
static std::optional<uint32_t> dimNamed(const Type &t, llvm::StringRef name, const Module &module) {
  std::optional<uint32_t> found;
  for (uint32_t i = 0; i < t.dims.size(); ++i) {
    Dim whole = t.dims[i];
    for (Factor &f : whole.factors) {
      f.atoms.clear();
    }
    if (print(whole, module) == name) {
      if (found) {
        return std::nullopt;
      }
      found = i;
    }
  }
  return found;
}

std::optional<uint32_t> dimOption(const TypingContext &context, const Type &t, int64_t fallback) {
  int64_t d = fallback;
  if (std::optional<llvm::StringRef> text = attrsOf(context).option("dim")) {
    if (text->getAsInteger(10, d)) {
      return dimNamed(t, *text, context.module);
    }
  }
  int64_t n = int64_t(t.dims.size());
  d = d < 0 ? d + n : d;
  return d >= 0 && d < n ? std::optional<uint32_t>(uint32_t(d)) : std::nullopt;
}

Typed badDim() {
  return failed(FaultKind::BadAttribute, 0, 0, {}, {}, "`dim` must be the number or the name of one dimension of the operand");
}

Typed one(Type t) {
  Typed typed;
  typed.results.push_back(std::move(t));
  return typed;
}

// `* d -> *` with the chosen dimension as d; dim=all takes one after the other.
Typed typeReduction(TypingContext &context, const Type &x) {
  const OpInfo &info = opInfo(context.op.kind);
  bool all = attrsOf(context).option("dim") == llvm::StringRef("all");
  std::optional<uint32_t> d = all ? std::optional<uint32_t>(0) : dimOption(context, x, -1);
  if (!d || (x.dims.empty() && !all)) {
    return badDim();
  }
  Typed typed = one(x);
  size_t times = all ? x.dims.size() : 1;
  for (size_t k = 0; k < times; ++k) {
    Type moved = typed.results[0];
    uint32_t from = all ? uint32_t(moved.dims.size() - 1) : *d;
    std::rotate(moved.dims.begin() + from, moved.dims.begin() + from + 1, moved.dims.end());
    typed = typeByRule(context, opRule(context.op.kind), info.linear, info.reducer, {&moved});
    if (typed.fault) {
      return typed;
    }
  }
  return typed;
}

Typed typeEinsum(TypingContext &context, Operands operands) {
  std::string error;
  std::optional<Rule> rule = parseRule(attrsOf(context).text, error);
  if (!rule) {
    return failed(FaultKind::BadAttribute, 0, 0, {}, {}, "the rule cannot be read: " + error);
  }
  if (rule->operands.size() != operands.size() || rule->results.size() != 1 || llvm::is_contained(rule->kinds, FactorKind::New)) {
    return failed(FaultKind::BadAttribute, 0, 0, {}, {}, "the rule must have as many operands as the call, one result, and no new factor");
  }
  return typeByRule(context, *rule, opInfo(OpKind::Einsum).linear, Reducer::Sum, operands);
}

static Typed typeRankIndex(TypingContext &context) {
  const Axis *axis = context.module.axes.find(attrsOf(context).text);
  if (!axis) {
    return failed(FaultKind::BadAttribute, 0, 0, {}, {}, "`" + attrsOf(context).text + "` is no axis");
  }
  Type t;
  t.grad = false;
  t.dtype = DType::I64;
  for (AtomId a : axis->atoms) {
    setState(t, a, State::V);
  }
  return one(std::move(t));
}

Typed typeCreation(TypingContext &context) {
  if (context.op.kind == OpKind::RankIndex) {
    return typeRankIndex(context);
  }
  Type t;
  t.grad = false;
  t.dtype = context.op.kind == OpKind::Arange ? DType::I64 : DType::F32;
  if (std::optional<llvm::StringRef> name = attrsOf(context).option("dtype")) {
    std::optional<DType> dtype = parseDType(*name);
    if (!dtype) {
      return failed(FaultKind::BadAttribute, 0, 0, {}, {}, ("`" + *name + "` is no dtype").str());
    }
    t.dtype = *dtype;
  }
  for (const Dim &d : attrsOf(context).dims) {
    for (const Factor &f : d.factors) {
      if (context.op.kind == OpKind::Arange && !f.atoms.empty()) {
        return failed(FaultKind::BadAttribute, 0, 0, f.atoms, {}, "every rank would count from 0; make it whole and take a slice");
      }
    }
    t.dims.push_back(d);
  }
  return one(std::move(t));
}

// The mask is keyed by row numbers. Keyed by the global index it is the one-device mask everywhere; with one generator
// state on all ranks every shard repeats the mask of the first, so nothing may be sharded; with a state of its own each
// rank drops other elements, and what was equal varies.
Typed typeDropout(TypingContext &context, const Type &x) {
  llvm::StringRef seed = attrsOf(context).option("seed").value_or("same");
  if (seed == "global") {
    return typeByRule(context, opRule(OpKind::Dropout), opInfo(OpKind::Dropout).linear, Reducer::Sum, {&x});
  }
  if (seed != "same" && seed != "rank") {
    return failed(FaultKind::BadAttribute, 0, 0, {}, {}, "`seed` must be `global`, `same` or `rank`");
  }
  Type out = x;
  for (AtomId a : activeAtoms(x)) {
    std::optional<ShardPlace> at = shardPlace(x, a);
    if (at && seed == "same") {
      return failed(FaultKind::ShardedWhole, 0, 0, {a}, dimName(x.dims[at->dim], context.module));
    }
    if (isPartial(stateOf(x, a)) && seed == "rank") {
      return failed(FaultKind::PartialIntoNonlinear, 0, 0, {a});
    }
    if (stateOf(x, a) == State::I && seed == "rank") {
      return failed(FaultKind::MixedInvariant, 0, 0, {a});
    }
    if (at && seed == "rank") {
      AxisChange forget{{a}, std::nullopt, {State::V, {}, 0, {}}};
      if (std::optional<Fault> f = applyChange(out, forget, false, context.module, nullptr)) {
        return {{}, {}, f};
      }
    }
  }
  if (seed == "rank") {
    const Axes &axes = context.module.axes;
    for (size_t i = 0; i < axes.atoms().size(); ++i) {
      const Atom &atom = axes.atoms()[i];
      // Of a block that is cut in several ways, the way that the value uses.
      if (atom.variant == usedVariant(out, atom.block, axes).value_or(0) && stateOf(out, AtomId(i)) == State::R) {
        setState(out, AtomId(i), State::V);
      }
    }
  }
  return one(std::move(out));
}

// Constants that no operand can make right.
std::optional<std::string> wrongConstant(const TypingContext &context, Operands operands) {
  const Attrs &attrs = attrsOf(context);
  switch (context.op.kind) {
  case OpKind::Scale: {
    llvm::StringRef text = attrs.text;
    double divisor = 1;
    bool byZero = text.contains('/') && !text.split('/').second.trim().getAsDouble(divisor) && divisor == 0;
    return byZero ? std::optional<std::string>("a division by zero") : std::nullopt;
  }
  case OpKind::Dropout: {
    double p = 0;
    bool number = !llvm::StringRef(attrs.text).trim().getAsDouble(p);
    return number && (p < 0 || p >= 1) ? std::optional<std::string>("the probability must be at least 0 and below 1") : std::nullopt;
  }
  case OpKind::Topk: {
    int64_t k = attrs.dims.empty() ? 0 : attrs.dims[0].factors[0].extent;
    int64_t row = operands[0]->dims.empty() ? 0 : operands[0]->dims.back().factors[0].extent;
    bool single = !operands[0]->dims.empty() && operands[0]->dims.back().factors.size() == 1;
    return single && row >= 0 && k > row ? std::optional(llvm::formatv("{0} of {1} cannot be chosen", k, row).str()) : std::nullopt;
  }
  default:
    return std::nullopt;
  }
}

} // namespace shardc
