// Report: what `check` says about a job, for people and for machines.
//
// The findings themselves are rendered by Emit/Diagnostics.h; here is what stands around them: the verdict, what it
// assumed, what was not checked. The JSON form is schema 1 of docs/cli.md.
#pragma once

#include "shardc/Verify/Verify.h"
#include "llvm/Support/raw_ostream.h"

namespace shardc {

struct JobReport {
  llvm::StringRef job; // how the report calls it: a file, or family/flavour
  const Report &report;
  const DiagnosticEngine &diags;
  const TypedModule *typed = nullptr; // null where no program could be made
};

// Findings, then a summary: verdict, counts, assumptions, gaps.
void writeCheckText(llvm::raw_ostream &out, const JobReport &job, bool colour);
void writeCheckJson(llvm::raw_ostream &out, llvm::ArrayRef<JobReport> jobs);

// "2.0 MiB", "512 B", "1.3 GiB".
std::string bytesText(int64_t bytes);

} // namespace shardc
