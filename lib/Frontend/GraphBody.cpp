// GraphBody: one function of a graph file, or its root: parameters, inputs, operations, boundaries, types to verify, results.
//
// Boundaries are applied where a value is defined, so that whatever reads its name afterwards sees the changed layout.
#include "GraphReader.h"

namespace shardc {

GraphFunction::GraphFunction(GraphReader &g, DictReader &r, FunctionId f, bool rootFunction)
    : graph(g), reader(r), function(f), isRoot(rootFunction),
      builder(g.module, f, g.sizes, g.diags, [this](llvm::StringRef name, SourceRange range) { return graph.callee(name, range, uses); }) {}

void GraphFunction::read() {
  readBoundaries(reader.any("boundaries"));
  moduleBoundaries();
  readValues("params", ValueKind::Param, true);
  readValues("buffers", ValueKind::Param, false);
  if (isRoot) {
    readValues("inputs", ValueKind::Input, true);
    readValues("constants", ValueKind::Input, false);
  } else {
    readInputNames();
  }
  applyBoundaries(0);
  readOps();
  readTypes();
  readOutputs();
  for (const std::string &name : boundaryOrder) {
    const Boundary &boundary = boundaries[name];
    if (!boundary.used) {
      graph.diags.emit<Diag::UnknownName>(boundary.range, name, isRoot ? "a value or a function of the graph" : "a value of the function");
    }
  }
}

std::optional<TypeId> GraphFunction::readType(const ConfigNode &node, bool gradient) {
  if (node.kind != ConfigNode::Kind::Scalar) {
    graph.diags.emit<Diag::BadType>(node.range, describe(node) + (node.kind == ConfigNode::Kind::Sequence
                                                                      ? " stands here; a type without a dtype is written in quotes"
                                                                      : " stands here; write for example bf16[T@dp, D]"));
    return std::nullopt;
  }
  Piece text = pieceOf(node, graph.diags.sources());
  ParseEnv env{graph.module, graph.sizes, graph.diags};
  std::optional<Type> type = parseType(text.text, text.range, env);
  if (!type) {
    return std::nullopt;
  }
  type->grad &= gradient;
  return graph.module.types.intern(*type);
}

void GraphFunction::readValues(llvm::StringRef key, ValueKind kind, bool gradient) {
  const ConfigNode *node = reader.mapping(key);
  for (const auto &[name, written] : entriesOf(node)) {
    if (!graph.checkName(name, "a value")) {
      continue;
    }
    std::optional<TypeId> type = readType(written, gradient);
    ValueId id = addValue(body(), graph.module.names.intern(name.value), kind, type.value_or(TypeId()), name.range);
    body().values[id.index].declaredRange = written.range;
    builder.define(name.value, id, name.range);
  }
}

// The inputs of a function that is called: names; their types come with the call, and are verified where one is written.
void GraphFunction::readInputNames() {
  const ConfigNode *node = reader.any("inputs");
  if (!node) {
    return;
  }
  if (node->kind == ConfigNode::Kind::Mapping) {
    for (const auto &[name, written] : node->entries) {
      if (!graph.checkName(name, "a value")) {
        continue;
      }
      std::optional<TypeId> type = written.kind == ConfigNode::Kind::Null ? TypeId() : readType(written, true);
      ValueId id = addValue(body(), graph.module.names.intern(name.value), ValueKind::Input, type.value_or(TypeId()), name.range);
      body().values[id.index].declaredRange = written.range;
      builder.define(name.value, id, name.range);
    }
    return;
  }
  for (const Located<std::string> &name : reader.strings("inputs")) {
    if (graph.checkName(name, "a value")) {
      builder.define(name.value, addValue(body(), graph.module.names.intern(name.value), ValueKind::Input, TypeId(), name.range),
                     name.range);
    }
  }
}

void GraphFunction::addBoundary(const Located<std::string> &value, const ConfigNode &node) {
  auto [it, isNew] = boundaries.try_emplace(value.value, Boundary{&node, value.range, false});
  if (isNew) {
    boundaryOrder.push_back(value.value);
  } else {
    graph.diags.emit<Diag::DuplicateKey>(value.range, value.value).label(it->second.range, "given here");
  }
}

void GraphFunction::readBoundaries(const ConfigNode *node) {
  if (!node || node->kind == ConfigNode::Kind::Null) {
    return;
  }
  if (node->kind != ConfigNode::Kind::Mapping) {
    graph.diags.emit<Diag::WrongKind>(node->range, "boundaries", "a mapping of values or functions to changes", describe(*node));
    return;
  }
  for (const auto &[name, change] : node->entries) {
    if (!isRoot || !graph.functionBoundaries.count(name.value)) {
      addBoundary(name, change);
    }
  }
}

// What the root's `boundaries` say of this function: `in`, by the names of its inputs, and `out`, one for each result.
void GraphFunction::moduleBoundaries() {
  auto it = graph.functionBoundaries.find(graph.module.names.str(body().name));
  if (isRoot || it == graph.functionBoundaries.end()) {
    return;
  }
  DictReader keys(*it->second, "the boundary of `" + it->getKey().str() + "`", graph.diags);
  if (const ConfigNode *in = keys.mapping("in")) {
    for (const auto &[name, change] : in->entries) {
      addBoundary(name, change);
    }
  }
  const ConfigNode *out = keys.any("out");
  if (out && out->kind == ConfigNode::Kind::Sequence) {
    for (const ConfigNode &item : out->items) {
      outBoundaries.push_back(&item);
    }
  } else if (out) {
    outBoundaries.push_back(out);
  }
  keys.finish();
}

void GraphFunction::applyBoundary(ValueId value, const ConfigNode &node) {
  if (node.kind != ConfigNode::Kind::Scalar) {
    graph.diags.emit<Diag::BadChange>(node.range, describe(node) + " stands here; write for example `P@tp -> R@tp`");
    return;
  }
  Piece text = pieceOf(node, graph.diags.sources());
  builder.boundary(value, text.text, text.range);
}

// Of the values from `firstValue` on that have just been defined.
void GraphFunction::applyBoundaries(size_t firstValue) {
  size_t end = body().values.size();
  for (size_t i = firstValue; i < end && !boundaries.empty(); ++i) {
    llvm::StringRef name = graph.module.names.str(body().values[i].name);
    auto it = boundaries.find(name);
    std::optional<ValueId> value = builder.lookup(name);
    if (it != boundaries.end() && !it->second.used && value == ValueId(i)) {
      it->second.used = true;
      applyBoundary(*value, *it->second.node);
    }
  }
}

void GraphFunction::readOps() {
  const ConfigNode *ops = reader.sequence("ops");
  for (const ConfigNode &item : itemsOf(ops)) {
    size_t firstValue = body().values.size();
    readOp(item);
    applyBoundaries(firstValue);
  }
}

// A line, or `value: change`: a boundary at this place.
void GraphFunction::readOp(const ConfigNode &node) {
  if (node.kind == ConfigNode::Kind::Scalar) {
    Piece text = pieceOf(node, graph.diags.sources());
    builder.line(text.text, text.range);
    return;
  }
  if (node.kind == ConfigNode::Kind::Mapping) {
    for (const auto &[name, change] : node.entries) {
      if (std::optional<ValueId> value = known(name)) {
        applyBoundary(*value, change);
      }
    }
    return;
  }
  graph.diags.emit<Diag::BadExpression>(node.range, describe(node) + " stands here; write `result = operation(operands)`");
}

std::optional<ValueId> GraphFunction::known(const Located<std::string> &name) {
  std::optional<ValueId> value = builder.lookup(name.value);
  if (!value) {
    std::vector<llvm::StringRef> names;
    for (const Value &v : body().values) {
      names.push_back(graph.module.names.str(v.name));
    }
    auto d = graph.diags.emit<Diag::UnknownName>(name.range, name.value, "a value here");
    llvm::StringRef near = nearest(name.value, names);
    if (!near.empty()) {
      d.help("did you mean `" + near.str() + "`?");
    }
  }
  return value;
}

// Types of results, to be verified.
void GraphFunction::readTypes() {
  const ConfigNode *node = reader.mapping("types");
  for (const auto &[name, written] : entriesOf(node)) {
    std::optional<ValueId> id = known(name);
    std::optional<TypeId> type = readType(written, true);
    if (!id || !type) {
      continue;
    }
    Value &value = body().values[id->index];
    if (value.declared.valid()) {
      graph.diags.emit<Diag::NameTaken>(name.range, "the type of " + name.value).label(value.declaredRange, "its type is this");
      continue;
    }
    value.declared = *type;
    value.declaredRange = written.range;
  }
}

// The named ones; of a root that names none whatever no operation reads.
void GraphFunction::readOutputs() {
  llvm::StringRef key = isRoot ? "outputs" : "returns";
  if (!isRoot && !reader.require(key)) {
    return;
  }
  bool given = reader.any(key) != nullptr;
  for (const Located<std::string> &name : given ? reader.strings(key) : std::vector<Located<std::string>>()) {
    std::optional<ValueId> value = known(name);
    // One mistake is one message: whoever calls the function still gets as many results.
    body().results.push_back(value ? *value
                                   : addValue(body(), graph.module.names.intern(name.value), ValueKind::Result, TypeId(), name.range));
  }
  if (isRoot && !given) {
    std::vector<bool> read(body().values.size());
    for (ValueId operand : body().operands) {
      read[operand.index] = true;
    }
    for (size_t i = 0; i < read.size(); ++i) {
      if (!read[i] && body().values[i].kind == ValueKind::Result) {
        body().results.push_back(ValueId(i));
      }
    }
  }
  if (outBoundaries.size() > body().results.size()) {
    graph.diags.emit<Diag::WrongResults>(outBoundaries.back()->range, graph.module.names.str(body().name),
                                         std::to_string(body().results.size()) + " results", std::to_string(outBoundaries.size()));
    return;
  }
  for (size_t i = 0; i < outBoundaries.size(); ++i) {
    size_t before = body().values.size();
    applyBoundary(body().results[i], *outBoundaries[i]);
    if (body().values.size() > before) {
      body().results[i] = ValueId(before);
    }
  }
}

} // namespace shardc
