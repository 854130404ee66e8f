// BodyArguments: dimensions, integers, constants, changes and options of a call.
//
// The row of an operation says which of them it takes; nothing here depends on a single operation, but for the few whose
// number of arguments no row can say.
#include "BodyArguments.h"
#include "shardc/Frontend/Config.h"
#include "llvm/ADT/StringExtras.h"

namespace shardc {
namespace {

class ArgumentReader {
public:
  ArgumentReader(const CallText &c, OpKind k, ParseEnv &e, Attrs &a) : call(c), kind(k), info(opInfo(k)), env(e), attrs(a) {}

  bool read(llvm::ArrayRef<Piece> rest, llvm::ArrayRef<ArgumentText> options) {
    bool good = true;
    for (const ArgumentText &o : options) {
      good &= option(o);
    }
    llvm::sort(attrs.options);
    good &= positional(rest);
    if (kind == OpKind::Reinterpret && good) {
      attrs.change.reinterpretReason = attrs.option("reason").value_or("").str();
      if (attrs.change.reinterpretReason.empty()) {
        env.diags.emit<Diag::WrongArguments>(call.whole.range, info.name, takesText(kind) + "; it needs reason=\"...\"");
        good = false;
      }
    }
    return good;
  }

private:
  bool wrong(Piece at, const std::string &seen) {
    env.diags.emit<Diag::WrongArguments>(at.range, info.name, takesText(kind) + ", " + seen);
    return false;
  }

  bool positional(llvm::ArrayRef<Piece> rest) {
    switch (info.takes) {
    case Takes::Nothing:
      return rest.empty() || wrong(rest.front(), "not `" + rest.front().text.str() + "` as well");
    case Takes::Dims:
      return dims(rest);
    case Takes::Ints:
      return ints(rest);
    case Takes::Scalar:
      return !rest.empty() ? scalar(joined(rest)) : wrong(call.whole, "but no constant is given");
    case Takes::ChangeSpec:
      return !rest.empty() ? change(joined(rest)) : wrong(call.whole, "but no change is given");
    case Takes::Text:
      attrs.text = rest.empty() ? "" : unquoted(joined(rest)).text.str();
      return !attrs.text.empty() || wrong(call.whole, "but no text is given");
    }
    return false;
  }

  // All from the first to the last, the commas between them included.
  Piece joined(llvm::ArrayRef<Piece> rest) {
    size_t from = rest.front().text.begin() - call.whole.text.begin();
    size_t to = rest.back().text.end() - call.whole.text.begin();
    return call.whole.sub(from, to);
  }

  // How many dimensions the row makes; 0 where any number is right.
  size_t dimCount() {
    if (info.rule.empty()) {
      return kind == OpKind::Arange ? 1 : 0;
    }
    // The slots of a dispatch are made by the routing, not named in the call.
    return kind == OpKind::Dispatch ? 1 : llvm::count(opRule(kind).kinds, FactorKind::New);
  }

  bool dims(llvm::ArrayRef<Piece> rest) {
    Piece experts{"E", call.whole.range};
    if (kind == OpKind::Dispatch && rest.empty() && env.sizes.count(env.module.names.find("E"))) {
      rest = experts;
    }
    bool any = kind == OpKind::Zeros || kind == OpKind::Ones; // of a scalar: no dimension at all
    if (rest.empty() ? !any : dimCount() && rest.size() != dimCount()) {
      return wrong(call.whole, llvm::utostr(rest.size()) + " given");
    }
    bool good = true;
    for (Piece p : rest) {
      std::optional<Dim> dim = parseDim(p.text, p.range, env);
      good &= dim.has_value();
      attrs.dims.push_back(dim.value_or(Dim()));
    }
    return good;
  }

  // A number, or the name of a size that is one.
  std::optional<int64_t> integer(Piece p) {
    if (std::optional<int64_t> n = parseInteger(p.text)) {
      return n;
    }
    auto it = env.sizes.find(env.module.names.find(p.text));
    if (it != env.sizes.end() && it->second.product.empty() && it->second.extent >= 0) {
      return it->second.extent;
    }
    return std::nullopt;
  }

  bool ints(llvm::ArrayRef<Piece> rest) {
    size_t count = kind == OpKind::Slice ? 2 : kind == OpKind::Pad || kind == OpKind::Shift ? 1 : 0;
    if (rest.empty() || (count && rest.size() != count)) {
      return wrong(call.whole, llvm::utostr(rest.size()) + " given");
    }
    bool good = true;
    for (Piece p : rest) {
      std::optional<int64_t> n = integer(p);
      if (!n) {
        env.diags.emit<Diag::BadExpression>(p.range, "`" + p.text.str() + "` is not a whole number or the name of a size that is one");
        good = false;
      }
      attrs.ints.push_back(n.value_or(0));
    }
    return good;
  }

  // Numbers, names of sizes, `sqrt`, + - * / and brackets; the value does not matter to layouts, only that it is a constant.
  bool scalar(Piece p) {
    p = unquoted(p);
    attrs.text = p.text.str();
    llvm::StringRef s = p.text;
    bool good = true;
    for (size_t i = 0; i < s.size();) {
      size_t length = identifierLength(s.drop_front(i));
      size_t number = s.drop_front(i).find_first_not_of("0123456789.");
      number = std::min(number, s.size() - i);
      if (length > 0) {
        good &= scalarName(p.sub(i, i + length));
      } else if (number > 0) {
        length = number;
        if (i + length < s.size() && (s[i + length] == 'e' || s[i + length] == 'E')) {
          ++length; // 1e-5: the sign is an operator like any other
        }
      } else if (llvm::StringRef("+-*/() \t").contains(s[i])) {
        length = 1;
      } else {
        env.diags.emit<Diag::BadExpression>(p.sub(i, i + 1).range, "`" + s.substr(i, 1).str() + "` has no meaning in a constant");
        return false;
      }
      i += length;
    }
    return good;
  }

  bool scalarName(Piece name) {
    if (name.text == "sqrt" || env.sizes.count(env.module.names.find(name.text))) {
      return true;
    }
    env.diags.emit<Diag::UnknownName>(name.range, name.text, "a size")
        .note("`" + info.name.str() + "` takes a constant; `mul` multiplies tensors");
    return false;
  }

  bool change(Piece text) {
    std::optional<Change> c = parseChange(text.text, text.range, env);
    if (!c) {
      return false;
    }
    attrs.change.parts = std::move(c->parts);
    attrs.change.gradientScale = std::move(c->gradientScale);
    return !gradientText || gradient(*gradientText);
  }

  // gradient=`P@tp -> T@tp`: the framework's own, one for each part of the change.
  bool gradient(Piece text) {
    std::optional<Change> declared = parseChange(text.text, text.range, env);
    if (!declared) {
      return false;
    }
    for (const AxisChange &part : attrs.change.parts) {
      auto same = llvm::find_if(declared->parts, [&](const AxisChange &d) { return d.atoms == part.atoms && d.from; });
      if (same == declared->parts.end() || declared->parts.size() != attrs.change.parts.size()) {
        env.diags.emit<Diag::BadChange>(text.range, "a gradient has `src -> dst` for the axes of each part of the change");
        return false;
      }
      attrs.change.declaredGradient.emplace_back(*same->from, same->to);
    }
    return true;
  }

  bool option(const ArgumentText &o) {
    llvm::SmallVector<llvm::StringRef, 4> allowed;
    info.options.split(allowed, ',', -1, false);
    if (!llvm::is_contained(allowed, o.key.text)) {
      auto d = env.diags.emit<Diag::UnknownKey>(o.key.range, o.key.text, "`" + info.name.str() + "`");
      llvm::StringRef near = nearest(o.key.text, allowed);
      if (!near.empty()) {
        d.help("did you mean `" + near.str() + "`?");
      } else if (!allowed.empty()) {
        d.help("it has " + llvm::join(allowed, ", "));
      }
      return false;
    }
    if (attrs.option(o.key.text)) {
      env.diags.emit<Diag::DuplicateKey>(o.key.range, o.key.text);
      return false;
    }
    Piece value = unquoted(o.value);
    if (o.key.text == "gradient") {
      gradientText = value;
    }
    if (value.empty()) {
      env.diags.emit<Diag::BadExpression>(o.key.range, "`" + o.key.text.str() + "` has no value");
      return false;
    }
    std::optional<std::string> text = optionValue(o.key, value);
    attrs.options.emplace_back(o.key.text.str(), text.value_or(""));
    return text.has_value();
  }

  // As the type checker reads it; nothing (and a message) if it is no value of that option.
  std::optional<std::string> optionValue(Piece key, Piece value) {
    struct Words {
      llvm::StringLiteral key;
      llvm::StringLiteral words;
    };
    static constexpr Words words[] = {{"seed", "global,same,rank"}, {"reduction", "sum,mean"}};
    for (const Words &w : words) {
      llvm::SmallVector<llvm::StringRef, 4> allowed;
      w.words.split(allowed, ',');
      if (key.text == w.key && !llvm::is_contained(allowed, value.text)) {
        env.diags.emit<Diag::OutOfRange>(value.range, key.text, "one of " + llvm::join(allowed, ", "), "`" + value.text.str() + "`");
        return std::nullopt;
      }
    }
    if (key.text == "dtype" && !parseDType(value.text)) {
      env.diags.emit<Diag::OutOfRange>(value.range, key.text, "a dtype such as bf16 or f32", "`" + value.text.str() + "`");
      return std::nullopt;
    }
    if (key.text == "groups" || key.text == "limited" || key.text == "window") {
      std::optional<int64_t> n = integer(value);
      if (!n || *n < 1) {
        env.diags.emit<Diag::OutOfRange>(value.range, key.text, "a positive whole number", "`" + value.text.str() + "`");
        return std::nullopt;
      }
      return std::to_string(*n);
    }
    return value.text.str();
  }

  const CallText &call;
  OpKind kind;
  const OpInfo &info;
  ParseEnv &env;
  Attrs &attrs;
  std::optional<Piece> gradientText;
};

} // namespace

std::string takesText(OpKind kind) {
  const OpInfo &info = opInfo(kind);
  std::string text = llvm::utostr(info.minOperands);
  if (info.maxOperands != info.minOperands) {
    text += " to " + llvm::utostr(info.maxOperands);
  }
  text += info.maxOperands == 1 ? " tensor" : " tensors";
  switch (info.takes) {
  case Takes::Nothing:
    return text;
  case Takes::Dims:
    return text + " and dimensions";
  case Takes::Ints:
    return text + " and whole numbers";
  case Takes::Scalar:
    return text + " and a constant";
  case Takes::ChangeSpec:
    return text + " and a change such as `P@tp -> R@tp`";
  case Takes::Text:
    return text + " and a word";
  }
  return text;
}

bool readAttrs(const CallText &call, OpKind kind, llvm::ArrayRef<Piece> rest, llvm::ArrayRef<ArgumentText> options, ParseEnv &env,
               Attrs &attrs) {
  attrs.range = call.whole.range;
  return ArgumentReader(call, kind, env, attrs).read(rest, options);
}

} // namespace shardc
