// Plan: a plan for people, and as data that a runtime executes without this program (docs/plan.md).
#pragma once

#include "shardc/Plan/Redistribute.h"
#include "llvm/Support/raw_ostream.h"

namespace shardc {

struct PlanReport {
  const Redistribution &plan;
  const Module &module;
  const Type &from;
  const Type &to;
  const Machine &machine;
  const SearchOptions &options;
};

void writePlanText(llvm::raw_ostream &out, const PlanReport &report);
void writePlanJson(llvm::raw_ostream &out, const PlanReport &report);

} // namespace shardc
