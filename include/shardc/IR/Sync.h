// Sync: what a framework does to gradients outside the graph, as data (design: types, section 6).
//
// Parameters fall into families; each step of the synchronisation has at most one rule for a parameter. Steps run in order:
// a correction over tp, then the reduction over data-parallel ranks.
#pragma once

#include "shardc/IR/Scale.h"
#include "shardc/IR/Types.h"

namespace shardc {

enum class SyncOp : uint8_t { None, Sum, Average };

// One reduction (or scaling) of the gradients of a family.
struct SyncRule {
  std::string step;                  // "tp", "data-parallel"
  SyncOp op = SyncOp::None;          // None: only scaled
  llvm::SmallVector<AtomId, 6> over; // ranks that take part
  std::string overText;              // as written: "dp_shard, cp"
  Scale scale;                       // multiplies the result
  // Runs at each micro-step on what has been added up so far, before the last one has added its part. A reduction of each
  // contribution by itself is the same as one at the end.
  bool everyMicroStep = false;
  // Only for parameters that are in this state over all of `over`; the next rule of the step may take the others.
  std::optional<State> typed;
  std::string condition; // "nothing upstream is sharded over `tp`": the verdict names it
  std::string dtype;     // of the reduction, where the framework sets one
  // Where the reduced gradient is sharded (FSDP, ZeRO); empty: as the parameter is.
  llvm::SmallVector<AtomId, 6> shardedOver;
  int32_t shardDim = 0;
  bool shardEven = false;   // a dimension that the ranks do not divide is refused
  SourceRange shardDecided; // what the user wrote that decides where it is sharded
  SourceRange range;
  SourceRange decided;     // what the user wrote that decides the rule: a degree
  std::string decidedText; // what follows from it: "reduced over `moe_dp`"
};

// Over which ranks the clip norm adds squares. Of copies over `once` only one counts.
struct SyncNorm {
  llvm::SmallVector<AtomId, 6> over;
  llvm::SmallVector<AtomId, 6> once;
  SourceRange range;
};

struct SyncFamily {
  std::string name;                  // "router", "expert", "dense"
  std::vector<std::string> patterns; // of parameter paths; `*` one or more characters
  std::vector<SyncRule> rules;       // in order of the steps, and of preference within a step
  std::optional<SyncNorm> norm;      // nothing if the framework takes no norm
  // Axes of stages that each use the parameter: its gradient is then also partial over them.
  llvm::SmallVector<AtomId, 2> tiedOver;
  SourceRange range;    // of its name
  bool written = false; // by the user, not shipped: a family without parameters is then a mistake
};

// Parameters whose gradients are gathered and reduced as one buffer. A parameter can be in one only.
struct SyncUnit {
  std::string name;
  std::vector<std::string> patterns;
  SourceRange range;
};

// The first family with a pattern that matches a parameter's path has it.
struct SyncPlan {
  std::string name;  // "torchtitan 2026-08-10", or "" for rules that the user wrote
  SourceRange range; // where the user wrote rules or named some
  std::vector<SyncFamily> families;
  std::vector<SyncUnit> units;
  int64_t microSteps = 1; // per optimizer step
  // Why copies of one gradient stay equal bit by bit although each is reduced in a group of its own; "" if nobody says so.
  std::string sameBits;
};

} // namespace shardc
