// Typing: the pure functions from an operation and its operands' types to its results' types.
//
// None of them prints, records or changes anything: a fix-it is found by calling them again with another operand type.
// Each answers the results, or one fault that Report.cpp turns into a message.
#pragma once

#include "shardc/Infer/Infer.h"

namespace shardc {

// What is wrong, in the order in which a person would want to know it. `a`, `b` are operand numbers.
enum class FaultKind : uint8_t {
  Rank,                  // a: has another number of dimensions than the operation takes
  Shape,                 // a, b: differ in the extent of one dimension
  NotContiguous,         // a: a product whose rows are strided is needed as one dimension
  MixedInvariant,        // a is I, b is not
  PartialIntoNonlinear,  // a
  PartialIndex,          // a: an index or a mask
  PartialTimesPartial,   // a, b
  ReplicatedIntoPartial, // a is P, b is R
  MixedPartials,         // a, b are partial by different reducers
  PartialMeetsShard,     // a is P, b is S; joint addition
  PartialTimesShard,     // a is P, b is S; otherwise
  ShardedWhole,          // a is S on what the operation needs whole
  ShardMeetsReplicated,  // a is S, b holds the whole dimension
  ShardConflict,         // a and b are S on different dimensions over the same axis
  ShardOrder,            // a, b: the same axes in another order
  ShardBoundaries,       // a, b: cut at other places, or another order of elements, or padded otherwise
  OtherSlots,            // a, b: slots that other ids filled
  VaryingMeets,          // a is V, b is P or I
  VaryingExtents,        // a is V, b has other local extents
  UnevenMean,            // a: the mean of shard means needs even shards
  UnknownPad,            // a: reducing over a pad of unknown content
  NewNeedsReplicated,    // a: the new dimension is sharded where the operand is not R
  UnevenView,            // a: a view through an uneven shard
  Recut,                 // a: two views cut these ranks differently
  BadAttribute,          // `text` says what
  // Changes of layout
  WrongSource,    // a is not what `src ->` says
  NoSuchChange,   // no row of the table
  NotInnermost,   // a: these axes are not the innermost of their dimension
  NoSuchDim,      // a has no dimension of that name
  UnevenExchange, // a: an all-to-all of equal parts needs even shards
  NotUniform,     // a: the axes that shall move together have different types
};

struct Fault {
  FaultKind kind{};
  uint32_t a = 0;
  uint32_t b = 0;
  llvm::SmallVector<AtomId, 4> atoms;
  std::string dim;  // the dimension concerned, as the user calls it
  std::string text; // what else the message needs
};

struct Typed {
  llvm::SmallVector<Type, 2> results;
  std::vector<Move> moves; // Typing::Move
  std::optional<Fault> fault;
};

// What typing functions may look at besides types.
struct TypingContext {
  Module &module;
  // The wanted sharding of a new dimension (by its place from the end of result 0), from the operations that use the
  // result; empty if nobody wants one.
  llvm::function_ref<llvm::SmallVector<AtomId, 4>(uint32_t fromEnd)> wanted;
  const Op &op;
  uint32_t site = 0;    // the number of the ids that a dispatch or combine uses
  bool ownSites = true; // this function dispatches, so that the numbers tell ids apart
  // Whether an operand is a literal zero (`zeros(...)`), which may join a partial value.
  llvm::function_ref<bool(uint32_t operand)> isZero;
};

using Operands = llvm::ArrayRef<const Type *>;

Typed typeOp(TypingContext &context, Operands operands);

// The functions that the column `typing` of Ops.def names.
Typed typeByRule(TypingContext &context, const Rule &rule, const Linear &linear, Reducer reducer, Operands operands);
Typed typeView(TypingContext &context, Operands operands);
Typed typeSlots(TypingContext &context, Operands operands);
Typed typeLoss(TypingContext &context, Operands operands);
Typed typeMove(TypingContext &context, Operands operands);

// One part of a change applied to a type; appends to `moves` if something is done.
std::optional<Fault> applyChange(Type &type, const AxisChange &change, bool reinterpret, Module &module, std::vector<Move> *moves);

// Brings all operands to one way of cutting each block of ranks, where they can be.
std::optional<Fault> recutOperands(llvm::SmallVectorImpl<Type> &operands, const Axes &axes);

// All mends of a fault by one change of one operand, the best first: those that finish what is partial or move to the
// layout that another operand has, then by bytes in both directions.
struct Fix {
  uint32_t operand = 0;
  AxisChange change;
  Type changed; // the operand after the change
  Typed outcome;
  Move move;
  std::optional<int64_t> bytes; // forward and backward, sent per rank; nothing if not known
};
std::vector<Fix> findFixes(TypingContext &context, Operands operands, const Fault &fault);

// What stands in the call besides tensors; empty if nothing does.
const Attrs &attrsOf(const TypingContext &context);
// The dimension that `dim=` names, or `fallback`; counted from the end if negative. Nothing if there is no such dimension.
std::optional<uint32_t> dimOption(const TypingContext &context, const Type &t, int64_t fallback);
Typed badDim();
Typed one(Type t);
Typed typeReduction(TypingContext &context, const Type &x);
Typed typeEinsum(TypingContext &context, Operands operands);
Typed typeCreation(TypingContext &context);
Typed typeDropout(TypingContext &context, const Type &x);
// What is wrong with what stands in the call or with an operand's dtype, whatever the layouts.
std::optional<std::string> wrongConstant(const TypingContext &context, Operands operands);

// "T", "(b l)": what the dimension is called, "dimension of extent 4" if it has no name.
std::string dimName(const Dim &dim, const Module &module);
// The dtype of sums and products of operands.
DType promote(Operands operands);

inline Typed failed(FaultKind kind, uint32_t a = 0, uint32_t b = 0, llvm::ArrayRef<AtomId> atoms = {}, std::string dim = {},
                    std::string text = {}) {
  return {{}, {}, Fault{kind, a, b, llvm::SmallVector<AtomId, 4>(atoms), std::move(dim), std::move(text)}};
}

} // namespace shardc
