// Programs: random small programs on which checker and proof must agree.
//
// Unsound: the checker accepts what the proof refutes. False alarm: the checker rejects an operation that, run all the same,
// gives a result that some layout describes, for every input that was tried. The first must never happen; the second is
// counted by finding and operation, so that rules which are too strict are seen.
#pragma once

#include "shardc/Support/Diagnostics.h"
#include <map>
#include <string>

namespace shardc {

struct ProgramsOptions {
  int64_t programs = 1000;
  uint64_t seed = 1;
  bool falseAlarms = true;
  size_t keep = 8; // failures whose programs are kept, per finding and operation one
};

struct ProgramFailure {
  std::string operation;
  std::string finding; // the checker's, for a false alarm
  std::string why;     // the proof's, for an unsound answer; the layout that fits, for a false alarm
  std::string graph;   // a graph file, as small as could be found
};

struct ProgramsReport {
  int64_t programs = 0;
  int64_t accepted = 0;
  int64_t proved = 0;
  int64_t unable = 0;                                                 // accepted, but could not be run to the end
  int64_t rejected = 0;                                               // with the operation that was rejected last
  int64_t judged = 0;                                                 // rejected and run all the same
  int64_t values = 0;                                                 // compared
  std::map<std::string, int64_t> operations;                          // accepted, by operation
  std::map<std::pair<std::string, std::string>, int64_t> unsound;     // by operation and kind of value
  std::map<std::pair<std::string, std::string>, int64_t> falseAlarms; // by finding and operation
  std::map<std::string, int64_t> reasons;                             // why programs could not run
  std::vector<ProgramFailure> failures;
  std::vector<ProgramFailure> alarms;
};

// `progress` is called now and then with the number of programs done; it answers whether to go on.
ProgramsReport runPrograms(const ProgramsOptions &options, llvm::function_ref<bool(int64_t done)> progress);

} // namespace shardc
