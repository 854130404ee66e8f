// Sync: does the framework reduce every gradient as its type needs it?
//
// For every parameter the inferred gradient runs through the rules of its family; what remains says the verdict.
#pragma once

#include "shardc/IR/Sync.h"
#include "shardc/Infer/Gradients.h"

namespace shardc {

enum class SyncVerdict : uint8_t {
  Right,
  Missing,  // still partial: replicas drift apart
  Repeated, // summed over ranks that held the whole gradient
  Mixed,    // reduced over ranks that hold different shards
  Scaled,   // reduced rightly, times a factor that is not 1
  Early,    // reduced before the last contribution
  Unknown,  // no gradient could be derived
};
llvm::StringRef verdictName(SyncVerdict v);

// One row of the gradient table: parameters of one family that are alike.
struct SyncRow {
  std::string family;
  std::string parameters; // path pattern of the first: "layers.*.moe.experts.w1"
  int64_t count = 1;
  std::optional<Gradient> gradient; // before synchronisation
  std::string sync;                 // "average over tp; sum over dp_shard, cp", "none"
  Rational scale;                   // of the synchronised gradient against the true one
  SyncVerdict verdict = SyncVerdict::Unknown;
  llvm::SmallVector<AtomId, 6> atoms; // that the verdict is about: missing, repeated or mixed over these
  std::string condition;              // under which alone the verdict holds
  SourceRange rule;                   // the rule that the finding is about, if one is
};

// One row per parameter that is not alike an earlier one, in order of first use.
std::vector<SyncRow> synchronise(const TypedModule &typed, const std::vector<ParamGradient> &params, const SyncPlan &plan);

// A finding per row that is not right.
void reportSync(const TypedModule &typed, llvm::ArrayRef<SyncRow> rows, DiagnosticEngine &diags);

// `*` stands for one or more characters.
bool matchesPattern(llvm::StringRef text, llvm::StringRef pattern);

} // namespace shardc
