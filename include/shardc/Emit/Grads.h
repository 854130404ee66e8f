// Grads: what becomes of each gradient, for people and for machines: its type where the backward pass leaves it, what
// synchronises it, the factor against the true gradient, the verdict; and over which ranks the clip norm adds squares.
#pragma once

#include "shardc/Emit/Report.h"
#include "llvm/Support/JSON.h"

namespace shardc {

// Both need `job.typed`, or say nothing but findings.
void writeGradsText(llvm::raw_ostream &out, const JobReport &job, llvm::StringRef view);
void writeGradsJson(llvm::raw_ostream &out, const JobReport &job, llvm::StringRef view);

// The parts of these about optimizer states: which elements of each parameter a rank keeps.
void writeSlicesText(llvm::raw_ostream &out, const JobReport &job, llvm::StringRef view);
void writeSlicesJson(llvm::json::OStream &json, const JobReport &job, llvm::StringRef view);

} // namespace shardc
