// Changes: the only ways in which data moves or is relabelled (design: types, section 4).
//
// The table is Changes.def. Checker, fix-its, cost, runtime dispatch and the generated docs read it; nothing else knows
// which collective turns a partial value into a shard.
#pragma once

#include "shardc/IR/Scale.h"
#include "shardc/IR/Types.h"

namespace shardc {

// What really happens to the data.
enum class Primitive : uint8_t {
  None,
  AllReduce,
  AllReduceMax,
  AllReduceMin,
  AllReduceMean,
  ReduceScatter,
  AllGather,
  AllToAll,
  Slice,
  ZeroFill,
  KeepFirst
};
llvm::StringRef primitiveName(Primitive p); // "all-reduce", "reduce-scatter", "slice", ...; "" for None
bool communicates(Primitive p);

// Per rank of a group: n ranks, L local bytes before the change.
struct Cost {
  int64_t steps = 0; // messages one after the other in a ring
  int64_t bytes = 0; // sent by each rank
};

struct ChangeRow {
  State from;
  State to;
  Primitive primitive;
  // The change that the gradient goes through; nothing for a change without gradient (max, min).
  std::optional<std::pair<State, State>> gradient;
  // 1/n for P(avg): what the gradient is scaled by, as numerator 1 over `n` if true.
  bool gradientOverN;
  Cost (*cost)(int64_t n, int64_t L);
};
llvm::ArrayRef<ChangeRow> changeRows();
const ChangeRow *findChange(State from, State to);

// One end of a change on some atoms: a state, and for S the dimension.
struct Endpoint {
  State state = State::R;
  NameId dim;        // S: the factor's (or product's) name; invalid if given by number
  int32_t index = 0; // S without a name: dimension number, negative from the end
  NameId origin;     // slots: the token dimension after ':', if written
  bool pad = false;  // S as a destination: padded with zeros to a multiple of the shards where they do not divide it
  bool operator==(const Endpoint &) const = default;
};

// A change on the atoms of one or several axes that move together, keeping their order.
struct AxisChange {
  llvm::SmallVector<AtomId, 4> atoms; // outermost first
  std::optional<Endpoint> from;       // written `src -> dst`: what the value must be before
  Endpoint to;
  bool operator==(const AxisChange &) const = default;
};

// What `redistribute` and module boundaries ask for, in order; `reinterpret` relabels instead, with its reason.
struct Change {
  llvm::SmallVector<AxisChange, 1> parts;
  std::string reinterpretReason; // not empty: reinterpret
  // The framework's own gradient instead of the table's, per part; empty: the table's.
  llvm::SmallVector<std::pair<Endpoint, Endpoint>, 1> declaredGradient;
  // What the framework multiplies the gradient by on its way back: `gradient * sp`. The value itself stays as it is.
  Scale gradientScale;
  bool operator==(const Change &) const = default;
};

} // namespace shardc
