// TorchtitanFlags: command-line overrides in the style of tyro, which reads torchtitan's command line.
//
// `--section.key value`, `--section.key=value`, `--section.flag`, `--section.no-flag`, dashes for underscores anywhere, lists
// separated by commas, `None`, positional subcommands of unions (`activation-checkpoint:none`), `--module M --config C`.
// Flags win over the file and the file over the base job, whatever their order; of two equal flags the last wins.

#include "Torchtitan.h"

namespace shardc::torchtitan {
namespace {

using Argument = Located<std::string>;

class FlagReader {
public:
  FlagReader(llvm::ArrayRef<Argument> arguments, Settings &s) : flags(arguments), settings(s) {}

  void findJob();
  void read();

private:
  bool isSubcommand(llvm::StringRef text) const;
  // Is there a value at `next`, that is, neither a flag nor a subcommand?
  bool hasValue() const;
  void readFlag(const Argument &flag);
  void readKey(const Key &key, const Argument &flag, std::optional<Argument> given);
  void readBoolean(const Key &key, const Argument &flag, std::optional<Argument> given, bool negated);
  void readSubcommand(const Argument &argument);
  void skipValues(bool given);
  std::optional<Argument> splitValue(Argument &name) const;

  llvm::ArrayRef<Argument> flags;
  Settings &settings;
  size_t next = 0;
  std::optional<Argument> subcommand; // the last one: flags behind it are its own
};

bool FlagReader::isSubcommand(llvm::StringRef text) const {
  if (text.starts_with("-") || !text.contains(':')) {
    return false;
  }
  const std::string section = underscores(text.split(':').first);
  return settings.framework.isOpen(section.substr(0, section.find('.'))) || llvm::is_contained(settings.framework.sections, section);
}

bool FlagReader::hasValue() const {
  return next < flags.size() && !llvm::StringRef(flags[next].value).starts_with("--") && !isSubcommand(flags[next].value);
}

// Cuts `name=value` and leaves the name.
std::optional<Argument> FlagReader::splitValue(Argument &name) const {
  const size_t equals = name.value.find('=');
  if (equals == std::string::npos) {
    return std::nullopt;
  }
  Argument value{name.value.substr(equals + 1), name.range};
  // Only where the text stands as it was written can a part of it be pointed at.
  if (name.range.valid() && name.range.end - name.range.begin == name.value.size()) {
    value.range = name.range.slice(equals + 1, name.value.size());
    name.range = name.range.slice(0, equals);
  }
  name.value.resize(equals);
  return value;
}

// --module and --config stand for a base job, which must be known before any override.
void FlagReader::findJob() {
  for (size_t i = 0; i < flags.size(); ++i) {
    Argument name = flags[i];
    std::optional<Argument> value = splitValue(name);
    std::optional<Located<std::string>> *target = name.value == "--module"   ? &settings.module
                                                  : name.value == "--config" ? &settings.config
                                                                             : nullptr;
    if (!target) {
      continue;
    }
    if (!value && i + 1 < flags.size() && !llvm::StringRef(flags[i + 1].value).starts_with("--")) {
      value = flags[++i];
    }
    if (value) {
      *target = *value;
    } else {
      settings.diags.emit<Diag::FlagWithoutValue>(name.range, name.value);
    }
  }
  if (!settings.config) {
    return;
  }
  const BaseJob *job = settings.framework.job(settings.config->value);
  if (!job) {
    std::vector<llvm::StringRef> candidates;
    for (const BaseJob &known : settings.framework.jobs) {
      candidates.push_back(known.name);
    }
    DiagnosticBuilder builder =
        settings.diags.emit<Diag::UnknownName>(settings.config->range, settings.config->value, "a registered base job known here");
    if (llvm::StringRef near = nearest(settings.config->value, candidates); !near.empty()) {
      builder.help(llvm::formatv("did you mean `{0}`?", near).str());
    }
    return;
  }
  if (settings.module && llvm::StringRef(settings.module->value).rsplit('.').second != job->module &&
      settings.module->value != job->module) {
    settings.diags.emit<Diag::UnknownName>(settings.config->range, job->name, "in module `" + settings.module->value + "`")
        .help("its module is `" + job->module + "`");
  }
  settings.apply(*job, settings.config->range);
}

void FlagReader::read() {
  while (next < flags.size()) {
    const Argument &argument = flags[next++];
    if (llvm::StringRef(argument.value).starts_with("--") && argument.value.size() > 2) {
      readFlag(argument);
    } else if (isSubcommand(argument.value)) {
      readSubcommand(argument);
    } else {
      settings.diags.emit<Diag::UnknownArgument>(argument.range, argument.value, "torchtitan");
    }
  }
}

void FlagReader::readSubcommand(const Argument &argument) {
  const auto [left, right] = llvm::StringRef(argument.value).split(':');
  subcommand = argument;
  const std::string section = underscores(left);
  if (section == "activation_checkpoint") {
    const std::string policy = checkpointPolicy(right);
    if (policy.empty()) {
      DiagnosticBuilder builder = settings.diags.emit<Diag::UnknownName>(argument.range, right, "an activation checkpointing policy");
      builder.help("there are `activation-checkpoint:none`, `:selective`, `:full` and `:memory-budget`");
      return;
    }
    settings.setCheckpoint(policy, argument.range);
  } else if (section == "loss") {
    // A chunked loss keeps its number of chunks, any other has none.
    if (!llvm::StringRef(right).lower().starts_with("chunk")) {
      settings.set("loss.num_chunks", Setting{"0", {}, false, argument.range, Origin::Flag});
    }
  } else if (!settings.framework.isOpen(llvm::StringRef(section).split('.').first)) {
    settings.diags.emit<Diag::UnknownArgument>(argument.range, argument.value, "torchtitan");
  }
}

void FlagReader::skipValues(bool given) {
  while (!given && hasValue()) {
    ++next;
  }
}

void FlagReader::readFlag(const Argument &flag) {
  Argument name = flag;
  std::optional<Argument> given = splitValue(name);
  if (name.value == "--module" || name.value == "--config") {
    next += !given && hasValue();
    return;
  }
  const std::string path = underscores(llvm::StringRef(name.value).drop_front(2));
  const auto [section, last] = llvm::StringRef(path).split('.');
  if (subcommand && section != underscores(llvm::StringRef(subcommand->value).split(':').first)) {
    settings.diags.emit<Diag::FlagAfterSubcommand>(name.range, name.value, subcommand->value)
        .label(subcommand->range, "tyro gives everything behind this to the subcommand")
        .help("move the subcommand to the end");
  }
  const Key *key = settings.framework.find(path);
  if (!key && last.starts_with("no_")) {
    const Key *positive = settings.framework.find((section + "." + last.drop_front(3)).str());
    if (positive && positive->kind == KeyKind::Boolean) {
      if (settings.know(positive->name, name.range)) {
        readBoolean(*positive, name, given, true);
      }
      return;
    }
  }
  if (settings.framework.isOpen(section) && !key) {
    skipValues(given.has_value());
    return;
  }
  if (!settings.know(path, name.range)) {
    skipValues(given.has_value());
    return;
  }
  if (key->kind == KeyKind::Boolean) {
    readBoolean(*key, name, given, false);
  } else {
    readKey(*key, name, given);
  }
}

void FlagReader::readBoolean(const Key &key, const Argument &flag, std::optional<Argument> given, bool negated) {
  if (!given && hasValue()) {
    const std::string word = llvm::StringRef(flags[next].value).lower();
    if (word == "true" || word == "false") {
      given = flags[next++];
    }
  }
  if (!given) {
    settings.set(key.name, Setting{negated ? "false" : "true", {}, false, flag.range, Origin::Flag});
    return;
  }
  if (negated) {
    settings.diags.emit<Diag::WrongKind>(given->range, flag.value, "a flag without a value", "`" + given->value + "`");
    return;
  }
  settings.set(key.name, Setting{given->value, {}, false, given->range, Origin::Flag});
}

static std::vector<std::string> splitList(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef, 8> items;
  text.split(items, ',');
  return std::vector<std::string>(items.begin(), items.end());
}

void FlagReader::readKey(const Key &key, const Argument &flag, std::optional<Argument> given) {
  if (!given && hasValue()) {
    given = flags[next++];
  }
  if (!given) {
    settings.diags.emit<Diag::FlagWithoutValue>(flag.range, flag.value);
    return;
  }
  Setting value{given->value, {}, false, given->range, Origin::Flag};
  if (key.optional && given->value == "None") {
    value.none = true;
  } else if (key.kind == KeyKind::List || key.kind == KeyKind::Nested) {
    value.parts.push_back(splitList(given->value));
    while (key.kind == KeyKind::Nested && hasValue()) {
      value.parts.push_back(splitList(flags[next++].value));
    }
  }
  settings.set(key.name, std::move(value));
}

} // namespace

void readSettings(llvm::ArrayRef<Located<std::string>> flags, const ConfigNode *file, Settings &settings) {
  FlagReader reader(flags, settings);
  reader.findJob();
  if (file) {
    readFile(*file, settings);
  }
  reader.read();
}

} // namespace shardc::torchtitan
