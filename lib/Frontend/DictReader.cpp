// DictReader: asks a mapping for its keys by kind, and reports what is wrong with a value and which keys nobody knows.
//
// Exists so that no reader of a config can forget a key or take a value for what it is not: `yes` is no boolean, 8.0 is no
// integer and "8" in quotes is a text. Nothing is converted silently.
#include "ConfigReaders.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace shardc {

namespace {
constexpr size_t MaxKeysListed = 12; // known keys that a message lists

bool isTrue(llvm::StringRef text) { return text == "true" || text == "True" || text == "TRUE"; }
bool isFalse(llvm::StringRef text) { return text == "false" || text == "False" || text == "FALSE"; }

// What other readers take for a boolean, and which.
std::optional<bool> otherBoolean(llvm::StringRef text) {
  const std::string lower = text.lower();
  if (lower == "yes" || lower == "on" || lower == "y" || lower == "true" || lower == "1") {
    return true;
  }
  if (lower == "no" || lower == "off" || lower == "n" || lower == "false" || lower == "0") {
    return false;
  }
  return std::nullopt;
}

bool isDigits(llvm::StringRef text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return llvm::isDigit(c) || c == '_'; }) &&
         llvm::isDigit(text.front()) && llvm::isDigit(text.back());
}

std::optional<double> parseNumber(llvm::StringRef text) {
  std::string plain;
  for (size_t i = 0; i != text.size(); ++i) {
    const char c = text[i];
    if (c == '_' && i != 0 && i + 1 != text.size() && llvm::isDigit(text[i - 1]) && llvm::isDigit(text[i + 1])) {
      continue;
    }
    if (!llvm::isDigit(c) && !llvm::StringRef("+-.eE").contains(c)) {
      return std::nullopt;
    }
    plain += c;
  }
  char *end = nullptr;
  const double value = std::strtod(plain.c_str(), &end);
  if (plain.empty() || *end != '\0' || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::string limits(int64_t min, int64_t max) {
  if (min == INT64_MIN) {
    return "at most " + std::to_string(max);
  }
  return max == INT64_MAX ? "at least " + std::to_string(min) : "between " + std::to_string(min) + " and " + std::to_string(max);
}
} // namespace

std::string describe(const ConfigNode &node) {
  switch (node.kind) {
  case ConfigNode::Kind::Null:
    return "nothing";
  case ConfigNode::Kind::Scalar:
    return (node.quoted ? "the text `" : "`") + shown(node.scalar) + "`";
  case ConfigNode::Kind::Sequence:
    return "a list";
  case ConfigNode::Kind::Mapping:
    return "a mapping";
  }
  return "";
}

std::optional<int64_t> parseInteger(llvm::StringRef text) {
  const bool negative = text.consume_front("-");
  if (!negative) {
    text.consume_front("+");
  }
  const llvm::StringRef prefix = text.take_front(2);
  const unsigned radix = prefix == "0x" ? 16 : prefix == "0o" ? 8 : prefix == "0b" ? 2 : 10;
  if (radix != 10) {
    text = text.drop_front(2);
  } else if (text.size() > 1 && text.front() == '0') {
    return std::nullopt;
  }
  if (text.empty() || text.front() == '_' || text.back() == '_' || text.contains("__")) {
    return std::nullopt;
  }
  // Downwards from zero, because the least integer has no positive counterpart.
  int64_t value = 0;
  for (const char c : text) {
    if (c == '_') {
      continue;
    }
    const unsigned digit = llvm::hexDigitValue(c);
    if (digit >= radix || __builtin_mul_overflow(value, int64_t(radix), &value) || __builtin_sub_overflow(value, int64_t(digit), &value)) {
      return std::nullopt;
    }
  }
  if (!negative && value == INT64_MIN) {
    return std::nullopt;
  }
  return negative ? value : -value;
}

DictReader::DictReader(const ConfigNode &mapping, std::string name, DiagnosticEngine &engine)
    : node(mapping), what(std::move(name)), diags(engine) {
  if (node.kind != ConfigNode::Kind::Mapping && node.kind != ConfigNode::Kind::Null) {
    diags.emit<Diag::NotAMapping>(node.range, what, describe(node));
  }
}

const ConfigNode *DictReader::take(llvm::StringRef key) {
  known.push_back(key.str());
  return node.find(key);
}

DiagnosticBuilder DictReader::wrongKind(llvm::StringRef key, llvm::StringRef wanted, const ConfigNode &seen) {
  return diags.emit<Diag::WrongKind>(seen.range, key, wanted, describe(seen));
}

// The scalar at `key`, or nothing with a diagnostic if something else stands there.
const ConfigNode *DictReader::takeScalar(llvm::StringRef key, llvm::StringRef wanted, bool mayBeQuoted) {
  const ConfigNode *value = take(key);
  if (value && (value->kind != ConfigNode::Kind::Scalar || (value->quoted && !mayBeQuoted))) {
    wrongKind(key, wanted, *value);
    return nullptr;
  }
  return value;
}

std::optional<Located<std::string>> DictReader::string(llvm::StringRef key) {
  const ConfigNode *value = takeScalar(key, "a text", /*mayBeQuoted=*/true);
  return value ? std::optional(Located<std::string>{value->scalar, value->range}) : std::nullopt;
}

std::optional<Located<int64_t>> DictReader::integer(llvm::StringRef key, int64_t min, int64_t max) {
  const ConfigNode *value = takeScalar(key, "an integer", /*mayBeQuoted=*/false);
  if (!value) {
    return std::nullopt;
  }
  const llvm::StringRef text = value->scalar;
  const std::optional<int64_t> number = parseInteger(text);
  if (number && *number >= min && *number <= max) {
    return Located<int64_t>{*number, value->range};
  }
  const bool negative = text.starts_with("-");
  const llvm::StringRef digits = text.drop_front(negative || text.starts_with("+"));
  const bool tooBig = !number && isDigits(digits) && digits.front() != '0';
  if (number || tooBig) {
    const std::string range = tooBig && !negative && max == INT64_MAX ? limits(INT64_MIN, max) : limits(min, max);
    diags.emit<Diag::OutOfRange>(value->range, key, range, "`" + shown(text) + "`");
    return std::nullopt;
  }
  DiagnosticBuilder report = wrongKind(key, "an integer", *value);
  const std::optional<double> real = parseNumber(text);
  if (isDigits(digits) && !digits.contains('_')) {
    report.help("write it without leading zeros, which some readers take for octal");
  } else if (real && *real == std::floor(*real) && std::fabs(*real) < 1e15) {
    report.help("write `" + std::to_string(static_cast<int64_t>(*real)) + "`");
  }
  return std::nullopt;
}

std::optional<Located<double>> DictReader::number(llvm::StringRef key) {
  const ConfigNode *value = takeScalar(key, "a finite number", /*mayBeQuoted=*/false);
  if (!value) {
    return std::nullopt;
  }
  if (const std::optional<double> number = parseNumber(value->scalar)) {
    return Located<double>{*number, value->range};
  }
  if (const std::optional<int64_t> integer = parseInteger(value->scalar)) {
    return Located<double>{static_cast<double>(*integer), value->range};
  }
  wrongKind(key, "a finite number", *value);
  return std::nullopt;
}

std::optional<Located<bool>> DictReader::boolean(llvm::StringRef key) {
  const ConfigNode *value = take(key);
  if (!value) {
    return std::nullopt;
  }
  if (value->kind == ConfigNode::Kind::Scalar && !value->quoted && (isTrue(value->scalar) || isFalse(value->scalar))) {
    return Located<bool>{isTrue(value->scalar), value->range};
  }
  DiagnosticBuilder report = wrongKind(key, "`true` or `false`", *value);
  if (const std::optional<bool> meant = otherBoolean(value->scalar)) {
    report.help(*meant ? "write `true`" : "write `false`");
  }
  return std::nullopt;
}

const ConfigNode *DictReader::mapping(llvm::StringRef key) {
  const ConfigNode *value = take(key);
  if (value && value->kind != ConfigNode::Kind::Mapping) {
    wrongKind(key, "a mapping of keys to values", *value);
    return nullptr;
  }
  return value;
}

const ConfigNode *DictReader::sequence(llvm::StringRef key) {
  const ConfigNode *value = take(key);
  if (value && value->kind != ConfigNode::Kind::Sequence) {
    wrongKind(key, "a list", *value);
    return nullptr;
  }
  return value;
}

const ConfigNode *DictReader::any(llvm::StringRef key) { return take(key); }

std::vector<Located<std::string>> DictReader::strings(llvm::StringRef key) {
  const ConfigNode *value = take(key);
  std::vector<Located<std::string>> out;
  if (!value) {
    return out;
  }
  if (value->kind == ConfigNode::Kind::Scalar) {
    out.push_back({value->scalar, value->range});
  } else if (value->kind != ConfigNode::Kind::Sequence) {
    wrongKind(key, "a list of texts", *value);
  }
  for (const ConfigNode &item : value->items) {
    if (item.kind == ConfigNode::Kind::Scalar) {
      out.push_back({item.scalar, item.range});
    } else {
      diags.emit<Diag::WrongKind>(item.range, key, "a list of texts", "a list that holds " + describe(item));
    }
  }
  return out;
}

bool DictReader::require(llvm::StringRef key) {
  if (node.find(key)) {
    return true;
  }
  if (node.kind == ConfigNode::Kind::Mapping || node.kind == ConfigNode::Kind::Null) { // others were reported as what they are
    diags.emit<Diag::MissingKey>(node.range, what, key);
  }
  return false;
}

void DictReader::finish() {
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  const std::vector<llvm::StringRef> names(known.begin(), known.end());
  for (const auto &[key, value] : node.entries) {
    if (std::binary_search(known.begin(), known.end(), key.value)) {
      continue;
    }
    DiagnosticBuilder report = diags.emit<Diag::UnknownKey>(key.range, shown(key.value), what);
    if (const llvm::StringRef near = nearest(key.value, names); !near.empty()) {
      report.help(("did you mean `" + near + "`?").str());
    } else if (!names.empty() && names.size() <= MaxKeysListed) {
      report.note("known here: " + llvm::join(names, ", "));
    }
  }
}

} // namespace shardc
