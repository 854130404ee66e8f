// Mutations: an accepted job with one mistake put into it, again and again. Does the checker notice?
//
// A mutant drops or swaps one change of layout, a group, a reduction, a divisor, a pad or a written layout. The results keep the
// types that they had: what a job promises does not change with its mistakes. A mutant that the checker accepts is run; where
// it still computes what one device does, nothing was to be noticed, and where it does not, the checker has a hole.
#pragma once

#include "shardc/Prove/Prove.h"
#include <map>

namespace shardc {

enum class Fate : uint8_t {
  Refused, // by the checker
  Equal,   // accepted, and the proof holds
  Hole,    // accepted, and the proof refutes it
  NotRun,  // accepted, and could not be run to the end
};

struct Mutant {
  std::string what; // "`P@tp -> R@tp` left out"
  SourceRange range;
  Fate fate{};
  std::string why; // the finding's name, or what the proof says
};

struct MutationReport {
  std::vector<Mutant> mutants;
  Mutant job; // without a mistake; only where it is Equal do the others say something
  int64_t count(Fate f) const;
  // Refused, of all that were not proved equal; 1 where there is none.
  Rational rate() const;
};

// `typed` is put back as it was. `progress` is called before each mutant with the numbers done and to do; it answers whether to
// go on.
MutationReport mutate(TypedModule &typed, const ProveOptions &options, SourceManager &sources,
                      llvm::function_ref<bool(size_t done, size_t all)> progress);

} // namespace shardc
