// TextNames: what a name in a dimension means.
//
// A number, a declared size, a product of sizes, or dimensions that were merged into one. Unknown names are reported with
// the nearest known one, and reading goes on.
#include "TextParser.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace shardc {

bool TypeParser::resolve(const Word &name, const Suffixes &suffix, llvm::SmallVectorImpl<Factor> &out) {
  llvm::SmallVector<Factor, 4> factors;
  if (!extents(name, suffix, factors)) {
    return false;
  }
  if (factors.empty()) {
    return true; // an unknown name, reported
  }
  if (factors.size() > 1 && suffix.needsOneFactor()) {
    return lex.failAt(name, "`" + name.text + "` is a product; write its factors in brackets to say this of one of them");
  }
  Factor &last = factors.back();
  if (suffix.divisor) {
    if (last.extent >= 0) {
      return lex.failAt(name, "`%` belongs to an extent that is not known, but `" + name.text + "` is " + llvm::Twine(last.extent));
    }
    last.divisor = *suffix.divisor;
  }
  if (suffix.padTo && *suffix.padTo < last.extent) {
    return lex.failAt(name, "`" + name.text + "` has " + llvm::Twine(last.extent) + " elements and cannot be padded to " +
                                llvm::Twine(*suffix.padTo));
  }
  last.permuted |= suffix.permuted;
  last.split = suffix.split.value_or(Split::Nested);
  last.padTo = suffix.padTo.value_or(0);
  last.pad = suffix.pad;
  last.origin = suffix.origin;
  giveAtoms(factors, suffix.atoms, env.module.axes);
  llvm::append_range(out, factors);
  return true;
}

// The factors that a name or number stands for, with their extents. None if the name is unknown.
bool TypeParser::extents(const Word &name, const Suffixes &suffix, llvm::SmallVectorImpl<Factor> &out) {
  Factor f;
  if (llvm::all_of(name.text, llvm::isDigit)) {
    if (suffix.permuted || suffix.ragged || suffix.extent) {
      return lex.failAt(name, "`" + name.text + "` is a number; only a name can be permuted, ragged or have another extent");
    }
    out.push_back(f);
    return !name.text.getAsInteger(10, out.back().extent) || lex.failAt(name, "`" + name.text + "` is too large");
  }
  const NameId id = env.module.names.find(name.text);
  const auto entry = id.valid() ? env.sizes.find(id) : env.sizes.end();
  const bool declared = entry != env.sizes.end();
  if (suffix.ragged && suffix.extent) {
    return lex.failAt(name, "`" + name.text + "` is either ragged or has an extent");
  }
  if (suffix.extent || suffix.ragged || (suffix.slots && !declared)) {
    f.name = env.module.names.intern(name.text);
    f.extent = suffix.extent.value_or(Ragged);
    f.permuted = declared && entry->second.permuted;
    out.push_back(f);
    return true;
  }
  if (declared) {
    return expand(name, id, 0, out);
  }
  if (std::optional<Factor> product = joined(name.text)) {
    out.push_back(*product);
  } else {
    unknownSize(name);
  }
  return true;
}

// A declared size; a product stands for its factors.
bool TypeParser::expand(const Word &written, NameId name, unsigned depth, llvm::SmallVectorImpl<Factor> &out) {
  const auto it = env.sizes.find(name);
  if (it == env.sizes.end()) {
    return lex.failAt(written, "`" + env.module.names.str(name).str() + "`, a factor of `" + written.text.str() + "`, is not a size");
  }
  const SizeEntry &entry = it->second;
  if (entry.product.empty()) {
    Factor f;
    f.name = name;
    f.extent = entry.extent;
    f.divisor = entry.extent < 0 ? entry.divisor : 1;
    f.permuted = entry.permuted;
    out.push_back(f);
    return true;
  }
  if (depth > 16 || out.size() > 64) {
    return lex.failAt(written, "the product `" + written.text.str() + "` contains itself or is too large");
  }
  return llvm::all_of(entry.product, [&](NameId part) { return expand(written, part, depth + 1, out); });
}

// `b.l`: dimensions that were merged into one; its extent is the product of the parts'. `1.5` is none.
std::optional<Factor> TypeParser::joined(llvm::StringRef name) {
  if (!name.contains('.') || llvm::none_of(name, llvm::isAlpha)) {
    return std::nullopt;
  }
  Factor f;
  f.extent = 1;
  for (llvm::StringRef part : llvm::split(name, '.')) {
    int64_t extent = 0;
    if (part.getAsInteger(10, extent)) {
      const NameId id = env.module.names.find(part);
      const auto it = id.valid() ? env.sizes.find(id) : env.sizes.end();
      if (it == env.sizes.end() || !it->second.product.empty()) {
        return std::nullopt;
      }
      extent = it->second.extent;
    }
    if (extent < 0 || llvm::MulOverflow(f.extent, extent, f.extent)) {
      return std::nullopt;
    }
  }
  f.name = env.module.names.intern(name);
  return f;
}

void TypeParser::unknown(const Word &word, llvm::StringRef what, llvm::ArrayRef<llvm::StringRef> known) {
  DiagnosticBuilder builder = env.diags.emit<Diag::UnknownName>(lex.rangeOf(word), word.text, what);
  if (llvm::StringRef near = nearest(word.text, known); !near.empty()) {
    builder.help("did you mean `" + near.str() + "`?");
  }
  ok = false;
}

void TypeParser::unknownSize(const Word &word) {
  llvm::SmallVector<NameId, 32> ids;
  for (const auto &entry : env.sizes) {
    ids.push_back(entry.first);
  }
  llvm::sort(ids); // the table has no order of its own
  llvm::SmallVector<llvm::StringRef, 32> names;
  for (NameId id : ids) {
    names.push_back(env.module.names.str(id));
  }
  unknown(word, "a size", names);
}

} // namespace shardc
