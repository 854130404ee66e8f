// ChangeText: reading changes of layout, `E@ep` or `P@tp -> T@tp; c@dp:t -> E@dp`.
//
//   change   = part { ";" part }, of which one may be "gradient" ( "*" | "/" ) factor { ( "*" | "/" ) factor }
//   part     = [ endpoint "->" ] endpoint [ "gradient" endpoint "->" endpoint ]
//   endpoint = what [ "@" axes ] [ ":" origin ] [ "pad" ]
//   what     = R I V P, P(avg) P(max) P(min), replicate invariant varying partial, S(0) S(-1), or the name of a dimension
//   axes     = axis | "(" axis { "," axis } ")"
//
//   factor   = an integer, or the name of an axis: the number of its ranks
//
// A letter is a state even where a dimension has the same name, but for V: where a size is called V (a vocabulary), `V` is
// that dimension, and the state is `varying`.
//
// What stands behind `gradient` is the framework's own gradient of this part, in place of the table's.
//
// Both ends of a part stand on the same axes. Two shorter forms say the same: an end without axes takes those of the other
// end, and a shard may list the axes that stay in front of those that move: `P@tp -> T@(dp,tp)` moves tp and asks that dp
// shards T already, `T@(dp,tp) -> T@dp` gathers tp.
#include "Expr.h"
#include "shardc/Frontend/Body.h"
#include "shardc/Frontend/Config.h"

namespace shardc {
namespace {

struct StateWord {
  llvm::StringLiteral word;
  State state;
};
constexpr StateWord stateWords[] = {
    {"R", State::R},         {"I", State::I},         {"V", State::V},         {"P", State::P},
    {"P(sum)", State::P},    {"P(avg)", State::PAvg}, {"P(max)", State::PMax}, {"P(min)", State::PMin},
    {"replicate", State::R}, {"invariant", State::I}, {"varying", State::V},   {"partial", State::P},
};

using Atoms = llvm::SmallVector<AtomId, 4>;

struct End {
  Endpoint endpoint;
  Atoms atoms; // of its axes in order; axes of one rank have none
  bool axesGiven = false;
  Piece text;
};

class ChangeParser {
public:
  explicit ChangeParser(ParseEnv &e) : env(e) {}

  std::optional<Change> parse(Piece text) {
    if (!checkBrackets(text, env.diags)) {
      return std::nullopt;
    }
    Change change;
    bool good = true;
    llvm::SmallVector<Piece, 4> pieces = splitOutside(text, ';');
    if (pieces.empty()) {
      return fail(text, "it is empty; write for example `P@tp -> R@tp`"), std::nullopt;
    }
    for (Piece piece : pieces) {
      good &= isScaler(piece.text) ? scaler(piece.sub(8, piece.text.size()).trim(), change) : declaredPart(piece, change);
    }
    completeGradients(change);
    return good ? std::optional(change) : std::nullopt;
  }

private:
  void fail(Piece at, const llvm::Twine &why) { env.diags.emit<Diag::BadChange>(at.range, why.str()); }

  static bool isScaler(llvm::StringRef text) {
    return text.consume_front("gradient") && (text.ltrim().starts_with("*") || text.ltrim().starts_with("/"));
  }

  // `* dp / ep`: what the gradient is multiplied by.
  bool scaler(Piece text, Change &change) {
    while (!text.empty()) {
      const bool over = text.text.starts_with("/");
      if (!over && !text.text.starts_with("*")) {
        return fail(text, "factors are joined by `*` and `/`"), false;
      }
      Piece rest = text.sub(1, text.text.size()).trim();
      const Piece word = rest.sub(0, std::min(rest.text.find_first_of("*/ \t"), rest.text.size()));
      if (std::optional<int64_t> number = parseInteger(word.text); number && *number > 0) {
        change.gradientScale.multiply(over ? Rational{1, *number} : Rational{*number, 1});
      } else if (const std::optional<Atoms> atoms = env.module.axes.findAtoms(word.text)) {
        for (AtomId atom : *atoms) {
          change.gradientScale.multiplyRanks(env.module.axes, atom, over ? -1 : 1);
        }
      } else {
        return fail(word.empty() ? text : word, "a gradient is scaled by numbers above 0 and by axes"), false;
      }
      text = rest.sub(word.text.size(), rest.text.size()).trim();
    }
    return true;
  }

  // `c@tp -> I@tp gradient P@tp -> c@tp`.
  bool declaredPart(Piece text, Change &change) {
    constexpr llvm::StringLiteral Word = " gradient ";
    const size_t at = text.text.find(Word);
    if (at == llvm::StringRef::npos) {
      return part(text, change);
    }
    const size_t first = change.parts.size();
    const Piece written = text.sub(at + Word.size(), text.text.size()).trim();
    Change declared;
    if (!part(text.sub(0, at).trim(), change) || !part(written, declared)) {
      return false;
    }
    if (change.parts.size() == first && declared.parts.empty()) { // axes of one rank
      return true;
    }
    const bool fits = change.parts.size() == first + 1 && declared.parts.size() == 1 && declared.parts[0].from &&
                      declared.parts[0].atoms == change.parts[first].atoms;
    if (!fits) {
      return fail(written, "a gradient has `src -> dst` for the axes of its part"), false;
    }
    completeGradients(change, first);
    change.declaredGradient.emplace_back(*declared.parts[0].from, declared.parts[0].to);
    return true;
  }

  // Parts without a gradient of their own have the table's, once one part has its own.
  static void completeGradients(Change &change) {
    if (!change.declaredGradient.empty()) {
      completeGradients(change, change.parts.size());
    }
  }

  static void completeGradients(Change &change, size_t parts) {
    while (change.declaredGradient.size() < parts) {
      const AxisChange &p = change.parts[change.declaredGradient.size()];
      const ChangeRow *row = p.from ? findChange(p.from->state, p.to.state) : nullptr;
      Endpoint from = p.to, to = p.from.value_or(Endpoint());
      if (row && row->gradient) {
        from.state = row->gradient->first;
        to.state = row->gradient->second;
      }
      change.declaredGradient.emplace_back(from, to);
    }
  }

  bool part(Piece text, Change &change) {
    size_t arrow = text.text.find("->");
    if (arrow == llvm::StringRef::npos) {
      std::optional<End> to = end(text);
      if (!to || !needAxes(*to)) {
        return false;
      }
      add(to->atoms, std::nullopt, to->endpoint, change);
      return true;
    }
    Piece left = text.sub(0, arrow).trim(), right = text.sub(arrow + 2, text.text.size()).trim();
    if (right.text.contains("->")) {
      return fail(text, "it has more than one `->`; separate several changes by `;`"), false;
    }
    std::optional<End> from = end(left), to = end(right);
    if (!from || !to) {
      return false;
    }
    if (from->endpoint.pad) {
      return fail(from->text, "`pad` belongs to the destination"), false;
    }
    if (!from->axesGiven && !to->axesGiven) {
      return needAxes(*to);
    }
    from->atoms = from->axesGiven ? from->atoms : to->atoms;
    to->atoms = to->axesGiven ? to->atoms : from->atoms;
    return between(text, *from, *to, change);
  }

  bool needAxes(const End &e) {
    if (!e.axesGiven) {
      fail(e.text, "no axis is named; write `" + e.text.text + "@axis`");
    }
    return e.axesGiven;
  }

  // Both ends with their axes; those named on one side only must be outer ones that stay, or inner ones that come or leave.
  // Two views can have different names for the same ranks (`c@tp -> E@ep`), so what is compared is atoms.
  bool between(Piece text, const End &from, const End &to, Change &change) {
    const llvm::ArrayRef<AtomId> a = from.atoms, b = to.atoms;
    if (a == b) {
      add(a, from.endpoint, to.endpoint, change);
      return true;
    }
    const bool leaves = a.size() >= b.size();
    const End &longer = leaves ? from : to;
    const llvm::ArrayRef<AtomId> l = leaves ? a : b, s = leaves ? b : a;
    if (longer.endpoint.state == State::S && from.endpoint == to.endpoint && l.take_front(s.size()) == s) {
      const Endpoint replicated;
      add(s, longer.endpoint, longer.endpoint, change);
      add(l.drop_front(s.size()), leaves ? longer.endpoint : replicated, leaves ? replicated : longer.endpoint, change);
      return true;
    }
    if (longer.endpoint.state == State::S && !s.empty() && l.take_back(s.size()) == s) {
      add(l.drop_back(s.size()), longer.endpoint, longer.endpoint, change);
      add(s, from.endpoint, to.endpoint, change);
      return true;
    }
    fail(text, "its ends stand on different ranks; write one part per group of axes that move together, separated by `;`");
    return false;
  }

  void add(llvm::ArrayRef<AtomId> atoms, std::optional<Endpoint> from, const Endpoint &to, Change &change) {
    if (!atoms.empty()) { // axes of one rank move nothing
      AxisChange part;
      part.atoms.append(atoms.begin(), atoms.end());
      part.from = from;
      part.to = to;
      change.parts.push_back(std::move(part));
    }
  }

  std::optional<End> end(Piece text) {
    End e;
    e.text = text;
    Piece rest = text;
    if (rest.text.ends_with(" pad")) {
      e.endpoint.pad = true;
      rest = rest.sub(0, rest.text.size() - 4).trim();
    }
    size_t colon = rest.text.find(':');
    if (colon != llvm::StringRef::npos) {
      Piece origin = rest.sub(colon + 1, rest.text.size()).trim();
      if (!isIdentifier(origin.text)) {
        return fail(origin.empty() ? text : origin, "after `:` stands the dimension that filled the slots, as in `c@tp:t`"), std::nullopt;
      }
      e.endpoint.origin = env.module.names.intern(origin.text);
      rest = rest.sub(0, colon).trim();
    }
    size_t at = rest.text.find('@');
    bool good = true;
    if (at != llvm::StringRef::npos) {
      good = axes(rest.sub(at + 1, rest.text.size()).trim(), e);
      rest = rest.sub(0, at).trim();
    }
    good &= what(rest.empty() ? text : rest, e.endpoint);
    if (good && e.endpoint.state != State::S && (e.endpoint.pad || e.endpoint.origin.valid())) {
      return fail(text, e.endpoint.pad ? "only a shard can be padded" : "only slots have an origin"), std::nullopt;
    }
    return good ? std::optional(e) : std::nullopt;
  }

  bool what(Piece text, Endpoint &e) {
    std::string squeezed; // `P (avg)` is P(avg)
    for (char c : text.text) {
      squeezed += c == ' ' || c == '\t' ? "" : std::string(1, c);
    }
    for (const StateWord &word : stateWords) {
      if (squeezed == word.word && !(word.state == State::V && word.word == "V" && env.sizes.count(env.module.names.find("V")))) {
        e.state = word.state;
        return true;
      }
    }
    e.state = State::S;
    llvm::StringRef number = squeezed;
    if (number.consume_front("S(") && number.consume_back(")")) {
      if (number.getAsInteger(10, e.index)) {
        fail(text, "`S(..)` takes the number of a dimension");
        return false;
      }
      return true;
    }
    llvm::StringRef name = text.text.ends_with("'") ? text.text.drop_back() : text.text; // the order is no part of the name
    if (!isIdentifier(name)) {
      fail(text, "`" + text.text + "` is neither a state (R, I, V, P, P(avg), P(max), P(min), S(0)) nor the name of a dimension");
      return false;
    }
    e.dim = env.module.names.intern(name);
    return true;
  }

  bool axes(Piece text, End &e) {
    e.axesGiven = true;
    bool list = text.text.starts_with("(") && text.text.ends_with(")");
    llvm::SmallVector<Piece, 4> names;
    if (list) {
      names = splitOutside(text.sub(1, text.text.size() - 1), ',');
    } else {
      names.push_back(text);
    }
    bool good = !names.empty();
    if (names.empty()) {
      fail(text, "no axis is named between the brackets");
    }
    for (Piece name : names) {
      good &= axis(name, e);
    }
    return good;
  }

  bool axis(Piece name, End &e) {
    const std::optional<Atoms> found = env.module.axes.findAtoms(name.text);
    if (!found) {
      auto d = env.diags.emit<Diag::UnknownName>(name.range, name.text, "an axis of the mesh");
      llvm::StringRef near = nearest(name.text, env.module.axes.axisNames());
      if (!near.empty()) {
        d.help("did you mean `" + near.str() + "`?");
      }
      return false;
    }
    if (llvm::any_of(*found, [&](AtomId atom) { return llvm::is_contained(e.atoms, atom); })) {
      fail(name, "`" + name.text + "` and an axis before it share ranks");
      return false;
    }
    e.atoms.append(found->begin(), found->end());
    return true;
  }

  ParseEnv &env;
};

} // namespace

std::optional<Change> parseChange(llvm::StringRef text, SourceRange range, ParseEnv &env) {
  Piece whole = unquoted(Piece{text, range}.trim());
  return ChangeParser(env).parse(whole.trim());
}

} // namespace shardc
