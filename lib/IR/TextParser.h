// TextParser: the reader of types, shared by TextParse.cpp, which reads forms, and TextNames.cpp, which gives names their
// extents. Not an interface: nothing else includes it.
#pragma once

#include "TextLexer.h"

namespace shardc {

// What is written after a factor's name.
struct Suffixes {
  bool permuted = false;
  bool ragged = false;
  std::optional<int64_t> divisor;
  std::optional<int64_t> extent;
  bool hasAtoms = false;
  llvm::SmallVector<AtomId, 4> atoms;
  std::optional<Split> split;
  std::optional<int64_t> padTo;
  Pad pad = Pad::None;
  bool slots = false;
  OriginId origin;
  // Only a single factor can carry what is not an axis or an order.
  bool needsOneFactor() const { return ragged || divisor || split || padTo || slots; }
};

class TypeParser {
public:
  TypeParser(llvm::StringRef text, SourceRange range, ParseEnv &environment) : env(environment), lex(text, range, environment.diags) {}

  std::optional<Type> type();
  std::optional<Dim> dimOnly();

private:
  bool dim(Dim &out);
  bool factor(llvm::SmallVectorImpl<Factor> &out);
  bool suffixes(Suffixes &out);
  bool pad(Suffixes &out);
  bool origin(Suffixes &out);
  bool originDim(Origin &out, llvm::ArrayRef<AtomId> slots);
  bool axes(llvm::SmallVectorImpl<AtomId> &atoms);
  bool state(Type &t);
  void claim(const Word &name, llvm::ArrayRef<AtomId> atoms);
  std::string conflict(const Word &name, llvm::ArrayRef<AtomId> atoms);
  bool resolve(const Word &name, const Suffixes &suffix, llvm::SmallVectorImpl<Factor> &out);
  bool extents(const Word &name, const Suffixes &suffix, llvm::SmallVectorImpl<Factor> &out);
  bool expand(const Word &written, NameId name, unsigned depth, llvm::SmallVectorImpl<Factor> &out);
  std::optional<Factor> joined(llvm::StringRef name);
  void unknown(const Word &word, llvm::StringRef what, llvm::ArrayRef<llvm::StringRef> known);
  void unknownSize(const Word &word);

  struct Claim {
    std::string name;
    AtomId atom;       // invalid for an axis of one rank
    uint32_t dim = 0;  // where it stands: which dimension,
    uint32_t part = 0; // and which factor of it
  };
  ParseEnv &env;
  Lexer lex;
  std::vector<Claim> claims; // the axes that stand in the type so far
  // Axes that stand in two factors of one dimension: right if the factors turn out to follow one another.
  std::vector<std::pair<Word, std::string>> deferred;
  uint32_t dimCount = 0;
  uint32_t partCount = 0;
  bool inOrigin = false;
  bool ok = true; // no name was wrong so far
};

} // namespace shardc
