// RuleGate: versions and conditions of catalogue files. See the header.
#include "RuleGate.h"
#include "CatalogModel.h"

namespace shardc {

bool RuleGate::read(DictReader &file, llvm::StringRef what) {
  versions = file.strings("versions");
  for (const auto &[name, value] : entriesOf(file.mapping("defaults"))) {
    if (value.kind == ConfigNode::Kind::Scalar) {
      defaults[name.value] = value.scalar;
    } else {
      diags.emit<Diag::WrongKind>(value.range, name.value, "a value", describe(value));
    }
  }
  defaults.try_emplace("inference", job.inference ? "true" : "false");
  std::string known;
  for (size_t i = 0; i < versions.size(); ++i) {
    known += (known.empty() ? "" : ", ") + versions[i].value;
    if (versions[i].value == job.version || (job.version.empty() && i + 1 == versions.size())) {
      index = i;
      chosen = versions[i].value;
    }
  }
  if (!versions.empty() && !index) {
    diags.emit<Diag::UnknownVersion>(versions.front().range, job.version, what).help("known versions: " + known);
    return false;
  }
  return true;
}

std::optional<bool> RuleGate::applies(DictReader &entry) const {
  bool on = true, good = true;
  if (const ConfigNode *when = entry.any("if")) {
    Condition condition;
    readCondition(*when, condition, diags);
    std::optional<bool> value = holds(condition, scope(), diags);
    good &= value.has_value();
    on &= value.value_or(false);
  }
  if (std::optional<Located<std::string>> range = entry.string("version")) {
    std::optional<bool> value = inRange(*range);
    good &= value.has_value();
    on &= value.value_or(false);
  }
  return good ? std::optional(on) : std::nullopt;
}

// `a..b`, `a..`, `..b`, `a`, both ends included.
std::optional<bool> RuleGate::inRange(const Located<std::string> &range) const {
  llvm::StringRef text = range.value;
  auto [first, last] = text.contains("..") ? text.split("..") : std::pair(text, text);
  std::optional<size_t> from = place(first.trim(), range), to = place(last.trim(), range);
  if (!from || !to) {
    return std::nullopt;
  }
  return index && *index >= *from && (last.trim().empty() || *index <= *to);
}

// The index of a version; 0 for none.
std::optional<size_t> RuleGate::place(llvm::StringRef name, const Located<std::string> &range) const {
  for (size_t i = 0; i < versions.size(); ++i) {
    if (name.empty() || versions[i].value == name) {
      return i;
    }
  }
  diags.emit<Diag::UnknownName>(range.range, name, "one of the file's `versions`");
  return std::nullopt;
}

} // namespace shardc
