// Diagnostics: findings as a person reads them, with the lines of their own files. See docs of `check` for the machine forms.
//
// Nothing is decided here: not which findings count, not whether the output is a terminal.
#pragma once

#include "shardc/Support/Diagnostics.h"
#include "llvm/Support/raw_ostream.h"

namespace shardc {

// "error", "warning", "note".
llvm::StringRef severityName(Severity s);

// A path as messages show it: relative to the current directory if it is below it, otherwise as it is.
std::string shownPath(llvm::StringRef path);

// One finding, or all in the order in which they were emitted, with a blank line between two.
void renderText(llvm::raw_ostream &out, const SourceManager &sources, const Diagnostic &diagnostic, bool colour);
void renderText(llvm::raw_ostream &out, const DiagnosticEngine &diags, bool colour);

} // namespace shardc
