// Shrink: a job with the same layouts on fewer ranks and smaller sizes, so that it can be run exactly.
//
// Atoms shrink, never axes, so every view follows. Sizes shrink to the smallest ones with which every dimension is cut as it
// was: evenly or with a short or empty last part, with one local element or with more. Whatever is computed from sizes and
// degrees (divisors, paddings, bounds of slices) is computed anew, by the same readers.
#pragma once

#include "shardc/Frontend/Catalog.h"
#include "shardc/Prove/Prove.h"

namespace shardc {

struct SmallJob {
  Job job;
  std::vector<ShrunkSize> axes;
  std::vector<ShrunkSize> sizes;
};

// `real` is the job's own typed program. Nothing if no small sizes were found; `why` then says for what.
std::optional<SmallJob> shrinkJob(const Job &job, const TypedModule &real, std::string &why);

// Of runs of modules that are alike (layers.3, layers.4, ...) only the first and the last stay. What was dropped, by name:
// `layers.*` 58 -> 2. Nothing is dropped where a rule of synchronisation tells numbers apart.
std::vector<ShrunkSize> dropRepeats(Module &module);

// The large program's layouts on the small axes: false where some value is cut in another way, which `why` names.
bool sameLayouts(const TypedModule &real, const TypedModule &small, std::string &why);

} // namespace shardc
