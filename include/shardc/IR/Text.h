// Text: types, changes and programs as people write them; what is printed parses back.
//
// `bf16[T@(dp,cp,tp), D] P@tp`: dtype, dimensions with their axes outermost first, then the other states; axes that are
// not listed are R. Products: `[(b@dp l@(cp,tp)), D]`, `[(2 F@tp)]`; parts that follow one another: `[(q@tp + k@tp)]`.
// Padded: `T@tp pad 12` (zero) or `T@tp pad 12?` (unknown). Ragged `N~`, with divisor `N~%8`; split: `T@(dp,tp)!flat`,
// `!balanced`; permuted: `L'`; another extent than the declared one: `T=12`. A float that needs no gradient is `detached`.
// Slots: `c@(dp,tp):t` of origin t, which had these axes; where t had others they are written: `c@dp:t@(dp,tp)`, `c@dp:t@()`.
// Slots of a slice: `c@tp:slice t@tp`. `#2` tells dispatches with equal origins apart.
#pragma once

#include "shardc/IR/Module.h"

namespace shardc {

// What a name in a dimension means: an extent, a product of other names, or unknown.
struct SizeEntry {
  int64_t extent = Symbolic; // for a symbol without a number
  int64_t divisor = 1;
  llvm::SmallVector<NameId, 2> product; // T = (b l): two names, extent of T unused
  bool permuted = false;
};
using SizeTable = llvm::DenseMap<NameId, SizeEntry>;

struct ParseEnv {
  Module &module;
  const SizeTable &sizes;
  DiagnosticEngine &diags;
};

// Prints in the vocabulary of `view` where given. A dimension whose factors are the product of a size name prints as that
// name when the atoms fit (`T@(dp,cp,tp)` for `(b@dp l@(cp,tp))`).
std::string print(const Type &t, const Module &m, llvm::StringRef view = {});
std::string print(const Dim &d, const Module &m, llvm::StringRef view = {});
std::string print(const Change &c, const Module &m, llvm::StringRef view = {});
// A program as a graph file (design: interface, "A graph file").
std::string printGraph(const Module &m);

// Each emits a diagnostic inside `range` and returns nothing when the text is wrong; `text` must be the text of `range`.
std::optional<Type> parseType(llvm::StringRef text, SourceRange range, ParseEnv &env);
std::optional<Dim> parseDim(llvm::StringRef text, SourceRange range, ParseEnv &env);

// Gives atoms (outermost first) to the factors of a product, major first: to the leftmost factor as long as the atoms it
// has divide its extent and it is not full, the rest to the last. `T@(dp,cp,tp)` means this where T is (b l).
void giveAtoms(llvm::MutableArrayRef<Factor> factors, llvm::ArrayRef<AtomId> atoms, const Axes &axes);

} // namespace shardc
