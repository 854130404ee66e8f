// TextLexer: the characters of a type, one word or sign at a time, with places for messages.
//
// For TextParser.h alone. Spaces separate words and mean nothing else.
#pragma once

#include "shardc/IR/Text.h"
#include "llvm/ADT/StringExtras.h"

namespace shardc {

// A name, a number, or a digit of an axis such as `tp.0`.
struct Word {
  llvm::StringRef text;
  size_t begin = 0;
};

class Lexer {
public:
  Lexer(llvm::StringRef source, SourceRange place, DiagnosticEngine &engine) : text(source), range(place), diags(engine) { skip(); }

  bool atEnd() const { return pos == text.size(); }
  char peek() const { return atEnd() ? '\0' : text[pos]; }
  // The next sign; a word gives '\0'.
  char peekAttached() const { return atWord() ? '\0' : peek(); }
  bool atWord() const { return !atEnd() && isWordChar(text[pos]); }
  size_t position() const { return pos; }
  llvm::StringRef since(size_t begin) const { return text.slice(begin, pos); }
  llvm::StringRef rest() const { return text.substr(pos).rtrim(); }
  llvm::StringRef peekWord() const { return text.substr(pos).take_while(isWordChar); }

  // The word here; an empty one if there is none.
  Word word() {
    Word w{peekWord(), pos};
    pos += w.text.size();
    skip();
    return w;
  }
  bool accept(char c) {
    if (peek() != c || atEnd()) {
      return false;
    }
    ++pos;
    skip();
    return true;
  }
  bool expect(char c, const llvm::Twine &what) { return accept(c) || fail("it needs " + what + (atEnd() ? " at its end" : " here")); }
  // `pad` before a number; a dimension can have this name elsewhere.
  bool acceptPad() {
    llvm::StringRef after = text.substr(pos);
    if (peekWord() != "pad" || !llvm::isDigit(after.drop_front(3).ltrim().take_front(1).empty() ? ' ' : after.drop_front(3).ltrim()[0])) {
      return false;
    }
    word();
    return true;
  }
  std::optional<int64_t> number(llvm::StringRef what, int64_t least) {
    const Word w = word();
    int64_t value = 0;
    if (w.text.empty() || !llvm::all_of(w.text, llvm::isDigit) || w.text.getAsInteger(10, value) || value < least) {
      failAt(w, what + " must be a number of at least " + llvm::Twine(least));
      return std::nullopt;
    }
    return value;
  }

  SourceRange rangeOf(const Word &w) const { return range.slice(w.begin, w.begin + w.text.size()); }
  // Report and give up; always false.
  bool failAt(const Word &w, const llvm::Twine &why) {
    diags.emit<Diag::BadType>(w.text.empty() ? range.slice(w.begin, std::min(w.begin + 1, text.size())) : rangeOf(w), why.str());
    return false;
  }
  bool fail(const llvm::Twine &why) { return failAt({peekWord(), pos}, why); }

private:
  static bool isWordChar(char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; }
  void skip() {
    pos += text.substr(pos).take_while([](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }).size();
  }

  llvm::StringRef text;
  SourceRange range;
  DiagnosticEngine &diags;
  size_t pos = 0;
};

} // namespace shardc
