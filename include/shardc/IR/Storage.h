// Storage: which ranks keep which elements of a parameter's gradient and optimizer state, and what a loader takes from a
// checkpoint of them, as data.
//
// Tensor and expert parallelism leave a rank its box of a parameter. What ZeRO, FSDP and the like leave of the box is a rule
// here; a rule speaks about sizes of groups only, never about single ranks.
#pragma once

#include "shardc/IR/Types.h"

namespace shardc {

enum class StorageCut : uint8_t {
  Whole,  // every rank keeps its box
  Dim,    // chunks of one dimension of the box (FSDP)
  Flat,   // the elements of one parameter in a row, padded and cut (ZeRO 3, ColossalAI)
  Buffer, // the elements of all parameters of the rule in one row, padded and cut (ZeRO 1 and 2)
};

// What is done to a row of elements: padded to a multiple of `multiple`, cut for the ranks of `over`.
struct StorageShare {
  llvm::SmallVector<AtomId, 6> over;
  std::string overText; // as written: "moe_dp, sp"
  int64_t multiple = 1; // a multiple of the ranks of `over`, but for a mistake
  std::string padText;  // whose number of ranks the pad is made for
};

struct StorageRule {
  std::string family; // "expert"
  std::vector<std::string> patterns;
  StorageCut cut = StorageCut::Whole;
  StorageShare share;
  int32_t dim = 0;                  // Dim
  bool even = false;                // Dim: one that the ranks do not divide is refused
  bool each = false;                // dimension 0 counts parameters of their own: experts
  std::optional<StorageShare> load; // where a loader cuts the whole in another way
  SourceRange range;
  SourceRange decided; // what the user wrote that decides the rule: a degree
};

// Parameters whose state is read from files as ranks wrote them: one file per coordinate on `axes`.
struct StorageFiles {
  std::vector<std::string> patterns;
  std::vector<Located<std::string>> axes; // the place is where the user wrote its degree, if that is known
};

// What must be the same when a checkpoint is read: "autoep_size", "2".
struct StorageMark {
  std::string name, value;
  SourceRange decided;
};

// The first rule with a pattern that matches a parameter has it. A parameter without a pattern in `files` is put together by
// name before it is read, and fits any degrees.
struct StoragePlan {
  std::string framework; // "colossalai", "" if only the user wrote rules
  std::string name;      // "colossalai 0.5.0"
  std::vector<StorageRule> rules;
  std::vector<StorageFiles> files;
  std::vector<StorageMark> marks;
  std::optional<DType> dtype; // of what is saved, where that is not the dtype that a step computes with
};

} // namespace shardc
