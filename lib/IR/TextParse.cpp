// TextParse: reading types and dimensions.
//
//   type    = [ dtype ] "[" [ dim { "," dim } ] "]" { state "@" axes } [ "detached" ]
//   dim     = factor | "(" factor { factor } ")" | "(" factor { "+" factor } ")"
//   factor  = ( name | number ) { "'" | "~" | "%" number | "=" number | "@" axes | "!" split } [ "pad" number [ "?" ] ] [ ":" origin ]
//   origin  = [ "slice" ] [ dim ] [ "#" number ]
//   axes    = axis | "(" axis { "," axis } ")"
//
// A wrong form ends the reading with one message; unknown names, and axes that do not fit together, are reported one by one.
// Nothing recurses on input: a dimension holds factors, an origin holds a dimension without origins.
#include "TextParser.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <tuple>
#include <utility>

namespace shardc {

// -- Types --------------------------------------------------------------------------------------------------------------

std::optional<Type> TypeParser::type() {
  Type t;
  if (lex.atWord()) {
    const Word word = lex.word();
    if (std::optional<DType> dtype = parseDType(word.text)) {
      t.dtype = *dtype;
    } else if (lex.peek() == '[') {
      llvm::SmallVector<llvm::StringRef, 12> names;
      for (unsigned i = 0; i <= static_cast<unsigned>(DType::Bool); ++i) {
        names.push_back(dtypeName(static_cast<DType>(i)));
      }
      unknown(word, "a dtype", names);
    }
  }
  t.grad = isFloat(t.dtype);
  if (!lex.expect('[', "dimensions in `[` and `]`")) {
    return std::nullopt;
  }
  if (lex.peek() != ']') {
    do {
      if (!dim(t.dims.emplace_back())) {
        return std::nullopt;
      }
    } while (lex.accept(','));
  }
  if (!lex.expect(']', "`,` or `]` after a dimension")) {
    return std::nullopt;
  }
  while (!lex.atEnd()) {
    if (!state(t)) {
      return std::nullopt;
    }
  }
  return ok ? std::optional(t) : std::nullopt;
}

std::optional<Dim> TypeParser::dimOnly() {
  Dim d;
  if (!dim(d)) {
    return std::nullopt;
  }
  if (!lex.atEnd()) {
    lex.fail("`" + lex.rest().str() + "` follows the dimension");
    return std::nullopt;
  }
  return ok ? std::optional(d) : std::nullopt;
}

bool TypeParser::state(Type &t) {
  if (!lex.atWord()) {
    return lex.fail("`" + lex.rest().str() + "` follows the dimensions where a state such as `P@tp` may stand");
  }
  Word word = lex.word();
  if (word.text == "detached" && lex.atEnd()) {
    t.grad = false;
    return true;
  }
  std::string name = word.text.str();
  if (lex.accept('(')) {
    name += "(" + lex.word().text.str() + ")";
    if (!lex.expect(')', "`)`")) {
      return false;
    }
  }
  constexpr State states[] = {State::R, State::I, State::V, State::P, State::PAvg, State::PMax, State::PMin};
  const auto *found = llvm::find_if(states, [&](State s) { return stateName(s) == name; });
  if (found == std::end(states) && name != "P(sum)") {
    return lex.failAt(word, "`" + name + "` is none of the states R, I, V, P, P(avg), P(max), P(min)");
  }
  if (!lex.expect('@', "`@` and the axes of `" + name + "`")) {
    return false;
  }
  ++dimCount; // no dimension, but a place of its own
  llvm::SmallVector<AtomId, 4> atoms;
  if (!axes(atoms)) {
    return false;
  }
  for (AtomId atom : ok ? llvm::ArrayRef(atoms) : llvm::ArrayRef<AtomId>()) {
    setState(t, atom, found == std::end(states) ? State::P : *found);
  }
  return true;
}

// -- Axes ---------------------------------------------------------------------------------------------------------------

bool TypeParser::axes(llvm::SmallVectorImpl<AtomId> &atoms) {
  const bool list = lex.accept('(');
  if (list && inOrigin && lex.accept(')')) {
    return true;
  }
  do {
    if (!lex.atWord()) {
      return lex.fail("an axis is missing");
    }
    const Word word = lex.word();
    if (auto found = env.module.axes.findAtoms(word.text)) {
      claim(word, *found);
      atoms.append(found->begin(), found->end());
    } else {
      unknown(word, "an axis", env.module.axes.axisNames());
    }
  } while (list && lex.accept(','));
  return !list || lex.expect(')', "`,` or `)` after an axis");
}

// An axis, or a digit of one, may stand in a type once (but in each part of `(q + k)`), and not beside one that cuts its
// ranks differently.
void TypeParser::claim(const Word &name, llvm::ArrayRef<AtomId> atoms) {
  const std::string fault = conflict(name, atoms);
  if (!fault.empty()) {
    lex.failAt(name, fault);
    ok = false;
    return;
  }
  if (atoms.empty()) {
    claims.push_back({name.text.str(), AtomId(), dimCount, partCount});
  }
  for (AtomId atom : atoms) {
    claims.push_back({name.text.str(), atom, dimCount, partCount});
  }
}

std::string TypeParser::conflict(const Word &name, llvm::ArrayRef<AtomId> atoms) {
  const Axes &mesh = env.module.axes;
  for (const Claim &before : claims) {
    std::string fault;
    if (before.name == name.text) {
      fault = "axis `" + before.name + "` stands in it twice";
    } else if (llvm::is_contained(atoms, before.atom)) {
      fault = "the axes `" + before.name + "` and `" + name.text.str() + "` share ranks";
    }
    if (!fault.empty()) {
      if (before.dim != dimCount || before.part == partCount) {
        return fault;
      }
      deferred.emplace_back(name, fault);
      return "";
    }
    auto cutsDifferently = [&](AtomId id) {
      const Atom &a = mesh.atom(before.atom);
      const Atom &b = mesh.atom(id);
      return a.block == b.block && a.variant != b.variant;
    };
    if (before.atom.valid() && llvm::any_of(atoms, cutsDifferently)) {
      return "the axes `" + before.name + "` and `" + name.text.str() + "` cut the same ranks differently";
    }
  }
  return "";
}

// -- Dimensions ---------------------------------------------------------------------------------------------------------

bool TypeParser::dim(Dim &out) {
  ++dimCount;
  partCount = 0;
  if (!lex.accept('(')) {
    return factor(out.factors);
  }
  bool plain = true; // every part is one factor
  // Parts that follow one another are sharded each by itself, over the same axes.
  const size_t outside = claims.size();
  std::vector<Claim> earlierParts;
  for (size_t parts = 0; lex.peek() != ')'; ++parts) {
    const bool plus = parts != 0 && lex.accept('+');
    if (plus) {
      earlierParts.insert(earlierParts.end(), claims.begin() + outside, claims.end());
      claims.resize(outside);
    }
    if (parts > 1 && plus != out.concat) {
      return lex.fail("a dimension is either a product `(a b)` or parts that follow one another `(a + b)`");
    }
    out.concat = plus;
    if (!lex.atWord()) {
      return lex.fail(lex.atEnd() ? "`)` is missing" : "a factor is missing");
    }
    const size_t before = out.factors.size();
    if (!factor(out.factors)) {
      return false;
    }
    plain &= out.factors.size() <= before + 1;
  }
  claims.insert(claims.end(), earlierParts.begin(), earlierParts.end());
  for (const auto &[word, fault] : out.concat ? decltype(deferred)() : deferred) {
    lex.failAt(word, fault);
    ok = false;
  }
  deferred.clear();
  if (out.concat && !plain) {
    return lex.fail("the parts of `(a + b)` cannot be products");
  }
  if (out.factors.empty()) {
    return ok ? lex.fail("a dimension needs a factor") : lex.accept(')');
  }
  int64_t total = out.concat ? 0 : 1;
  for (const Factor &f : out.factors) {
    const int64_t extent = std::max<int64_t>(globalExtent(f), 0);
    if (out.concat ? llvm::AddOverflow(total, extent, total) : llvm::MulOverflow(total, extent, total)) {
      return lex.fail("the extent of the dimension is too large to count");
    }
  }
  return lex.accept(')');
}

bool TypeParser::factor(llvm::SmallVectorImpl<Factor> &out) {
  if (!lex.atWord()) {
    return lex.fail("a dimension is missing");
  }
  const Word name = lex.word();
  Suffixes suffix;
  return suffixes(suffix) && resolve(name, suffix, out);
}

bool TypeParser::suffixes(Suffixes &out) {
  for (;;) {
    switch (lex.peekAttached()) {
    case '\'':
      out.permuted = lex.accept('\'');
      continue;
    case '~':
      out.ragged = lex.accept('~');
      continue;
    case '%':
      lex.accept('%');
      if (!(out.divisor = lex.number("a divisor", 1))) {
        return false;
      }
      continue;
    case '=':
      lex.accept('=');
      if (!(out.extent = lex.number("an extent", 0))) {
        return false;
      }
      continue;
    case '@':
      lex.accept('@');
      if (out.hasAtoms) {
        return lex.fail("a factor has one list of axes: `@(dp,tp)`");
      }
      out.hasAtoms = true;
      if (!axes(out.atoms)) {
        return false;
      }
      continue;
    case '!': {
      lex.accept('!');
      const Word split = lex.word();
      if (split.text != "flat" && split.text != "balanced") {
        return lex.failAt(split, "after `!` stands `flat` or `balanced`");
      }
      out.split = split.text == "flat" ? Split::Flat : Split::Balanced;
      continue;
    }
    default:
      return pad(out) && origin(out);
    }
  }
}

bool TypeParser::pad(Suffixes &out) {
  if (!lex.acceptPad()) {
    return true;
  }
  out.padTo = lex.number("an extent after `pad`", 1);
  out.pad = lex.accept('?') ? Pad::Unknown : Pad::Zero;
  return out.padTo.has_value();
}

bool TypeParser::origin(Suffixes &out) {
  if (inOrigin || lex.peekAttached() != ':') {
    return true;
  }
  lex.accept(':');
  Origin o;
  if (lex.peekWord() == "slice" && !env.sizes.count(env.module.names.find("slice"))) {
    lex.word();
    o.fromSlice = true;
  }
  const bool hasDim = lex.atWord() || lex.peek() == '(';
  if (!hasDim && !o.fromSlice && lex.peek() != '#') {
    return lex.fail("the dimension that filled the slots is missing after `:`");
  }
  if (hasDim && !originDim(o, out.atoms)) {
    return false;
  }
  if (lex.peekAttached() == '#') {
    lex.accept('#');
    std::optional<int64_t> site = lex.number("a number after `#`", 0);
    if (!site || *site > UINT32_MAX) {
      return site && lex.fail("the number after `#` is too large");
    }
    o.site = static_cast<uint32_t>(*site);
  }
  out.slots = true;
  if (ok) {
    out.origin = env.module.types.internOrigin(o);
  }
  return true;
}

// The tokens' own axes: those of the slots unless they are written.
bool TypeParser::originDim(Origin &out, llvm::ArrayRef<AtomId> slots) {
  const bool brackets = lex.peek() == '(';
  const size_t begin = lex.position();
  // The tokens are another value: what stands in the type so far is no concern of theirs.
  auto outer = std::tuple(std::exchange(claims, {}), std::exchange(deferred, {}), dimCount, partCount);
  inOrigin = true;
  const bool good = dim(out.tokens);
  inOrigin = false;
  std::tie(claims, deferred, dimCount, partCount) = std::move(outer);
  if (good && ok && !brackets && !lex.since(begin).contains('@')) {
    giveAtoms(out.tokens.factors, slots, env.module.axes);
  }
  return good;
}

std::optional<Type> parseType(llvm::StringRef text, SourceRange range, ParseEnv &env) { return TypeParser(text, range, env).type(); }

std::optional<Dim> parseDim(llvm::StringRef text, SourceRange range, ParseEnv &env) { return TypeParser(text, range, env).dimOnly(); }

} // namespace shardc
