// Json: how this program writes JSON. Streams, so that a large answer needs no tree in memory; keys stay in the order in
// which they are written, so that the same answer is the same bytes.
#pragma once

#include "llvm/Support/JSON.h"

namespace shardc {

// Text from files and arguments can be any bytes; JSON holds UTF-8 only. Wrong bytes become U+FFFD.
inline llvm::json::Value jsonText(llvm::StringRef text) { return llvm::json::fixUTF8(text); }

// The two keys that open every answer.
constexpr int JsonSchema = 1;
void writeJsonHead(llvm::json::OStream &json);

class DiagnosticEngine;
// The attribute "findings".
void writeJsonFindings(llvm::json::OStream &json, const DiagnosticEngine &diags);

} // namespace shardc
