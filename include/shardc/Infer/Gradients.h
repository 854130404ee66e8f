// Gradients: the type and exact scale of every parameter's gradient (design: types, sections 4 and 6).
//
// Where every change has the table's gradient, a gradient's type is the dual of the value's and its scale is 1. A framework's
// own collective with another backward breaks that; so gradients are inferred backwards from the loss, and a value that
// receives several contributions gets their common form.
#pragma once

#include "shardc/Infer/Infer.h"
#include "shardc/Support/Rational.h"

namespace shardc {

// The gradient of one value. `type` has the value's dimensions; per atom its state is S, P, P(avg), V, or R: every rank
// holds the whole gradient (written I where the value is I). The data is `scale` times the true gradient.
struct Gradient {
  Type type;
  Rational scale;
};

// The gradient of one parameter of one function under one signature, before any synchronisation.
struct ParamGradient {
  uint32_t instance = 0;
  ValueId param;
  std::string path;                 // of the first instance: "layers.3.moe.experts.w1"
  int64_t uses = 1;                 // parameters alike: one per call of the instance
  std::optional<Gradient> gradient; // nothing: no gradient reaches it, or a fault was reported
};

// In order of first use. Emits a finding where contributions disagree, where a gradient is partial but needed whole, and
// where the loss cannot start a backward pass.
std::vector<ParamGradient> inferGradients(const TypedModule &typed, DiagnosticEngine &diags);

} // namespace shardc
