// Models: what is shipped: model families and flavours, strategies, frameworks and their versions.
#pragma once

#include "shardc/Frontend/Catalog.h"
#include "llvm/Support/raw_ostream.h"

namespace shardc {

void writeModelsText(llvm::raw_ostream &out, DiagnosticEngine &diags);
void writeModelsJson(llvm::raw_ostream &out, DiagnosticEngine &diags);
// The shipped file that describes a family, family/flavour or strategy: the one to copy and change. Null if there is none.
const CatalogFile *findShipped(llvm::StringRef name, DiagnosticEngine &diags);
// Every name that findShipped takes.
std::vector<std::string> shippedNames(DiagnosticEngine &diags);

} // namespace shardc
