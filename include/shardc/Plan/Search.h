// Search: the cheapest way from one layout to another on one grid.
#pragma once

#include "shardc/Plan/Machine.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace shardc {

enum class StepKind : uint8_t {
  Slice,         // keep a part
  AllGather,     // the innermost digits of a dimension leave it
  AllToAll,      // they move to the end of another dimension
  Permute,       // equal local shapes, other ranks
  ReduceScatter, // addends are summed, each rank keeps a part
  AllReduce,     // addends are summed, each rank has the sum
  KeepFirst,     // copies become addends: all but one are zero (for an extremum they stay)
  ZeroFill,      // parts become addends: zeros around them
  Exchange,      // every rank receives just what it lacks: an all-to-all of unequal parts by intersection of boxes
  Scale          // every element is multiplied by a number
};
llvm::StringRef stepName(StepKind k); // "slice", "all-gather", ...
bool communicates(StepKind k);

struct Step {
  StepKind kind{};
  DigitSet group = 0;                     // the ranks that differ only in these digits work together
  Layout after;                           // what the step leaves
  int64_t elements = 0;                   // the most that a rank receives (of a reduction: receives or sends)
  double time = 0;                        // microseconds
  int64_t numerator = 1, denominator = 1; // Scale
};

enum class CostKind : uint8_t { Time, Bytes, Steps };

struct SearchOptions {
  CostKind cost = CostKind::Time;
  bool cap = true;      // no layout between steps larger than the larger end
  bool exchange = true; // the direct all-to-all-v may be used
  bool zeroFill = true; // zeros may be made: not for an extremum, whose parts they are not
};

// What is compared: the cost that was asked for, then steps or elements.
struct Price {
  double main = 0;
  double tie = 0;
  Price operator+(const Price &o) const { return {main + o.main, tie + o.tie}; }
  bool operator<(const Price &o) const { return main != o.main ? main < o.main : tie < o.tie; }
};

struct Found {
  std::vector<Step> steps;
  Price price;
  bool best = true; // nothing cheaper exists among the moves; false where the search was cut short
};

// The permutes alone: within nodes, or across them. Not in uneven grids, where shapes differ.
enum class Permutes : uint8_t { None, Near, Far };

// Everything that one step can do to a layout; the search and the tests of it read the same list.
void forMoves(const Grid &grid, const Layout &from, const Layout &target, int64_t elementBytes, const Machine &machine,
              const SearchOptions &options, Permutes permutes, llvm::function_ref<void(const Step &)> visit);
Price priceOf(const Step &step, int64_t elementBytes, CostKind cost);

// The digits that both layouts name must be at most 8 and, where cuts are uneven, the ranks at most 256; otherwise, and where
// the search grows past its limit, reduce, keep parts, exchange. Nothing if no sequence of moves leads there.
std::optional<Found> findPlan(const Grid &grid, const Layout &from, const Layout &to, int64_t elementBytes, const Machine &machine,
                              const SearchOptions &options);

} // namespace shardc
