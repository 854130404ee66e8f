// Sync: does the framework reduce every gradient as its type needs it?
//
// For every parameter the inferred gradient runs through the rules of its family; what remains says the verdict. The clip
// norm must then count each distinct element of the reduced gradients once.
#pragma once

#include "shardc/IR/Sync.h"
#include "shardc/Infer/Gradients.h"

namespace shardc {

enum class SyncVerdict : uint8_t {
  Right,
  Missing,   // still partial: replicas drift apart
  Repeated,  // summed over ranks that held the whole gradient
  Mixed,     // reduced over ranks that hold different shards
  Scaled,    // reduced rightly, times a factor that is not 1
  Early,     // reduced before the last contribution
  Unknown,   // no gradient could be derived
  Unchecked, // nobody says what synchronises it
};
llvm::StringRef verdictName(SyncVerdict v);

// One row of the gradient table: parameters of one family that are alike.
struct SyncRow {
  std::string family;
  std::string parameters; // "layers.*.moe.experts.w1"
  int64_t count = 1;
  std::optional<Gradient> gradient; // before synchronisation
  std::optional<Type> synchronised; // after it
  std::string sync;                 // "average over tp; sum over dp_shard, cp", "none"
  Scale scale;                      // of the synchronised gradient against the true one
  SyncVerdict verdict = SyncVerdict::Unknown;
  bool faulty = false;                // there is no gradient because of a fault that was reported
  llvm::SmallVector<AtomId, 6> atoms; // that the verdict is about: missing, repeated or mixed over these
  std::string condition;              // under which alone the verdict holds
  // Where the framework keeps the reduced gradient: over these, on this dimension; empty: as the parameter is.
  llvm::SmallVector<AtomId, 6> shardedOver;
  int32_t shardDim = 0;
  bool shardEven = false;
  // Copies over `copies` are reduced over `apart` in groups of their own, after they were made equal.
  llvm::SmallVector<AtomId, 6> copies, apart;
  std::string early;                   // what is done too early: "summed", "scaled"
  std::optional<uint32_t> familyIndex; // of the plan
  SourceRange rule;                    // that the verdict is about, if it is about one
  SourceRange keptBy, apartBy;         // the rules that shard it, and that reduce copies apart
  SourceRange keptAt;                  // what the user wrote that decides how it is sharded
  SourceRange parameter;               // where the parameter was declared
};

// One row per parameter that is not alike an earlier one, in order of first use. Without a plan every verdict is Unchecked.
std::vector<SyncRow> synchronise(const TypedModule &typed, const std::vector<ParamGradient> &params, const SyncPlan *plan);

// A finding per cause; rows alike are counted.
void reportSync(const TypedModule &typed, llvm::ArrayRef<SyncRow> rows, DiagnosticEngine &diags);
// What the clip norm leaves out or counts twice.
void reportNorm(const TypedModule &typed, llvm::ArrayRef<SyncRow> rows, DiagnosticEngine &diags);
// Patterns without parameters, parameters in two units.
void reportPlan(const TypedModule &typed, const std::vector<ParamGradient> &params, DiagnosticEngine &diags);

// The ranks that hold different elements of a row's reduced gradient: those that shard it, and stages.
llvm::SmallVector<AtomId, 8> distinctOver(const SyncRow &row, const Axes &axes);

// `*` stands for one or more characters.
bool matchesPattern(llvm::StringRef text, llvm::StringRef pattern);

} // namespace shardc
