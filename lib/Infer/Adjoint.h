// Adjoint: what one operation does to a gradient on its way back. The pass over the program is in Gradients.cpp.
#pragma once

#include "Typing.h"
#include "shardc/Infer/Gradients.h"
#include <map>
#include <unordered_map>

namespace shardc {

// One value's gradient in 12 bytes: a program has millions of values and few distinct gradients.
struct Slot {
  TypeId type;        // of the table below; invalid: no gradient
  uint32_t scale = 0; // of the table below; 0 is 1
  bool faulty = false;

  bool known() const { return type.valid(); }
};

class GradientTable {
public:
  TypeId intern(const Type &t) { return types.intern(t); }
  const Type &type(TypeId id) const { return types[id]; }
  uint32_t intern(const Scale &s);
  const Scale &scale(uint32_t index) const { return scales[index]; }
  Slot make(const Type &t, const Scale &s) { return {intern(t), intern(s), false}; }

private:
  TypeTable types;
  std::vector<Scale> scales = {Scale()};
  std::map<std::pair<int64_t, int64_t>, std::vector<uint32_t>> byValue = {{{1, 1}, {0}}};
};

// The state of a gradient where it is neither sharded nor partial: written I where the value is I, but kept as R.
inline bool isWhole(State s) { return s == State::R || s == State::I; }
// Sets a state, whether or not a factor shards the atom: a gradient may have other states than its value.
void giveState(Type &t, AtomId atom, State s);
// Atoms on which any of the types is not R; sorted, each once.
llvm::SmallVector<AtomId, 8> atomsOf(llvm::ArrayRef<const Type *> types);

// Why a gradient cannot pass an operation.
struct AdjointFault {
  AtomId atom;
  State arrives{};
  std::optional<State> declared; // a declared gradient ends in this state, which the value's type does not allow
  State value{};                 // the value's state before the change
};

class Adjoint {
public:
  Adjoint(const TypedModule &t, GradientTable &g) : module(t.module), axes(t.module.axes), table(g) {}

  // The gradient of operand k of operation i, from that of one result; the fault if it cannot pass.
  Slot run(const Instance &instance, uint32_t i, uint32_t k, TypeId operand, TypeId result, Slot in, std::optional<AdjointFault> &fault);

private:
  struct Answer {
    TypeId type;
    std::optional<AdjointFault> fault;
  };
  Slot local(TypeId operand, TypeId result, Slot in, std::optional<AdjointFault> &fault);
  Answer typeLocal(const Type &operand, const Type &result, const Type &gradient);
  Slot changed(llvm::ArrayRef<Move> moves, const Change *change, const Type &operand, const Type &result, Slot in,
               std::optional<AdjointFault> &fault);
  using States = llvm::SmallVector<std::pair<AtomId, State>, 8>; // after the moves so far
  bool runMove(const Move &move, const Change *change, const Type &arrives, States &states, Scale &scale,
               std::optional<AdjointFault> &fault);

  const Module &module;
  const Axes &axes;
  GradientTable &table;
  struct KeyHash {
    size_t operator()(const std::array<uint32_t, 3> &k) const {
      return (k[0] * 0x9e3779b97f4a7c15ULL + k[1]) * 0x9e3779b97f4a7c15ULL + k[2];
    }
  };
  std::unordered_map<std::array<uint32_t, 3>, Answer, KeyHash> answers; // operand, result, gradient
};

} // namespace shardc
