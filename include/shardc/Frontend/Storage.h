// Storage: catalogue files storage/NAME.yaml, or one of the user's own, as a StoragePlan of a module.
#pragma once

#include "shardc/Frontend/Job.h"
#include "shardc/IR/Module.h"

namespace shardc {

// What the job's framework keeps where; leaves `module.storage` empty if nobody says so. False if something was wrong and
// reported.
bool addStorage(const Job &job, Module &module, DiagnosticEngine &diags);

} // namespace shardc
