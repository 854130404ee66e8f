// Adjoint: one operation's way back, per atom.
//
// The adjoint of an operation is linear in the result's gradient, so its state follows from the forward states, which the
// forward rules made consistent:
//
//   operand   result   gradient in    gradient out
//   R, I      R, I     any            the same: all ranks do the same linear work
//   R, I      S, V     S, V           P: each rank has its rows' addend
//   R, I      P        whole          P
//   S         S        S              S
//   S         P, I     whole          S
//   P         P        any            the same
//   V         any      any            V
//
// A gradient that is partial where `whole` is needed is a finding. A change runs its gradient's primitive on what really
// arrives: a sum over n ranks that hold the whole gradient is n times it.
//
// A mean over n ranks is a sum whose parts weigh 1/n. The gradient that a value of type P(avg) is measured by is that of its
// own part, so the local operations before a mean multiply nothing, and only a collective that forgets the division does.
#include "Adjoint.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc {

uint32_t GradientTable::intern(const Scale &s) {
  std::vector<uint32_t> &known = byValue[{s.value.num, s.value.valid ? s.value.den : 0}];
  for (uint32_t index : known) {
    if (scales[index].powers == s.powers) {
      return index;
    }
  }
  known.push_back(uint32_t(scales.size()));
  scales.push_back(s);
  return known.back();
}

void giveState(Type &t, AtomId atom, State s) {
  if (s == State::S) {
    return; // where it shards the value's type says
  }
  for (Dim &d : t.dims) {
    for (Factor &f : d.factors) {
      llvm::erase(f.atoms, atom);
    }
  }
  setState(t, atom, s == State::I ? State::R : s);
}

llvm::SmallVector<AtomId, 8> atomsOf(llvm::ArrayRef<const Type *> types) {
  llvm::SmallVector<AtomId, 8> atoms;
  for (const Type *t : types) {
    llvm::append_range(atoms, activeAtoms(*t));
  }
  llvm::sort(atoms);
  atoms.erase(std::unique(atoms.begin(), atoms.end()), atoms.end());
  return atoms;
}

namespace {

// The table above; nothing where the gradient is needed whole and is not.
std::optional<State> flow(State operand, State result, State in) {
  if (operand == State::V) {
    return State::V;
  }
  if (isPartial(operand) || (isWhole(operand) && isWhole(result))) {
    return in;
  }
  const State out = operand == State::S ? State::S : State::P;
  return result == State::S || result == State::V || isWhole(in) ? std::optional(out) : std::nullopt;
}

State dualState(State s) { return s == State::R ? State::P : isPartial(s) ? State::R : s; }

bool accepts(State expected, State in) { return isWhole(expected) ? isWhole(in) : in == expected; }

// A sum over an atom: of n whole gradients, or of n parts of a mean, it is n times too large.
bool sum(State in, const Axes &axes, AtomId atom, Scale &scale) {
  if (isWhole(in) || in == State::PAvg) {
    scale.multiplyRanks(axes, atom, 1);
  }
  return isWhole(in) || in == State::PAvg || in == State::P || in == State::V;
}

// One collective of a backward pass on what arrives; `from -> to` is what the change expects. Nothing if it cannot.
std::optional<State> collective(State from, State to, State in, const Axes &axes, AtomId atom, Scale &scale) {
  const ChangeRow *row = findChange(from, to);
  switch (row ? row->primitive : Primitive::None) {
  case Primitive::None:
    if (from == to || (isWhole(from) && isWhole(to))) {
      return in;
    }
    return accepts(from, in) ? std::optional(isWhole(to) ? State::R : to) : std::nullopt;
  case Primitive::AllReduce:
    return sum(in, axes, atom, scale) ? std::optional(State::R) : std::nullopt;
  case Primitive::ReduceScatter:
    return sum(in, axes, atom, scale) ? std::optional(State::S) : std::nullopt;
  case Primitive::AllReduceMean:
    if (in == State::P) {
      scale.multiplyRanks(axes, atom, -1);
    }
    return isWhole(in) || in == State::P || in == State::PAvg ? std::optional(State::R) : std::nullopt;
  case Primitive::AllGather:
    return in == State::S ? std::optional(State::R) : std::nullopt;
  case Primitive::AllToAll:
    return in == State::S ? std::optional(State::S) : std::nullopt;
  case Primitive::ZeroFill:
    return in == State::S ? std::optional(State::P) : std::nullopt;
  case Primitive::Slice:
    return isWhole(in) ? std::optional(State::S) : std::nullopt;
  case Primitive::KeepFirst:
    return isWhole(in) ? std::optional(State::P) : std::nullopt;
  case Primitive::AllReduceMax:
  case Primitive::AllReduceMin:
    return std::nullopt;
  }
  return std::nullopt;
}

// What the gradient of one move goes through.
struct GradientPath {
  State from{}, to{};
  bool declared = false;
  bool relabels = false; // nothing moves, whatever the states are
};

std::optional<GradientPath> pathOf(const Move &m, const Change *change) {
  for (size_t p = 0; change && p < change->declaredGradient.size() && p < change->parts.size(); ++p) {
    if (change->parts[p].atoms == m.atoms) {
      return GradientPath{change->declaredGradient[p].first.state, change->declaredGradient[p].second.state, true, false};
    }
  }
  if (change && !change->reinterpretReason.empty()) {
    return GradientPath{dualState(m.to), dualState(m.from), false, true};
  }
  const ChangeRow *row = findChange(m.from, m.to);
  return row && row->gradient ? std::optional(GradientPath{row->gradient->first, row->gradient->second, false, false}) : std::nullopt;
}

} // namespace

Slot Adjoint::run(const Instance &instance, uint32_t i, uint32_t k, TypeId operand, TypeId result, Slot in,
                  std::optional<AdjointFault> &fault) {
  const Function &f = module.function(instance.function);
  const Op &op = f.ops[i];
  auto first = llvm::lower_bound(instance.moves, i, [](const Move &m, uint32_t index) { return m.op < index; });
  auto last = std::find_if(first, instance.moves.end(), [&](const Move &m) { return m.op != i; });
  if (op.kind == OpKind::Redistribute || op.kind == OpKind::Reinterpret) {
    return changed(llvm::ArrayRef(instance.moves).slice(size_t(first - instance.moves.begin()), size_t(last - first)),
                   &module.attrs[op.attrs.index].change, module.types[operand], module.types[result], in, fault);
  }
  // A change that was inserted in front of the operation stands on one operand.
  llvm::ArrayRef<ValueId> operands = f.operandsOf(op);
  if (first == last || !first->inserted || first->value != operands[k] || llvm::is_contained(operands.take_front(k), first->value)) {
    return local(operand, result, in, fault);
  }
  Slot between = local(first->after, result, in, fault);
  return fault ? between : changed(*first, nullptr, module.types[operand], module.types[first->after], between, fault);
}

Slot Adjoint::local(TypeId operand, TypeId result, Slot in, std::optional<AdjointFault> &fault) {
  const std::array<uint32_t, 3> key = {operand.index, result.index, in.type.index};
  auto it = answers.find(key);
  if (it == answers.end()) {
    it = answers.emplace(key, typeLocal(module.types[operand], module.types[result], table.type(in.type))).first;
  }
  fault = it->second.fault;
  return {it->second.type, in.scale, fault.has_value()};
}

Adjoint::Answer Adjoint::typeLocal(const Type &operand, const Type &result, const Type &gradient) {
  llvm::SmallVector<Type, 3> same = {operand, result, gradient};
  if (std::optional<Fault> cut = recutOperands(same, axes)) {
    return {{}, AdjointFault{cut->atoms.empty() ? AtomId(0) : cut->atoms[0], State::S, {}, {}}};
  }
  Type out = same[0];
  for (AtomId a : atomsOf({&same[0], &same[1], &same[2]})) {
    const State in = stateOf(same[2], a);
    const std::optional<State> state = flow(stateOf(same[0], a), stateOf(same[1], a), in);
    if (!state) {
      return {{}, AdjointFault{a, in, {}, {}}};
    }
    giveState(out, a, *state);
  }
  return {table.intern(out), std::nullopt};
}

// Runs the gradients of a change's parts backwards on what really arrives. Several parts may move one atom after another.
Slot Adjoint::changed(llvm::ArrayRef<Move> moves, const Change *change, const Type &operand, const Type &result, Slot in,
                      std::optional<AdjointFault> &fault) {
  Type out = operand, arrives = table.type(in.type);
  for (const Move &m : moves) { // one way of cutting each block that is moved
    for (AtomId a : m.atoms) {
      const Atom &atom = axes.atom(a);
      for (Type *t : {&out, &arrives}) {
        std::optional<Type> cut = axes.variantCount(atom.block) > 1 ? recut(*t, atom.block, atom.variant, axes) : std::nullopt;
        *t = cut ? std::move(*cut) : std::move(*t);
      }
    }
  }
  States states;
  Scale scale = table.scale(in.scale);
  if (change) {
    scale.multiply(change->gradientScale);
    for (const AxisChange &part : change->parts) { // what is nothing forward can still have a declared gradient
      const bool moved = llvm::any_of(moves, [&](const Move &m) { return m.atoms == part.atoms; });
      Move still;
      still.atoms = part.atoms;
      still.from = still.to = part.atoms.empty() ? State::R : stateOf(operand, part.atoms[0]);
      if (!moved && !change->declaredGradient.empty() && !runMove(still, change, arrives, states, scale, fault)) {
        return {{}, 0, true};
      }
    }
  }
  for (const Move &m : llvm::reverse(moves)) {
    if (!runMove(m, change, arrives, states, scale, fault)) {
      return {{}, 0, true};
    }
  }
  for (AtomId a : atomsOf({&operand, &result, &arrives})) {
    if (llvm::none_of(states, [&](const auto &s) { return s.first == a; })) {
      giveState(out, a, stateOf(arrives, a));
    }
  }
  for (const auto &[atom, state] : states) {
    giveState(out, atom, state);
  }
  return table.make(out, scale);
}

bool Adjoint::runMove(const Move &move, const Change *change, const Type &arrives, States &states, Scale &scale,
                      std::optional<AdjointFault> &fault) {
  const std::optional<GradientPath> path = pathOf(move, change);
  for (AtomId a : move.atoms) {
    auto *known = llvm::find_if(states, [&](const auto &s) { return s.first == a; });
    const State in = known == states.end() ? stateOf(arrives, a) : known->second;
    std::optional<State> state;
    if (path && path->relabels) {
      state = path->from == path->to ? std::optional(in) : accepts(path->from, in) ? std::optional(path->to) : std::nullopt;
    } else if (path) {
      state = collective(path->from, path->to, in, axes, a, scale);
    }
    const bool fits = state && (*state == State::S) == (move.from == State::S) && (*state == State::V) == (move.from == State::V);
    if (!fits) {
      fault = AdjointFault{a, in, state, move.from};
      return false;
    }
    if (path->declared && move.from == State::PAvg) {
      scale.multiplyRanks(axes, a, 1); // the table's own gradient divides, this one does not
    }
    if (known == states.end()) {
      states.emplace_back(a, *state);
    } else {
      known->second = *state;
    }
  }
  return true;
}

} // namespace shardc
