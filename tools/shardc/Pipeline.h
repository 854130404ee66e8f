// Pipeline: from what was asked for to a typed program and a verdict. Every verb that needs a job runs it.
#pragma once

#include "CommandLine.h"
#include "shardc/Emit/Report.h"
#include "shardc/Frontend/Dialect.h"
#include <memory>

namespace shardc {

// One job and all that was found out about it.
struct JobRun {
  std::shared_ptr<SourceManager> shared = std::make_shared<SourceManager>(); // by jobs whose findings name each other's files
  SourceManager &sources = *shared;
  DiagnosticEngine diags{sources};
  std::string name;                       // in the report: the file, or the model
  std::optional<Job> job;                 // nothing for a graph file
  std::shared_ptr<const ConfigNode> sync; // rules that the job file wrote
  std::optional<TypedModule> typed;
  Report report;

  JobRun() = default;
  explicit JobRun(std::shared_ptr<SourceManager> theirs) : shared(std::move(theirs)) {}

  JobReport asReport() const { return {name, report, diags, typed ? &*typed : nullptr}; }
};

// Runs one job: a job or graph file, or (null) what the options describe. Everything wrong is in `run.diags`; true if
// the program could be typed, perhaps with findings. `run.report` is complete in both cases.
bool runJob(const Word *file, const Options &options, JobRun &run);

// Runs the job that reads what `saved` saves: the file `options.resume`, and findings about the checkpoint in `run.diags`. Options
// about the job describe the one that saves.
void resumeJob(const JobRun &saved, const Options &options, JobRun &run);
// The same job with other sizes, as a program that has no types yet.
std::optional<Module> programOf(const Job &job, const ConfigNode *sync, DiagnosticEngine &diags);

int exitCode(const JobRun &run, FailOn failOn);

} // namespace shardc
