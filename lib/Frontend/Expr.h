// Expr: the surface of the body language, cut into pieces that know where they stand.
//
// A line is `names = expression`; an expression is a name or a call; a call's arguments are cut at commas and stay text
// until the called operation says what they are (Body.cpp). Nothing here knows operations, values or dimensions.
#pragma once

#include "shardc/Support/Diagnostics.h"
#include <optional>

namespace shardc {

// Calls inside calls, and brackets of any kind inside brackets, deeper than this are refused.
constexpr unsigned MaxExprDepth = 128;

// A piece of text and its place. Where the text is not byte for byte what stands in the file (a folded or escaped YAML
// scalar), every piece has the place of the whole.
struct Piece {
  llvm::StringRef text;
  SourceRange range;

  Piece sub(size_t from, size_t to) const;
  Piece trim() const;
  bool exact() const { return text.size() == size_t(range.end - range.begin); }
  bool empty() const { return text.empty(); }
  bool operator==(const Piece &) const = default;
};

// `fc1`, `layers.0`: a letter or underscore, then letters, digits, underscores, dots.
bool isIdentifier(llvm::StringRef text);
// The length of the identifier at the beginning of `text`; 0 if there is none.
size_t identifierLength(llvm::StringRef text);

struct LineText {
  llvm::SmallVector<Piece, 2> results;
  Piece expression;
};

struct ArgumentText {
  Piece key; // empty unless `key=value`
  Piece value;
};

struct CallText {
  Piece whole; // from the name to the closing bracket
  Piece name;
  llvm::SmallVector<ArgumentText, 4> arguments;
};

// Brackets and quotes are balanced and not too deep; what holds for a text holds for its pieces.
bool checkBrackets(Piece text, DiagnosticEngine &diags);
// Results and expression of a line; the brackets have been checked.
std::optional<LineText> parseLine(Piece line, DiagnosticEngine &diags);
// Is the whole of `text` one call? (`P(avg)@dp` is not.)
bool isCall(Piece text);
std::optional<CallText> parseCall(Piece text, DiagnosticEngine &diags);
// Pieces between the separators that stand outside of all brackets and quotes, trimmed. An empty text has no pieces.
llvm::SmallVector<Piece, 4> splitOutside(Piece text, char separator);
// Without the quotes around it, if it has any.
Piece unquoted(Piece text);

} // namespace shardc
