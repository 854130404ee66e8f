// DeepSpeedData: reads the shipped table of DeepSpeed's keys and of AutoTP's presets.
//
// The table is data so that a new key is a line of YAML. What the keys mean for a job is in the other files.

#include "DeepSpeed.h"

namespace shardc::deepspeed {

const Key *Framework::find(llvm::StringRef name) const {
  for (const Key &key : keys) {
    if (key.name == name) {
      return &key;
    }
  }
  return nullptr;
}

const std::vector<LayerSpec> *Framework::preset(llvm::StringRef name) const {
  for (const auto &[known, specs] : presets) {
    if (known == name) {
      return &specs;
    }
  }
  return nullptr;
}

static KeyKind kindOf(llvm::StringRef text) {
  static constexpr std::pair<llvm::StringRef, KeyKind> Kinds[] = {
      {"int", KeyKind::Integer},   {"float", KeyKind::Number}, {"bool", KeyKind::Boolean},
      {"choice", KeyKind::Choice}, {"list", KeyKind::List},    {"any", KeyKind::Any},
  };
  for (const auto &[name, kind] : Kinds) {
    if (name == text) {
      return kind;
    }
  }
  return KeyKind::String;
}

static std::vector<std::string> texts(const ConfigNode *node) {
  std::vector<std::string> result;
  for (const ConfigNode &item : node ? llvm::ArrayRef(node->items) : llvm::ArrayRef<ConfigNode>()) {
    result.push_back(item.scalar);
  }
  return result;
}

static std::vector<std::pair<std::string, std::string>> pairs(const ConfigNode *node) {
  std::vector<std::pair<std::string, std::string>> result;
  if (node) {
    for (const auto &[name, value] : node->entries) {
      result.emplace_back(name.value, value.scalar);
    }
  }
  return result;
}

static Key readKey(std::string name, const ConfigNode &node, DiagnosticEngine &diags) {
  Key key;
  key.name = std::move(name);
  DictReader reader(node, key.name, diags);
  key.kind = kindOf(reader.string("type").value_or(Located<std::string>()).value);
  for (auto [field, flag] : {std::pair{"optional", &key.optional}, std::pair{"layout", &key.layout}, std::pair{"auto", &key.mayBeAuto}}) {
    std::optional<Located<bool>> value = reader.boolean(field);
    *flag = value && value->value;
  }
  for (auto [field, limit] : {std::pair{"min", &key.min}, std::pair{"max", &key.max}}) {
    if (std::optional<Located<int64_t>> value = reader.integer(field)) {
      *limit = value->value;
    }
  }
  for (auto [field, stage] : {std::pair{"stage", &key.stage}, std::pair{"until_stage", &key.lastStage}}) {
    if (std::optional<Located<int64_t>> value = reader.integer(field, 0, 3)) {
      *stage = value->value;
    }
  }
  if (std::optional<Located<std::string>> value = reader.string("default")) {
    key.fallback = value->value;
  }
  key.choices = texts(reader.sequence("choices"));
  reader.finish();
  return key;
}

static LayerSpec readSpec(const ConfigNode &node, DiagnosticEngine &diags) {
  LayerSpec spec;
  DictReader reader(node, "a preset", diags);
  spec.patterns = reader.strings("patterns");
  spec.type = reader.string("type").value_or(Located<std::string>()).value;
  std::optional<Located<bool>> allreduce = reader.boolean("grad_allreduce");
  spec.allreduce = allreduce && allreduce->value;
  spec.range = node.range;
  reader.finish();
  return spec;
}

std::optional<Framework> loadFramework(DiagnosticEngine &diags) {
  const CatalogFile *file = catalogFile("frameworks/deepspeed.yaml");
  if (!file) {
    return std::nullopt;
  }
  const FileId source = diags.sources().add(("shardc:" + file->path).str(), file->text.str());
  const std::optional<ConfigNode> root = parseConfig(source, diags, ConfigFormat::Yaml);
  if (!root) {
    return std::nullopt;
  }
  Framework framework;
  framework.open = texts(root->find("open"));
  framework.unchecked = pairs(root->find("unchecked"));
  framework.aliases = pairs(root->find("aliases"));
  framework.linears = pairs(root->find("linears"));
  if (const ConfigNode *node = root->find("keys")) {
    for (const auto &[section, keys] : node->entries) {
      const bool outside = section.value == "top";
      framework.sections.push_back(outside ? "" : section.value);
      for (const auto &[name, key] : keys.entries) {
        framework.keys.push_back(readKey(outside ? name.value : section.value + "." + name.value, key, diags));
      }
    }
  }
  if (const ConfigNode *node = root->find("presets")) {
    for (const auto &[name, specs] : node->entries) {
      framework.presets.emplace_back(name.value, std::vector<LayerSpec>());
      for (const ConfigNode &spec : specs.items) {
        framework.presets.back().second.push_back(readSpec(spec, diags));
      }
    }
  }
  return framework;
}

} // namespace shardc::deepspeed
