// TorchtitanData: reads the shipped table of torchtitan's keys and base jobs.
//
// The table is data so that a new key or version is a line of YAML. What the keys mean for a job is in the other files.

#include "Torchtitan.h"

namespace shardc::torchtitan {

const Key *Framework::find(llvm::StringRef name) const {
  for (const Key &key : keys) {
    if (key.name == name) {
      return &key;
    }
  }
  return nullptr;
}

const BaseJob *Framework::job(llvm::StringRef name) const {
  for (const BaseJob &job : jobs) {
    if (job.name == name) {
      return &job;
    }
  }
  return nullptr;
}

bool Framework::isOpen(llvm::StringRef section) const { return llvm::is_contained(open, section); }

static KeyKind kindOf(llvm::StringRef text) {
  static constexpr std::pair<llvm::StringRef, KeyKind> Kinds[] = {
      {"int", KeyKind::Integer},   {"float", KeyKind::Number}, {"bool", KeyKind::Boolean},
      {"choice", KeyKind::Choice}, {"list", KeyKind::List},    {"nested", KeyKind::Nested},
  };
  for (const auto &[name, kind] : Kinds) {
    if (name == text) {
      return kind;
    }
  }
  return KeyKind::String;
}

static std::string scalar(DictReader &reader, llvm::StringRef key) {
  std::optional<Located<std::string>> value = reader.string(key);
  return value ? value->value : "";
}

static std::vector<std::string> texts(const ConfigNode &node) {
  std::vector<std::string> result;
  for (const ConfigNode &item : node.items) {
    result.push_back(item.scalar);
  }
  return result;
}

static Key readKey(llvm::StringRef name, const ConfigNode &node, DiagnosticEngine &diags) {
  Key key;
  key.name = name.str();
  DictReader reader(node, key.name, diags);
  key.kind = kindOf(scalar(reader, "type"));
  for (auto [field, flag] : {std::pair{"optional", &key.optional}, std::pair{"layout", &key.layout}}) {
    std::optional<Located<bool>> value = reader.boolean(field);
    *flag = value && value->value;
  }
  key.since = scalar(reader, "since");
  key.until = scalar(reader, "until");
  key.instead = scalar(reader, "instead");
  key.before = scalar(reader, "before");
  key.why = scalar(reader, "why");
  key.of = scalar(reader, "of");
  if (const ConfigNode *value = reader.any("default")) {
    if (value->kind == ConfigNode::Kind::Mapping) {
      for (const auto &[since, text] : value->entries) {
        key.defaults.push_back({since.value, text.scalar});
      }
    } else {
      key.defaults.push_back({"", value->scalar});
    }
  }
  if (const ConfigNode *value = reader.any("choices")) {
    if (value->kind == ConfigNode::Kind::Mapping) {
      for (const auto &[since, list] : value->entries) {
        key.choices.push_back({since.value, texts(list)});
      }
    } else {
      key.choices.push_back({"", texts(*value)});
    }
  }
  reader.finish();
  return key;
}

static BaseJob readJob(llvm::StringRef name, const ConfigNode &node, DiagnosticEngine &diags) {
  BaseJob job;
  job.name = name.str();
  DictReader reader(node, job.name, diags);
  job.module = scalar(reader, "module");
  job.model = scalar(reader, "model");
  job.checkpoint = scalar(reader, "checkpoint");
  job.dispatcher = scalar(reader, "dispatcher");
  job.attention = scalar(reader, "attention");
  for (auto [field, number] : {std::pair{"rows", &job.rows}, std::pair{"length", &job.length}, std::pair{"chunks", &job.chunks},
                               std::pair{"prediction_layers", &job.predictionLayers}}) {
    if (std::optional<Located<int64_t>> value = reader.integer(field, 0)) {
      *number = value->value;
    }
  }
  if (const ConfigNode *set = reader.mapping("set")) {
    for (const auto &[key, value] : set->entries) {
      job.set.emplace_back(key.value, value.scalar);
    }
  }
  if (const ConfigNode *unchecked = reader.mapping("unchecked")) {
    for (const auto &[what, why] : unchecked->entries) {
      job.unchecked.push_back({what.value, why.scalar});
    }
  }
  reader.finish();
  return job;
}

std::optional<Framework> loadFramework(DiagnosticEngine &diags) {
  const CatalogFile *file = catalogFile("frameworks/torchtitan.yaml");
  if (!file) {
    return std::nullopt;
  }
  const FileId source = diags.sources().add(("shardc:" + file->path).str(), file->text.str());
  const std::optional<ConfigNode> root = parseConfig(source, diags, ConfigFormat::Yaml);
  if (!root) {
    return std::nullopt;
  }
  Framework framework;
  if (const ConfigNode *node = root->find("families")) {
    framework.families = texts(*node);
  }
  if (const ConfigNode *node = root->find("open")) {
    framework.open = texts(*node);
  }
  if (const ConfigNode *node = root->find("keys")) {
    for (const auto &[section, keys] : node->entries) {
      framework.sections.push_back(section.value);
      for (const auto &[name, key] : keys.entries) {
        framework.keys.push_back(readKey(section.value + "." + name.value, key, diags));
      }
    }
  }
  if (const ConfigNode *node = root->find("jobs")) {
    for (const auto &[name, job] : node->entries) {
      framework.jobs.push_back(readJob(name.value, job, diags));
    }
  }
  return framework;
}

} // namespace shardc::torchtitan
