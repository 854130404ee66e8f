// TypesText: the program as a tree of modules, one line per value: name, type, gradient type; and one per change of layout.
//
// Repeated layers that run the same instance are one block. Not here: names (Expansion.cpp), JSON (TypesJson.cpp).
#include "Expansion.h"
#include "shardc/Emit/Types.h"
#include "shardc/IR/Text.h"
#include <map>

namespace shardc {

namespace {

class TreeWriter {
public:
  TreeWriter(llvm::raw_ostream &stream, const TypedModule &program, const TypesOptions &options)
      : out(stream), typed(program), module(program.module), expansion(program), filter(options.modulePattern), view(options.view) {}

  void write() {
    out << module.name << ": " << module.axes.world() << " ranks\n";
    for (const ViewSpec &mesh : module.axes.views()) {
      out << "  mesh " << mesh.name << ':';
      for (const AxisSpec &axis : mesh.axes) {
        out << ' ' << axis.name << ' ' << axis.size;
      }
      out << '\n';
    }
    out << "  value: type | gradient; change over axes: collective, bytes sent per rank\n\n";
    block("", "", typed.root, expansion.rootRun(), 1, 0);
  }

private:
  struct Line {
    std::string name;
    std::string type;
    std::string gradient;
    int32_t call = -1; // >= 0: the block of this operation's call, for `alike` calls
    uint32_t alike = 1;
    uint32_t stride = 1;   // between the calls that are alike
    bool isChange = false; // `type` and `gradient` then tell what it does
  };

  // The view that was asked for, or that of the module a value stands in.
  llvm::StringRef viewOf(const Instance &instance) const {
    return view.empty() ? module.viewOf(module.function(instance.function)) : llvm::StringRef(view);
  }

  const std::pair<std::string, std::string> &typeTexts(TypeId id, uint32_t gradient, llvm::StringRef vocabulary) {
    std::pair<std::string, std::string> &text = texts[{id.index, gradient, vocabulary}];
    if (text.first.empty()) {
      const Type &type = module.types[id];
      text = {print(type, module, vocabulary), expansion.gradientText(type, gradient, vocabulary)};
    }
    return text;
  }

  void addValue(std::vector<Line> &lines, const Instance &instance, uint32_t run, ValueId value) {
    const LocalNames &names = expansion.names(instance.function);
    Line line;
    line.name = (names.hidden[value.index] ? "-> " : "") + names.plain[value.index];
    const TypeId id = value.index < instance.values.size() ? instance.values[value.index] : TypeId();
    if (id.valid()) {
      std::tie(line.type, line.gradient) = typeTexts(id, expansion.gradientOf(run, value), viewOf(instance));
    } else {
      line.type = line.gradient = "unknown";
    }
    lines.push_back(std::move(line));
  }

  static std::string changeText(const MoveText &text, bool withAxes) {
    std::string line = text.from + " -> " + text.to;
    if (withAxes) {
      line += " over " + text.axes + " (" + std::to_string(text.ranks) + " ranks)";
    }
    line += ": " + (text.collective.empty() ? "nothing to do" : text.collective);
    if (!text.bytes) {
      return line + ", bytes known at run time";
    }
    return *text.bytes ? line + ", " + bytesText(*text.bytes) : line;
  }

  void addMove(std::vector<Line> &lines, const Instance &instance, const Move &move) {
    const LocalNames &names = expansion.names(instance.function);
    Line line;
    line.isChange = true;
    line.name = names.plain[move.value.index];
    line.type = "* " + changeText(forwardText(typed, move, viewOf(instance)), true);
    const std::optional<MoveText> gradient = gradientText(typed, instance, move, viewOf(instance));
    line.gradient = gradient ? changeText(*gradient, false) : "none";
    if (move.inserted) {
      line.gradient += " (inserted)";
    }
    lines.push_back(std::move(line));
  }

  // Which modules at and below a call are selected: calls look alike only if this agrees.
  void selection(llvm::StringRef path, uint32_t index, std::vector<bool> &selected) const {
    selected.push_back(filter.selects(path));
    const Instance &instance = typed.instances[index];
    for (uint32_t i = 0; i < instance.callees.size(); ++i) {
      if (instance.callees[i] < typed.instances.size()) {
        selection(expansion.callPath(path, instance, i), instance.callees[i], selected);
      }
    }
  }

  bool sameSelection(llvm::StringRef a, llvm::StringRef b, uint32_t index) const {
    if (filter.all()) {
      return true;
    }
    std::vector<bool> ofA;
    std::vector<bool> ofB;
    selection(a, index, ofA);
    selection(b, index, ofB);
    return ofA == ofB;
  }

  // Whether call `b` runs the instance that call `a` before it does, under the number that follows: layers.3 and layers.5.
  bool alike(const std::string &path, const Instance &instance, uint32_t run, uint32_t a, uint32_t b) const {
    const std::vector<std::string> &calls = expansion.names(instance.function).calls;
    const auto [base, digits] = llvm::StringRef(calls[a]).rsplit('.');
    int64_t number = 0;
    return b < calls.size() && !digits.getAsInteger(10, number) && instance.callees[b] == instance.callees[a] &&
           expansion.callRun(run, b) == expansion.callRun(run, a) && calls[b] == (base + "." + std::to_string(number + b - a)).str() &&
           sameSelection(expansion.callPath(path, instance, a), expansion.callPath(path, instance, b), instance.callees[a]);
  }

  // How the calls from `first` on repeat: one after the other, or groups of `period` in turn, such as dense and sparse layers.
  // What makes most calls one block is taken, of equals what covers more.
  struct Repetition {
    uint32_t period = 1;
    uint32_t times = 1;
  };
  Repetition repetition(const std::string &path, const Instance &instance, uint32_t run, uint32_t first) const {
    constexpr uint32_t LongestPeriod = 8;
    Repetition best;
    for (uint32_t period = 1; period <= LongestPeriod; ++period) {
      uint32_t covered = period;
      while (alike(path, instance, run, first + covered - period, first + covered)) {
        ++covered;
      }
      const uint32_t times = covered / period;
      if (times > 1 && times >= best.times) {
        best = {period, times};
      }
    }
    return best;
  }

  std::vector<Line> linesOf(const std::string &path, const Instance &instance, uint32_t run) {
    const Function &function = module.function(instance.function);
    std::vector<Line> lines;
    for (ValueId input : function.inputs) {
      addValue(lines, instance, run, input);
    }
    for (ValueId param : function.params) {
      addValue(lines, instance, run, param);
    }
    size_t next = 0;
    for (uint32_t i = 0; i < function.ops.size(); ++i) {
      const Op &op = function.ops[i];
      for (; next < instance.moves.size() && instance.moves[next].op <= i; ++next) {
        addMove(lines, instance, instance.moves[next]);
      }
      if (op.kind == OpKind::Call && i < instance.callees.size() && instance.callees[i] < typed.instances.size()) {
        const auto [period, times] = repetition(path, instance, run, i);
        for (uint32_t of = 0; of < period; ++of) {
          Line line;
          line.call = static_cast<int32_t>(i + of);
          line.alike = times;
          line.stride = period;
          lines.push_back(std::move(line));
        }
        i += period * times - 1;
        continue; // the callee shows its results
      }
      for (uint32_t r = 0; r < op.numResults; ++r) {
        addValue(lines, instance, run, function.result(op, r));
      }
    }
    return lines;
  }

  // `path` finds names, `shown` is what is printed: "layers.3..60.moe".
  void block(const std::string &path, const std::string &shown, uint32_t index, uint32_t run, uint32_t alike, unsigned depth) {
    const Instance &instance = typed.instances[index];
    const bool visible = filter.selects(path);
    if (visible && !path.empty()) {
      out.indent(2 * depth) << shown << "  " << module.names.str(module.function(instance.function).name);
      if (alike > 1) {
        out << "  (" << alike << " alike)";
      }
      out << '\n';
    }
    const std::vector<Line> lines = linesOf(path, instance, run);
    size_t nameWidth = 0;
    size_t typeWidth = 0;
    for (const Line &line : lines) {
      nameWidth = std::max(nameWidth, line.name.size());
      typeWidth = std::max(typeWidth, line.isChange ? 0 : line.type.size());
    }
    const unsigned inner = visible ? depth + 1 : depth;
    for (const Line &line : lines) {
      if (line.call >= 0) {
        const auto op = static_cast<uint32_t>(line.call);
        const std::string below = expansion.callPath(path, instance, op);
        block(below, shownPath(shown, instance, line), instance.callees[op], expansion.callRun(run, op), line.alike,
              path.empty() ? depth : inner);
      } else if (visible) {
        writeLine(line, nameWidth, typeWidth, path.empty() ? depth : inner);
      }
    }
  }

  // "layers.3..60" where layers follow one another, "layers.0,2..46" where they take turns with others.
  std::string shownPath(const std::string &shown, const Instance &instance, const Line &line) const {
    const std::vector<std::string> &calls = expansion.names(instance.function).calls;
    const auto op = static_cast<uint32_t>(line.call);
    auto number = [&](uint32_t n) { return llvm::StringRef(calls[op + n * line.stride]).rsplit('.').second.str(); };
    std::string text = shown.empty() ? calls[op] : shown + "." + calls[op];
    if (line.alike > 1 && line.stride > 1) {
      text += "," + number(1);
    }
    if (line.alike > 2 || (line.alike > 1 && line.stride == 1)) {
      text += ".." + number(line.alike - 1);
    }
    return text;
  }

  void writeLine(const Line &line, size_t nameWidth, size_t typeWidth, unsigned depth) {
    out.indent(2 * depth) << line.name;
    out.indent(static_cast<unsigned>(nameWidth - line.name.size() + 2)) << line.type;
    out.indent(line.isChange ? 0 : static_cast<unsigned>(typeWidth - line.type.size())) << " | " << line.gradient << '\n';
  }

  llvm::raw_ostream &out;
  const TypedModule &typed;
  const Module &module;
  Expansion expansion;
  ModuleFilter filter;
  std::string view;
  std::map<std::tuple<uint32_t, uint32_t, llvm::StringRef>, std::pair<std::string, std::string>> texts; // by type, gradient and view
};

} // namespace

bool anyModuleMatches(const TypedModule &typed, llvm::StringRef pattern) {
  const ModuleFilter filter(pattern);
  bool found = filter.all();
  if (found) {
    return true;
  }
  Expansion(typed).visit({[&](llvm::StringRef path, const Instance &) { return !(found = found || filter.selects(path)); },
                          [](llvm::StringRef, const Instance &, ValueId, uint32_t) {},
                          [](llvm::StringRef, const Instance &, const Move &) {}});
  return found;
}

void writeTypesText(llvm::raw_ostream &out, const TypedModule &typed, const TypesOptions &options) {
  TreeWriter(out, typed, options).write();
}

} // namespace shardc
