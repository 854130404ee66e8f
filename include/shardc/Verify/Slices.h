// Slices: which elements of each parameter's optimizer state every rank keeps, padding included, and whether what was saved
// is what is read.
//
// A parameter's slices are two levels. Its type gives each rank a box: ranges per factor. A rule of storage then cuts the box's
// elements, or one of its dimensions, for the ranks of a group. Nothing here depends on the number of elements or ranks.
#pragma once

#include "shardc/Verify/Sync.h"

namespace shardc {

// Of a row of elements (or of a dimension) one rank's part: real ones, and a pad behind them.
struct Cut {
  Range elements;
  int64_t pad = 0;
  bool operator==(const Cut &) const = default;
};

// Row-major parts of `elements` for `ranks` ranks of `each`, the last ones shorter or empty, and padded to it.
struct CutRow {
  int64_t elements = 0;
  int64_t ranks = 1;
  int64_t each = 0;

  // After padding to a multiple of `multiple`. Where that is no multiple of the ranks, parts are rounded up.
  static CutRow make(int64_t elements, int64_t ranks, int64_t multiple);
  Cut at(int64_t index) const;
  bool operator==(const CutRow &) const = default;
};
// "8, 8, 8, 6+2": elements and pad per rank, shortened in the middle.
std::string cutsText(const CutRow &row);

// What one rank keeps of a parameter.
struct Slice {
  llvm::SmallVector<Range, 4> box; // per factor of the parameter, of the global extents
  Cut cut;                         // of the box's elements in row-major order, or of its dimension `dim`
  bool operator==(const Slice &) const = default;
};

// Parameters that are stored alike.
struct StoredParam {
  std::string path; // "layers.*.moe.experts.w1"; with its numbers if it is one by itself
  int64_t count = 1;
  TypeId type;
  StorageRule rule;   // Whole if nobody has one for it
  int64_t before = 0; // Buffer: elements of other parameters in front of it on rank 0
  int64_t buffer = 0; // Buffer: elements in all on rank 0
  SourceRange place;  // where the parameter was declared
};

// A parameter's name without numbers of layers: "layers.12.w" -> "layers.*.w".
std::string kindOf(llvm::StringRef path);

// Trained parameters in order of first use; those of repeated layers are one entry, but in a buffer and where `each` is asked for.
// `rows` say where a framework without rules of storage keeps reduced gradients; empty if nobody says so. What has no size that
// is known before it runs is left out and counted, and so are buffers of pipeline stages, and all of more modules than can be listed.
enum class Listing : uint8_t { Alike, Each };
std::vector<StoredParam> storedParams(const TypedModule &typed, llvm::ArrayRef<SyncRow> rows, Listing listing = Listing::Alike,
                                      int64_t *leftOut = nullptr);
// More modules, each call counted, than anybody lists.
constexpr uint64_t MostModules = 1'000'000;
bool tooManyModules(const TypedModule &typed);

// The row that the ranks of the group of rank 0 share; what a loader makes of it if `load` (the rule must have one). A buffer's
// is all of it.
CutRow cutRowOf(const TypedModule &typed, const StoredParam &param, bool load = false);
// `all` has the other parameters of a buffer.
Slice sliceOf(const TypedModule &typed, llvm::ArrayRef<StoredParam> all, const StoredParam &param, int64_t rank);

// Elements of one rank's box that no rank keeps, or that two ranks of a group keep: the first such range.
struct Untiled {
  Range elements;
  bool twice = false;
};
std::optional<Untiled> findUntiled(const TypedModule &typed, const StoredParam &param);

// A finding per parameter whose slices do not tile it, or of which the loader takes others than are stored.
void reportSlices(const TypedModule &typed, llvm::ArrayRef<StoredParam> params, DiagnosticEngine &diags);

// One job as it saves a checkpoint, or reads one.
struct CheckpointSide {
  const TypedModule &typed;
  llvm::ArrayRef<SyncRow> gradients;
};
// What a job reads of what another has saved: a finding per kind of parameter that is missing, has another shape, or of which a
// rank would read other elements than were saved under its name; for copies that had drifted apart; for metadata that differ.
// `place` is where the user said so, for what has no better one. Answers how the checkpoint is read.
std::string compareCheckpoints(const CheckpointSide &saved, const CheckpointSide &loaded, SourceRange place, DiagnosticEngine &diags);

} // namespace shardc
