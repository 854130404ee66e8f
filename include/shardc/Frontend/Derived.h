// Derived: sizes of a model that its file computes from others, for whoever changes sizes.
#pragma once

#include "shardc/Frontend/Job.h"

namespace shardc {

// Sizes that follow from others by a term of the model file (`r: N / G`), in its order, as far as the job's values do follow.
struct DerivedSize {
  std::string name;
  Located<std::string> term;
  std::vector<std::string> from;
};
std::vector<DerivedSize> derivedSizes(const Job &job, DiagnosticEngine &diags);
// What the term is with the job's sizes now; nothing where it has no whole value. Nothing is reported.
std::optional<int64_t> valueOf(const DerivedSize &size, const Job &job);

} // namespace shardc
