// Types: what a distributed value is (design: types, section 2).
//
// A type has a dtype, dimensions, and per atom one state. A dimension is a product of factors, major first; the atoms that
// shard a factor stand at that factor, outermost first. An atom that shards nothing and has no entry in `states` is R.
// Types are interned: equal types have equal ids.
#pragma once

#include "shardc/IR/Axes.h"
#include "llvm/ADT/DenseMap.h"
#include <memory>
#include <optional>

namespace shardc {

enum class DType : uint8_t { F64, F32, BF16, F16, F8E4M3, F8E5M2, I64, I32, I16, I8, U8, Bool };
llvm::StringRef dtypeName(DType t);
std::optional<DType> parseDType(llvm::StringRef text);
int64_t dtypeBytes(DType t);
bool isFloat(DType t);

// The state of a value on one atom where the atom shards no dimension. Shard is said by the factor that holds the atom;
// `S` appears only in answers of `stateOf` and in changes.
enum class State : uint8_t { R, I, V, P, PAvg, PMax, PMin, S };
llvm::StringRef stateName(State s); // "R", "I", "V", "P", "P(avg)", "P(max)", "P(min)", "S"
bool isPartial(State s);

// What stands in the pad of a padded factor.
enum class Pad : uint8_t { None, Zero, Unknown };
// How an uneven factor is cut over several atoms: chunks of chunks, over the product at once, or balanced (sizes differ
// by at most one).
enum class Split : uint8_t { Nested, Flat, Balanced };

constexpr int64_t Ragged = -1;   // extent known only at run time
constexpr int64_t Symbolic = -2; // extent a name; `divisor` divides it

struct Factor {
  NameId name;         // what the dimension is called: T, D, E
  int64_t extent = 0;  // global elements before padding, or Ragged, or Symbolic
  int64_t divisor = 1; // of a ragged or symbolic extent
  int64_t padTo = 0;   // 0: not padded; otherwise the global extent with its pad
  Pad pad = Pad::None; // what the pad holds
  Split split = Split::Nested;
  bool permuted = false;              // an order of its own (head-tail context parallel): equal only to the same name
  OriginId origin;                    // of a slot factor: what filled it
  llvm::SmallVector<AtomId, 4> atoms; // outermost first

  bool operator==(const Factor &) const = default;
};

struct Dim {
  llvm::SmallVector<Factor, 1> factors; // major first; at least one
  bool concat = false;                  // the factors follow one another (q + k + v) instead of multiplying

  bool operator==(const Dim &) const = default;
};

struct Type {
  DType dtype = DType::BF16;
  bool grad = true; // a gradient flows into it; false for integers, masks, detached values
  llvm::SmallVector<Dim, 3> dims;
  llvm::SmallVector<std::pair<AtomId, State>, 4> states; // sorted by atom; never R, never S

  bool operator==(const Type &) const = default;
};

// Where slots came from: the ids that made them and the token layout at that place. Two origins are the same only if they
// are the same entry.
struct Origin {
  uint32_t site = 0; // distinguishes dispatches with equal layouts
  Dim tokens;        // the layout of t (or of the slice) that filled the slots
  bool fromSlice = false;

  bool operator==(const Origin &) const = default;
};

class TypeTable {
public:
  TypeId intern(const Type &t);
  const Type &operator[](TypeId id) const { return *types[id.index]; }
  OriginId internOrigin(const Origin &o);
  const Origin &origin(OriginId id) const { return origins[id.index]; }
  size_t size() const { return types.size(); }

private:
  std::vector<std::unique_ptr<Type>> types;
  std::vector<Origin> origins;
  llvm::DenseMap<uint64_t, llvm::SmallVector<TypeId, 1>> byHash;
};

// Where an atom shards: dimension and factor. In a dimension of parts that follow one another each part may be sharded by
// the same atom; the place is then that of the first.
struct ShardPlace {
  uint32_t dim = 0;
  uint32_t factor = 0;
  uint32_t position = 0; // in the factor's list of atoms

  bool operator==(const ShardPlace &) const = default;
};

State stateOf(const Type &t, AtomId atom); // S if a factor holds it
std::optional<ShardPlace> shardPlace(const Type &t, AtomId atom);
void setState(Type &t, AtomId atom, State s); // R, I, V or P*; the atom must not shard
// All atoms on which the type is not R, sorted.
llvm::SmallVector<AtomId, 8> activeAtoms(const Type &t);

// The type of the gradient: R<->P, I, S, V stay; P(avg) -> R (the scale is the caller's); no type for P(max), P(min) or a
// value that needs none. Slot origins stay. A stage axis stays out of it: what is R there exists on one stage only. On a
// block that is R throughout the gradient is P on the atoms of the first variant.
std::optional<Type> dual(const Type &t, const Axes &axes);

// The variant whose atoms the type uses in a block; nothing if it is R on all of them.
std::optional<uint32_t> usedVariant(const Type &t, uint32_t block, const Axes &axes);
// The same values in another way of cutting a block: possible if the type is uniform over the block (one state on all of
// its atoms, or one even shard over the whole block, contiguous in one factor). `stateOf` on an atom of another variant
// than the type uses means something only after this.
std::optional<Type> recut(const Type &t, uint32_t block, uint32_t variant, const Axes &axes);
// Equal, if need be after recutting blocks.
bool equalTypes(const Type &a, const Type &b, const Axes &axes);

// Elements of a factor that the rank holds: half-open, of the global extent (padTo when padded). Empty ranges are real.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const Range &) const = default;
};
Range localRange(const Factor &f, int64_t rank, const Axes &axes); // the extent must be a number
int64_t globalExtent(const Factor &f);                             // padTo if padded, else extent (Ragged and Symbolic stay)
// Local extent per dimension; Ragged or Symbolic where it is not a number (symbolic / shards is still Symbolic, and so is
// a product too large to count).
llvm::SmallVector<int64_t, 4> localShape(const Type &t, int64_t rank, const Axes &axes);
// The largest local extent over ranks, in elements of the whole type; nothing on ragged, symbolic or overflow.
std::optional<int64_t> maxLocalElements(const Type &t, const Axes &axes);
std::optional<int64_t> maxLocalBytes(const Type &t, const Axes &axes);

// Every rank holds equally many elements (n divides the extent, or it is padded so that it does; for an extent that is no
// number, n divides its divisor).
bool isEven(const Factor &f, const Axes &axes);
// Same boundaries on every rank: same extent, pad, order and origin, and the same digits of the ranks in the same order (a
// block that is sharded as a whole may be cut differently); an uneven factor also the same split. Names count only where
// the extent is not a number or the order is permuted.
bool sameLayout(const Factor &a, const Factor &b, const Axes &axes);
// Factor by factor, or as what both read as when contiguous.
bool sameLayout(const Dim &a, const Dim &b, const Axes &axes);
// A product read as one dimension: possible if it has one factor, or if every factor left of a sharded one has local
// extent 1 and the sharded ones are even (contiguous rows). The name is the names joined by dots, none for numbers.
std::optional<Factor> contiguous(const Dim &d, const Axes &axes, NameTable &names);

} // namespace shardc
