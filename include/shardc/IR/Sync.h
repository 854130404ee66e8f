// Sync: what a framework does to gradients outside the graph, as data (design: types, section 6).
//
// Parameters fall into families; each step of the synchronisation has at most one rule for a family. Steps run in order:
// a correction over tp, then the reduction over data-parallel ranks.
#pragma once

#include "shardc/IR/Types.h"
#include "shardc/Support/Rational.h"

namespace shardc {

enum class SyncOp : uint8_t { None, Sum, Average };

// One reduction (or scaling) of the gradients of a family.
struct SyncRule {
  std::string step;                  // "tp", "data-parallel"
  SyncOp op = SyncOp::None;          // None: only scaled
  llvm::SmallVector<AtomId, 6> over; // ranks that take part
  std::string overText;              // as written: "dp_shard, cp"
  Rational scale;                    // multiplies the result
  bool everyMicroStep = false;       // runs before the last micro-step has added its part
  std::string condition;             // "only if nothing upstream is sharded over `tp`": the verdict names it
  std::string dtype;                 // of the reduction, where the framework sets one
  // Where the reduced gradient is sharded (FSDP, ZeRO), for reports and slices; empty: everywhere whole.
  llvm::SmallVector<AtomId, 6> shardedOver;
  int32_t shardDim = 0;
  SourceRange range;
};

struct SyncFamily {
  std::string name;                  // "router", "expert", "dense"
  std::vector<std::string> patterns; // of parameter paths; `*` one or more characters
  std::vector<SyncRule> rules;       // in order of the steps
  // Axes over whose ranks the clip norm adds this family's squares; nothing if the framework takes no norm.
  std::optional<llvm::SmallVector<AtomId, 6>> norm;
};

// The first family with a pattern that matches a parameter's path has it.
struct SyncPlan {
  std::string name; // "torchtitan", or the job file
  std::vector<SyncFamily> families;
  int64_t microSteps = 1; // per optimizer step
};

} // namespace shardc
