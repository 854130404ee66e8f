// Prove: what the proof says, as text and as JSON.
#pragma once

#include "shardc/Prove/Mutations.h"
#include "shardc/Prove/Programs.h"
#include "shardc/Prove/Prove.h"
#include "llvm/Support/raw_ostream.h"

namespace shardc {

// `job` is how the report calls it.
void writeProofText(llvm::raw_ostream &out, llvm::StringRef job, const Proof &proof, const SourceManager &sources);
void writeProofJson(llvm::raw_ostream &out, llvm::StringRef job, const Proof &proof, const SourceManager &sources);

void writeMutationsText(llvm::raw_ostream &out, llvm::StringRef job, const MutationReport &report, const SourceManager &sources);
void writeMutationsJson(llvm::raw_ostream &out, llvm::StringRef job, const MutationReport &report, const SourceManager &sources);

void writeProgramsText(llvm::raw_ostream &out, const ProgramsReport &report);
void writeProgramsJson(llvm::raw_ostream &out, const ProgramsReport &report);

} // namespace shardc
