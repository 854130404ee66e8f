// Slices: which elements of each parameter's optimizer state every rank keeps, padding included, and whether what was saved
// is what is read.
//
// A parameter's slices are two levels. Its type gives each rank a box: ranges per factor. A rule of storage then cuts the box's
// elements, or one of its dimensions, for the ranks of a group. Nothing here depends on the number of elements.
#pragma once

#include "shardc/Verify/Sync.h"

namespace shardc {

// Of a row of elements (or of a dimension) one rank's part: real ones, and a pad behind them.
struct Cut {
  Range elements;
  int64_t pad = 0;
  bool operator==(const Cut &) const = default;
};

// The `index`-th of the parts that cutRow makes.
Cut cutAt(int64_t elements, int64_t ranks, int64_t multiple, int64_t index);
// Row-major parts of `elements` for `ranks` ranks, after padding to a multiple of `multiple`. Where that is no multiple of the
// ranks, parts are rounded up.
std::vector<Cut> cutRow(int64_t elements, int64_t ranks, int64_t multiple);

// What one rank keeps of a parameter.
struct Slice {
  llvm::SmallVector<Range, 4> box; // per factor of the parameter, of the global extents
  Cut cut;                         // of the box's elements in row-major order, or of its dimension `dim`
};

// Parameters that are stored alike.
struct StoredParam {
  std::string path; // "layers.*.moe.experts.w1"; with its numbers in a buffer
  int64_t count = 1;
  TypeId type;
  StorageRule rule;   // Whole if nobody has one for it
  int64_t before = 0; // Buffer: elements of other parameters in front of it
  int64_t buffer = 0; // Buffer: elements in all
  SourceRange place;  // where the parameter was declared
};

// Trained parameters in order of first use; those of repeated layers are one entry, but in a buffer. `rows` say where a
// framework without a storage plan keeps reduced gradients; empty if nobody says so. What has no size that is known before it
// runs is left out, and buffers of pipeline stages are.
std::vector<StoredParam> storedParams(const TypedModule &typed, llvm::ArrayRef<SyncRow> rows);

// Per rank of the group of rank 0, in order; what a loader takes if `load` (the rule must have one).
std::vector<Cut> cutsOf(const TypedModule &typed, const StoredParam &param, bool load = false);
Slice sliceOf(const TypedModule &typed, const StoredParam &param, int64_t rank);
// "8, 8, 8, 6+2": elements and pad per rank, shortened in the middle.
std::string cutsText(llvm::ArrayRef<Cut> cuts);

// Elements of one rank's box that no rank keeps, or that two ranks of a group keep: the first such range.
struct Untiled {
  Range elements;
  bool twice = false;
};
std::optional<Untiled> findUntiled(const TypedModule &typed, const StoredParam &param);

// A finding per parameter whose slices do not tile it, or of which the loader takes others than are stored.
void reportSlices(const TypedModule &typed, const std::vector<StoredParam> &params, DiagnosticEngine &diags);

// What a job reads of what another has saved: a finding per parameter that is missing, has another shape, or of which a rank
// would read other elements than were saved under its name; for copies that had drifted apart; for metadata that differ.
void compareCheckpoints(const TypedModule &saved, const TypedModule &loaded, DiagnosticEngine &diags);

} // namespace shardc
