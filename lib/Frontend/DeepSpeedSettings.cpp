// DeepSpeedSettings: the values of one job by dotted key, each with its kind checked and its place kept.
//
// What a key does to the job is not said here; only which keys there are, what they may hold, and where they were written.
// DeepSpeed passes over what it does not know outside of all sections and refuses it inside one; both are reported.

#include "DeepSpeed.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

namespace shardc::deepspeed {

static llvm::StringRef kindText(KeyKind kind) {
  switch (kind) {
  case KeyKind::Integer:
    return "a whole number";
  case KeyKind::Number:
    return "a finite number";
  case KeyKind::Boolean:
    return "true or false";
  case KeyKind::String:
    return "a text";
  case KeyKind::Choice:
    return "one of its choices";
  case KeyKind::List:
    return "a list";
  case KeyKind::Any:
    return "a value";
  }
  return "";
}

static std::string fullName(llvm::StringRef section, llvm::StringRef name) {
  return section.empty() ? name.str() : (section + "." + name).str();
}

// 5e8 is how bucket sizes are written: a number without a fraction counts as whole.
static std::optional<int64_t> wholeNumber(llvm::StringRef text) {
  if (std::optional<int64_t> exact = parseInteger(text)) {
    return exact;
  }
  double number = 0;
  constexpr double Largest = 9e15; // doubles are exact below
  if (text.getAsDouble(number) || !std::isfinite(number) || std::trunc(number) != number || std::fabs(number) > Largest) {
    return std::nullopt;
  }
  return static_cast<int64_t>(number);
}

bool Settings::scalarFits(const Key &key, const ConfigNode &node, std::string &text) {
  double number = 0;
  switch (key.kind) {
  case KeyKind::Integer:
    if (std::optional<int64_t> whole = node.quoted ? std::nullopt : wholeNumber(text)) {
      text = std::to_string(*whole);
      return true;
    }
    return false;
  case KeyKind::Number:
    return !node.quoted && !llvm::StringRef(text).getAsDouble(number) && std::isfinite(number);
  case KeyKind::Boolean:
    text = llvm::StringRef(text).lower();
    return text == "true" || text == "false";
  case KeyKind::String:
  case KeyKind::Choice:
  case KeyKind::List:
  case KeyKind::Any:
    return true;
  }
  return true;
}

// Checks kind, choices and smallest value; reports what does not fit.
bool Settings::normalise(const Key &key, const ConfigNode &node, Setting &value) {
  if (node.kind == ConfigNode::Kind::Null && key.optional) {
    value.none = true;
    return true;
  }
  if (key.kind == KeyKind::List) {
    for (const ConfigNode &item : node.items) {
      value.items.push_back(item.scalar);
      if (!key.choices.empty() && !llvm::is_contained(key.choices, item.scalar)) {
        diags.emit<Diag::OutOfRange>(item.range, key.name, "made of " + llvm::join(key.choices, ", "), describe(item));
        return false;
      }
    }
  } else if (key.kind == KeyKind::Any) {
    value.node = &node;
    return true;
  }
  const auto wanted = key.kind == KeyKind::List ? ConfigNode::Kind::Sequence : ConfigNode::Kind::Scalar;
  if (node.kind != wanted || (key.kind != KeyKind::List && !scalarFits(key, node, value.text))) {
    DiagnosticBuilder builder = diags.emit<Diag::WrongKind>(node.range, key.name, kindText(key.kind), describe(node));
    const bool placeholder =
        llvm::StringRef(node.scalar).rtrim(",").find_if([](char c) { return llvm::isLower(c); }) == llvm::StringRef::npos;
    if (node.kind == ConfigNode::Kind::Scalar && key.kind != KeyKind::List && placeholder && llvm::isAlpha(node.scalar.front())) {
      builder.note("it looks like a placeholder of a template: a script fills in its value");
    }
    return false;
  }
  const std::optional<int64_t> number = key.kind == KeyKind::Integer ? parseInteger(value.text) : std::nullopt;
  if (number && ((key.min && *number < *key.min) || (key.max && *number > *key.max))) {
    diags.emit<Diag::OutOfRange>(
        node.range, key.name, key.max ? llvm::formatv("from {0} to {1}", *key.min, *key.max).str() : "at least " + std::to_string(*key.min),
        *number);
    return false;
  }
  if (key.kind == KeyKind::Choice && !llvm::is_contained(key.choices, value.text)) {
    DiagnosticBuilder builder =
        diags.emit<Diag::OutOfRange>(node.range, key.name, "one of `" + llvm::join(key.choices, "`, `") + "`", "`" + value.text + "`");
    std::vector<llvm::StringRef> candidates(key.choices.begin(), key.choices.end());
    if (llvm::StringRef near = nearest(value.text, candidates); !near.empty()) {
      builder.help(llvm::formatv("did you mean `{0}`?", near).str());
    }
    return false;
  }
  return true;
}

void Settings::put(const Key &key, const ConfigNode &node) {
  if (node.kind == ConfigNode::Kind::Scalar && node.scalar == "auto" && key.mayBeAuto) {
    autos.push_back(key.name);
    places[key.name] = node.range;
    return;
  }
  Setting value;
  value.text = node.scalar;
  value.range = node.range;
  if (!normalise(key, node, value)) {
    broken = true;
    refused.push_back(key.name);
    return;
  }
  llvm::erase(autos, key.name);
  places[key.name] = node.range;
  if (value.none) {
    values.erase(key.name);
  } else {
    values[key.name] = std::move(value);
  }
}

void Settings::unknown(llvm::StringRef section, const Located<std::string> &name) {
  std::vector<llvm::StringRef> candidates;
  for (const Key &key : framework.keys) {
    auto [owner, last] = llvm::StringRef(key.name).rsplit('.');
    if (last.empty() ? section.empty() : owner == section) {
      candidates.push_back(last.empty() ? owner : last);
    }
  }
  for (const std::vector<std::string> *list : {&framework.sections, &framework.open}) {
    for (llvm::StringRef other : *list) {
      auto [owner, last] = other.rsplit('.');
      if (last.empty() ? section.empty() && other != "launch" && other != "mpu" : owner == section) {
        candidates.push_back(last.empty() ? other : last);
      }
    }
  }
  DiagnosticBuilder builder = section.empty()
                                  ? diags.emit<Diag::KeyPassedOver>(name.range, name.value)
                                  : diags.emit<Diag::UnknownKey>(name.range, name.value, "`" + section.str() + "` of deepspeed@" + version);
  if (llvm::StringRef near = nearest(name.value, candidates); !near.empty()) {
    builder.help(llvm::formatv("did you mean `{0}`?", fullName(section, near)).str());
  }
  broken |= !section.empty();
}

void Settings::readEntry(llvm::StringRef section, const Located<std::string> &name, const ConfigNode &node) {
  std::string full = fullName(section, name.value);
  for (const auto &[old, current] : framework.aliases) {
    full = full == old ? current : full;
  }
  if (const Key *key = framework.find(full)) {
    put(*key, node);
    return;
  }
  if (llvm::is_contained(framework.open, full)) {
    places[full] = name.range;
    sections[full] = &node;
    return;
  }
  const bool inCode = full == "launch" || full == "mpu";
  if (!llvm::is_contained(framework.sections, full) || inCode) {
    unknown(section, name);
    return;
  }
  places[full] = name.range;
  if (node.kind == ConfigNode::Kind::Mapping) {
    readSection(full, node);
  } else if (node.kind != ConfigNode::Kind::Null) {
    diags.emit<Diag::NotAMapping>(node.range, "`" + full + "`", describe(node));
    broken = true;
  }
}

void Settings::readSection(llvm::StringRef section, const ConfigNode &node) {
  for (const auto &[name, value] : node.entries) {
    readEntry(section, name, value);
  }
}

void Settings::readFile(const ConfigNode &root) {
  if (root.kind != ConfigNode::Kind::Mapping) {
    diags.emit<Diag::NotAMapping>(root.range, "DeepSpeed's config", describe(root));
    broken = true;
    return;
  }
  readSection("", root);
}

// `--zero_optimization.stage 2`, `--zero_optimization.stage=2`, `--bf16.enabled`.
void Settings::readFlags(llvm::ArrayRef<Located<std::string>> flags) {
  for (size_t i = 0; i < flags.size(); ++i) {
    llvm::StringRef text = flags[i].value;
    if (!text.consume_front("--") || text.empty()) {
      diags.emit<Diag::UnknownArgument>(flags[i].range, flags[i].value, "deepspeed@" + version)
          .help("write `--KEY VALUE`, for example `--zero_optimization.stage 2`");
      broken = true;
      continue;
    }
    auto [name, given] = text.split('=');
    std::string wanted = name.str();
    std::replace(wanted.begin(), wanted.end(), '-', '_');
    const Key *key = framework.find(wanted);
    if (!key || key->kind == KeyKind::Any) {
      std::vector<llvm::StringRef> candidates;
      candidates.reserve(framework.keys.size());
      for (const Key &known : framework.keys) {
        candidates.push_back(known.name);
      }
      DiagnosticBuilder builder = diags.emit<Diag::UnknownArgument>(flags[i].range, flags[i].value, "deepspeed@" + version);
      if (llvm::StringRef near = nearest(wanted, candidates); !near.empty()) {
        builder.help(llvm::formatv("did you mean `--{0}`?", near).str());
      }
      broken = true;
      i += !text.contains('=') && i + 1 < flags.size() && !llvm::StringRef(flags[i + 1].value).starts_with("--");
      continue;
    }
    ConfigNode node;
    node.kind = ConfigNode::Kind::Scalar;
    node.range = flags[i].range;
    const bool next = i + 1 < flags.size() && !llvm::StringRef(flags[i + 1].value).starts_with("--");
    if (text.contains('=')) {
      node.scalar = given.str();
    } else if (next) {
      node.scalar = flags[++i].value;
      node.range = flags[i].range;
    } else if (key->kind == KeyKind::Boolean) {
      node.scalar = "true";
    } else {
      diags.emit<Diag::FlagWithoutValue>(flags[i].range, flags[i].value);
      broken = true;
      continue;
    }
    if (key->kind == KeyKind::List) {
      node.kind = ConfigNode::Kind::Sequence;
      node.items.emplace_back();
      node.items.back().kind = ConfigNode::Kind::Scalar;
      node.items.back().scalar = node.scalar;
      node.items.back().range = node.range;
    }
    put(*key, node);
  }
}

void Settings::reportAuto() {
  for (const std::string &name : autos) {
    const Key *key = framework.find(name);
    if (key->layout) {
      diags.emit<Diag::AutoValue>(places[name], name).help(llvm::formatv("give its value behind `--`: `--{0} VALUE`", name).str());
    }
  }
}

void Settings::reportIdle() const {
  const int64_t stage = integer("zero_optimization.stage");
  for (const auto &[name, value] : values) {
    const Key *key = framework.find(name);
    const bool idle = stage < key->stage || stage > key->lastStage;
    if (idle && value.text != key->fallback) {
      diags.emit<Diag::KeyWithoutEffect>(value.range, name, llvm::formatv("`zero_optimization.stage` is {0}", stage).str());
    }
  }
}

const Setting *Settings::find(llvm::StringRef key) const {
  auto it = values.find(key.str());
  return it == values.end() ? nullptr : &it->second;
}

std::string Settings::text(llvm::StringRef name) const {
  if (const Setting *value = find(name)) {
    return value->text;
  }
  const Key *key = framework.find(name);
  return key ? key->fallback : "";
}

std::optional<int64_t> Settings::number(llvm::StringRef key) const {
  const Setting *value = find(key);
  return value ? parseInteger(value->text) : std::nullopt;
}

int64_t Settings::integer(llvm::StringRef key) const { return parseInteger(text(key)).value_or(0); }

double Settings::real(llvm::StringRef key) const {
  double number = 0;
  return llvm::StringRef(text(key)).getAsDouble(number) ? 0 : number;
}

bool Settings::on(llvm::StringRef key) const { return text(key) == "true"; }

SourceRange Settings::place(llvm::StringRef key) const {
  auto it = places.find(key.str());
  return it == places.end() ? SourceRange() : it->second;
}

// Each `enabled` below a node: are there any, and is one true?
static void findSwitches(const ConfigNode &node, bool &any, bool &on) {
  for (const auto &[name, value] : node.entries) {
    if (name.value == "enabled" && value.kind == ConfigNode::Kind::Scalar) {
      any = true;
      on |= llvm::StringRef(value.scalar).equals_insensitive("true");
    }
    findSwitches(value, any, on);
  }
}

const ConfigNode *Settings::section(llvm::StringRef name) const {
  const auto it = sections.find(name.str());
  if (it == sections.end() || it->second->kind != ConfigNode::Kind::Mapping) {
    return nullptr;
  }
  const ConfigNode *own = it->second->find("enabled");
  bool any = false, on = false;
  findSwitches(*it->second, any, on);
  const bool off = own && own->kind == ConfigNode::Kind::Scalar && !llvm::StringRef(own->scalar).equals_insensitive("true");
  return off || (any && !on) ? nullptr : it->second;
}

bool Settings::from(llvm::StringRef first) const {
  const auto mine = llvm::find(versions, llvm::StringRef(version)), other = llvm::find(versions, first);
  return mine >= other;
}

} // namespace shardc::deepspeed
