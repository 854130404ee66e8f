// Tensor: what one rank holds of one value, and which part of the whole that is.
//
// Elements lie row-major. A dimension is a list of local factor extents, major first, so that merging and splitting never
// moves data. Slots of experts are ragged: their rows are listed with the expert (by its local number) and the token that
// filled them, sorted by both.
#pragma once

#include "shardc/Infer/Infer.h"
#include "shardc/Prove/Field.h"

namespace shardc {

using Extents = llvm::SmallVector<int64_t, 2>;
using Shape = llvm::SmallVector<Extents, 4>;

struct SlotRow {
  int64_t expert = 0; // local number
  int64_t token = 0;  // global row of the token
  int64_t choice = 0; // which of the token's experts
  auto operator<=>(const SlotRow &) const = default;
};

struct Tensor {
  Shape dims; // of slots: experts, {-1}, the rest
  std::vector<Element> data;
  std::shared_ptr<const std::vector<SlotRow>> slots;

  int64_t extent(size_t d) const;
  int64_t size() const { return static_cast<int64_t>(data.size()); }
  // Elements behind the dimensions in front of `d`; slots count as rows.
  int64_t inner(size_t d) const;
  int64_t rows() const { return slots ? static_cast<int64_t>(slots->size()) : 0; }
};

Tensor makeTensor(Shape dims); // zeros
Tensor likeTensor(const Tensor &t);
int64_t product(llvm::ArrayRef<int64_t> extents);

// A value: one tensor per rank that takes part, in order of Ranks::list; `failed` where it could not be computed.
struct Spread {
  std::vector<Tensor> ranks;
  bool failed = true;
};

// The ranks that run: all of one stage. Position in the list and rank are different things.
struct Ranks {
  const Axes *axes = nullptr;
  std::vector<int64_t> list;
  std::vector<int64_t> positions; // by rank; -1 for other stages
  explicit Ranks(const Axes &axes);
  // Groups of positions over `atoms`, in order of their coordinates.
  std::vector<std::vector<size_t>> groups(llvm::ArrayRef<AtomId> atoms) const;
};

// Which elements of the whole dimension a rank holds, in its order; -1 in a pad that the whole has not. Nothing where the
// extent is no number or does not fit. Rank -1 holds everything.
std::optional<std::vector<int64_t>> dimPart(const Dim &dim, int64_t rank, const Axes &axes, int64_t wholeExtent);
// Local factor extents of a dimension; -1 for a ragged one.
Extents localExtents(const Dim &dim, int64_t rank, const Axes &axes);
Shape localDims(const Type &t, int64_t rank, const Axes &axes);
// The rank's part of the whole; nothing where shapes do not fit. Pads beyond the whole are zero.
std::optional<Tensor> cut(const Tensor &whole, const Type &t, int64_t rank, const Axes &axes);
// The rows of slots that the rank holds by the type.
std::optional<Tensor> cutSlots(const Tensor &whole, const Type &t, int64_t rank, const Module &module);
// Whether a row belongs to the rank: the tokens that its own place in the origin covers, or for an axis that is not among
// them a share that depends on the row alone.
bool holdsRow(const Factor &slots, const SlotRow &row, int64_t rank, const Module &module);

// The rank (zero on other axes) whose shard of a layout of tokens holds the row.
int64_t tokenHolder(const Dim &tokens, int64_t row, const Axes &axes);

// Elements at `positions` of dimension d; -1 is zero. The dimension becomes one factor.
Tensor pick(const Tensor &t, size_t d, llvm::ArrayRef<int64_t> positions);
// The parts one after the other along dimension d, elements of part i put at positions[i]; the dimension has `extent`.
Tensor place(llvm::ArrayRef<const Tensor *> parts, size_t d, llvm::ArrayRef<std::vector<int64_t>> positions, int64_t extent);

// What is wrong with a value, or "" if it is what its type says of `whole`.
std::string compareSpread(const Spread &value, const Tensor &whole, const Type &type, const Ranks &ranks, const Module &module);

} // namespace shardc
