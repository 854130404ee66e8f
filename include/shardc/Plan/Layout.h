// Layout: who holds which box of a tensor, as words over digits of the ranks.
//
// The planner's own form of a type: dimensions are the factors of the type, and a dimension lists the digits that cut it,
// outermost first. A digit is a prime part of an atom, or several digits that never part. The boxes that follow from it are
// the truth; everything else (what a step moves, what must be received at least) is arithmetic on them.
#pragma once

#include "shardc/IR/Types.h"
#include <array>
#include <vector>

namespace shardc {

constexpr unsigned MostDims = 12;
constexpr unsigned MostDigits = 16;

struct Digit {
  int64_t size = 1;
  llvm::SmallVector<std::pair<int64_t, int64_t>, 1> parts; // (size, stride), outermost first
  bool balanced = false;                                   // cuts into parts whose sizes differ by one at most
  std::string axis;                                        // "tp"
  unsigned part = 0, partCount = 1;                        // tp.0 of two: written whole where all parts stand together
};

// Bits of digits.
using DigitSet = uint32_t;

struct Layout {
  std::array<uint8_t, MostDims> count{};                        // digits per dimension
  std::array<std::array<uint8_t, MostDigits>, MostDims> word{}; // outermost first
  DigitSet partial = 0;                                         // whose ranks hold addends

  bool operator==(const Layout &) const = default;
  llvm::ArrayRef<uint8_t> dim(unsigned d) const { return {word[d].data(), count[d]}; }
  void append(unsigned d, uint8_t digit) { word[d][count[d]++] = digit; }
  DigitSet sharded(unsigned dims) const; // digits that cut some dimension
};

// What layouts are about: the tensor and the digits of its ranks.
struct Grid {
  llvm::SmallVector<Digit, 8> digits;
  llvm::SmallVector<int64_t, 4> extents;
  int64_t world = 1;
  bool even = true;     // every layout that occurs cuts every dimension into equal parts
  bool overlap = false; // some digits name the same ranks, cut in two ways: only boxes compare them

  unsigned dims() const { return static_cast<unsigned>(extents.size()); }
  int64_t elements() const;
  int64_t coordinate(int64_t rank, const Digit &digit) const;
  int64_t product(llvm::ArrayRef<uint8_t> list) const;
  int64_t product(DigitSet set) const;
  std::string describe(llvm::ArrayRef<uint8_t> list) const; // "dp,tp.0"
  std::string describe(DigitSet set) const;
  DigitSet all() const { return (DigitSet(1) << digits.size()) - 1; }

  Range range(const Layout &l, unsigned dim, int64_t rank) const; // half-open; empty ranges are real
  bool divides(const Layout &l) const;                            // every dimension is cut into equal parts
  int64_t local(const Layout &l, int64_t rank) const;             // elements
  int64_t largestLocal(const Layout &l) const;
  int64_t kept(const Layout &from, const Layout &to, int64_t rank) const; // elements of `to` that the rank holds already
  int64_t missing(const Layout &from, const Layout &to) const;            // the most that a rank lacks
  std::vector<Range> rangesOf(const Layout &l, unsigned dim) const;       // over all ranks, sorted, none empty
  // The most ranks that one rank must hear from where pieces go straight to their places.
  int64_t peers(const Layout &from, const Layout &to) const;
  // No plan lets every rank receive fewer elements (docs/plan.md, "The bound").
  int64_t bound(const Layout &from, const Layout &to) const;
};

} // namespace shardc
