// Dialect: how one framework's config is read. One row per framework; the rows are in Dialect.cpp.
#pragma once

#include "shardc/Frontend/Catalog.h"

namespace shardc {

struct Dialect {
  llvm::StringRef name;
  llvm::ArrayRef<llvm::StringRef> versions; // oldest first
  // Does this tree look like one of its files?
  bool (*recognises)(const ConfigNode &root);
  // Reads config and flags as `version` does, checks the framework's own rules and the gaps in them, and returns the job;
  // all violations are reported at once. Nothing if the job cannot be described.
  std::optional<Job> (*build)(const JobRequest &request, const ConfigNode *config, llvm::StringRef version, DiagnosticEngine &diags);
  bool readsHjson = false; // a file called *.json is read as Hjson where the framework is named
};
llvm::ArrayRef<Dialect> allDialects();
// Whose config file this looks like; null if nobody's.
const Dialect *recogniseDialect(const ConfigNode &root);

// From request to job: finds the dialect and version, reads the config file, loads the model. Reported if it fails.
std::optional<Job> buildJob(const JobRequest &request, DiagnosticEngine &diags);

// A job file or graph file by content; a request from a job file.
bool isGraph(const ConfigNode &root);
std::optional<JobRequest> readJobFile(const ConfigNode &root, llvm::StringRef path, DiagnosticEngine &diags);
// A graph file as a program.
std::optional<Module> readGraph(const ConfigNode &root, DiagnosticEngine &diags);

} // namespace shardc
