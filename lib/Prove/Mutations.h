// Mutations: the list of mistakes that can be put into one job. See Mutations.cpp.
#pragma once

#include "shardc/Infer/Infer.h"
#include <functional>

namespace shardc {

struct Mutation {
  std::string what;
  SourceRange range;
  std::function<void(Module &)> apply;
};

std::vector<Mutation> listMutations(const TypedModule &typed);

} // namespace shardc
