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
#include "Typing.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc {
namespace {

// One factor of the rule (or one leading dimension of `*`) with the dimension that each operand has there.
struct Slot {
  FactorKind kind{};
  llvm::SmallVector<std::optional<Dim>, 4> entries; // per operand
  int ref = -1;                                     // the operand whose dimension the result takes
};

// Which slot a dimension's factors belong to: [first, first + count) of dimension `dim` of one operand.
struct Place {
  uint32_t dim;
  uint32_t first;
  uint32_t count;
  uint32_t slot;
};

class RuleTyper {
public:
  RuleTyper(TypingContext &c, const Rule &r, const Linear &l, Reducer red, Operands ops)
      : context(c), axes(c.module.axes), rule(r), linear(l), reducer(red) {
    for (const Type *t : ops) {
      types.push_back(*t);
    }
  }

  Typed run() {
    if ((fault = recutOperands(types, axes)) || !forgetWhereVarying() || !bind() || !align() || !padsAreNeutral() || !decide() || !orders()) {
      return {{}, {}, std::move(fault)};
    }
    Typed typed;
    build(typed);
    typed.fault = std::move(fault);
    return typed;
  }

private:
  bool fail(FaultKind kind, uint32_t a, uint32_t b = 0, llvm::ArrayRef<AtomId> atoms = {}, std::string dim = {}, std::string text = {}) {
    fault = Fault{kind, a, b, llvm::SmallVector<AtomId, 4>(atoms), std::move(dim), std::move(text)};
    return false;
  }

  // Rule 4: where one operand varies, a shard of another is its local part and no more.
  bool forgetWhereVarying() {
    for (size_t i = 0; i < types.size(); ++i) {
      for (auto [atom, state] : llvm::SmallVector<std::pair<AtomId, State>, 4>(types[i].states)) {
        if (state != State::V) {
          continue;
        }
        for (size_t j = 0; j < types.size(); ++j) {
          if (!shardPlace(types[j], atom)) {
            continue;
          }
          AxisChange forget{{atom}, std::nullopt, {State::V, {}, 0, {}}};
          if (auto f = applyChange(types[j], forget, false, context.module, nullptr)) {
            f->a = uint32_t(j);
            fault = std::move(f);
            return false;
          }
        }
      }
    }
    return true;
  }

  size_t starCount(size_t operand) const {
    const auto &pattern = rule.operands[operand];
    if (pattern.empty() || !pattern[0].startsWithStar()) {
      return 0;
    }
    size_t dims = types[operand].dims.size();
    if (pattern[0].isStar()) {
      return dims - (pattern.size() - 1);
    }
    size_t lead = dims - pattern.size();
    return lead + types[operand].dims[lead].factors.size() - 1;
  }

  bool bind() {
    size_t count = types.size();
    for (size_t i = 0; i < count; ++i) {
      const auto &pattern = rule.operands[i];
      bool star = !pattern.empty() && pattern[0].startsWithStar();
      size_t least = star && pattern[0].isStar() ? pattern.size() - 1 : pattern.size();
      size_t dims = types[i].dims.size();
      if (dims < least || (!star && dims != least)) {
        return fail(FaultKind::Rank, uint32_t(i), 0, {}, {}, std::to_string(least) + (star ? " or more" : ""));
      }
      stars = std::max(stars, starCount(i));
    }
    slots.resize(stars + rule.factors.size());
    for (size_t s = 0; s < slots.size(); ++s) {
      slots[s].kind = s < stars ? rule.starKind : rule.kinds[s - stars];
      slots[s].entries.resize(count);
    }
    places.resize(count);
    for (size_t i = 0; i < count; ++i) {
      if (!bindOperand(i)) {
        return false;
      }
    }
    return true;
  }

  bool enter(size_t operand, uint32_t dim, uint32_t first, uint32_t n, uint32_t slot) {
    const Dim &d = types[operand].dims[dim];
    Dim part;
    part.concat = d.concat;
    part.factors.append(d.factors.begin() + first, d.factors.begin() + first + n);
    places[operand].push_back({dim, first, n, slot});
    if (slots[slot].entries[operand]) { // a factor twice in one operand: a diagonal, which no row has
      return fail(FaultKind::Rank, uint32_t(operand), 0, {}, {}, "another number of");
    }
    slots[slot].entries[operand] = std::move(part);
    if (slots[slot].ref < 0) {
      slots[slot].ref = int(operand);
    }
    return true;
  }

  bool bindOperand(size_t i) {
    const auto &pattern = rule.operands[i];
    const Type &type = types[i];
    size_t own = starCount(i);
    uint32_t slot = uint32_t(stars - own); // aligned at the right
    uint32_t dim = 0;
    for (const RuleDim &p : pattern) {
      if (p.startsWithStar()) {
        size_t lead = p.isStar() ? own : type.dims.size() - pattern.size();
        for (size_t k = 0; k < lead; ++k, ++dim) {
          if (!enter(i, dim, 0, uint32_t(type.dims[dim].factors.size()), slot++)) {
            return false;
          }
        }
        if (p.isStar()) {
          continue;
        }
        if (i == 0) {
          starInProduct = own - lead;
        }
        uint32_t inner = uint32_t(type.dims[dim].factors.size()) - 1;
        for (uint32_t k = 0; k < inner; ++k) {
          if (!enter(i, dim, k, 1, slot++)) {
            return false;
          }
        }
        if (!enter(i, dim++, inner, 1, uint32_t(stars + p.factors[1]))) {
          return false;
        }
        continue;
      }
      if (!bindDim(i, dim++, p)) {
        return false;
      }
    }
    return true;
  }

  bool bindDim(size_t i, uint32_t dim, const RuleDim &p) {
    uint32_t have = uint32_t(types[i].dims[dim].factors.size());
    if (p.factors.size() == 1) {
      return enter(i, dim, 0, have, uint32_t(stars + p.factors[0]));
    }
    if (have != p.factors.size()) {
      return fail(FaultKind::NotContiguous, uint32_t(i), 0, {}, dimName(types[i].dims[dim], context.module));
    }
    for (uint32_t k = 0; k < have; ++k) {
      if (!enter(i, dim, k, 1, uint32_t(stars + p.factors[k]))) {
        return false;
      }
    }
    return true;
  }

  static bool sameExtents(const Dim &a, const Dim &b) {
    return a.concat == b.concat && a.factors.size() == b.factors.size() &&
           llvm::all_of(llvm::zip(a.factors, b.factors), [](const auto &p) {
             const auto &[x, y] = p;
             // Names stand for extents that are not numbers.
             return x.extent == y.extent && x.permuted == y.permuted && (x.extent >= 0 || x.name == y.name) &&
                    (!x.permuted || x.name == y.name);
           });
  }

  // The entries of a slot must have the same factors, or read as one dimension of the same extent.
  bool align() {
    for (Slot &slot : slots) {
      if (slot.ref < 0) {
        continue;
      }
      for (size_t i = size_t(slot.ref) + 1; i < types.size(); ++i) {
        if (!slot.entries[i] || sameExtents(*slot.entries[size_t(slot.ref)], *slot.entries[i])) {
          continue;
        }
        if (!alignAsOne(slot, i)) {
          return false;
        }
      }
    }
    return true;
  }

  bool alignAsOne(Slot &slot, size_t i) {
    Dim &ref = *slot.entries[size_t(slot.ref)];
    Dim &other = *slot.entries[i];
    auto shape = [&] {
      return fail(FaultKind::Shape, uint32_t(slot.ref), uint32_t(i), {}, dimName(ref, context.module), dimName(other, context.module));
    };
    auto total = [](const Dim &d) {
      int64_t n = d.concat ? 0 : 1;
      for (const Factor &f : d.factors) {
        if (f.extent < 0 || __builtin_mul_overflow(d.concat ? 1 : n, f.extent, &n)) {
          return int64_t(-1);
        }
      }
      return n;
    };
    if (ref.concat || other.concat || total(ref) < 0 || total(ref) != total(other)) {
      return shape();
    }
    std::optional<Factor> one = contiguous(ref, axes, context.module.names);
    std::optional<Factor> two = contiguous(other, axes, context.module.names);
    if (!one || !two) {
      return fail(FaultKind::NotContiguous, uint32_t(one ? i : size_t(slot.ref)), 0, {}, dimName(one ? other : ref, context.module));
    }
    if (one->permuted != two->permuted) {
      return shape();
    }
    Dim flat;
    flat.factors.push_back(*two);
    other = flat;
    // The reference keeps its factors for the result; comparisons use this flat form.
    if (!slot.entries.empty() && ref.factors.size() > 1) {
      flatRefs.push_back({uint32_t(&slot - slots.data()), *one});
    }
    return true;
  }

  // The atoms of an entry, flattened; products as wholes.
  llvm::SmallVector<AtomId, 8> atomsOf(const Dim &d) const {
    llvm::SmallVector<AtomId, 8> out;
    for (const Factor &f : d.factors) {
      out.append(f.atoms.begin(), f.atoms.end());
    }
    return out;
  }

  // The slot that an atom shards in an operand, or none.
  std::optional<uint32_t> slotOf(size_t operand, AtomId atom) const {
    std::optional<ShardPlace> at = shardPlace(types[operand], atom);
    if (!at) {
      return std::nullopt;
    }
    for (const Place &p : places[operand]) {
      if (p.dim == at->dim && at->factor >= p.first && at->factor < p.first + p.count) {
        return p.slot;
      }
    }
    return std::nullopt;
  }

  std::string slotName(uint32_t slot) const { return dimName(*slots[slot].entries[size_t(slots[slot].ref)], context.module); }

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
    bool keeps = kernel == "keepsZero" || kernel == "swiglu";
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
    // No operand needs a gradient here: invariant if one says so, which costs nothing.
    bool anyInvariant = llvm::is_contained(states, State::I);
    if (anyInvariant) {
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
    bool index = !isFloat(types[operand].dtype);
    return fail(index ? FaultKind::PartialIndex : FaultKind::PartialIntoNonlinear, operand, 0, {atom});
  }

  // Rule 2.
  bool decideShard(AtomId atom, uint32_t ref) {
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
    case FactorKind::Whole:
      return fail(FaultKind::ShardedWhole, ref, 0, {atom}, slotName(slot));
    case FactorKind::Reduce:
      return reduceShard(atom, ref, slot);
    case FactorKind::Pass:
    case FactorKind::New:
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
    State s = reducer == Reducer::Sum ? State::P : reducer == Reducer::Mean ? State::PAvg : reducer == Reducer::Max ? State::PMax : State::PMin;
    outcome.push_back({atom, s, slot});
    return true;
  }

  // Rule 3.
  bool decidePartial(AtomId atom, llvm::ArrayRef<State> states, uint32_t partial) {
    State kind = states[partial];
    if (kind == State::PMax || kind == State::PMin) {
      bool folds = (kind == State::PMax && reducer == Reducer::Max) || (kind == State::PMin && reducer == Reducer::Min);
      bool passes = types.size() == 1 && (folds || linear.kind == Linearity::Increasing ||
                                          (linear.kind == Linearity::Alone && context.op.kind != OpKind::Scale && context.op.kind != OpKind::Neg &&
                                           reducer == Reducer::Sum && slots.size() == stars));
      if (!passes) {
        return fail(FaultKind::PartialIntoNonlinear, partial, 0, {atom});
      }
      outcome.push_back({atom, kind, 0});
      return true;
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

  // Same atoms on the same factors, in the same order, with the same boundaries.
  bool orders() {
    for (size_t s = 0; s < slots.size(); ++s) {
      Slot &slot = slots[s];
      for (size_t i = 0; i < types.size() && slot.ref >= 0; ++i) {
        if (int(i) == slot.ref || !slot.entries[i]) {
          continue;
        }
        Dim ref = *slot.entries[size_t(slot.ref)];
        if (ref.factors.size() != slot.entries[i]->factors.size()) {
          for (const auto &[index, flat] : flatRefs) {
            if (index == s) {
              ref.factors.assign(1, flat);
            }
          }
        }
        if (!compare(uint32_t(s), uint32_t(slot.ref), ref, uint32_t(i), *slot.entries[i])) {
          return false;
        }
      }
    }
    return true;
  }

  bool compare(uint32_t slot, uint32_t a, const Dim &one, uint32_t b, const Dim &two) {
    for (const auto &[x, y] : llvm::zip(one.factors, two.factors)) {
      if (x.atoms != y.atoms) {
        llvm::SmallVector<AtomId, 8> all = atomsOf(one);
        bool sameFactor = std::is_permutation(x.atoms.begin(), x.atoms.end(), y.atoms.begin(), y.atoms.end());
        return fail(sameFactor ? FaultKind::ShardOrder : FaultKind::ShardBoundaries, a, b, all, slotName(slot));
      }
      if (x.origin != y.origin && x.origin.valid() && y.origin.valid()) {
        return fail(FaultKind::OtherSlots, a, b, x.atoms, slotName(slot));
      }
      if (!sameLayout(x, y, axes)) {
        return fail(FaultKind::ShardBoundaries, a, b, x.atoms, slotName(slot));
      }
    }
    return true;
  }

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
      fresh.push_back({uint32_t(stars + f), attrs->dims[next++]});
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
        bool free = llvm::all_of(wanted, [&](AtomId a) { return allReplicated(a); });
        if (free && result.dims[d].factors.size() == 1) {
          result.dims[d].factors[0].atoms.assign(wanted.begin(), wanted.end());
        }
      }
      for (AtomId a : atoms) {
        if (!allReplicated(a)) {
          fail(FaultKind::NewNeedsReplicated, 0, 0, {a}, dimName(written, context.module));
        }
      }
    }
  }

  bool allReplicated(AtomId atom) const {
    return llvm::all_of(types, [&](const Type &t) { return stateOf(t, atom) == State::R; });
  }

  struct Outcome {
    AtomId atom;
    State state;
    uint32_t slot;
  };

  TypingContext &context;
  const Axes &axes;
  const Rule &rule;
  const Linear &linear;
  Reducer reducer;
  llvm::SmallVector<Type, 4> types;
  std::vector<Slot> slots;
  std::vector<llvm::SmallVector<Place, 4>> places;
  size_t stars = 0;
  size_t starInProduct = 0;
  llvm::SmallVector<std::pair<uint32_t, Factor>, 2> flatRefs;
  llvm::SmallVector<std::pair<uint32_t, Dim>, 2> fresh;
  llvm::SmallVector<Outcome, 8> outcome;
  std::optional<Fault> fault;
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
