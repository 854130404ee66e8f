// Types: the program with every type, for people and for machines: what each value is, what its gradient is, which
// changes of layout move data in which direction.
//
// The text folds repeated layers into one block; the JSON form (schema 1 of docs/cli.md) lists every layer under stable
// dotted names: `layers.3.moe.shared_experts.w2` is the output of that module, `layers.3.moe.h` a value inside `moe`.
#pragma once

#include "shardc/Emit/Report.h"

namespace shardc {

struct TypesOptions {
  // Modules whose path matches are shown, with all below them; "" shows everything. `*` stands for any text.
  std::string modulePattern;
  // Whose axes types are written in; "" means the job's first view.
  std::string view;
};

// Values when every call is listed on its own; the largest number if that overflows. Calls that call twice what calls twice
// grow without bound, so nobody expands before asking.
uint64_t countValues(const TypedModule &typed);
constexpr uint64_t MostValues = 20'000'000;

// Does any module's path match? An invalid pattern matches nothing.
bool anyModuleMatches(const TypedModule &typed, llvm::StringRef pattern);
void writeTypesText(llvm::raw_ostream &out, const TypedModule &typed, const TypesOptions &options);
// `job.typed` may be null: then there are findings only.
void writeTypesJson(llvm::raw_ostream &out, const JobReport &job, const TypesOptions &options);

} // namespace shardc
