// Storage: catalogue files storage/NAME.yaml and `storage:` parts of the user's own files, as a StoragePlan of a module.
#pragma once

#include "shardc/Frontend/Job.h"
#include "shardc/IR/Module.h"

namespace shardc {

// Of a job: what `written` (null if the job file says nothing) and behind it the framework's file say; leaves `module.storage`
// empty if neither is there. False if something was wrong and reported.
bool addStorage(const Job &job, const ConfigNode *written, Module &module, DiagnosticEngine &diags);

// Of a graph file, which has no framework.
bool addStorage(const ConfigNode &written, Module &module, DiagnosticEngine &diags);

} // namespace shardc
