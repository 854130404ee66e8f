// Table: text in columns, each as wide as its widest cell. Private to Emit.
#pragma once

#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace shardc {

void writeTable(llvm::raw_ostream &out, const std::vector<std::vector<std::string>> &table);

} // namespace shardc
