// ColossalaiArguments: the keyword arguments of a plugin, as YAML, JSON or flags.
//
// A plugin call is Python; a file here holds the same keywords as a mapping, alone or under `plugin_config` as chat scripts
// have it. `plugin` names the plugin; without it the arguments tell, since only one of the two has experts. Which arguments
// exist is data (lib/Catalog/frameworks/colossalai.yaml). What the arguments mean together is not decided here.
#include "Colossalai.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace shardc::colossalai {

namespace {

using Kind = ConfigNode::Kind;

std::string scalar(DictReader &reader, llvm::StringRef key) {
  std::optional<Located<std::string>> value = reader.string(key);
  return value ? value->value : "";
}

std::vector<std::string> texts(DictReader &reader, llvm::StringRef key) {
  std::vector<std::string> result;
  for (Located<std::string> &text : reader.strings(key)) {
    result.push_back(std::move(text.value));
  }
  return result;
}

ArgumentKind kindOf(llvm::StringRef text) {
  static constexpr std::pair<llvm::StringLiteral, ArgumentKind> Kinds[] = {
      {"int", ArgumentKind::Integer}, {"float", ArgumentKind::Number}, {"bool", ArgumentKind::Boolean}, {"choice", ArgumentKind::Choice}};
  for (const auto &[name, kind] : Kinds) {
    if (name == text) {
      return kind;
    }
  }
  return ArgumentKind::Any;
}

Argument readArgument(const std::string &name, const ConfigNode &node, DiagnosticEngine &diags) {
  Argument argument;
  argument.name = name;
  DictReader reader(node, "`" + name + "`", diags);
  argument.kind = kindOf(scalar(reader, "type"));
  reader.any("layout"); // for the docs
  for (auto [key, flag] :
       {std::pair{"optional", &argument.optional}, std::pair{"required", &argument.required}, std::pair{"job", &argument.job}}) {
    std::optional<Located<bool>> value = reader.boolean(key);
    *flag = value && value->value;
  }
  argument.plugin = scalar(reader, "plugin");
  argument.flag = scalar(reader, "flag");
  argument.initial = scalar(reader, "default");
  argument.choices = texts(reader, "choices");
  for (auto [key, bound] : {std::pair{"min", &argument.least}, std::pair{"max", &argument.most}}) {
    if (std::optional<Located<int64_t>> value = reader.integer(key)) {
      *bound = value->value;
    }
  }
  reader.finish();
  return argument;
}

} // namespace

const Argument *Framework::find(llvm::StringRef name) const {
  auto found = llvm::find_if(arguments, [&](const Argument &a) { return a.name == name || (!a.flag.empty() && a.flag == name); });
  return found == arguments.end() ? nullptr : &*found;
}

const PluginRow *Framework::plugin(llvm::StringRef name) const {
  auto found = llvm::find_if(plugins, [&](const PluginRow &p) { return p.name == name || p.brief == name; });
  return found == plugins.end() ? nullptr : &*found;
}

std::optional<Framework> loadFramework(DiagnosticEngine &diags) {
  const CatalogFile *file = catalogFile("frameworks/colossalai.yaml");
  if (!file) {
    return std::nullopt;
  }
  const FileId source = diags.sources().add(("shardc:" + file->path).str(), file->text.str());
  const std::optional<ConfigNode> root = parseConfig(source, diags, ConfigFormat::Yaml);
  if (!root) {
    return std::nullopt;
  }
  Framework framework;
  if (const ConfigNode *plugins = root->find("plugins")) {
    for (const auto &[name, node] : plugins->entries) {
      DictReader reader(node, "`" + name.value + "`", diags);
      framework.plugins.push_back({name.value, scalar(reader, "short"), texts(reader, "families")});
      reader.finish();
    }
  }
  if (const ConfigNode *keys = root->find("keys")) {
    for (const auto &[name, node] : keys->entries) {
      framework.arguments.push_back(readArgument(name.value, node, diags));
    }
  }
  return framework;
}

// A decimal or scientific number, finite.
static bool isNumber(llvm::StringRef text) {
  double number = 0;
  return !text.getAsDouble(number) && number - number == 0;
}

void Arguments::set(const Argument &argument, Value value) {
  const auto wrong = [&](llvm::StringRef wanted) {
    diags.emit<Diag::WrongKind>(value.range, argument.name, wanted, value.none ? "nothing" : "`" + value.text + "`");
    broken = true;
  };
  if (value.none) {
    if (!argument.optional) {
      return wrong("a value");
    }
    value.text.clear();
    values[argument.name] = std::move(value);
    return;
  }
  switch (argument.kind) {
  case ArgumentKind::Integer: {
    const std::optional<int64_t> number = parseInteger(value.text);
    if (!number) {
      return wrong("an integer");
    }
    if (*number < argument.least || *number > argument.most) {
      const bool low = *number < argument.least;
      diags.emit<Diag::OutOfRange>(value.range, argument.name,
                                   llvm::formatv("at {0} {1}", low ? "least" : "most", low ? argument.least : argument.most).str(),
                                   *number);
      broken = true;
      return;
    }
    value.text = std::to_string(*number);
    break;
  }
  case ArgumentKind::Number:
    if (!isNumber(value.text)) {
      return wrong("a number");
    }
    break;
  case ArgumentKind::Boolean: {
    const std::string lower = llvm::StringRef(value.text).lower();
    if (lower != "true" && lower != "false") {
      return wrong("true or false");
    }
    value.text = lower;
    break;
  }
  case ArgumentKind::Choice:
    if (!llvm::is_contained(argument.choices, value.text)) {
      const std::vector<llvm::StringRef> choices(argument.choices.begin(), argument.choices.end());
      DiagnosticBuilder builder =
          diags.emit<Diag::OutOfRange>(value.range, argument.name, "one of " + llvm::join(argument.choices, ", "), "`" + value.text + "`");
      if (llvm::StringRef near = nearest(value.text, choices); !near.empty()) {
        builder.help(llvm::formatv("did you mean `{0}`?", near).str());
      }
      broken = true;
      return;
    }
    break;
  case ArgumentKind::Any:
    break;
  }
  values[argument.name] = std::move(value);
}

std::string Arguments::text(llvm::StringRef name) const {
  auto it = values.find(name.str());
  if (it != values.end()) {
    return it->second.text;
  }
  const Argument *argument = framework.find(name);
  return argument ? argument->initial : "";
}

int64_t Arguments::integer(llvm::StringRef name, int64_t otherwise) const { return parseInteger(text(name)).value_or(otherwise); }

SourceRange Arguments::place(llvm::StringRef name) const {
  auto it = values.find(name.str());
  return it == values.end() ? SourceRange() : it->second.range;
}

bool Arguments::choosePlugin(SourceRange request) {
  if (!pluginName.value.empty()) {
    plugin = framework.plugin(pluginName.value);
    if (!plugin) {
      const auto names = llvm::map_to_vector(framework.plugins, [](const PluginRow &row) { return llvm::StringRef(row.name); });
      const llvm::StringRef near = nearest(pluginName.value, names);
      diags.emit<Diag::UnknownName>(pluginName.range, pluginName.value, "a plugin that is read")
          .help(near.empty() ? "there is: " + llvm::join(names, ", ") : llvm::formatv("did you mean `{0}`?", near).str());
    }
    return plugin != nullptr;
  }
  const bool moe = llvm::any_of(framework.arguments, [&](const Argument &a) { return a.plugin == "moe" && given(a.name); });
  plugin = framework.plugin(moe ? "moe" : "hybrid");
  pluginName = {plugin ? plugin->name : "", request};
  return plugin != nullptr;
}

void Arguments::checkPlugin(SourceRange request) {
  for (const Argument &argument : framework.arguments) {
    const bool has = argument.plugin.empty() || argument.plugin == plugin->brief;
    if (!has && given(argument.name)) {
      diags.emit<Diag::ArgumentOfOtherPlugin>(place(argument.name), argument.name, plugin->name);
    }
    if (has && argument.required && !given(argument.name) && !broken) {
      diags.emit<Diag::MissingKey>(request, "`" + plugin->name + "`", argument.name);
      broken = true;
    }
  }
}

namespace {

class ArgumentReader {
public:
  explicit ArgumentReader(Arguments &a) : arguments(a), framework(a.framework), diags(a.diags) {}

  void file(const ConfigNode &root, unsigned depth) {
    if (root.kind != Kind::Mapping) {
      diags.emit<Diag::NotAMapping>(root.range, "a plugin's arguments", describe(root));
      arguments.broken = true;
      return;
    }
    for (const auto &[name, node] : root.entries) {
      if (depth == 0 && name.value == "plugin_config") {
        file(node, 1);
      } else if (name.value == "plugin") {
        plugin(node);
      } else if (const Argument *argument = known(name.value, name.range, false)) {
        if (arguments.given(argument->name)) { // beside `plugin_config` and in it
          diags.emit<Diag::DuplicateKey>(name.range, name.value).label(arguments.place(argument->name), "here too");
          arguments.broken = true;
        }
        take(*argument, node);
      }
    }
  }

  void flags(llvm::ArrayRef<Located<std::string>> words) {
    for (size_t i = 0; i < words.size(); ++i) {
      llvm::StringRef word = words[i].value;
      if (!word.consume_front("--")) {
        diags.emit<Diag::UnknownArgument>(words[i].range, words[i].value, "the example scripts or the plugins");
        arguments.broken = true;
        continue;
      }
      const auto [name, text] = word.split('=');
      const bool joined = word.contains('=');
      const bool hasValue = joined || (i + 1 < words.size() && !llvm::StringRef(words[i + 1].value).starts_with("--"));
      const Argument *argument = known(name, words[i].range, true);
      if (!argument) {
        i += !joined && hasValue;
        continue;
      }
      if (!hasValue && argument->kind != ArgumentKind::Boolean) {
        diags.emit<Diag::FlagWithoutValue>(words[i].range, words[i].value);
        arguments.broken = true;
        continue;
      }
      Value value{"true", false, words[i].range};
      if (joined) {
        const size_t at = 2 + name.size() + 1;
        const bool literal = words[i].range.end - words[i].range.begin == words[i].value.size();
        value = {text.str(), text == "None", literal ? words[i].range.slice(at, words[i].value.size()) : words[i].range};
      } else if (hasValue) {
        ++i;
        value = {words[i].value, words[i].value == "None", words[i].range};
      }
      scriptSequences = name == "sp" ? value.range : scriptSequences;
      arguments.set(*argument, std::move(value));
    }
    enableAsScripts();
  }

private:
  // The scripts have no flag that turns sequence parallelism on: more than one rank does.
  void enableAsScripts() {
    if (!scriptSequences.valid() || arguments.integer("sp_size") <= 1 || arguments.given("enable_sequence_parallelism")) {
      return;
    }
    arguments.set(*framework.find("enable_sequence_parallelism"), {"true", false, scriptSequences});
    if (!arguments.given("sequence_parallelism_mode")) {
      arguments.set(*framework.find("sequence_parallelism_mode"), {"all_to_all", false, scriptSequences});
    }
    arguments.enabledByScript = true;
  }

  void plugin(const ConfigNode &node) {
    if (node.kind != Kind::Scalar) {
      diags.emit<Diag::WrongKind>(node.range, "plugin", "the name of a plugin", describe(node));
      arguments.broken = true;
      return;
    }
    arguments.pluginName = {node.scalar, node.range};
  }

  const Argument *known(llvm::StringRef name, SourceRange range, bool flag) {
    for (const Argument &argument : framework.arguments) {
      if (argument.name == name || (flag && argument.flag == name)) {
        return &argument;
      }
    }
    std::vector<llvm::StringRef> names;
    for (const Argument &argument : framework.arguments) {
      names.push_back(argument.name);
      if (flag && !argument.flag.empty()) {
        names.push_back(argument.flag);
      }
    }
    DiagnosticBuilder builder = diags.emit<Diag::UnknownKey>(range, name, "a plugin's arguments");
    if (llvm::StringRef near = nearest(name, names); !near.empty()) {
      builder.help(llvm::formatv("did you mean `{0}`?", near).str());
    }
    return nullptr;
  }

  void take(const Argument &argument, const ConfigNode &node) {
    const bool structured = node.kind == Kind::Sequence || node.kind == Kind::Mapping;
    if (structured && argument.kind != ArgumentKind::Any) {
      diags.emit<Diag::WrongKind>(node.range, argument.name, "one value", describe(node));
      arguments.broken = true;
      return;
    }
    const bool none = node.kind == Kind::Null || (node.kind == Kind::Scalar && !node.quoted && node.scalar == "None");
    const bool text = argument.kind == ArgumentKind::Choice || argument.kind == ArgumentKind::Any;
    if (node.quoted && !text) {
      diags.emit<Diag::WrongKind>(node.range, argument.name, "a value without quotes", describe(node));
      arguments.broken = true;
      return;
    }
    arguments.set(argument, {structured ? "..." : node.scalar, none, node.range});
  }

  Arguments &arguments;
  const Framework &framework;
  DiagnosticEngine &diags;
  SourceRange scriptSequences; // the value of `--sp`
};

} // namespace

void readArguments(const ConfigNode *file, llvm::ArrayRef<Located<std::string>> flags, SourceRange request, Arguments &arguments) {
  ArgumentReader reader(arguments);
  arguments.whole = file ? file->range : request;
  if (file) {
    reader.file(*file, 0);
  }
  reader.flags(flags);
  if (arguments.choosePlugin(arguments.whole)) {
    arguments.checkPlugin(arguments.whole);
  } else {
    arguments.broken = true;
  }
}

} // namespace shardc::colossalai
