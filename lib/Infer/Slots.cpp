// Slots: dispatch and combine of a mixture of experts (design: types, section 5).
//
// Dispatch is typed by the rule `* d, * [k] -> * d` over the tokens, whose shards then become shards of the slots, with
// their origin. Combine is the table of section 5, one atom after the other. Exchanges between ranks are no part of
// either: they are ordinary changes of the slots' layout.
#include "Typing.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc {
namespace {

// The token dimensions of ids or weights [tokens..., k] as one product.
Dim tokensOf(const Type &t) {
  Dim tokens;
  for (const Dim &d : llvm::ArrayRef(t.dims).drop_back()) {
    tokens.factors.append(d.factors);
  }
  return tokens;
}

Typed typeDispatch(TypingContext &context, Operands operands) {
  static const Rule rule = [] {
    std::string error;
    return *parseRule("* d, * [k] -> * d", error);
  }();
  const Attrs *attrs = context.op.attrs.valid() ? &context.module.attrs[context.op.attrs.index] : nullptr;
  if (!attrs || attrs->dims.size() != 1) {
    return failed(FaultKind::BadAttribute, 0, 0, {}, {}, "the dimension of experts is missing");
  }
  for (const Factor &f : attrs->dims[0].factors) {
    if (!f.atoms.empty()) { // each rank fills slots of all experts; to keep some is a change of layout
      return failed(FaultKind::BadAttribute, 0, 0, {}, {}, "the experts cannot be sharded here; redistribute the slots");
    }
  }
  Typed typed = typeByRule(context, rule, opInfo(OpKind::Dispatch).linear, Reducer::Sum, operands);
  if (typed.fault) {
    return typed;
  }
  Type &x = typed.results[0];
  Dim tokens = tokensOf(x);
  Dim slots;
  slots.factors.emplace_back();
  Factor &c = slots.factors[0];
  c.name = context.module.names.intern("c");
  c.extent = Ragged;
  for (const Factor &f : tokens.factors) {
    c.atoms.append(f.atoms);
  }
  c.origin = context.module.types.internOrigin({context.site, tokens, false});
  if (std::optional<llvm::StringRef> capacity = attrs->option("capacity")) {
    // What a slot holds depends on all tokens before it, unless each shard has a capacity of its own.
    if (!c.atoms.empty() && attrs->option("per") != llvm::StringRef("shard")) {
      return failed(FaultKind::ShardedWhole, 0, 0, c.atoms, dimName(tokens, context.module));
    }
    int64_t rows = 0;
    if (capacity->getAsInteger(10, rows) || rows <= 0 || __builtin_mul_overflow(rows, context.module.axes.product(c.atoms), &c.extent)) {
      return failed(FaultKind::BadAttribute, 0, 0, {}, {}, "`capacity` must be a positive integer");
    }
  }
  Dim d = x.dims.back();
  x.dims.clear();
  x.dims.push_back(attrs->dims[0]);
  x.dims.push_back(std::move(slots));
  x.dims.push_back(std::move(d));
  return typed;
}

class Combiner {
public:
  Combiner(TypingContext &c, Operands ops) : context(c), module(c.module) { types.append({*ops[0], *ops[1], *ops[2]}); }

  Typed run() {
    if (types[0].dims.size() != 3) {
      return failed(FaultKind::Rank, 0, 0, {}, {}, "3");
    }
    for (uint32_t i : {1u, 2u}) {
      if (types[i].dims.size() < 2) {
        return failed(FaultKind::Rank, i, 0, {}, {}, "2 or more");
      }
    }
    if (std::optional<Fault> f = recutOperands(types, module.axes)) {
      return {{}, {}, f};
    }
    if (tokensExtents(types[1]) != tokensExtents(types[2]) || types[1].dims.size() != types[2].dims.size()) {
      return failed(FaultKind::Shape, 1, 2, {}, dimName(tokensOf(types[1]), module), dimName(tokensOf(types[2]), module));
    }
    Type result;
    result.dtype = types[0].dtype; // weighted in the precision of the weights, returned in that of the rows
    result.grad = types[0].grad || types[2].grad;
    result.dims.append(types[1].dims.begin(), types[1].dims.end() - 1);
    result.dims.push_back(types[0].dims[2]);
    llvm::SmallVector<AtomId, 8> atoms;
    for (const Type &t : types) {
      atoms.append(activeAtoms(t));
    }
    llvm::sort(atoms);
    atoms.erase(std::unique(atoms.begin(), atoms.end()), atoms.end());
    for (AtomId a : atoms) {
      if (std::optional<Fault> f = decide(a, result)) {
        return {{}, {}, f};
      }
    }
    if (std::optional<Fault> f = sameTokens()) {
      return {{}, {}, f};
    }
    Typed typed;
    typed.results.push_back(std::move(result));
    return typed;
  }

private:
  enum class Where : uint8_t { None, Experts, Slots, Width, Tokens, Choice };

  static llvm::SmallVector<int64_t, 4> tokensExtents(const Type &t) {
    llvm::SmallVector<int64_t, 4> out;
    for (const Factor &f : tokensOf(t).factors) {
      out.push_back(f.extent);
    }
    return out;
  }

  Where where(uint32_t operand, AtomId a) const {
    std::optional<ShardPlace> at = shardPlace(types[operand], a);
    if (!at) {
      return Where::None;
    }
    if (operand == 0) {
      return at->dim == 0 ? Where::Experts : at->dim == 1 ? Where::Slots : Where::Width;
    }
    return at->dim + 1 == types[operand].dims.size() ? Where::Choice : Where::Tokens;
  }

  Fault fault(FaultKind kind, uint32_t a, uint32_t b, AtomId atom, std::string dim = {}) const {
    return Fault{kind, a, b, {atom}, std::move(dim), {}};
  }

  std::string nameOf(uint32_t operand, AtomId a) const {
    std::optional<ShardPlace> at = shardPlace(types[operand], a);
    return at ? dimName(types[operand].dims[at->dim], module) : std::string();
  }

  std::optional<Fault> decide(AtomId a, Type &result) {
    State ye = stateOf(types[0], a), ids = stateOf(types[1], a), w = stateOf(types[2], a);
    auto plain = [&](State s, uint32_t i) { return s == State::R || (s == State::I && !types[i].grad); };
    if (isPartial(ids)) {
      return fault(FaultKind::PartialIndex, 1, 0, a);
    }
    if (ye == State::V || w == State::V || ids == State::V) {
      return varying(a, result);
    }
    if ((ye == State::I && types[0].grad) || (w == State::I && types[2].grad)) {
      bool all = (ye == State::I || plain(ye, 0)) && (w == State::I || plain(w, 2)) && plain(ids, 1);
      bool mixed = (ye == State::R && types[0].grad) || (w == State::R && types[2].grad);
      if (!all || mixed) {
        bool first = ye == State::I;
        return fault(FaultKind::MixedInvariant, first ? 0 : 2, first ? (plain(w, 2) || w != State::I ? 2 : 1) : 0, a);
      }
      setState(result, a, State::I);
      return std::nullopt;
    }
    for (uint32_t i : {1u, 2u}) {
      if (where(i, a) == Where::Choice) {
        return fault(FaultKind::ShardedWhole, i, 0, a, nameOf(i, a));
      }
    }
    if ((w == State::S) != (ids == State::S)) {
      return fault(FaultKind::ShardMeetsReplicated, w == State::S ? 2 : 1, w == State::S ? 1 : 2, a, nameOf(w == State::S ? 2 : 1, a));
    }
    return w == State::S ? ownTokens(a, ye) : allTokens(a, ye, w, result);
  }

  std::optional<Fault> varying(AtomId a, Type &result) {
    for (uint32_t i = 0; i < 3; ++i) {
      State s = stateOf(types[i], a);
      if (s != State::V && s != State::R) {
        uint32_t v = stateOf(types[0], a) == State::V ? 0 : stateOf(types[1], a) == State::V ? 1 : 2;
        return fault(FaultKind::VaryingMeets, v, i, a);
      }
    }
    setState(result, a, State::V);
    return std::nullopt;
  }

  // Weights of this rank's tokens: the slots must be those that these tokens filled. The result is sharded like the ids.
  std::optional<Fault> ownTokens(AtomId a, State ye) {
    if (ye != State::S) {
      return isPartial(ye) ? fault(FaultKind::PartialTimesShard, 0, 2, a, nameOf(2, a))
                           : fault(FaultKind::ShardMeetsReplicated, 2, 0, a, nameOf(2, a));
    }
    if (where(0, a) != Where::Slots) {
      Fault f = fault(FaultKind::ShardConflict, 0, 2, a, nameOf(0, a));
      f.text = nameOf(2, a);
      return f;
    }
    const Factor &c = types[0].dims[1].factors[0];
    if (!c.origin.valid() || !fromTokens(c, a)) {
      return fault(FaultKind::OtherSlots, 0, 2, a, nameOf(0, a));
    }
    return std::nullopt;
  }

  bool fromTokens(const Factor &c, AtomId a) const {
    return llvm::any_of(module.types.origin(c.origin).tokens.factors, [&](const Factor &f) { return llvm::is_contained(f.atoms, a); });
  }

  // Weights of all tokens: each rank adds what its slots, experts or part of a sum give.
  std::optional<Fault> allTokens(AtomId a, State ye, State w, Type &result) {
    if (isPartial(w)) {
      if (ye != State::R) {
        return isPartial(ye) ? fault(FaultKind::PartialTimesPartial, 0, 2, a) : fault(FaultKind::PartialTimesShard, 2, 0, a, nameOf(0, a));
      }
      if (w == State::PMax || w == State::PMin) {
        return fault(FaultKind::PartialIntoNonlinear, 2, 0, a);
      }
      setState(result, a, w);
      return std::nullopt;
    }
    if (ye == State::PMax || ye == State::PMin) {
      return fault(FaultKind::PartialIntoNonlinear, 0, 0, a);
    }
    if (isPartial(ye)) {
      setState(result, a, ye);
    } else if (ye == State::S && where(0, a) != Where::Width) {
      setState(result, a, State::P);
    }
    return std::nullopt;
  }

  // Where tokens are sharded, ids and weights agree, and cut them as the slots' origin did, at its outermost axes.
  std::optional<Fault> sameTokens() {
    Dim ids = tokensOf(types[1]), w = tokensOf(types[2]);
    const Factor &c = types[0].dims[1].factors[0];
    bool anySharded = false;
    for (const auto &[x, y] : llvm::zip(ids.factors, w.factors)) {
      if (!sameLayout(x, y, module.axes)) {
        return Fault{FaultKind::ShardBoundaries, 1, 2, x.atoms, dimName(ids, module), {}};
      }
      anySharded |= !x.atoms.empty();
    }
    if (!c.origin.valid()) { // no dispatch filled them: nothing says which row belongs to which token
      return Fault{FaultKind::OtherSlots, 0, 1, c.atoms, dimName(types[0].dims[1], module), {}};
    }
    const Origin &origin = module.types.origin(c.origin);
    bool sameIds = !context.ownSites || origin.site == context.site;
    bool sameShape = origin.tokens.factors.size() == ids.factors.size();
    for (size_t i = 0; sameShape && i < ids.factors.size(); ++i) {
      const Factor &o = origin.tokens.factors[i], &x = ids.factors[i];
      bool prefix = x.atoms.size() <= o.atoms.size() && llvm::equal(x.atoms, llvm::ArrayRef(o.atoms).take_front(x.atoms.size()));
      sameShape = o.extent == x.extent && o.permuted == x.permuted && o.padTo == x.padTo && o.split == x.split && prefix;
    }
    if (!sameIds || (anySharded && !sameShape)) {
      return Fault{FaultKind::OtherSlots, 0, 1, c.atoms, dimName(types[0].dims[1], module), {}};
    }
    return std::nullopt;
  }

  TypingContext &context;
  Module &module;
  llvm::SmallVector<Type, 3> types;
};

} // namespace

Typed typeSlots(TypingContext &context, Operands operands) {
  return context.op.kind == OpKind::Dispatch ? typeDispatch(context, operands) : Combiner(context, operands).run();
}

} // namespace shardc
