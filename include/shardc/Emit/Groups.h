// Groups: the process groups of a job: every axis of every view, and every flattened axis, as ranks.
#pragma once

#include "shardc/Emit/Report.h"

namespace shardc {

// Large worlds are cut short in the text, never in the JSON.
void writeGroupsText(llvm::raw_ostream &out, const Axes &axes);
// `job.typed` may be null: then there are findings only.
void writeGroupsJson(llvm::raw_ostream &out, const JobReport &job);

} // namespace shardc
