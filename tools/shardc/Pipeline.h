// Pipeline: from what was asked for to a typed program and a verdict. Every verb that needs a job runs it.
#pragma once

#include "CommandLine.h"
#include "shardc/Emit/Report.h"
#include "shardc/Frontend/Dialect.h"

namespace shardc {

// One job and all that was found out about it.
struct JobRun {
  SourceManager sources;
  DiagnosticEngine diags{sources};
  std::string name; // in the report: the file, or the model
  std::optional<Job> job;                 // nothing for a graph file
  std::shared_ptr<const ConfigNode> sync; // rules that the job file wrote
  std::optional<TypedModule> typed;
  Report report;

  JobReport asReport() const { return {name, report, diags, typed ? &*typed : nullptr}; }
};

// Runs one job: a job or graph file, or (null) what the options describe. Everything wrong is in `run.diags`; true if
// the program could be typed, perhaps with findings. `run.report` is complete in both cases.
bool runJob(const Word *file, const Options &options, JobRun &run);

// The same job with other sizes, as a program that has no types yet.
std::optional<Module> programOf(const Job &job, const ConfigNode *sync, DiagnosticEngine &diags);

int exitCode(const JobRun &run, FailOn failOn);

} // namespace shardc
