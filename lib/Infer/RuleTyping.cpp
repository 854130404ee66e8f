// RuleTyping: result types from an operation's sharding rule (design: types, section 3).
//
// The problem. Operands have types over many atoms; the rule relates their dimensions by factors. For every atom on its
// own one must decide whether the local operations of all ranks together mean the global operation, and what the result is.
//
// What others do. A hand-written function per operation and layout (long, and wrong in corners); unification of one
// sharding per dimension (cannot say partial or invariant).
//
// What we do. (1) Bind: each dimension of each operand becomes an entry of a slot, one slot per factor of the rule; the
// leading dimensions of `*` are slots as well, aligned at the right. (2) Align: entries of a slot must have the same
// factors; a product that reads as contiguous rows is compared as one dimension. (3) Decide: per atom, the operands' states
// and the slot that it shards give the result's state by the six rules. (4) Build results from the slots.
//
// Why it ends and what it costs. Each step is one pass: operands times dimensions, then atoms in use times operands.
#include "RuleBinding.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc {
namespace {

class RuleTyper : RuleBinding {
public:
  RuleTyper(TypingContext &c, const Rule &r, const Linear &l, Reducer red, Operands operands)
      : RuleBinding(c, r, operands), linear(l), reducer(red) {}

  Typed run() {
    if (!unify() || !bind() || !align() || !padsAreNeutral() || !decide() || !orders()) {
      return {{}, {}, std::move(fault)};
    }
    Typed typed;
    build(typed);
    typed.fault = std::move(fault);
    return typed;
  }

private:
  // What folds a dimension, or needs it whole, must not meet a pad: zeros are neutral to a sum only, unknowns to nothing.
  bool padsAreNeutral() {
    for (uint32_t s = 0; s < slots.size(); ++s) {
      FactorKind kind = slots[s].kind;
      if (kind != FactorKind::Reduce && kind != FactorKind::Whole) {
        continue;
      }
      for (uint32_t i = 0; i < types.size(); ++i) {
        if (!slots[s].entries[i]) {
          continue;
        }
        for (const Factor &f : slots[s].entries[i]->factors) {
          bool neutral = f.pad == Pad::None || (f.pad == Pad::Zero && kind == FactorKind::Reduce && reducer == Reducer::Sum);
          if (!neutral) {
            return fail(FaultKind::UnknownPad, i, 0, f.atoms, slotName(s));
          }
        }
      }
    }
    return true;
  }

  // Whether rows of zeros stay rows of zeros: for functions that keep zero, for products, and for sums of which every term
  // has the pad.
  Pad padAfter(uint32_t slot, Pad pad) const {
    if (pad != Pad::Zero) {
      return pad;
    }
    llvm::StringRef kernel = opInfo(context.op.kind).kernel;
    bool keeps = kernel == "keepsZero" || kernel == "swiglu" || kernel == "copy";
    bool anyLinear = false, allLinear = true;
    for (uint32_t i = 0; i < types.size(); ++i) {
      bool has = slots[slot].entries[i].has_value();
      if (linear.operands >> i & 1) {
        anyLinear |= has;
        allLinear &= has;
      }
    }
    keeps |= (linear.kind == Linearity::Alone && anyLinear) || (linear.kind == Linearity::Together && allLinear);
    return keeps ? Pad::Zero : Pad::Unknown;
  }

  bool decide() {
    llvm::SmallVector<AtomId, 8> atoms;
    for (const Type &t : types) {
      for (AtomId a : activeAtoms(t)) {
        if (!llvm::is_contained(atoms, a)) {
          atoms.push_back(a);
        }
      }
    }
    llvm::sort(atoms);
    std::optional<Fault> first;
    for (AtomId atom : atoms) {
      if (decideAtom(atom)) {
        continue;
      }
      // Several axes with one and the same fault are one finding.
      if (!first) {
        first = std::move(fault);
      } else if (first->kind == fault->kind && first->a == fault->a && first->b == fault->b && first->dim == fault->dim) {
        first->atoms.append(fault->atoms);
      }
      fault.reset();
    }
    fault = std::move(first);
    return !fault;
  }

  bool decideAtom(AtomId atom) {
    llvm::SmallVector<State, 4> states;
    int sharded = -1, partial = -1, varying = -1, invariant = -1, replicated = -1;
    for (size_t i = 0; i < types.size(); ++i) {
      State s = stateOf(types[i], atom);
      bool either = !types[i].grad && (s == State::R || s == State::I);
      states.push_back(s);
      int *seen = s == State::S   ? &sharded
                  : isPartial(s)  ? &partial
                  : s == State::V ? &varying
                  : either        ? nullptr
                  : s == State::I ? &invariant
                                  : &replicated;
      if (seen && *seen < 0) {
        *seen = int(i);
      }
    }
    if (invariant >= 0) {
      int other = varying >= 0 ? varying : sharded >= 0 ? sharded : partial >= 0 ? partial : replicated;
      if (other >= 0) {
        return fail(FaultKind::MixedInvariant, uint32_t(invariant), uint32_t(other), {atom});
      }
      outcome.push_back({atom, State::I, 0});
      return true;
    }
    if (varying >= 0) {
      if (partial >= 0) {
        return fail(FaultKind::VaryingMeets, uint32_t(varying), uint32_t(partial), {atom});
      }
      outcome.push_back({atom, State::V, 0});
      return true;
    }
    if (sharded >= 0) {
      return partial >= 0 ? partialAndShard(atom, uint32_t(partial), uint32_t(sharded)) : decideShard(atom, uint32_t(sharded));
    }
    if (partial >= 0) {
      return decidePartial(atom, states, uint32_t(partial));
    }
    // Where no operand needs a gradient, invariant if one says so, which costs nothing.
    if (replicated < 0 && llvm::is_contained(states, State::I)) {
      outcome.push_back({atom, State::I, 0});
    }
    return true;
  }

  bool partialAndShard(AtomId atom, uint32_t partial, uint32_t sharded) {
    if (!(linear.operands >> partial & 1) || linear.kind == Linearity::None) {
      return notLinearIn(partial, atom);
    }
    bool joint = linear.kind == Linearity::Together && (linear.operands >> sharded & 1);
    std::optional<uint32_t> slot = slotOf(sharded, atom);
    return fail(joint ? FaultKind::PartialMeetsShard : FaultKind::PartialTimesShard, partial, sharded, {atom},
                slot ? slotName(*slot) : std::string());
  }

  bool notLinearIn(uint32_t operand, AtomId atom) {
    llvm::StringRef kernel = opInfo(context.op.kind).kernel;
    bool index = !isFloat(types[operand].dtype) && kernel != "compare" && kernel != "elementwise" && kernel != "rowwise";
    return fail(index ? FaultKind::PartialIndex : FaultKind::PartialIntoNonlinear, operand, 0, {atom});
  }

  // Rule 2.
  bool decideShard(AtomId atom, uint32_t ref) {
    for (uint32_t i = 0; i < types.size(); ++i) {
      std::optional<uint32_t> own = slotOf(i, atom);
      if (own && slots[*own].kind == FactorKind::Whole) {
        return fail(FaultKind::ShardedWhole, i, i, {atom}, slotName(*own));
      }
    }
    uint32_t slot = *slotOf(ref, atom);
    for (uint32_t i = 0; i < types.size(); ++i) {
      std::optional<uint32_t> own = slotOf(i, atom);
      if (own && *own != slot) {
        return fail(FaultKind::ShardConflict, ref, i, {atom}, slotName(slot), slotName(*own));
      }
      if (!own && slots[slot].entries[i]) {
        return fail(FaultKind::ShardMeetsReplicated, ref, i, {atom}, slotName(slot));
      }
    }
    switch (slots[slot].kind) {
    case FactorKind::Reduce:
      return reduceShard(atom, ref, slot);
    case FactorKind::Pass:
    case FactorKind::New:
    case FactorKind::Whole: // refused above
      outcome.push_back({atom, State::S, slot});
      return true;
    }
    return true;
  }

  bool reduceShard(AtomId atom, uint32_t ref, uint32_t slot) {
    const Dim &d = *slots[slot].entries[ref];
    for (const Factor &f : d.factors) {
      if (f.pad == Pad::Unknown) {
        return fail(FaultKind::UnknownPad, ref, 0, {atom}, slotName(slot));
      }
      if (reducer == Reducer::Mean && llvm::is_contained(f.atoms, atom) && (!isEven(f, axes) || f.padTo)) {
        return fail(FaultKind::UnevenMean, ref, 0, {atom}, slotName(slot));
      }
    }
    State s = reducer == Reducer::Sum    ? State::P
              : reducer == Reducer::Mean ? State::PAvg
              : reducer == Reducer::Max  ? State::PMax
                                         : State::PMin;
    outcome.push_back({atom, s, slot});
    return true;
  }

  // A maximum (minimum) over ranks passes what is increasing, what folds by the same reducer, and what takes elements as they
  // are, or zeros, wherever it takes them from. A negation makes it a minimum.
  bool decideExtremum(AtomId atom, llvm::ArrayRef<State> states, uint32_t partial) {
    State kind = states[partial];
    llvm::StringRef kernel = opInfo(context.op.kind).kernel;
    bool takes = linear.kind != Linearity::None && llvm::is_contained({"copy", "view", "select", "gather", "lookup", "dropout"}, kernel);
    bool folds = reducer == (kind == State::PMax ? Reducer::Max : Reducer::Min);
    bool negates = context.op.kind == OpKind::Neg;
    for (uint32_t i = 0; i < types.size(); ++i) {
      bool concerned = folds || (linear.operands >> i & 1) != 0;
      if (isPartial(states[i]) && (!concerned || !(folds || takes || negates || linear.kind == Linearity::Increasing))) {
        return notLinearIn(i, atom);
      }
      if (isPartial(states[i]) && states[i] != kind) {
        return fail(FaultKind::MixedPartials, partial, i, {atom});
      }
    }
    outcome.push_back({atom, !negates ? kind : kind == State::PMax ? State::PMin : State::PMax, 0});
    return true;
  }

  // Rule 3.
  bool decidePartial(AtomId atom, llvm::ArrayRef<State> states, uint32_t partial) {
    State kind = states[partial];
    if (kind == State::PMax || kind == State::PMin) {
      return decideExtremum(atom, states, partial);
    }
    if (linear.kind == Linearity::None || linear.kind == Linearity::Increasing || !(linear.operands >> partial & 1)) {
      return notLinearIn(partial, atom);
    }
    bool together = linear.kind == Linearity::Together;
    for (uint32_t i = 0; i < types.size(); ++i) {
      if (i == partial) {
        continue;
      }
      bool joint = together && (linear.operands >> i & 1);
      if (isPartial(states[i])) {
        if (!joint) {
          return (linear.operands >> i & 1) ? fail(FaultKind::PartialTimesPartial, partial, i, {atom}) : notLinearIn(i, atom);
        }
        if (states[i] != kind) {
          return fail(FaultKind::MixedPartials, partial, i, {atom});
        }
      } else if (joint && kind != State::PAvg && !isZero(i)) {
        return fail(FaultKind::ReplicatedIntoPartial, partial, i, {atom});
      }
    }
    outcome.push_back({atom, kind, 0});
    return true;
  }

  // `zeros(...)` is the explicit zero of rule 3; the caller knows which operands are.
  bool isZero(uint32_t operand) const { return types[operand].states.empty() && context.isZero && context.isZero(operand); }

  Dim resultDim(uint32_t slot) const {
    const Slot &s = slots[slot];
    if (s.ref < 0) {
      return {};
    }
    Dim dim = *s.entries[size_t(s.ref)];
    for (Factor &f : dim.factors) {
      f.pad = padAfter(slot, f.pad);
    }
    return dim;
  }

  // The new dimensions stand in the call, in the rule's order.
  bool newDims() {
    const Attrs *attrs = context.op.attrs.valid() ? &context.module.attrs[context.op.attrs.index] : nullptr;
    size_t next = 0;
    for (size_t f = 0; f < rule.factors.size(); ++f) {
      if (rule.kinds[f] != FactorKind::New) {
        continue;
      }
      if (!attrs || next >= attrs->dims.size()) {
        return fail(FaultKind::BadAttribute, 0, 0, {}, {}, "the new dimension is missing");
      }
      const Dim &written = attrs->dims[next++];
      for (AtomId a : atomsOf(written)) {
        if (!allReplicated(a) || context.op.kind == OpKind::Topk) {
          return fail(FaultKind::NewNeedsReplicated, 0, 0, {a}, dimName(written, context.module));
        }
      }
      fresh.push_back({uint32_t(stars + f), written});
    }
    return true;
  }

  void build(Typed &typed) {
    if (!newDims()) {
      return;
    }
    DType dtype = promote(operandPointers());
    bool grad = llvm::any_of(types, [](const Type &t) { return t.grad; });
    for (size_t r = 0; r < rule.results.size(); ++r) {
      Type result;
      result.dtype = dtype;
      const OpInfo &info = opInfo(context.op.kind);
      result.grad = grad && !(info.noGrad >> r & 1) && isFloat(dtype);
      resultDims(rule.results[r], result);
      for (const Outcome &o : outcome) {
        if (o.state != State::S) {
          setState(result, o.atom, o.state);
        }
      }
      shardNew(rule.results[r], result);
      typed.results.push_back(std::move(result));
    }
  }

  llvm::SmallVector<const Type *, 4> operandPointers() const {
    llvm::SmallVector<const Type *, 4> out;
    for (const Type &t : types) {
      out.push_back(&t);
    }
    return out;
  }

  void resultDims(llvm::ArrayRef<RuleDim> pattern, Type &result) {
    for (const RuleDim &p : pattern) {
      Dim dim;
      if (p.startsWithStar()) {
        size_t plain = p.isStar() ? stars : stars - starInProduct;
        for (size_t s = 0; s < plain; ++s) {
          result.dims.push_back(resultDim(uint32_t(s)));
        }
        if (p.isStar()) {
          continue;
        }
        for (size_t s = plain; s < stars; ++s) {
          dim.factors.append(resultDim(uint32_t(s)).factors);
        }
      }
      for (uint8_t f : p.factors) {
        if (f == StarFactor) {
          continue;
        }
        Dim part = resultDim(uint32_t(stars + f));
        for (const auto &[slot, d] : fresh) {
          if (slot == stars + f) {
            part = d;
          }
        }
        dim.concat |= part.concat;
        dim.factors.append(part.factors);
      }
      result.dims.push_back(std::move(dim));
    }
  }

  // A new dimension may be sharded, from an R operand only: as written, or as the operations that use the result want it.
  void shardNew(llvm::ArrayRef<RuleDim> pattern, Type &result) {
    for (const auto &[slot, written] : fresh) {
      llvm::SmallVector<AtomId, 8> atoms = atomsOf(written);
      for (size_t d = 0; d < result.dims.size(); ++d) {
        size_t back = result.dims.size() - d;
        const RuleDim &p = pattern[pattern.size() - std::min(back, pattern.size())];
        if (p.factors.size() != 1 || p.isStar() || stars + p.factors[0] != slot || !atoms.empty()) {
          continue;
        }
        llvm::SmallVector<AtomId, 4> wanted = context.wanted ? context.wanted(uint32_t(back)) : llvm::SmallVector<AtomId, 4>();
        // What is chosen from a row is chosen as one.
        bool free = context.op.kind != OpKind::Topk && llvm::all_of(wanted, [&](AtomId a) { return allReplicated(a); });
        if (free && result.dims[d].factors.size() == 1) {
          result.dims[d].factors[0].atoms.assign(wanted.begin(), wanted.end());
        }
      }
    }
  }

  // A value that uses another way of cutting the atom's block of ranks is not R on it, whatever the atom itself says.
  bool allReplicated(AtomId atom) const {
    const Atom &a = axes.atom(atom);
    return llvm::all_of(types, [&](const Type &t) {
      return stateOf(t, atom) == State::R && usedVariant(t, a.block, axes).value_or(a.variant) == a.variant;
    });
  }

  struct Outcome {
    AtomId atom;
    State state;
    uint32_t slot;
  };

  const Linear &linear;
  Reducer reducer;
  llvm::SmallVector<std::pair<uint32_t, Dim>, 2> fresh; // new dimensions by slot
  llvm::SmallVector<Outcome, 8> outcome;
};

} // namespace

Typed typeByRule(TypingContext &context, const Rule &rule, const Linear &linear, Reducer reducer, Operands operands) {
  return RuleTyper(context, rule, linear, reducer, operands).run();
}

DType promote(Operands operands) {
  auto wider = [](DType a, DType b) {
    if (isFloat(a) != isFloat(b)) {
      return isFloat(a) ? a : b;
    }
    if (dtypeBytes(a) == dtypeBytes(b) && a != b) {
      return isFloat(a) ? DType::F32 : a; // bf16 with f16
    }
    return dtypeBytes(a) >= dtypeBytes(b) ? a : b;
  };
  DType out = operands.empty() ? DType::BF16 : operands[0]->dtype;
  for (const Type *t : operands.drop_front(operands.empty() ? 0 : 1)) {
    out = wider(out, t->dtype);
  }
  return out;
}

std::string dimName(const Dim &dim, const Module &module) {
  std::string out;
  for (const Factor &f : dim.factors) {
    out += out.empty() ? "" : dim.concat ? " + " : " ";
    out += f.name.valid() ? module.names.str(f.name).str() : std::to_string(f.extent);
  }
  return dim.factors.size() > 1 ? "(" + out + ")" : out;
}

} // namespace shardc
