// CatalogTerms: conditions and whole-number terms of catalogue files.
//
// Terms are computed as fractions, so that `layers * D / N` does not depend on the order in which somebody multiplies and
// divides, and only the end result must be whole.
#include "CatalogTerms.h"
#include "llvm/ADT/StringExtras.h"
#include <numeric>

namespace shardc {

std::string normalSwitch(llvm::StringRef text) {
  if (text == "on" || text == "yes" || text == "True") {
    return "true";
  }
  if (text == "off" || text == "no" || text == "False") {
    return "false";
  }
  return text.str();
}

std::optional<std::string> TermScope::text(llvm::StringRef name) const {
  auto it = job.switches.find(name.str());
  if (it != job.switches.end()) {
    return normalSwitch(it->second);
  }
  if (std::optional<int64_t> number = size(name)) {
    return std::to_string(*number);
  }
  auto more = fallback.find(name.str());
  return more == fallback.end() ? std::nullopt : std::optional(normalSwitch(more->second));
}

std::optional<int64_t> TermScope::size(llvm::StringRef name) const {
  auto it = job.sizes.find(name.str());
  return it == job.sizes.end() ? std::nullopt : std::optional(it->second.value);
}

std::vector<std::string> TermScope::names() const {
  std::vector<std::string> all;
  for (const auto &entry : job.sizes) {
    all.push_back(entry.first);
  }
  for (const auto &entry : job.switches) {
    all.push_back(entry.first);
  }
  for (const auto &entry : fallback) {
    all.push_back(entry.first);
  }
  llvm::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

void readCondition(const ConfigNode &node, Condition &condition, DiagnosticEngine &diags) {
  if (node.kind != ConfigNode::Kind::Mapping) {
    diags.emit<Diag::WrongKind>(node.range, "if", "a mapping of switches or sizes", describe(node));
    return;
  }
  for (const auto &[key, value] : node.entries) {
    if (value.kind != ConfigNode::Kind::Scalar) {
      diags.emit<Diag::WrongKind>(value.range, key.value, "a value or a comparison", describe(value));
      continue;
    }
    condition.terms.push_back({key, scalarOf(value)});
  }
}

namespace {

// The comparison at the beginning of a wanted value: "" for equality.
llvm::StringRef comparison(llvm::StringRef wanted) {
  for (llvm::StringRef sign : {">=", "<=", "!=", ">", "<"}) {
    if (wanted.starts_with(sign)) {
      return sign;
    }
  }
  return "";
}

std::optional<bool> holds(const Condition::Term &term, const std::string &actual, const TermScope &scope, DiagnosticEngine &diags) {
  llvm::StringRef sign = comparison(term.wanted.value);
  llvm::StringRef rest = llvm::StringRef(term.wanted.value).drop_front(sign.size()).trim();
  double left = 0, right = 0;
  bool numbers = !llvm::StringRef(actual).getAsDouble(left) && !rest.getAsDouble(right);
  if (sign.empty() || sign == "!=") {
    bool equal = numbers ? left == right : actual == normalSwitch(rest);
    return equal == sign.empty();
  }
  if (!numbers && !llvm::StringRef(actual).getAsDouble(left)) {
    std::optional<int64_t> other = evaluate(rest, term.wanted.range, [&](llvm::StringRef n) { return scope.size(n); }, diags);
    if (!other) {
      return std::nullopt;
    }
    right = static_cast<double>(*other);
    numbers = true;
  }
  if (!numbers) {
    diags.emit<Diag::BadExpression>(term.wanted.range, "`" + actual + "` cannot be compared with `" + rest.str() + "`");
    return std::nullopt;
  }
  return sign == ">=" ? left >= right : sign == "<=" ? left <= right : sign == ">" ? left > right : left < right;
}

} // namespace

std::optional<bool> holds(const Condition &condition, const TermScope &scope, DiagnosticEngine &diags) {
  bool all = true;
  bool good = true;
  for (const Condition::Term &term : condition.terms) {
    std::optional<std::string> actual = scope.text(term.name.value);
    if (!actual) {
      auto d = diags.emit<Diag::UnknownName>(term.name.range, term.name.value, "a switch or a size that the job or the model has");
      std::vector<std::string> names = scope.names();
      llvm::StringRef near = nearest(term.name.value, std::vector<llvm::StringRef>(names.begin(), names.end()));
      if (!near.empty()) {
        d.help("did you mean `" + near.str() + "`?");
      }
      good = false;
      continue;
    }
    std::optional<bool> one = holds(term, *actual, scope, diags);
    good &= one.has_value();
    all &= one.value_or(false);
  }
  return good ? std::optional(all) : std::nullopt;
}

namespace {

struct Fraction {
  int64_t over = 0;
  int64_t under = 1;
};

class Evaluator {
public:
  Evaluator(llvm::StringRef t, SourceRange r, const NumberOf &n, DiagnosticEngine &d) : text(t), range(r), number(n), diags(d) {}

  std::optional<int64_t> run() {
    std::optional<Fraction> value = sum(0);
    skip();
    if (value && at < text.size()) {
      value = fail("`" + text.substr(at, 1).str() + "` stands behind its end");
    }
    if (value && value->under != 1) {
      value = fail("`" + text.str() + "` is " + std::to_string(value->over) + "/" + std::to_string(value->under) + ", not a whole number");
    }
    return value ? std::optional(value->over) : std::nullopt;
  }

private:
  std::nullopt_t fail(const llvm::Twine &why) {
    if (!failed) { // the first mistake makes the others
      diags.emit<Diag::BadExpression>(range, why.str());
    }
    failed = true;
    return std::nullopt;
  }

  void skip() { at = std::min(text.find_first_not_of(' ', at), text.size()); }
  bool take(char c) {
    skip();
    bool there = at < text.size() && text[at] == c;
    at += there;
    return there;
  }

  std::optional<Fraction> made(bool overflow, int64_t over, int64_t under) {
    if (!overflow && under == 0) {
      return fail("it divides by zero");
    }
    if (overflow || over == INT64_MIN || under == INT64_MIN) { // the least number has no negative
      return fail("a number is too large");
    }
    int64_t divisor = std::gcd(over, under);
    return Fraction{over / divisor, under / divisor};
  }

  std::optional<Fraction> add(Fraction a, Fraction b, bool minus) {
    int64_t left = 0, right = 0, over = 0, under = 0;
    bool overflow = __builtin_mul_overflow(a.over, b.under, &left) | __builtin_mul_overflow(b.over, a.under, &right);
    overflow |= minus ? __builtin_sub_overflow(left, right, &over) : __builtin_add_overflow(left, right, &over);
    overflow |= __builtin_mul_overflow(a.under, b.under, &under);
    return made(overflow, over, under);
  }

  std::optional<Fraction> multiply(Fraction a, int64_t over, int64_t under) {
    bool negative = under < 0; // the sign stays above
    int64_t top = 0, bottom = 0;
    bool overflow = __builtin_mul_overflow(a.over, negative ? -over : over, &top);
    overflow |= __builtin_mul_overflow(a.under, negative ? -under : under, &bottom);
    return made(overflow, top, bottom);
  }

  std::optional<Fraction> sum(unsigned depth) {
    std::optional<Fraction> value = product(depth);
    while (value) {
      bool minus = false;
      if (!take('+') && !(minus = take('-'))) {
        break;
      }
      std::optional<Fraction> next = product(depth);
      value = next ? add(*value, *next, minus) : std::nullopt;
    }
    return value;
  }

  std::optional<Fraction> product(unsigned depth) {
    std::optional<Fraction> value = atom(depth);
    while (value) {
      bool divide = false;
      if (!take('*') && !(divide = take('/'))) {
        break;
      }
      std::optional<Fraction> next = atom(depth);
      if (next) {
        value = divide ? multiply(*value, next->under, next->over) : multiply(*value, next->over, next->under);
      } else {
        value = std::nullopt;
      }
    }
    return value;
  }

  std::optional<Fraction> atom(unsigned depth) {
    if (depth > 64) {
      return fail("brackets are nested too deeply");
    }
    if (take('(')) {
      std::optional<Fraction> value = sum(depth + 1);
      return value && !take(')') ? fail("a `)` is missing") : value;
    }
    skip();
    llvm::StringRef word = text.drop_front(at).take_while([](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; });
    at += word.size();
    if (word.empty()) {
      return fail("a number or name is missing");
    }
    if (std::optional<int64_t> n = parseInteger(word)) {
      return Fraction{*n, 1};
    }
    if (word == "ceil" && take('(')) {
      return ceiling(depth);
    }
    if (std::optional<int64_t> n = number(word)) {
      return Fraction{*n, 1};
    }
    return fail("`" + word + "` is not a known whole number");
  }

  std::optional<Fraction> ceiling(unsigned depth) {
    std::optional<Fraction> value = sum(depth + 1);
    if (!value || !take(')')) {
      return value ? fail("a `)` is missing") : std::nullopt;
    }
    bool up = value->over % value->under > 0;
    return Fraction{value->over / value->under + up, 1};
  }

  llvm::StringRef text;
  SourceRange range;
  const NumberOf &number;
  DiagnosticEngine &diags;
  size_t at = 0;
  bool failed = false;
};

} // namespace

std::optional<int64_t> evaluate(llvm::StringRef text, SourceRange range, const NumberOf &number, DiagnosticEngine &diags) {
  return Evaluator(text, range, number, diags).run();
}

std::vector<std::string> namesIn(llvm::StringRef text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    llvm::StringRef word = text.take_while([](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; });
    if (!word.empty() && !llvm::isDigit(word[0]) && word != "ceil") {
      names.push_back(word.str());
    }
    text = text.drop_front(std::max<size_t>(word.size(), 1));
  }
  return names;
}

} // namespace shardc
