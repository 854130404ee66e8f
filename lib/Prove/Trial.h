// Trial: a rejected operation, run all the same.
//
// Its kernel runs on what its operands hold; then every layout that the result could have is compared with the result of one
// device. If one fits for every input that was tried, the rejection may be a false alarm.
#pragma once

#include "shardc/Infer/Infer.h"

namespace shardc {

struct TrialResult {
  bool ran = false;   // the operation could be judged this way
  std::string layout; // that fits every time; "" if none does
};

// The operation is the last one of the root; everything before it was accepted.
TrialResult tryLastOperation(const TypedModule &typed, uint64_t seed);

} // namespace shardc
