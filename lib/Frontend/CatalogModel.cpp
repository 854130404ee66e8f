// CatalogModel: reading a model file's YAML. Every key is known or reported; modules stay text until they are built.
#include "CatalogModel.h"

namespace shardc {

const std::vector<ModelChild> *ModelModule::child(llvm::StringRef wanted) const {
  for (const auto &[childName, ways] : children) {
    if (childName.value == wanted) {
      return &ways;
    }
  }
  return nullptr;
}

const ModelModule *ModelModules::find(llvm::StringRef name) const {
  auto it = byName.find(name.str());
  return it == byName.end() ? nullptr : &it->second;
}

bool isSwitch(const ModelHead &head, llvm::StringRef name) {
  return llvm::any_of(head.switches, [&](const auto &s) { return s.first.value == name; });
}

namespace {

using Kind = ConfigNode::Kind;

class ModelReader {
public:
  explicit ModelReader(DiagnosticEngine &d) : diags(d) {}
  bool good = true;

  void wrong(const ConfigNode &node, llvm::StringRef key, llvm::StringRef wanted) {
    diags.emit<Diag::WrongKind>(node.range, key, wanted, describe(node));
    good = false;
  }

  // A mapping's entries that are scalars.
  std::vector<std::pair<Located<std::string>, Located<std::string>>> scalars(const ConfigNode *node) {
    std::vector<std::pair<Located<std::string>, Located<std::string>>> all;
    for (const auto &[key, value] : entriesOf(node)) {
      if (value.kind == Kind::Scalar) {
        all.emplace_back(key, scalarOf(value));
      } else {
        wrong(value, key.value, "one value");
      }
    }
    return all;
  }

  std::vector<Located<std::string>> list(const ConfigNode &node, llvm::StringRef key) {
    std::vector<Located<std::string>> all;
    if (node.kind != Kind::Sequence) {
      wrong(node, key, "a list");
    }
    for (const ConfigNode &item : node.items) {
      if (item.kind == Kind::Scalar) {
        all.push_back(scalarOf(item));
      } else {
        wrong(item, key, "a list of names");
      }
    }
    return all;
  }

  // `name: [D, F]` or `name: {if: .., dtype: .., dims: [..], as: ..}`; an input of a module may be a name alone.
  ModelTensor tensor(const Located<std::string> &name, const ConfigNode &node, bool buffer) {
    ModelTensor t;
    t.name = name;
    t.buffer = buffer;
    if (node.kind != Kind::Mapping) {
      t.dims = list(node, name.value);
      return t;
    }
    DictReader reader(node, "`" + name.value + "`", diags);
    if (const ConfigNode *when = reader.any("if")) {
      readCondition(*when, t.when, diags);
    }
    if (std::optional<Located<std::string>> dtype = reader.string("dtype")) {
      std::optional<DType> parsed = parseDType(dtype->value);
      if (!parsed) {
        diags.emit<Diag::UnknownName>(dtype->range, dtype->value, "a dtype");
        good = false;
      }
      t.dtype = parsed.value_or(DType::BF16);
    }
    if (const ConfigNode *dims = reader.any("dims")) {
      t.dims = list(*dims, "dims");
    }
    t.as = reader.string("as").value_or(Located<std::string>());
    reader.finish();
    return t;
  }

  ModelChild child(const ConfigNode &node, llvm::StringRef name) {
    ModelChild c;
    if (node.kind == Kind::Scalar) {
      c.of = scalarOf(node);
      return c;
    }
    DictReader reader(node, "`" + name.str() + "`", diags);
    if (const ConfigNode *when = reader.any("if")) {
      readCondition(*when, c.when, diags);
    }
    c.repeat = reader.string("repeat");
    good &= reader.require("of");
    c.of = reader.string("of").value_or(Located<std::string>{"", node.range});
    reader.finish();
    return c;
  }

  ModelLine line(const ConfigNode &node, llvm::StringRef key) {
    ModelLine l;
    if (node.kind == Kind::Scalar) {
      l.text = scalarOf(node);
      return l;
    }
    DictReader reader(node, "`" + key.str() + "`", diags);
    if (const ConfigNode *when = reader.any("if")) {
      readCondition(*when, l.when, diags);
    }
    good &= reader.require(key);
    l.text = reader.string(key).value_or(Located<std::string>{"", node.range});
    if (key == "value") {
      l.loss = reader.string("loss").value_or(Located<std::string>()).value;
    }
    reader.finish();
    return l;
  }

  std::vector<ModelLine> lines(const ConfigNode *node, llvm::StringRef what, llvm::StringRef key) {
    std::vector<ModelLine> all;
    if (node && node->kind != Kind::Sequence) {
      wrong(*node, what, "a list");
    }
    for (const ConfigNode &item : node ? llvm::ArrayRef(node->items) : llvm::ArrayRef<ConfigNode>()) {
      all.push_back(line(item, key));
    }
    return all;
  }

  ModelModule module(const Located<std::string> &name, const ConfigNode &node) {
    ModelModule m;
    m.name = name;
    DictReader reader(node, "`" + name.value + "`", diags);
    m.args = reader.strings("args");
    if (const ConfigNode *inputs = reader.any("inputs")) {
      if (inputs->kind == Kind::Mapping) {
        for (const auto &[key, value] : inputs->entries) {
          m.inputs.push_back(tensor(key, value, false));
        }
      } else {
        for (const Located<std::string> &input : list(*inputs, "inputs")) {
          m.inputs.push_back({input, {}, DType::BF16, false, {}, {}});
        }
      }
    }
    for (llvm::StringRef kind : {"params", "buffers"}) {
      const ConfigNode *tensors = reader.mapping(kind);
      for (const auto &[key, value] : entriesOf(tensors)) {
        m.tensors.push_back(tensor(key, value, kind == "buffers"));
      }
    }
    const ConfigNode *children = reader.mapping("modules");
    for (const auto &[key, value] : entriesOf(children)) {
      m.children.push_back({key, {}});
      if (value.kind != Kind::Sequence) {
        m.children.back().second.push_back(child(value, key.value));
      }
      for (const ConfigNode &item : value.items) {
        m.children.back().second.push_back(child(item, key.value));
      }
    }
    m.body = lines(reader.any("body"), "body", "line");
    m.returns = lines(reader.any("returns"), "returns", "value");
    reader.finish();
    return m;
  }

private:
  DiagnosticEngine &diags;
};

} // namespace

std::optional<ConfigNode> readCatalogNode(llvm::StringRef path, SourceRange from, DiagnosticEngine &diags) {
  const CatalogFile *shipped = catalogFile(path);
  if (!shipped) {
    return readConfig(path, diags, ConfigFormat::Yaml, from);
  }
  return parseConfig(diags.sources().add("shardc:" + path.str(), shipped->text.str()), diags, ConfigFormat::Yaml);
}

llvm::ArrayRef<std::pair<Located<std::string>, ConfigNode>> entriesOf(const ConfigNode *node) {
  return node ? llvm::ArrayRef(node->entries) : llvm::ArrayRef<std::pair<Located<std::string>, ConfigNode>>();
}

std::optional<ModelHead> readModelHead(ConfigNode root, DiagnosticEngine &diags) {
  ModelHead head;
  head.root = std::make_unique<ConfigNode>(std::move(root));
  ModelReader read(diags);
  DictReader reader(*head.root, "a model file", diags);
  read.good &= reader.require("family");
  head.family = reader.string("family").value_or(Located<std::string>());
  head.parts = reader.strings("parts");
  for (auto &[name, value] : read.scalars(reader.mapping("switches"))) {
    head.switches.emplace_back(name, value.value);
  }
  head.sizes = read.scalars(reader.mapping("sizes"));
  for (const auto &[name, node] : entriesOf(reader.mapping("flavours"))) {
    head.flavours.emplace_back(name, &node);
  }
  for (const auto &[name, node] : entriesOf(reader.mapping("reads"))) {
    head.architectures.emplace_back(name, &node);
  }
  head.modules = reader.mapping("modules");
  reader.finish();
  return read.good ? std::optional(std::move(head)) : std::nullopt;
}

std::optional<ModelModules> readModules(const ModelHead &head, DiagnosticEngine &diags) {
  ModelModules all;
  ModelReader read(diags);
  auto add = [&](const ConfigNode &modules) {
    for (const auto &[name, node] : modules.entries) {
      all.byName.insert_or_assign(name.value, read.module(name, node));
    }
  };
  for (const Located<std::string> &part : head.parts) {
    std::string shipped = "models/parts/" + part.value + ".yaml";
    std::optional<ConfigNode> root = readCatalogNode(catalogFile(shipped) ? shipped : part.value, part.range, diags);
    if (!root) {
      return std::nullopt;
    }
    DictReader reader(*root, "a part", diags);
    if (const ConfigNode *modules = reader.mapping("modules")) {
      add(*modules);
    }
    reader.finish();
  }
  if (head.modules) {
    add(*head.modules);
  }
  return read.good ? std::optional(std::move(all)) : std::nullopt;
}

} // namespace shardc
