// Redistribute: the plan of one change of layout, between two types on one mesh (docs/plan.md).
#pragma once

#include "shardc/IR/Module.h"
#include "shardc/Plan/Search.h"

namespace shardc {

struct Redistribution {
  Grid grid;
  Layout from, to;
  int64_t elementBytes = 1;
  std::vector<Step> steps;
  bool best = true;     // no cheaper sequence of these steps exists
  int64_t elements = 0; // received, the sum over the steps of the most of any rank
  int64_t bound = 0;    // no plan has fewer
  int64_t peak = 0;     // the largest local value before, between or after the steps, in elements
  int64_t allowed = 0;  // the larger end
  double time = 0;      // microseconds
};

// Both types are over `module.axes`. Nothing, with the reason in `why`, if no plan exists: other extents, reducers that do not
// commute, extents that are no numbers, parts that follow one another, slots, a varying end.
std::optional<Redistribution> redistribute(const Type &from, const Type &to, const Module &module, const Machine &machine,
                                           const SearchOptions &options, std::string &why);

} // namespace shardc
