// Collectives: the primitives of Changes.def on real local tensors of all ranks.
//
// From a change only its primitive is read; the two types say what each rank holds before and after, never how it got there:
// a gather puts chunks one after the other in the order of the ranks in the group, whatever the types would like it to be.
#pragma once

#include "Tensor.h"

namespace shardc {

struct Exchange {
  Primitive primitive{};
  const Type *before = nullptr; // of the data that goes in
  const Type *after = nullptr;  // of the data that comes out
  llvm::ArrayRef<AtomId> atoms;
};

// False, with `error`, where local shapes do not allow it.
bool exchange(const Exchange &how, const Spread &in, const Ranks &ranks, const Module &module, Spread &out, std::string &error);

// Multiplies every element.
void scaleSpread(Spread &value, Element by);

} // namespace shardc
