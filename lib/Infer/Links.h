// Links: who makes and who uses each value of a function, known before any types; and what users want of a new dimension.
#pragma once

#include "Typing.h"

namespace shardc {

constexpr uint32_t NoOp = ~0u;

struct Links {
  std::vector<uint32_t> definers;                    // per value: index of the operation, NoOp for inputs and parameters
  std::vector<llvm::SmallVector<uint32_t, 2>> users; // per value, in order
};

Links linkFunction(const Function &f);

// How the users of a value want its dimension (counted from the end) sharded: as another operand that is typed already has
// it. Empty if nobody wants anything.
llvm::SmallVector<AtomId, 4> wantedSharding(const Module &module, const Function &f, const Links &links, llvm::ArrayRef<TypeId> types,
                                            ValueId value, uint32_t fromEnd);

} // namespace shardc
