// Expr: cutting lines of the body language into names, calls and arguments.
//
// One pass checks the brackets of a line before anything recurses, so that every later scan may rely on them: a scan over
// one level is linear, and levels are bounded by MaxExprDepth.
#include "Expr.h"
#include "llvm/ADT/StringExtras.h"

namespace shardc {

Piece Piece::sub(size_t from, size_t to) const { return {text.slice(from, to), exact() ? range.slice(from, to) : range}; }

Piece Piece::trim() const {
  size_t from = text.size() - text.ltrim().size();
  return sub(from, std::max(from, text.rtrim().size()));
}

size_t identifierLength(llvm::StringRef text) {
  if (text.empty() || !(llvm::isAlpha(text[0]) || text[0] == '_')) {
    return 0;
  }
  size_t length = 1;
  while (length < text.size() && (llvm::isAlnum(text[length]) || text[length] == '_' || text[length] == '.')) {
    ++length;
  }
  return length;
}

bool isIdentifier(llvm::StringRef text) { return !text.empty() && identifierLength(text) == text.size(); }

namespace {

bool opens(char c) { return c == '(' || c == '[' || c == '{'; }
bool closes(char c) { return c == ')' || c == ']' || c == '}'; }
char partner(char open) { return open == '(' ? ')' : open == '[' ? ']' : '}'; }

// The index just after the quoted text that starts at `at`, or npos if it never ends. A prime after a name (`L'`) is no quote.
size_t skipQuoted(llvm::StringRef text, size_t at) {
  size_t end = text.find(text[at], at + 1);
  return end == llvm::StringRef::npos ? end : end + 1;
}

bool startsQuote(llvm::StringRef text, size_t at) {
  bool afterName = at > 0 && (llvm::isAlnum(text[at - 1]) || llvm::StringRef("_.'").contains(text[at - 1]));
  return text[at] == '"' || (text[at] == '\'' && !afterName);
}

// The index just after the bracket that closes the one at `at`; the brackets have been checked.
size_t skipBracket(llvm::StringRef text, size_t at) {
  unsigned depth = 0;
  while (at < text.size()) {
    if (startsQuote(text, at)) {
      at = skipQuoted(text, at);
      continue;
    }
    depth += opens(text[at]);
    depth -= closes(text[at]);
    ++at;
    if (depth == 0) {
      return at;
    }
  }
  return text.size();
}

// Where `what` stands outside of brackets and quotes, from `from` on; npos if nowhere.
size_t findOutside(llvm::StringRef text, char what, size_t from = 0) {
  while (from < text.size()) {
    if (text[from] == what) {
      return from;
    }
    if (startsQuote(text, from)) {
      from = skipQuoted(text, from);
    } else {
      from = opens(text[from]) ? skipBracket(text, from) : from + 1;
    }
  }
  return llvm::StringRef::npos;
}

ArgumentText parseArgument(Piece text) {
  size_t equals = findOutside(text.text, '=');
  if (equals != llvm::StringRef::npos) {
    Piece key = text.sub(0, equals).trim();
    if (isIdentifier(key.text)) {
      return {key, text.sub(equals + 1, text.text.size()).trim()};
    }
  }
  return {{}, text};
}

} // namespace

bool checkBrackets(Piece text, DiagnosticEngine &diags) {
  llvm::SmallVector<size_t, 16> open;
  llvm::StringRef s = text.text;
  for (size_t i = 0; i < s.size();) {
    char c = s[i];
    if (startsQuote(s, i)) {
      size_t end = skipQuoted(s, i);
      if (end == llvm::StringRef::npos) {
        diags.emit<Diag::BadExpression>(text.sub(i, i + 1).range, "this quotation never ends");
        return false;
      }
      i = end;
      continue;
    }
    if (opens(c)) {
      open.push_back(i);
      if (open.size() > MaxExprDepth) {
        diags.emit<Diag::BadExpression>(text.sub(i, i + 1).range,
                                        llvm::formatv("more than {0} brackets inside one another", MaxExprDepth).str());
        return false;
      }
    } else if (closes(c)) {
      if (open.empty() || partner(s[open.back()]) != c) {
        auto d =
            diags.emit<Diag::BadExpression>(text.sub(i, i + 1).range, llvm::formatv("nothing is open that `{0}` could close", c).str());
        if (!open.empty()) {
          d.label(text.sub(open.back(), open.back() + 1).range,
                  llvm::formatv("this one still needs its `{0}`", partner(s[open.back()])).str());
        }
        return false;
      }
      open.pop_back();
    }
    ++i;
  }
  if (!open.empty()) {
    diags.emit<Diag::BadExpression>(text.sub(open.back(), open.back() + 1).range,
                                    llvm::formatv("this `{0}` is never closed", s[open.back()]).str());
  }
  return open.empty();
}

llvm::SmallVector<Piece, 4> splitOutside(Piece text, char separator) {
  llvm::SmallVector<Piece, 4> pieces;
  if (text.text.trim().empty()) {
    return pieces;
  }
  for (size_t from = 0;;) {
    size_t end = findOutside(text.text, separator, from);
    pieces.push_back(text.sub(from, std::min(end, text.text.size())).trim());
    if (end == llvm::StringRef::npos) {
      return pieces;
    }
    from = end + 1;
  }
}

std::optional<LineText> parseLine(Piece line, DiagnosticEngine &diags) {
  line = line.trim();
  if (line.empty()) {
    diags.emit<Diag::BadExpression>(line.range, "the line is empty; write `result = operation(operands)`");
    return std::nullopt;
  }
  size_t equals = findOutside(line.text, '=');
  if (equals == llvm::StringRef::npos) {
    diags.emit<Diag::BadExpression>(line.range, "nothing is named here; write `result = operation(operands)`");
    return std::nullopt;
  }
  LineText result;
  bool good = true;
  for (Piece name : splitOutside(line.sub(0, equals), ',')) {
    if (!isIdentifier(name.text)) {
      diags.emit<Diag::BadExpression>(name.range, llvm::formatv("`{0}` cannot be the name of a result", name.text).str());
      good = false;
    }
    result.results.push_back(name);
  }
  if (result.results.empty()) {
    diags.emit<Diag::BadExpression>(line.range, "no result is named before `=`");
    good = false;
  }
  result.expression = line.sub(equals + 1, line.text.size()).trim();
  if (result.expression.empty()) {
    diags.emit<Diag::BadExpression>(line.range, "nothing stands after `=`");
    good = false;
  }
  return good ? std::optional(result) : std::nullopt;
}

bool isCall(Piece text) {
  size_t length = identifierLength(text.text);
  if (length == 0) {
    return false;
  }
  size_t open = text.text.find_first_not_of(" \t\r\n", length);
  return open != llvm::StringRef::npos && text.text[open] == '(' && skipBracket(text.text, open) == text.text.size();
}

std::optional<CallText> parseCall(Piece text, DiagnosticEngine &diags) {
  CallText call;
  call.whole = text;
  size_t length = identifierLength(text.text);
  call.name = text.sub(0, length);
  size_t open = text.text.find('(', length);
  Piece inside = text.sub(open + 1, text.text.size() - 1);
  bool good = true;
  for (Piece argument : splitOutside(inside, ',')) {
    if (argument.empty()) {
      diags.emit<Diag::BadExpression>(text.range, llvm::formatv("an argument of `{0}` is empty", call.name.text).str());
      good = false;
      continue;
    }
    call.arguments.push_back(parseArgument(argument));
  }
  return good ? std::optional(call) : std::nullopt;
}

Piece unquoted(Piece text) {
  llvm::StringRef s = text.text;
  bool quoted = s.size() >= 2 && (s.front() == '"' || s.front() == '\'') && s.find(s.front(), 1) == s.size() - 1;
  return quoted ? text.sub(1, s.size() - 1) : text;
}

} // namespace shardc
