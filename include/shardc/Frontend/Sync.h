// Sync: files and `sync:` parts that say what happens to gradients outside the graph, as a SyncPlan of a module.
//
// A framework's rules are a catalogue file, sync/NAME.yaml; a user names one, writes a file of the same form, or writes rules
// in a job or graph file. The form is described in docs/graphs.md.
#pragma once

#include "shardc/Frontend/Job.h"
#include "shardc/IR/Module.h"

namespace shardc {

// Of a job: the rules of its framework, unless `written` (null if the job file says nothing) names others or adds to them.
// Leaves `module.sync` empty if nobody knows any. False if something was wrong and reported.
bool addSync(const Job &job, const ConfigNode *written, Module &module, DiagnosticEngine &diags);

// Of a graph file, which has no framework.
bool addSync(const ConfigNode &written, Module &module, DiagnosticEngine &diags);

// A graph file's sizes and axes: what terms and conditions of its rules may name.
Job namedSizes(const Module &module);

} // namespace shardc
