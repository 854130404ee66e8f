// Explain: what a diagnostic, an operation or a change of layout means: what it is, why, an example, how to mend it.
//
// The words are data (lib/Catalog/explain); where nothing is written for a row, the row itself is put into words, so that
// every name that the program prints can be asked for.
#pragma once

#include "shardc/Support/Diagnostics.h"
#include "llvm/Support/raw_ostream.h"
#include <optional>

namespace shardc {

enum class Topic : uint8_t { Diagnostic, Operation, Change };
llvm::StringRef topicName(Topic t); // "diagnostic", "operation", "change"

struct Explanation {
  Topic topic{};
  std::string name;                     // "add-mixes-layouts", "rms_norm", "P->S"
  std::string what, why, example, mend; // what is never empty
};

// All names that can be explained, table by table in their order.
std::vector<std::pair<Topic, std::string>> explainable();
// One name may mean several things (`slice`); a change is also written `P:S`, `P->S(T)` or `P@tp -> S(0)@tp`. Empty for an
// unknown name. Emits what is wrong with the data files, if anything.
std::vector<Explanation> explain(llvm::StringRef name, DiagnosticEngine &diags);
// The nearest known name, "" if none is near.
std::string nearestExplainable(llvm::StringRef name);

void writeExplanationsText(llvm::raw_ostream &out, llvm::ArrayRef<Explanation> all);
void writeExplanationsJson(llvm::raw_ostream &out, llvm::ArrayRef<Explanation> all);
void writeExplainableText(llvm::raw_ostream &out);
void writeExplainableJson(llvm::raw_ostream &out);

} // namespace shardc
