// TorchtitanFile: the resolved config that torchtitan writes (`--debug.save_config_file`), a JSON object of sections.
//
// The file keeps no class names: which activation checkpointing policy is meant follows from the keys it has. The model
// is taken from `model_spec`. The TOML files of v0.1 to v0.2.2 are another style and are not read here.

#include "Torchtitan.h"

namespace shardc::torchtitan {

bool recognises(const ConfigNode &root) {
  for (llvm::StringRef section : {"parallelism", "training"}) {
    const ConfigNode *node = root.find(section);
    if (!node || node->kind != ConfigNode::Kind::Mapping) {
      return false;
    }
  }
  return true;
}

static bool listOf(const ConfigNode &node, std::vector<std::string> &items) {
  for (const ConfigNode &item : node.items) {
    if (item.kind != ConfigNode::Kind::Scalar) {
      return false;
    }
    items.push_back(item.scalar);
  }
  return node.kind == ConfigNode::Kind::Sequence;
}

// The value of a node if its shape is that of the key's kind.
static std::optional<Setting> valueOf(const Key &key, const ConfigNode &node) {
  Setting value{"", {}, false, node.range, Origin::File};
  if (node.kind == ConfigNode::Kind::Null) {
    value.none = true;
    return value;
  }
  const bool text = key.kind == KeyKind::String || key.kind == KeyKind::Choice;
  if (key.kind == KeyKind::List) {
    value.parts.emplace_back();
    return listOf(node, value.parts.back()) ? std::optional(value) : std::nullopt;
  }
  if (key.kind == KeyKind::Nested) {
    for (const ConfigNode &item : node.items) {
      value.parts.emplace_back();
      if (!listOf(item, value.parts.back())) {
        return std::nullopt;
      }
    }
    return node.kind == ConfigNode::Kind::Sequence ? std::optional(value) : std::nullopt;
  }
  if (node.kind != ConfigNode::Kind::Scalar || (node.quoted && !text)) {
    return std::nullopt;
  }
  value.text = node.scalar;
  return value;
}

static void readKeys(llvm::StringRef section, const ConfigNode &node, bool open, Settings &settings) {
  for (const auto &[name, value] : node.entries) {
    const std::string full = section.str() + "." + name.value;
    const Key *key = settings.framework.find(full);
    if (open && !key) {
      continue;
    }
    key = settings.know(full, name.range);
    if (!key) {
      continue;
    }
    if (std::optional<Setting> setting = valueOf(*key, value)) {
      settings.set(full, std::move(*setting));
    } else {
      llvm::StringRef wanted = key->kind == KeyKind::Nested ? "a list of lists of texts"
                               : key->kind == KeyKind::List ? "a list of texts"
                                                            : "a value of its own kind";
      settings.diags.emit<Diag::WrongKind>(value.range, full, wanted, describe(value));
    }
  }
}

static void readCheckpoint(const Located<std::string> &name, const ConfigNode &node, Settings &settings) {
  llvm::StringRef policy = "full";
  if (node.kind == ConfigNode::Kind::Null) {
    policy = "none";
  } else if (node.find("force_recompute_mm_shapes_by_fqns")) {
    policy = "selective";
  } else if (node.find("memory_budget")) {
    policy = "memory-budget";
  }
  settings.setCheckpoint(policy, name.range);
}

static void readModel(const ConfigNode &node, Settings &settings) {
  const ConfigNode *name = node.find("name");
  const ConfigNode *flavor = node.find("flavor");
  if (name && flavor && name->kind == ConfigNode::Kind::Scalar && flavor->kind == ConfigNode::Kind::Scalar) {
    settings.model = Located<std::string>{name->scalar + "/" + flavor->scalar, flavor->range};
  }
}

void readFile(const ConfigNode &root, Settings &settings) {
  if (root.kind != ConfigNode::Kind::Mapping) {
    settings.diags.emit<Diag::NotAMapping>(root.range, "torchtitan's config", describe(root));
    return;
  }
  for (const auto &[name, node] : root.entries) {
    const bool open = settings.framework.isOpen(name.value);
    const bool keyed = llvm::is_contained(settings.framework.sections, name.value);
    const bool mayBeNull = open || name.value == "activation_checkpoint";
    if (!open && !keyed) {
      settings.know(name.value, name.range);
      continue;
    }
    if (keyed && node.kind != ConfigNode::Kind::Mapping && !(mayBeNull && node.kind == ConfigNode::Kind::Null)) {
      settings.diags.emit<Diag::NotAMapping>(node.range, "`" + name.value + "`", describe(node));
      continue;
    }
    if (name.value == "activation_checkpoint") {
      readCheckpoint(name, node, settings);
    } else if (name.value == "model_spec" || name.value == "model") {
      readModel(node, settings);
    }
    if (keyed) {
      readKeys(name.value, node, open, settings);
    }
  }
}

} // namespace shardc::torchtitan
