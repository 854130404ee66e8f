// GradientPaths: parameters with their full paths, those alike counted and not repeated.
//
// The problem. A parameter is declared in a function, its path is that of the calls. Layers alike share everything but their
// number; a program whose functions call twice what calls twice has more paths than anybody could list.
//
// What we do. A node is a run together with a path in which numbers are `*`; nodes make a graph without cycles, and how often
// each is reached follows from those above it. Where sync rules tell layers apart, numbers stay.
//
// Why it ends and what it costs. Steps per distinct node; beyond a bound of nodes a finding says so.
#include "GradientPass.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace shardc {
namespace {

constexpr size_t MostNodes = 200'000;

bool isNumber(llvm::StringRef text) {
  return !text.empty() && llvm::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// "layers.3" -> "layers.*".
std::string withoutNumbers(llvm::StringRef path) {
  std::string out;
  for (llvm::StringRef part : llvm::split(path, '.')) {
    out += (out.empty() ? "" : ".") + (isNumber(part) ? std::string("*") : part.str());
  }
  return out;
}

bool tellsLayersApart(const SyncPlan &plan) {
  auto numbered = [](const std::string &pattern) {
    llvm::SmallVector<llvm::StringRef, 8> parts;
    llvm::StringRef(pattern).split(parts, '.');
    return llvm::any_of(parts, [](llvm::StringRef p) { return p.find_first_of("0123456789") != llvm::StringRef::npos; });
  };
  return llvm::any_of(plan.families, [&](const SyncFamily &f) { return llvm::any_of(f.patterns, numbered); }) ||
         llvm::any_of(plan.units, [&](const SyncUnit &u) { return llvm::any_of(u.patterns, numbered); });
}

class Collector {
public:
  Collector(const TypedModule &t, const GradientRuns &g) : typed(t), module(t.module), runs(g) {
    fold = !module.sync || !tellsLayersApart(*module.sync);
  }

  // False if there are too many paths.
  bool collect(std::vector<ParamGradient> &params) {
    node(uint32_t(runs.runs.size() - 1), "", "");
    if (nodes.size() > MostNodes) {
      return false;
    }
    nodes[0].count = 1;
    for (uint32_t n : llvm::reverse(finished)) { // callers before what they call
      for (uint32_t child : nodes[n].children) {
        if (__builtin_add_overflow(nodes[child].count, nodes[n].count, &nodes[child].count)) {
          nodes[child].count = INT64_MAX;
        }
      }
    }
    for (const Node &n : nodes) {
      addParams(n, params);
    }
    return true;
  }

private:
  struct Node {
    uint32_t run = 0;
    std::string path, first;
    std::vector<uint32_t> children; // as often as they are called
    int64_t count = 0;
  };

  static std::string join(const std::string &path, llvm::StringRef name) { return path.empty() ? name.str() : (path + "." + name).str(); }

  uint32_t node(uint32_t run, const std::string &path, const std::string &first) {
    auto [it, isNew] = known.try_emplace({run, path}, uint32_t(nodes.size()));
    const uint32_t index = it->second;
    if (!isNew || nodes.size() > MostNodes) {
      return std::min<uint32_t>(index, uint32_t(nodes.size()) - 1);
    }
    nodes.push_back({run, path, first, {}, 0});
    const Function &f = module.function(typed.instances[runs.runs[run].instance].function);
    for (const auto &[op, callee] : runs.runs[run].calls) {
      const llvm::StringRef name = module.names.str(f.ops[op].instance);
      const uint32_t child = node(callee, join(path, fold ? withoutNumbers(name) : name.str()), join(first, name));
      nodes[index].children.push_back(child);
    }
    finished.push_back(index);
    return index;
  }

  void addParams(const Node &n, std::vector<ParamGradient> &params) {
    const GradientRun &run = runs.runs[n.run];
    const Function &f = module.function(typed.instances[run.instance].function);
    for (size_t p = 0; p < f.params.size(); ++p) {
      const Value &value = f.values[f.params[p].index];
      if (!value.declared.valid() || !module.types[value.declared].grad) {
        continue; // a buffer
      }
      const llvm::StringRef name = module.names.str(value.name);
      ParamGradient param{run.instance, f.params[p], join(n.path, name), join(n.first, name), n.count, std::nullopt, false};
      const Slot &slot = run.params[p];
      param.faulty = slot.faulty;
      if (slot.known() && !slot.faulty) {
        const Type type = asWritten(runs.table.type(slot.type), module.types[value.declared], module.axes);
        param.gradient = Gradient{type, runs.table.scale(slot.scale)};
      }
      params.push_back(std::move(param));
    }
  }

  const TypedModule &typed;
  const Module &module;
  const GradientRuns &runs;
  bool fold = true;
  std::vector<Node> nodes;
  std::vector<uint32_t> finished; // callees before callers
  std::map<std::pair<uint32_t, std::string>, uint32_t> known;
};

} // namespace

Type asWritten(Type gradient, const Type &value, const Axes &axes) {
  for (AtomId a : activeAtoms(value)) {
    const Atom &atom = axes.atom(a);
    const bool sameCut = usedVariant(gradient, atom.block, axes).value_or(atom.variant) == atom.variant;
    if (stateOf(value, a) == State::I && sameCut && stateOf(gradient, a) == State::R) {
      setState(gradient, a, State::I);
    }
  }
  return gradient;
}

std::vector<ParamGradient> collectParams(const TypedModule &typed, const GradientRuns &runs, DiagnosticEngine &diags) {
  std::vector<ParamGradient> params;
  if (!Collector(typed, runs).collect(params)) {
    diags.emit<Diag::TooManyPaths>({}, MostNodes);
  }
  return params;
}

} // namespace shardc
