// Graph: a graph file as a program. Here: world, mesh, sizes, the list of functions, the loss; GraphBody.cpp reads bodies.
//
// Everything is read, whatever was wrong before, so that one run shows all mistakes; only without axes there is nothing
// that a layout could mean. The format is described in docs/graphs.md.
#include "GraphReader.h"
#include "shardc/Frontend/Storage.h"
#include "shardc/Frontend/Sync.h"
#include "llvm/ADT/StringExtras.h"

namespace shardc {

Piece pieceOf(const ConfigNode &node, const SourceManager &sources) {
  size_t length = node.range.valid() ? node.range.end - node.range.begin : 0;
  if (!node.quoted && node.range.valid() && node.scalar.size() != length) {
    return {sources.text(node.range), node.range};
  }
  return {node.scalar, node.range};
}

bool isGraph(const ConfigNode &root) {
  // A job file has `model`; whatever else is a mapping with one of these wants to be a graph.
  return root.kind == ConfigNode::Kind::Mapping && !root.find("model") && (root.find("graph") || root.find("ops") || root.find("mesh"));
}

std::optional<Module> readGraph(const ConfigNode &root, DiagnosticEngine &diags) { return GraphReader(root, diags).read(); }

std::optional<Module> GraphReader::read() {
  size_t errors = diags.errorCount();
  DictReader reader(root, "the graph file", diags);
  if (std::optional<Located<std::string>> title = reader.string("graph")) {
    module.name = title->value;
  }
  bool axes = readAxes(reader);
  readSizes(reader.mapping("sizes"));
  const ConfigNode *sync = reader.any("sync"), *storage = reader.mapping("storage");
  const ConfigNode *loss = reader.mapping("loss");
  if (axes) {
    readFunctions(reader);
    Function main;
    main.name = module.names.intern("main");
    main.range = root.range;
    module.root = FunctionId(module.functions.size());
    module.functions.push_back(std::move(main));
    GraphFunction function(*this, reader, module.root, true);
    function.read();
    for (const auto &[name, node] : entriesOf(root.find("functions"))) {
      if (!functions[name.value].called) {
        diags.emit<Diag::UncalledFunction>(name.range, name.value);
      }
    }
    readLoss(loss, function.scope());
    if (sync) {
      addSync(*sync, module, diags);
    }
    if (storage) {
      addStorage(*storage, module, diags);
    }
  } else { // known all the same
    for (llvm::StringRef key : {"functions", "params", "buffers", "inputs", "constants", "ops", "types", "outputs", "boundaries"}) {
      reader.any(key);
    }
  }
  reader.finish();
  return axes && diags.errorCount() == errors ? std::optional(std::move(module)) : std::nullopt;
}

bool GraphReader::checkName(const Located<std::string> &name, llvm::StringRef what) {
  if (isIdentifier(name.value)) {
    return true;
  }
  diags.emit<Diag::BadExpression>(name.range, "`" + name.value + "` cannot be the name of " + what.str());
  return false;
}

std::optional<AxisSpec> GraphReader::readAxis(const Located<std::string> &name, const ConfigNode &node) {
  AxisSpec axis;
  axis.name = name.value;
  axis.range = name.range;
  if (node.kind != ConfigNode::Kind::Mapping) {
    std::optional<int64_t> size = node.kind == ConfigNode::Kind::Scalar && !node.quoted ? parseInteger(node.scalar) : std::nullopt;
    if (!size || *size < 1) {
      diags.emit<Diag::OutOfRange>(node.range, name.value, "a number of ranks, at least 1", describe(node));
      return std::nullopt;
    }
    axis.size = *size;
    return axis;
  }
  DictReader reader(node, "axis `" + name.value + "`", diags);
  bool good = reader.require("size");
  std::optional<Located<int64_t>> size = reader.integer("size", 1), stride = reader.integer("stride", 1);
  reader.finish();
  if (!good || !size) {
    return std::nullopt;
  }
  axis.size = size->value;
  axis.stride = stride ? std::optional(stride->value) : std::nullopt;
  return axis;
}

bool GraphReader::readView(llvm::StringRef name, SourceRange range, const ConfigNode &node, std::vector<ViewSpec> &views) {
  ViewSpec view;
  view.name = name.str();
  view.range = range;
  bool good = true;
  for (const auto &[key, value] : node.entries) {
    std::optional<AxisSpec> axis = readAxis(key, value);
    good &= axis && checkName(key, "an axis");
    view.axes.push_back(axis.value_or(AxisSpec()));
  }
  views.push_back(std::move(view));
  return good;
}

bool GraphReader::readAxes(DictReader &reader) {
  const ConfigNode *mesh = reader.mapping("mesh");
  std::vector<ViewSpec> views;
  std::vector<FlatSpec> flats;
  bool good = true;
  auto isView = [](const auto &e) { return e.second.kind == ConfigNode::Kind::Mapping && !e.second.find("size"); };
  if (mesh && llvm::none_of(mesh->entries, isView)) { // one view does not need a name
    good &= readView("mesh", mesh->range, *mesh, views);
  } else if (mesh) {
    for (const auto &[name, node] : mesh->entries) {
      if (node.kind == ConfigNode::Kind::Mapping) {
        good &= readView(name.value, name.range, node, views);
      } else {
        diags.emit<Diag::WrongKind>(node.range, name.value, "a mapping of axes to sizes", describe(node));
        good = false;
      }
    }
  }
  if (const ConfigNode *flat = reader.mapping("flat")) {
    DictReader names(*flat, "`flat`", diags);
    for (const auto &[name, node] : flat->entries) {
      FlatSpec spec{name.value, {}, name.range};
      for (Located<std::string> &axis : names.strings(name.value)) {
        spec.axes.push_back(std::move(axis.value));
      }
      good &= checkName(name, "an axis");
      flats.push_back(std::move(spec));
    }
  }
  Located<int64_t> world{1, root.range};
  if (mesh || root.find("world")) {
    good &= reader.require("world");
    std::optional<Located<int64_t>> written = reader.integer("world", 1);
    good &= written.has_value();
    world = written.value_or(world);
  }
  if (!good) {
    return false;
  }
  std::optional<Axes> axes = Axes::build(world, views, flats, diags);
  if (!axes) {
    return false;
  }
  module.axes = std::move(*axes);
  module.view = views.empty() ? "" : views.front().name;
  return true;
}

void GraphReader::readSizes(const ConfigNode *node) {
  for (const auto &[name, value] : entriesOf(node)) {
    if (checkName(name, "a size")) {
      readSize(name, value);
    }
  }
  checkProducts();
}

// A number; `(b l)`, a product; `any` or `any % 8`, a number that is not known but for what divides it.
void GraphReader::readSize(const Located<std::string> &name, const ConfigNode &node) {
  NameId id = module.names.intern(name.value);
  SizeEntry &entry = sizes[id];
  llvm::StringRef text = llvm::StringRef(node.scalar).trim();
  std::optional<int64_t> number = parseInteger(text);
  llvm::StringRef divisor = text;
  if (node.kind == ConfigNode::Kind::Scalar && number && *number >= 0) {
    entry.extent = *number;
  } else if (node.kind == ConfigNode::Kind::Scalar && divisor.consume_front("any")) {
    divisor = divisor.trim();
    bool any = divisor.empty();
    int64_t by = any ? 1 : divisor.consume_front("%") ? parseInteger(divisor.trim()).value_or(0) : 0;
    if (by < 1) {
      diags.emit<Diag::OutOfRange>(node.range, name.value, "a size (4096, `(b l)`, `any` or `any % 8`)", describe(node));
    }
    entry.divisor = std::max<int64_t>(by, 1);
  } else if (node.kind == ConfigNode::Kind::Scalar && text.consume_front("(") && text.consume_back(")") && !text.trim().empty()) {
    llvm::SmallVector<llvm::StringRef, 4> factors;
    llvm::SplitString(text, factors);
    for (llvm::StringRef factor : factors) {
      entry.product.push_back(module.names.intern(factor));
      productNames.push_back({entry.product.back(), {name.value, node.range}});
    }
    module.products.emplace_back(id, entry.product);
    return;
  } else {
    diags.emit<Diag::OutOfRange>(node.range, name.value, "a size (4096, `(b l)`, `any` or `any % 8`)", describe(node));
  }
  module.sizes.emplace_back(id, entry.extent);
}

void GraphReader::checkProducts() {
  for (const auto &[factor, product] : productNames) {
    auto it = sizes.find(factor);
    if (it == sizes.end()) {
      diags.emit<Diag::UnknownName>(product.range, module.names.str(factor), "a size");
    } else if (!it->second.product.empty()) {
      diags.emit<Diag::OutOfRange>(product.range, product.value, "a product of sizes that are numbers",
                                   "one of `" + module.names.str(factor).str() + "`, a product itself");
      it->second.product.clear(); // no cycle reaches those who follow names
    }
  }
}

void GraphReader::readFunctions(DictReader &reader) {
  const ConfigNode *list = reader.mapping("functions");
  for (const auto &[name, node] : entriesOf(list)) {
    checkName(name, "a function");
    functions[name.value].range = name.range;
  }
  if (const ConfigNode *boundaries = root.find("boundaries")) {
    for (const auto &[name, node] : boundaries->entries) {
      if (functions.count(name.value)) {
        functionBoundaries[name.value] = &node;
      }
    }
  }
  for (const auto &[name, node] : entriesOf(list)) {
    Function f;
    f.name = module.names.intern(name.value);
    f.range = name.range;
    FunctionId id(module.functions.size());
    module.functions.push_back(std::move(f));
    DictReader keys(node, "function `" + name.value + "`", diags);
    GraphFunction(*this, keys, id, false).read();
    keys.finish();
    functions[name.value].id = id;
  }
}

// What a called name means: a function above. The first call of one function has its name as its path, the others a number.
std::vector<Callee> GraphReader::callee(llvm::StringRef name, SourceRange range, llvm::StringMap<uint32_t> &uses) {
  auto it = functions.find(name);
  if (it == functions.end()) {
    return {};
  }
  if (!it->second.id.valid()) {
    if (findOp(name)) {
      return {};
    }
    diags.emit<Diag::UnknownName>(range, name, "a function that stands above")
        .label(it->second.range, "a function calls only those above it");
    return {Callee()};
  }
  it->second.called = true;
  uint32_t use = uses[name]++;
  return {{it->second.id, module.names.intern(use == 0 ? name.str() : name.str() + "_" + llvm::utostr(use))}};
}

void GraphReader::readLoss(const ConfigNode *node, const BodyBuilder &builder) {
  struct Row {
    llvm::StringRef name;
    LossKind kind;
  };
  static constexpr Row rows[] = {{"local-mean", LossKind::LocalMean},
                                 {"sum", LossKind::Sum},
                                 {"global-mean", LossKind::GlobalMean},
                                 {"invariant", LossKind::Invariant}};
  if (!node) {
    return;
  }
  DictReader reader(*node, "`loss`", diags);
  bool good = reader.require("value") & reader.require("kind");
  std::optional<Located<std::string>> value = reader.string("value"), kind = reader.string("kind");
  reader.finish();
  if (!good || !value || !kind) {
    return;
  }
  std::optional<ValueId> id = builder.lookup(value->value);
  if (!id) {
    diags.emit<Diag::UnknownName>(value->range, value->value, "a value of the graph");
  }
  const Row *row = llvm::find_if(rows, [&](const Row &r) { return r.name == kind->value; });
  if (row == std::end(rows)) {
    diags.emit<Diag::OutOfRange>(kind->range, "kind", "local-mean, sum, global-mean or invariant", "`" + kind->value + "`");
  } else if (id) {
    module.loss = Loss{*id, row->kind, node->range};
  }
}

} // namespace shardc
