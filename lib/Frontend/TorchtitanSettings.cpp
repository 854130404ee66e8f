// TorchtitanSettings: the values of one job by key, each with its kind checked and its place kept.
//
// What a key does to the job is not said here; only which keys there are, what they may hold, and who set them.

#include "Torchtitan.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

namespace shardc::torchtitan {

std::string underscores(llvm::StringRef text) {
  std::string result = text.str();
  std::replace(result.begin(), result.end(), '-', '_');
  return result;
}

std::string checkpointPolicy(llvm::StringRef name) {
  // The registry names the policies itself; the class names as tyro would spell them are understood too.
  static constexpr std::pair<llvm::StringRef, llvm::StringRef> Policies[] = {
      {"none", "none"},    {"selective", "selective"},         {"selective_ac", "selective"},         {"full", "full"},
      {"full_ac", "full"}, {"memory_budget", "memory-budget"}, {"memory_budget_ac", "memory-budget"},
  };
  std::string wanted = llvm::StringRef(underscores(name)).lower();
  llvm::StringRef plain = wanted;
  if (!plain.consume_back(".config")) {
    plain.consume_back("_config");
  }
  for (const auto &[spelling, policy] : Policies) {
    if (spelling == plain) {
      return policy.str();
    }
  }
  return "";
}

static std::string lifetime(const Key &key) {
  if (key.until.empty()) {
    return llvm::formatv("from {0} on", key.since).str();
  }
  if (key.since.empty()) {
    return llvm::formatv("only before {0}", key.until).str();
  }
  return llvm::formatv("only from {0} to before {1}", key.since, key.until).str();
}

static void reportOtherVersion(const Key &key, const Settings &settings, SourceRange range) {
  DiagnosticBuilder builder = settings.diags.emit<Diag::KeyOfOtherVersion>(range, key.name, settings.version, lifetime(key));
  const bool gone = !key.until.empty() && settings.version >= key.until;
  const std::string &other = gone ? key.instead : key.before;
  if (!other.empty()) {
    builder.help(llvm::formatv("{0} has `{1}`{2}", settings.version, other, gone ? " in its place" : "").str());
  }
  if (gone && !key.why.empty()) {
    builder.note(key.why);
  }
}

const Key *Settings::know(llvm::StringRef name, SourceRange range) {
  if (const Key *key = framework.find(name)) {
    if (key->existsIn(version)) {
      return key;
    }
    reportOtherVersion(*key, *this, range);
    return nullptr;
  }
  const auto [section, last] = name.split('.');
  std::vector<llvm::StringRef> candidates;
  if (llvm::is_contained(framework.sections, section)) {
    for (const Key &key : framework.keys) {
      if (llvm::StringRef(key.name).starts_with((section + ".").str()) && key.existsIn(version)) {
        candidates.push_back(llvm::StringRef(key.name).drop_front(section.size() + 1));
      }
    }
    DiagnosticBuilder builder = diags.emit<Diag::UnknownKey>(range, last, llvm::formatv("`{0}` of torchtitan@{1}", section, version).str());
    if (llvm::StringRef near = nearest(last, candidates); !near.empty()) {
      builder.help(llvm::formatv("did you mean `{0}.{1}`?", section, near).str());
    }
    return nullptr;
  }
  for (const std::vector<std::string> *list : {&framework.sections, &framework.open}) {
    candidates.insert(candidates.end(), list->begin(), list->end());
  }
  DiagnosticBuilder builder = diags.emit<Diag::UnknownKey>(range, section, "torchtitan@" + version);
  if (llvm::StringRef near = nearest(section, candidates); !near.empty()) {
    builder.help(llvm::formatv("did you mean `{0}`?", near).str());
  }
  return nullptr;
}

static llvm::StringRef kindText(KeyKind kind) {
  switch (kind) {
  case KeyKind::Integer:
    return "an integer";
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
  case KeyKind::Nested:
    return "a list of lists";
  }
  return "";
}

static bool scalarFits(KeyKind kind, std::string &text) {
  switch (kind) {
  case KeyKind::Integer: {
    const std::optional<int64_t> number = parseInteger(text);
    if (number) {
      text = std::to_string(*number);
    }
    return number.has_value();
  }
  case KeyKind::Number: {
    double number = 0;
    return !llvm::StringRef(text).getAsDouble(number) && std::isfinite(number);
  }
  case KeyKind::Boolean:
    text = llvm::StringRef(text).lower();
    return text == "true" || text == "false";
  case KeyKind::String:
  case KeyKind::Choice:
  case KeyKind::List:
  case KeyKind::Nested:
    return true;
  }
  return true;
}

bool Settings::normalise(const Key &key, Setting &value) {
  if (value.none) {
    if (!key.optional) {
      diags.emit<Diag::WrongKind>(value.range, key.name, kindText(key.kind), "None");
    }
    return key.optional;
  }
  if (!scalarFits(key.kind, value.text)) {
    diags.emit<Diag::WrongKind>(value.range, key.name, kindText(key.kind), "`" + value.text + "`");
    return false;
  }
  const std::vector<std::string> *choices = at(key.choices, version);
  if (!choices) {
    return true;
  }
  std::vector<std::string> written;
  if (key.kind == KeyKind::Choice) {
    written.push_back(value.text);
  } else {
    for (const std::vector<std::string> &part : value.parts) {
      written.insert(written.end(), part.begin(), part.end());
    }
  }
  for (const std::string &text : written) {
    if (!llvm::is_contained(*choices, text)) {
      std::string list = "`" + llvm::join(*choices, "`, `") + "`" + (key.optional ? " or None" : "");
      DiagnosticBuilder builder = diags.emit<Diag::OutOfRange>(value.range, key.name, "one of " + list, "`" + text + "`");
      std::vector<llvm::StringRef> candidates(choices->begin(), choices->end());
      if (llvm::StringRef near = nearest(text, candidates); !near.empty()) {
        builder.help(llvm::formatv("did you mean `{0}`?", near).str());
      }
      return false;
    }
  }
  return true;
}

bool Settings::set(llvm::StringRef name, Setting value) {
  const Key *key = framework.find(name);
  if (!key || !normalise(*key, value)) {
    broken = true;
    return false;
  }
  values[name.str()] = std::move(value);
  return true;
}

void Settings::setCheckpoint(llvm::StringRef policy, SourceRange range) {
  checkpoint = policy.str();
  checkpointRange = range;
}

void Settings::apply(const BaseJob &job, SourceRange range) {
  base = &job;
  checkpoint = job.checkpoint;
  checkpointRange = range;
  if (!job.dispatcher.empty()) {
    dispatcher = job.dispatcher;
  }
  if (!job.attention.empty()) {
    attention = job.attention;
  }
  auto put = [&](llvm::StringRef name, std::string text) {
    const Key *key = framework.find(name);
    if (key && key->existsIn(version)) {
      Setting value{std::move(text), {}, false, range, Origin::Registry};
      if (key->kind == KeyKind::List) {
        value.parts.push_back({value.text});
      }
      set(name, std::move(value));
    }
  };
  put("training.local_batch_size", std::to_string(job.rows));
  put("training.seq_len", std::to_string(job.length));
  put("training.num_tokens_per_microbatch_per_dp_rank", std::to_string(job.rows * job.length));
  put("training.max_context_length", std::to_string(job.length));
  put("loss.num_chunks", std::to_string(job.chunks));
  for (const auto &[name, text] : job.set) {
    put(name, text);
  }
}

const Setting *Settings::find(llvm::StringRef key) const {
  auto it = values.find(key.str());
  return it == values.end() ? nullptr : &it->second;
}

std::string Settings::text(llvm::StringRef name) const {
  if (const Setting *value = find(name)) {
    return value->none ? "None" : value->text;
  }
  const Key *key = framework.find(name);
  const std::string *fallback = key ? at(key->defaults, version) : nullptr;
  return fallback ? *fallback : key && key->optional ? "None" : "";
}

int64_t Settings::integer(llvm::StringRef key) const { return parseInteger(text(key)).value_or(0); }

bool Settings::on(llvm::StringRef key) const { return text(key) == "true"; }

bool Settings::isNone(llvm::StringRef name) const {
  if (const Setting *value = find(name)) {
    return value->none;
  }
  const Key *key = framework.find(name);
  return key && key->optional && !at(key->defaults, version);
}

std::vector<std::vector<std::string>> Settings::parts(llvm::StringRef name) const {
  if (const Setting *value = find(name)) {
    return value->parts;
  }
  llvm::SmallVector<llvm::StringRef, 4> items;
  const Key *key = framework.find(name);
  if (const std::string *fallback = key ? at(key->defaults, version) : nullptr) {
    llvm::StringRef(*fallback).split(items, ',');
  }
  return {std::vector<std::string>(items.begin(), items.end())};
}

Origin Settings::origin(llvm::StringRef key) const {
  const Setting *value = find(key);
  return value ? value->origin : Origin::Default;
}

SourceRange Settings::place(llvm::StringRef key) const {
  const Setting *value = find(key);
  return value ? value->range : SourceRange();
}

} // namespace shardc::torchtitan
