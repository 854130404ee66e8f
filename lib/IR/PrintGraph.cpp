// PrintGraph: a program as a graph file that reads back as the same program.
//
// Every operation is one line, whatever it was nested in when somebody wrote it. Names are those of the values; where two
// values of a function would have the same one, the later gets a number, except after a boundary: its result has the name
// of the value that it changes, there as here. Diagnostics of what is printed are not this file's concern.
#include "shardc/IR/Text.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

namespace shardc {
namespace {

bool isWord(llvm::StringRef text) {
  return !text.empty() && llvm::all_of(text, [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.' || c == '-'; });
}

// A YAML scalar in block context: plain where that reads back as the same text.
std::string scalar(llvm::StringRef text) {
  bool plain = !text.empty() && (llvm::isAlpha(text[0]) || text[0] == '_' || text[0] == '(' || llvm::isDigit(text[0])) &&
               !text.contains(": ") && !text.contains(" #") && text.back() != ':' && text.back() != ' ' &&
               llvm::all_of(text, [](char c) { return c >= ' '; }) && text.lower() != "null";
  if (plain) {
    return text.str();
  }
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < ' ') {
      quoted += "\\x" + llvm::utohexstr(static_cast<unsigned char>(c), /*LowerCase=*/true, 2);
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

// A word of the body language; with blanks or signs in it, in quotes that it does not contain.
std::string word(llvm::StringRef text) {
  if (isWord(text)) {
    return text.str();
  }
  const char quote = text.contains('"') ? '\'' : '"';
  return quote + text.str() + quote;
}

class FunctionPrinter {
public:
  FunctionPrinter(const Module &module, const Function &function, llvm::ArrayRef<std::string> functionNames, llvm::StringRef margin,
                  llvm::raw_ostream &out)
      : m(module), f(function), functions(functionNames), indent(margin), os(out) {
    nameValues();
  }

  void print() {
    declarations("params", f.params);
    if (&f == &m.function(m.root)) {
      declarations("inputs", f.inputs);
    } else {
      inputs();
    }
    if (!f.ops.empty()) {
      os << indent << "ops:\n";
    }
    llvm::StringSet<> called;
    for (const Op &op : f.ops) {
      os << indent << "  - " << (renames(op) ? boundary(op) : scalar(line(op, called))) << "\n";
    }
    types();
    os << indent << (&f == &m.function(m.root) ? "outputs: [" : "returns: [");
    llvm::ListSeparator comma;
    for (ValueId id : f.results) {
      os << comma << name(id);
    }
    os << "]\n";
  }

  const std::string &name(ValueId id) const { return names[id.index]; }

private:
  // A boundary whose result takes over the name of what it changes.
  bool renames(const Op &op) const { return op.boundary && renamed.contains(op.firstResult); }

  void nameValues() {
    llvm::StringSet<> taken;
    for (const Value &v : f.values) {
      taken.insert(m.names.str(v.name));
    }
    llvm::DenseMap<uint32_t, uint32_t> before; // result of a boundary -> what it changes
    for (const Op &op : f.ops) {
      if (op.boundary && op.numOperands == 1 && op.numResults == 1) {
        before[op.firstResult] = f.operandsOf(op).front().index;
      }
    }
    llvm::StringSet<> used;
    for (uint32_t i = 0; i < f.values.size(); ++i) {
      const NameId id = f.values[i].name;
      auto change = before.find(i);
      if (change != before.end() && f.values[change->second].name == id && names[change->second] == m.names.str(id) &&
          !usedLater(change->second, i)) {
        names.push_back(names[change->second]);
        current[id] = i;
        renamed.insert(i);
        continue;
      }
      const std::string base = id.valid() ? m.names.str(id).str() : "value";
      std::string unique = base;
      for (uint32_t n = 1; used.count(unique) || (unique != m.names.str(id) && taken.count(unique)); ++n) {
        unique = base + "_" + llvm::utostr(n);
      }
      used.insert(unique);
      names.push_back(unique);
    }
  }

  // Does an operation behind the boundary read the value in front of it? Its name means another value there.
  bool usedLater(uint32_t value, uint32_t boundaryResult) const {
    for (const Op &op : f.ops) {
      if (op.firstResult > boundaryResult && llvm::is_contained(f.operandsOf(op), ValueId(value))) {
        return true;
      }
    }
    return llvm::is_contained(f.results, ValueId(value));
  }

  void declarations(llvm::StringRef key, llvm::ArrayRef<ValueId> values) {
    if (!values.empty()) {
      os << indent << key << ":\n";
    }
    for (ValueId id : values) {
      os << indent << "  " << name(id) << ": " << typeOf(id) << "\n";
    }
  }

  void inputs() {
    const bool typed = llvm::any_of(f.inputs, [&](ValueId id) { return f.values[id.index].declared.valid(); });
    os << indent << "inputs:" << (typed ? "\n" : " [");
    llvm::ListSeparator comma;
    for (ValueId id : f.inputs) {
      if (typed) {
        os << indent << "  " << name(id) << ":" << (f.values[id.index].declared.valid() ? " " + typeOf(id) : "") << "\n";
      } else {
        os << comma << name(id);
      }
    }
    os << (typed ? "" : "]\n");
  }

  std::string typeOf(ValueId id) const {
    const TypeId type = f.values[id.index].declared;
    return type.valid() ? scalar(shardc::print(m.types[type], m)) : std::string("~");
  }

  // What somebody wrote about results. A name that two values have stands for the later one.
  void types() {
    bool any = false;
    for (uint32_t i = 0; i < f.values.size(); ++i) {
      const Value &v = f.values[i];
      auto last = current.find(v.name);
      const bool hidden = last != current.end() && last->second != i && names[last->second] == names[i];
      if (v.kind != ValueKind::Result || !v.declared.valid() || hidden) {
        continue;
      }
      os << (any ? "" : indent.str() + "types:\n") << indent << "  " << names[i] << ": " << typeOf(ValueId(i)) << "\n";
      any = true;
    }
  }

  std::string boundary(const Op &op) const {
    return name(ValueId(op.firstResult)) + ": " + scalar(shardc::print(m.attrs[op.attrs.index].change, m));
  }

  std::string line(const Op &op, llvm::StringSet<> &called) const {
    std::string text;
    for (uint32_t i = 0; i < op.numResults; ++i) {
      text += (i ? ", " : "") + name(f.result(op, i));
    }
    const bool call = op.kind == OpKind::Call;
    const llvm::StringRef callee = call ? llvm::StringRef(functions[op.callee.index]) : opInfo(op.kind).name;
    std::vector<std::string> arguments;
    for (ValueId id : f.operandsOf(op)) {
      arguments.push_back(name(id));
    }
    if (op.attrs.valid()) {
      attributes(op, m.attrs[op.attrs.index], arguments);
    }
    const bool first = call && called.insert(callee).second;
    if (call && !(first && m.names.str(op.instance) == callee)) {
      arguments.push_back("as=" + m.names.str(op.instance).str());
    }
    return text + " = " + callee.str() + "(" + llvm::join(arguments, ", ") + ")";
  }

  void attributes(const Op &op, const Attrs &a, std::vector<std::string> &arguments) const {
    switch (opInfo(op.kind).takes) {
    case Takes::Nothing:
      break;
    case Takes::Dims:
      for (const Dim &d : a.dims) {
        arguments.push_back(shardc::print(d, m));
      }
      break;
    case Takes::Ints:
      for (int64_t i : a.ints) {
        arguments.push_back(llvm::itostr(i));
      }
      break;
    case Takes::Scalar:
      arguments.push_back(a.text);
      break;
    case Takes::ChangeSpec:
      arguments.push_back(shardc::print(a.change, m));
      break;
    case Takes::Text:
      arguments.push_back(word(a.text));
      break;
    }
    for (const auto &[key, value] : a.options) {
      arguments.push_back(key + "=" + word(value));
    }
  }

  const Module &m;
  const Function &f;
  llvm::ArrayRef<std::string> functions;
  llvm::StringRef indent;
  llvm::raw_ostream &os;
  std::vector<std::string> names;           // per value, as printed
  llvm::DenseMap<NameId, uint32_t> current; // the last value that a boundary gave this name
  llvm::DenseSet<uint32_t> renamed;         // results of boundaries that have the name of what they change
};

// The axes that make up atoms[from..], outermost first; false if none do.
bool cover(const Axes &axes, llvm::ArrayRef<AtomId> atoms, std::vector<llvm::StringRef> &names) {
  if (atoms.empty()) {
    return true;
  }
  for (const Axis &axis : axes.axes()) {
    const size_t n = axis.atoms.size();
    if (axis.flattened || n == 0 || n > atoms.size() || atoms.take_front(n) != llvm::ArrayRef(axis.atoms)) {
      continue;
    }
    names.push_back(axis.name);
    if (cover(axes, atoms.drop_front(n), names)) {
      return true;
    }
    names.pop_back();
  }
  return false;
}

void printFlat(const Axes &axes, llvm::raw_ostream &os) {
  bool any = false;
  for (const Axis &axis : axes.axes()) {
    std::vector<llvm::StringRef> names;
    if (axis.flattened && cover(axes, axis.atoms, names)) {
      os << (any ? "" : "flat:\n") << "  " << axis.name << ": [" << llvm::join(names, ", ") << "]\n";
      any = true;
    }
  }
}

void printAxes(const Axes &axes, llvm::raw_ostream &os) {
  os << "world: " << axes.world() << "\n";
  if (axes.views().empty()) {
    return;
  }
  os << "mesh:\n";
  for (const ViewSpec &view : axes.views()) {
    os << "  " << view.name << ": {";
    llvm::ListSeparator comma;
    for (const AxisSpec &axis : view.axes) {
      os << comma << axis.name << ": ";
      if (axis.stride) {
        os << "{size: " << axis.size << ", stride: " << *axis.stride << "}";
      } else {
        os << axis.size;
      }
    }
    os << "}\n";
  }
}

llvm::StringRef lossName(LossKind kind) {
  switch (kind) {
  case LossKind::LocalMean:
    return "local-mean";
  case LossKind::Sum:
    return "sum";
  case LossKind::GlobalMean:
    return "global-mean";
  case LossKind::Invariant:
    return "invariant";
  }
  return "";
}

void printSizes(const Module &m, llvm::raw_ostream &os) {
  os << (m.sizes.empty() && m.products.empty() ? "" : "sizes:\n");
  for (const auto &[name, extent] : m.sizes) {
    os << "  " << m.names.str(name) << ": " << (extent < 0 ? "any" : llvm::itostr(extent)) << "\n";
  }
  for (const auto &[name, factors] : m.products) {
    os << "  " << m.names.str(name) << ": (";
    llvm::ListSeparator blank(" ");
    for (NameId factor : factors) {
      os << blank << m.names.str(factor);
    }
    os << ")\n";
  }
}

// Callees before callers.
std::vector<FunctionId> inOrder(const Module &m) {
  std::vector<FunctionId> order;
  std::vector<bool> seen(m.functions.size());
  std::vector<std::pair<uint32_t, size_t>> stack; // function, next operation
  for (uint32_t i = 0; i < m.functions.size(); ++i) {
    if (!seen[i]) {
      seen[i] = true;
      stack.emplace_back(i, 0);
    }
    while (!stack.empty()) {
      auto &[f, next] = stack.back();
      const std::vector<Op> &ops = m.functions[f].ops;
      while (next < ops.size() && (ops[next].kind != OpKind::Call || seen[ops[next].callee.index])) {
        ++next;
      }
      if (next == ops.size()) {
        order.push_back(FunctionId(f));
        stack.pop_back();
        continue;
      }
      const uint32_t callee = ops[next].callee.index;
      seen[callee] = true;
      stack.emplace_back(callee, 0);
    }
  }
  return order;
}

// Each its own, and none that of an operation: those who call the operation would call the function.
std::vector<std::string> functionNames(const Module &m) {
  std::vector<std::string> names;
  llvm::StringSet<> taken;
  for (const Function &f : m.functions) {
    taken.insert(m.names.str(f.name));
  }
  llvm::StringSet<> used;
  for (const Function &f : m.functions) {
    const llvm::StringRef base = m.names.str(f.name);
    std::string name = base.str();
    for (uint32_t n = 1; used.count(name) || findOp(name) || (name != base && taken.count(name)); ++n) {
      name = base.str() + "_" + llvm::utostr(n);
    }
    used.insert(name);
    names.push_back(name);
  }
  return names;
}

} // namespace

std::string printGraph(const Module &m) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "graph: " << scalar(m.name) << "\n";
  printAxes(m.axes, os);
  printFlat(m.axes, os);
  printSizes(m, os);
  const std::vector<std::string> names = functionNames(m);
  bool any = false;
  for (FunctionId id : inOrder(m)) {
    if (id != m.root) {
      os << (any ? "" : "functions:\n") << "  " << names[id.index] << ":\n";
      FunctionPrinter(m, m.function(id), names, "    ", os).print();
      any = true;
    }
  }
  if (!m.root.valid()) {
    return text;
  }
  FunctionPrinter root(m, m.function(m.root), names, "", os);
  root.print();
  if (m.loss) {
    os << "loss: {value: " << root.name(m.loss->value) << ", kind: " << lossName(m.loss->kind) << "}\n";
  }
  return text;
}

} // namespace shardc
