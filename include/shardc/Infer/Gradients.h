// Gradients: the type and exact scale of every parameter's gradient (design: types, sections 4 and 6).
//
// Where every change has the table's gradient, a gradient's type is the dual of the value's and its scale is 1. A framework's
// own collective with another backward breaks that; so gradients are inferred backwards from the loss, and a value that
// receives several contributions gets their common form.
#pragma once

#include "shardc/IR/Scale.h"
#include "shardc/Infer/Infer.h"

namespace shardc {

// The gradient of one value. `type` has the value's dimensions; per atom its state is S, P, P(avg), V, or R: every rank
// holds the whole gradient (written I where the value is I). The data is `scale` times the true gradient; for a value that
// is P(avg) over n ranks the true one is that of a rank's own part: 1/n of the gradient of the mean.
struct Gradient {
  Type type;
  Scale scale;
};

// The gradients of parameters that are alike: one function under one signature, one path but for the numbers of layers.
struct ParamGradient {
  uint32_t instance = 0;
  ValueId param;
  std::string path;  // "layers.*.moe.experts.w1": numbers of modules alike are `*`
  std::string first; // "layers.3.moe.experts.w1"
  int64_t uses = 1;  // parameters alike
  std::optional<Gradient> gradient;
  bool faulty = false; // there is none because of a fault that was reported
};

// In order of first use. Emits a finding where contributions disagree, where a gradient is partial but needed whole, and
// where the loss cannot start a backward pass. Paths keep their numbers if the module's sync rules tell layers apart.
std::vector<ParamGradient> inferGradients(const TypedModule &typed, DiagnosticEngine &diags);

// The gradients of all values: of each function per distinct gradients of its results.
struct ValueGradients {
  // Instead of a gradient: none arrives; there is none because of a fault that was reported; nobody asked.
  static constexpr uint32_t None = ~0u, Wrong = None - 1, Unknown = None - 2;
  struct Run {
    uint32_t instance = 0;
    std::vector<uint32_t> values;                     // per value of the function: into `gradients`
    std::vector<std::pair<uint32_t, uint32_t>> calls; // operation, run; in order of execution
  };
  std::vector<Gradient> gradients;
  std::vector<Run> runs; // callees before callers; the root is last
};
ValueGradients inferValueGradients(const TypedModule &typed);

// Whether some parameter is trained at all.
bool hasTrainable(const Module &module);

} // namespace shardc
