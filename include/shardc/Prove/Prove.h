// Prove: the second road to a verdict. The program runs rank by rank and on one device, in exact arithmetic, forward and
// backward and through the synchronisation of gradients; results are compared with ==.
//
// The checker says why a layout is right; this says that it is. Neither uses the other's rules. It does not choose sizes:
// a job is made small before it comes here.
#pragma once

#include "shardc/Verify/Sync.h"

namespace shardc {

struct ProveOptions {
  uint64_t seed = 1;
  bool backward = true;
  // What asserts a global meaning (V to S or P, reinterpret) is believed; otherwise it must be what one device has.
  bool believeAssertions = false;
  // Inputs and parameters are integers from -3 to 3: zeros, signs and ties occur, for what depends on them (masks, comparisons,
  // maxima, ReLU). Their sums and products are those of integers as long as no result reaches 2^60.
  bool integers = false;
};

// Something that is not what one device computes.
struct Refutation {
  std::string value; // "layers.0.attention.o"
  std::string text;  // "rank 1 holds other values than ..."
  SourceRange range;
  bool gradient = false;
};

// One parameter's gradient against the true one. Nothing where it is no rational multiple.
struct ParameterProof {
  std::string path;
  std::optional<Rational> ratio;  // before synchronisation, summed (or as it stands) by its inferred type
  std::optional<Rational> synced; // after it, on every rank alike
  std::optional<Rational> mean;   // where the ranks differ: their mean after synchronisation
  std::optional<Rational> norm;   // how often the clip norm counts its squares; nothing where it counts some and others not
  bool normTaken = false;         // there is such a norm, and the gradient is right
  bool none = false;              // no gradient reaches it
  bool judged = false;            // a family of the framework's rules has it
  // What the checker says of the synchronised gradient, its factor in sizes of axes, and the same in the job's real sizes.
  SyncVerdict verdict = SyncVerdict::Unchecked;
  std::string claimed, real;
  SourceRange range;
};

// What was made small for the run.
struct ShrunkSize {
  std::string name;
  int64_t from = 0;
  int64_t to = 0;
};

struct Proof {
  std::vector<ShrunkSize> shrunk;
  std::vector<Refutation> refutations; // in order of execution
  std::vector<ParameterProof> parameters;
  std::string unable; // why it could not run, or could not run to the end; "" if it did
  SourceRange where;  // of what could not run
  bool synchronised = false;
  // A value was defined by an assertion, or a change without a gradient (of a maximum) was passed: gradients behind it have
  // nothing to be compared with.
  bool cut = false;
  int64_t ranks = 0;
  int64_t compared = 0; // values, forward and gradients
  int64_t elements = 0; // of all of them on all ranks
  // Every synchronised gradient is the true one, as far as a rule takes it, and is counted once.
  bool gradientsRight() const {
    return llvm::all_of(parameters, [](const ParameterProof &p) {
      return (!p.judged || (p.synced && p.synced->isOne())) && (!p.normTaken || (p.norm && p.norm->isOne()));
    });
  }
  bool holds() const { return refutations.empty() && unable.empty(); }
};

// Runs a program whose types were inferred without a fault. Extents must be numbers.
Proof prove(const TypedModule &typed, const ProveOptions &options);

// Elements that all ranks together hold of all values; nothing on overflow or where an extent is no number.
std::optional<int64_t> proofElements(const TypedModule &typed);

} // namespace shardc
