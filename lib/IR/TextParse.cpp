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
#include "TextLexer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace shardc {

namespace {

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

class Parser {
public:
  Parser(llvm::StringRef text, SourceRange range, ParseEnv &environment) : env(environment), lex(text, range, environment.diags) {}

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
  bool resolve(const Word &name, const Suffixes &suffix, llvm::SmallVectorImpl<Factor> &out);
  bool extents(const Word &name, const Suffixes &suffix, llvm::SmallVectorImpl<Factor> &out);
  bool expand(const Word &written, NameId name, unsigned depth, llvm::SmallVectorImpl<Factor> &out);
  std::optional<Factor> joined(llvm::StringRef name);
  void unknown(const Word &word, llvm::StringRef what, llvm::ArrayRef<llvm::StringRef> known);
  void unknownSize(const Word &word);

  struct Claim {
    std::string name;
    AtomId atom; // invalid for an axis of one rank
  };
  ParseEnv &env;
  Lexer lex;
  std::vector<Claim> claims; // the axes that stand in the type so far
  bool inOrigin = false;
  bool ok = true; // no name was wrong so far
};

// -- Types --------------------------------------------------------------------------------------------------------------

std::optional<Type> Parser::type() {
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

std::optional<Dim> Parser::dimOnly() {
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

bool Parser::state(Type &t) {
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

bool Parser::axes(llvm::SmallVectorImpl<AtomId> &atoms) {
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

// An axis, or a digit of one, may stand in a type once, and not beside one that cuts its ranks differently.
void Parser::claim(const Word &name, llvm::ArrayRef<AtomId> atoms) {
  const Axes &mesh = env.module.axes;
  for (const Claim &before : claims) {
    std::string fault;
    if (before.name == name.text) {
      fault = "axis `" + before.name + "` stands in it twice";
    }
    for (size_t i = 0; before.atom.valid() && fault.empty() && i < atoms.size(); ++i) {
      const Atom &a = mesh.atom(before.atom);
      const Atom &b = mesh.atom(atoms[i]);
      if (before.atom == atoms[i]) {
        fault = "the axes `" + before.name + "` and `" + name.text.str() + "` share ranks";
      } else if (a.block == b.block && a.variant != b.variant) {
        fault = "the axes `" + before.name + "` and `" + name.text.str() + "` cut the same ranks differently";
      }
    }
    if (!fault.empty()) {
      lex.failAt(name, fault);
      ok = false;
      return;
    }
  }
  if (atoms.empty()) {
    claims.push_back({name.text.str(), AtomId()});
  }
  for (AtomId atom : atoms) {
    claims.push_back({name.text.str(), atom});
  }
}

// -- Dimensions ---------------------------------------------------------------------------------------------------------

bool Parser::dim(Dim &out) {
  if (!lex.accept('(')) {
    return factor(out.factors);
  }
  bool plain = true; // every part is one factor
  for (size_t parts = 0; lex.peek() != ')'; ++parts) {
    const bool plus = parts != 0 && lex.accept('+');
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

bool Parser::factor(llvm::SmallVectorImpl<Factor> &out) {
  if (!lex.atWord()) {
    return lex.fail("a dimension is missing");
  }
  const Word name = lex.word();
  Suffixes suffix;
  return suffixes(suffix) && resolve(name, suffix, out);
}

bool Parser::suffixes(Suffixes &out) {
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

bool Parser::pad(Suffixes &out) {
  if (!lex.acceptPad()) {
    return true;
  }
  out.padTo = lex.number("an extent after `pad`", 1);
  out.pad = lex.accept('?') ? Pad::Unknown : Pad::Zero;
  return out.padTo.has_value();
}

bool Parser::origin(Suffixes &out) {
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
bool Parser::originDim(Origin &out, llvm::ArrayRef<AtomId> slots) {
  const bool brackets = lex.peek() == '(';
  const size_t begin = lex.position();
  std::vector<Claim> outer = std::move(claims);
  claims.clear();
  inOrigin = true;
  const bool good = dim(out.tokens);
  inOrigin = false;
  claims = std::move(outer);
  if (good && ok && !brackets && !lex.since(begin).contains('@')) {
    giveAtoms(out.tokens.factors, slots, env.module.axes);
  }
  return good;
}

// -- Names of dimensions ------------------------------------------------------------------------------------------------

bool Parser::resolve(const Word &name, const Suffixes &suffix, llvm::SmallVectorImpl<Factor> &out) {
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
bool Parser::extents(const Word &name, const Suffixes &suffix, llvm::SmallVectorImpl<Factor> &out) {
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
bool Parser::expand(const Word &written, NameId name, unsigned depth, llvm::SmallVectorImpl<Factor> &out) {
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
std::optional<Factor> Parser::joined(llvm::StringRef name) {
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

void Parser::unknown(const Word &word, llvm::StringRef what, llvm::ArrayRef<llvm::StringRef> known) {
  DiagnosticBuilder builder = env.diags.emit<Diag::UnknownName>(lex.rangeOf(word), word.text, what);
  if (llvm::StringRef near = nearest(word.text, known); !near.empty()) {
    builder.help("did you mean `" + near.str() + "`?");
  }
  ok = false;
}

void Parser::unknownSize(const Word &word) {
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

} // namespace

std::optional<Type> parseType(llvm::StringRef text, SourceRange range, ParseEnv &env) { return Parser(text, range, env).type(); }

std::optional<Dim> parseDim(llvm::StringRef text, SourceRange range, ParseEnv &env) { return Parser(text, range, env).dimOnly(); }

} // namespace shardc
