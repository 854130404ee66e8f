// Job: what a framework's config means, in words that no framework owns.
//
// A dialect turns a config into a job; from here on no code knows which framework wrote it. Sizes and switches are named
// values that the catalogue's model and strategy files read.
#pragma once

#include "shardc/Frontend/Config.h"
#include "shardc/IR/Axes.h"
#include <map>

namespace shardc {

struct Unchecked {
  std::string what;
  std::string why;
};

struct Job {
  std::string name;      // for the report: file or model
  std::string framework; // "torchtitan"
  std::string version;   // "2026-08-10"
  std::string family;    // catalogue model: "deepseek_v3"
  std::string flavour;   // "debugmodel", or the path of a config.json
  std::string strategy;  // catalogue strategy name, or the path of a strategy file
  bool inference = false;
  Located<int64_t> world;
  std::vector<ViewSpec> views; // first view: vocabulary for printing
  std::vector<FlatSpec> flats;
  // Sizes: model sizes (D, F, L, ...), degrees (dp, cp, tp, pp, ep), tokens (B, L, T). Where each was written.
  std::map<std::string, Located<int64_t>> sizes;
  // What strategy and model conditions ask for: sp=true, ep=on, loss_parallel=true. Values are text.
  std::map<std::string, std::string> switches;
  std::vector<std::string> assumes;
  std::vector<Unchecked> unchecked;
};

// What was asked for on the command line or in a job file, each with its place.
struct JobRequest {
  std::string name;
  std::optional<Located<std::string>> model; // family/flavour, config.json or graph file
  std::optional<Located<int64_t>> world;
  std::optional<Located<std::string>> framework; // name[@version]
  std::optional<Located<std::string>> config;    // file
  std::optional<Located<std::string>> strategy;  // name or file
  std::vector<Located<std::string>> flags;       // what followed `--`, one argument each
  bool inference = false;                        // phase: inference
  std::shared_ptr<const ConfigNode> sync;        // rules of synchronisation, or the name of some; may be null
  std::shared_ptr<const ConfigNode> storage;     // further rules of what ranks keep; may be null
  SourceRange range;                             // the request as a whole
};

} // namespace shardc
