// Moves: what a change does to a type, and what it costs (design: types, section 4).
//
// Which collective moves the data and what its gradient does is a row of Changes.def; here is only where the atoms go. It
// plans nothing: a change that needs several steps is written as several.
#include "Typing.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc {
namespace {

struct Target {
  uint32_t dim;
  uint32_t factor;
};

// Factors that a written name means: the factor of that name, or the last factor of the product of that name.
std::vector<Target> namedFactors(const Type &type, NameId name, const Module &module) {
  std::vector<Target> found;
  for (uint32_t d = 0; d < type.dims.size(); ++d) {
    for (uint32_t f = 0; f < type.dims[d].factors.size(); ++f) {
      if (type.dims[d].factors[f].name == name) {
        found.push_back({d, f});
      }
    }
  }
  if (!found.empty()) {
    return found;
  }
  for (const auto &[product, parts] : module.products) {
    if (product != name) {
      continue;
    }
    for (uint32_t d = 0; d < type.dims.size(); ++d) {
      auto names = llvm::map_range(type.dims[d].factors, [](const Factor &f) { return f.name; });
      if (llvm::equal(names, parts)) {
        found.push_back({d, uint32_t(parts.size() - 1)});
      }
    }
  }
  return found;
}

std::string endpointDim(const Endpoint &e, const Module &module) {
  return e.dim.valid() ? module.names.str(e.dim).str() : "dimension " + std::to_string(e.index);
}

class Mover {
public:
  Mover(Type &t, const AxisChange &c, Module &m) : type(t), change(c), module(m), axes(m.axes) {}

  std::optional<Fault> run(bool reinterpret, std::vector<Move> *moves) {
    if (change.atoms.empty()) {
      return std::nullopt; // an axis of size 1
    }
    if (!recutToAtoms() || !findSource() || !checkWritten()) {
      return fault;
    }
    if (change.to.state == State::S && !findTarget()) {
      return fault;
    }
    // Parts that follow one another are sharded together: any of them names the dimension.
    const bool stays = target.dim == source.dim && (target.factor == source.factor || type.dims[source.dim].concat);
    if (from == change.to.state && (from != State::S || stays)) {
      return std::nullopt; // as it is already
    }
    const ChangeRow *row = findChange(from, change.to.state);
    if (!row && !reinterpret) {
      return failure(FaultKind::NoSuchChange, {}, std::string(stateName(from)) + " -> " + std::string(stateName(change.to.state)));
    }
    Move move;
    move.before = moves ? module.types.intern(type) : TypeId();
    move.localBytes = moves ? maxLocalBytes(type, axes) : std::nullopt;
    if (!checkEven() || !relabel()) {
      return fault;
    }
    if (moves) {
      record(move, reinterpret ? nullptr : row);
      moves->push_back(std::move(move));
    }
    return std::nullopt;
  }

private:
  bool fail(FaultKind kind, std::string dim = {}, std::string text = {}) {
    fault = Fault{kind, 0, 0, change.atoms, std::move(dim), std::move(text)};
    return false;
  }
  std::optional<Fault> failure(FaultKind kind, std::string dim = {}, std::string text = {}) {
    fail(kind, std::move(dim), std::move(text));
    return fault;
  }

  bool recutToAtoms() {
    for (AtomId a : change.atoms) {
      const Atom &atom = axes.atom(a);
      if (axes.variantCount(atom.block) == 1) {
        continue;
      }
      std::optional<Type> cut = recut(type, atom.block, atom.variant, axes);
      if (!cut) {
        return fail(FaultKind::Recut);
      }
      type = std::move(*cut);
    }
    return true;
  }

  bool findSource() {
    from = stateOf(type, change.atoms[0]);
    std::optional<ShardPlace> first = shardPlace(type, change.atoms[0]);
    for (AtomId a : change.atoms) {
      std::optional<ShardPlace> at = shardPlace(type, a);
      bool alike = stateOf(type, a) == from && (!at || (at->dim == first->dim && at->factor == first->factor));
      if (!alike) {
        return fail(FaultKind::NotUniform);
      }
    }
    if (first) {
      source = {first->dim, first->factor};
    }
    return true;
  }

  // `src -> dst`: the value must be what src says.
  bool checkWritten() {
    if (!change.from) {
      return true;
    }
    bool holds = change.from->state == from;
    if (holds && from == State::S) {
      holds =
          llvm::any_of(endpointFactors(*change.from), [&](const Target &t) { return t.dim == source.dim && t.factor == source.factor; });
      // A product's name means any of its factors as a source.
      if (!holds && change.from->dim.valid()) {
        for (const auto &[product, parts] : module.products) {
          holds |= product == change.from->dim && llvm::is_contained(parts, type.dims[source.dim].factors[source.factor].name);
        }
      }
    }
    // A value without a gradient is R as well as I.
    holds |= !type.grad && (from == State::R || from == State::I) && (change.from->state == State::R || change.from->state == State::I);
    return holds || fail(FaultKind::WrongSource);
  }

  std::vector<Target> endpointFactors(const Endpoint &e) const {
    if (e.dim.valid()) {
      return namedFactors(type, e.dim, module);
    }
    int64_t d = e.index < 0 ? int64_t(type.dims.size()) + e.index : e.index;
    if (d < 0 || d >= int64_t(type.dims.size())) {
      return {};
    }
    return {{uint32_t(d), uint32_t(type.dims[size_t(d)].factors.size() - 1)}};
  }

  bool findTarget() {
    std::vector<Target> found = endpointFactors(change.to);
    if (found.size() != 1) {
      return fail(FaultKind::NoSuchDim, endpointDim(change.to, module), found.empty() ? "no" : "more than one");
    }
    target = found[0];
    return true;
  }

  Factor &factor(const Target &t) { return type.dims[t.dim].factors[t.factor]; }

  std::string nameOf(const Factor &f) const { return f.name.valid() ? module.names.str(f.name).str() : std::to_string(f.extent); }

  // The factors that move together: one, or all parts of a dimension whose parts follow one another.
  llvm::MutableArrayRef<Factor> parts(const Target &t) {
    Dim &d = type.dims[t.dim];
    return d.concat ? llvm::MutableArrayRef<Factor>(d.factors) : llvm::MutableArrayRef<Factor>(&factor(t), 1);
  }

  // Equal-split exchanges need even shards at both ends; slots are exchanged with counts and need none.
  bool checkEven() {
    if (from != State::S || change.to.state != State::S) {
      return true;
    }
    auto exchanges = [&](const Factor &f, llvm::ArrayRef<AtomId> arriving) {
      const int64_t known = globalExtent(f) >= 0 ? globalExtent(f) : f.divisor;
      const bool slots = f.origin.valid() || f.extent == Ragged;
      return slots || known % (axes.product(f.atoms) * axes.product(arriving)) == 0 || fail(FaultKind::UnevenExchange, nameOf(f));
    };
    return llvm::all_of(parts(source), [&](const Factor &f) { return exchanges(f, {}); }) &&
           llvm::all_of(parts(target), [&](const Factor &f) { return exchanges(f, change.atoms); });
  }

  bool leave() {
    if (from != State::S) {
      for (AtomId a : change.atoms) {
        setState(type, a, State::R);
      }
      return true;
    }
    size_t n = change.atoms.size();
    for (Factor &f : parts(source)) {
      bool innermost = f.atoms.size() >= n && llvm::equal(llvm::ArrayRef(f.atoms).take_back(n), change.atoms);
      if (!innermost && !f.origin.valid()) {
        return fail(FaultKind::NotInnermost, nameOf(f));
      }
      llvm::erase_if(f.atoms, [&](AtomId a) { return llvm::is_contained(change.atoms, a); });
    }
    return true; // a gathered dimension keeps its pad until `trim`
  }

  // Slots return to their own place: the order in which the tokens that filled them are sharded.
  void enterSlots(Factor &f) {
    llvm::SmallVector<AtomId, 8> order;
    for (const Factor &t : module.types.origin(f.origin).tokens.factors) {
      order.append(t.atoms.begin(), t.atoms.end());
    }
    auto place = [&](AtomId a) { return llvm::find(order, a) - order.begin(); }; // others last, in the order of arrival
    f.atoms.append(change.atoms.begin(), change.atoms.end());
    llvm::stable_sort(f.atoms, [&](AtomId a, AtomId b) { return place(a) < place(b); });
  }

  bool enter() {
    switch (change.to.state) {
    case State::R:
      return true;
    case State::S:
      for (Factor &f : parts(target)) {
        if (f.origin.valid()) {
          enterSlots(f);
        } else {
          f.atoms.append(change.atoms.begin(), change.atoms.end());
        }
        padTarget(f);
      }
      return true;
    case State::I:
    case State::V:
    case State::P:
    case State::PAvg:
    case State::PMax:
    case State::PMin:
      for (AtomId a : change.atoms) {
        setState(type, a, change.to.state);
      }
      return true;
    }
    return true;
  }

  // `pad` on the destination: the extent is raised to a multiple of the shards where it is none.
  void padTarget(Factor &f) {
    if (!change.to.pad || f.extent < 0 || isEven(f, axes)) {
      return;
    }
    int64_t shards = axes.product(f.atoms);
    f.padTo = (f.extent + shards - 1) / shards * shards;
    f.pad = Pad::Zero;
  }

  // V has no global extent: a shard that is forgotten keeps its local one, an asserted shard multiplies it.
  bool relabel() {
    bool forget = from == State::S && change.to.state == State::V;
    bool assertShard = from == State::V && change.to.state == State::S;
    int64_t n = axes.product(change.atoms);
    if (forget) {
      for (const Factor &f : parts(source)) {
        if (f.extent >= 0 && !isEven(f, axes)) {
          return fail(FaultKind::VaryingExtents, nameOf(f));
        }
      }
      if (!leave()) {
        return false;
      }
      for (Factor &f : parts(source)) {
        f.extent = f.extent >= 0 ? f.extent / n : f.extent;
        f.name = f.extent >= 0 ? NameId() : f.name;
        f.padTo = f.padTo / n;
      }
      return enter();
    }
    // The parts must be alike: shards of uneven ones, or of what has a pad inside, are none of a longer dimension.
    for (const Factor &f : assertShard ? parts(target) : llvm::MutableArrayRef<Factor>()) {
      if (f.extent >= 0 && (f.padTo != 0 || !isEven(f, axes))) {
        return fail(FaultKind::VaryingExtents, nameOf(f));
      }
    }
    if (!leave() || !enter()) {
      return false;
    }
    for (Factor &f : assertShard ? parts(target) : llvm::MutableArrayRef<Factor>()) {
      if (f.extent >= 0 && __builtin_mul_overflow(f.extent, n, &f.extent)) {
        return fail(FaultKind::BadAttribute, {}, "the extent is too large");
      }
      f.name = change.to.dim.valid() ? change.to.dim : f.name;
    }
    return true;
  }

  void record(Move &move, const ChangeRow *row) {
    move.after = module.types.intern(type);
    move.from = from;
    move.to = change.to.state;
    const Type &before = module.types[move.before];
    move.fromDim = from == State::S ? before.dims[source.dim].factors[source.factor].name : NameId();
    move.toDim = change.to.state == State::S ? factor(target).name : NameId();
    move.atoms = change.atoms;
    move.ranks = axes.product(change.atoms);
    if (!row) {
      return; // reinterpret: nothing moves
    }
    move.forward = row->primitive;
    if (move.localBytes) {
      move.forwardCost = row->cost(move.ranks, *move.localBytes);
    }
    if (!type.grad || !row->gradient) {
      return;
    }
    if (const ChangeRow *back = findChange(row->gradient->first, row->gradient->second)) {
      move.gradient = back->primitive;
      if (std::optional<int64_t> bytes = maxLocalBytes(type, axes)) {
        move.gradientCost = back->cost(move.ranks, *bytes);
      }
    }
  }

  Type &type;
  const AxisChange &change;
  Module &module;
  const Axes &axes;
  State from{};
  Target source{};
  Target target{};
  std::optional<Fault> fault;
};

} // namespace

std::optional<Fault> applyChange(Type &type, const AxisChange &change, bool reinterpret, Module &module, std::vector<Move> *moves) {
  return Mover(type, change, module).run(reinterpret, moves);
}

Typed typeMove(TypingContext &context, Operands operands) {
  const Change &change = context.module.attrs[context.op.attrs.index].change;
  Typed typed;
  Type type = *operands[0];
  for (const AxisChange &part : change.parts) {
    typed.fault = applyChange(type, part, !change.reinterpretReason.empty(), context.module, &typed.moves);
    if (typed.fault) {
      return typed;
    }
  }
  typed.results.push_back(std::move(type));
  return typed;
}

std::optional<Fault> recutOperands(llvm::SmallVectorImpl<Type> &operands, const Axes &axes) {
  // Per block, the variant of the first operand that is not uniform there decides; uniform ones follow.
  llvm::SmallVector<uint32_t, 4> blocks;
  for (const Type &t : operands) {
    for (AtomId a : activeAtoms(t)) {
      uint32_t block = axes.atom(a).block;
      if (axes.variantCount(block) > 1 && !llvm::is_contained(blocks, block)) {
        blocks.push_back(block);
      }
    }
  }
  for (uint32_t block : blocks) {
    bool done = false;
    for (uint32_t v = 0; v < axes.variantCount(block) && !done; ++v) {
      llvm::SmallVector<Type, 4> cut;
      for (const Type &t : operands) {
        if (std::optional<Type> c = recut(t, block, v, axes)) {
          cut.push_back(std::move(*c));
        }
      }
      if (cut.size() == operands.size()) {
        operands.assign(cut.begin(), cut.end());
        done = true;
      }
    }
    if (!done) {
      uint32_t b = 0;
      for (uint32_t i = 1; i < operands.size(); ++i) {
        b = recut(operands[i], block, 0, axes) ? b : i;
      }
      llvm::ArrayRef<AtomId> atoms = axes.blockAtoms(block, 0);
      return Fault{FaultKind::Recut, 0, b, llvm::SmallVector<AtomId, 4>(atoms), {}, {}};
    }
  }
  return std::nullopt;
}

} // namespace shardc
