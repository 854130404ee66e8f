// GradientPass: the gradients of each function per distinct signature of result gradients, and who calls whom. Gradients.cpp
// makes it, GradientPaths.cpp reads parameters with their full paths out of it.
#pragma once

#include "Adjoint.h"

namespace shardc {

// One function under one signature, with the gradients of its results.
struct GradientRun {
  uint32_t instance = 0;
  std::vector<Slot> params;                         // per parameter of the function
  std::vector<Slot> inputs;                         // per input
  std::vector<Slot> values;                         // per value of the function, if they are kept
  std::vector<std::pair<uint32_t, uint32_t>> calls; // operation, run; in order of execution
};

struct GradientRuns {
  GradientTable table;
  std::vector<GradientRun> runs; // callees before callers; the root is last
};

// A gradient as it is shown: what every rank holds whole is I where the value is.
Type asWritten(Type gradient, const Type &value, const Axes &axes);

// All parameters of all calls, those alike once.
std::vector<ParamGradient> collectParams(const TypedModule &typed, const GradientRuns &runs, DiagnosticEngine &diags);

} // namespace shardc
