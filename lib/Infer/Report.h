// Report: faults as messages, with where the offending types came from and what would mend them.
#pragma once

#include "Typing.h"
#include <functional>

namespace shardc {

// A function that is being inferred, as far as messages need to know it.
struct Frame {
  const Module &module;
  const Function &function;
  const std::vector<TypeId> &values;
  const std::vector<uint32_t> &definers; // per value: index of the op that made it, ~0u for inputs and params
  std::string path;                      // of the first call: "layers.0.moe"
};

// A message that waits for the number of its places: emitted once all calls are known.
using Pending = std::function<void(int64_t uses, DiagnosticEngine &diags)>;

Pending reportFault(const Frame &frame, const Op &op, llvm::ArrayRef<ValueId> operands, const Fault &fault, std::vector<Fix> fixes);

// A written type that is not what was inferred.
Pending reportWritten(const Frame &frame, ValueId value, TypeId inferred);

} // namespace shardc
