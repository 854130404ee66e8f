// The mistakes that people make in a parallel program, each as an edit of the module.
//
// The problem. A mutant must be one that could have been written: a change left out, done over another axis, to another
// layout, by another reduction; a rule of synchronisation likewise; a layout that was declared otherwise. What changes the
// model as one device sees it (a weight left out) is no mutant, since nothing about layouts is wrong in it.
//
// Others mutate source text, and spend most of their time on what cannot be read. We edit the data, one table per kind of
// place: every mutant has a meaning. There are about ten per change, parameter and rule, however many ranks there are.
#include "Mutations.h"
#include "shardc/IR/Text.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc {
namespace {

std::string quoted(const Change &c, const Module &m) { return "`" + print(c, m) + "`"; }

class Lister {
public:
  explicit Lister(const TypedModule &t) : typed(t), module(t.module) {
    for (const Axis &a : module.axes.axes()) {
      if (!a.flattened && !a.stage && !a.atoms.empty()) {
        groups.push_back(a.atoms);
      }
    }
  }

  std::vector<Mutation> run() {
    for (uint32_t f = 0; f < module.functions.size(); ++f) {
      const auto instance = llvm::find_if(typed.instances, [&](const Instance &i) { return i.function == FunctionId(f); });
      if (instance == typed.instances.end()) {
        continue; // nobody calls it
      }
      for (uint32_t op = 0; op < module.functions[f].ops.size(); ++op) {
        ofOp(f, op, *instance);
      }
      for (const std::vector<ValueId> *values : {&module.functions[f].params, &module.functions[f].inputs}) {
        for (ValueId v : *values) {
          ofType(f, v);
        }
      }
    }
    ofLoss();
    for (uint32_t family = 0; module.sync && family < module.sync->families.size(); ++family) {
      for (uint32_t rule = 0; rule < module.sync->families[family].rules.size(); ++rule) {
        ofRule(family, rule);
      }
    }
    return std::move(list);
  }

private:
  void add(std::string what, SourceRange range, std::function<void(Module &)> apply) {
    list.push_back({std::move(what), range, std::move(apply)});
  }

  // The operation gets attributes of its own: others may share what it has.
  void ofAttrs(uint32_t f, uint32_t op, std::string what, const std::function<void(Attrs &)> &edit) {
    add(std::move(what), module.functions[f].ops[op].range, [=](Module &m) {
      Op &o = m.functions[f].ops[op];
      Attrs attrs = m.attrs[o.attrs.index];
      edit(attrs);
      o.attrs = AttrsId(m.attrs.size());
      m.attrs.push_back(std::move(attrs));
    });
  }

  void ofOp(uint32_t f, uint32_t op, const Instance &instance) {
    const Op &o = module.functions[f].ops[op];
    if (!o.attrs.valid()) {
      return;
    }
    const Attrs &attrs = module.attrs[o.attrs.index];
    const std::string name = opInfo(o.kind).name.str();
    if (!attrs.change.parts.empty()) {
      ofChange(f, op, instance);
    }
    if (o.kind == OpKind::Pad && !attrs.ints.empty()) {
      ofAttrs(f, op, "`pad` by one more", [](Attrs &a) { ++a.ints[0]; });
      ofAttrs(f, op, "`pad` to twice the extent", [](Attrs &a) { a.ints[0] *= 2; });
    }
    for (const char *seed : {"global", "same", "rank"}) {
      if (o.kind == OpKind::Dropout && attrs.option("seed").value_or("same") != seed) {
        ofAttrs(f, op, std::string("`dropout` with seed=") + seed, [seed](Attrs &a) {
          llvm::erase_if(a.options, [](const auto &option) { return option.first == "seed"; });
          a.options.emplace_back("seed", seed);
        });
      }
    }
    const bool sharded =
        llvm::any_of(attrs.dims, [](const Dim &d) { return llvm::any_of(d.factors, [](const Factor &x) { return !x.atoms.empty(); }); });
    if (sharded) {
      ofAttrs(f, op, "`" + name + "` without the sharding that it writes", [](Attrs &a) {
        for (Dim &d : a.dims) {
          for (Factor &x : d.factors) {
            x.atoms.clear();
          }
        }
      });
    }
  }

  void ofChange(uint32_t f, uint32_t op, const Instance &instance) {
    const Function &function = module.functions[f];
    const Op &o = function.ops[op];
    const Change &change = module.attrs[o.attrs.index].change;
    const std::string was = quoted(change, module);
    const TypeId before = instance.values[function.operandsOf(o)[0].index];
    const size_t dims = before.valid() ? module.types[before].dims.size() : 0;
    for (size_t p = 0; p < change.parts.size(); ++p) {
      leaveOut(f, op, p, was);
      const auto edited = [&](AxisChange part) {
        Change next = change;
        next.parts[p] = std::move(part);
        if (!(next == change)) {
          ofAttrs(f, op, was + " became " + quoted(next, module), [next](Attrs &a) { a.change = next; });
        }
      };
      otherEnds(change.parts[p], dims, edited);
      for (const llvm::SmallVector<AtomId, 4> &atoms : groups) { // another group
        AxisChange part = change.parts[p];
        part.atoms = atoms;
        edited(part);
      }
      if (change.parts[p].atoms.size() > 1) { // a smaller group
        AxisChange part = change.parts[p];
        part.atoms.pop_back();
        edited(part);
      }
    }
    if (change.parts.size() > 1) {
      ofAttrs(f, op, was + " the other way round", [](Attrs &a) { std::reverse(a.change.parts.begin(), a.change.parts.end()); });
    }
    if (!change.declaredGradient.empty()) {
      ofAttrs(f, op, was + " with the gradient of the table", [](Attrs &a) { a.change.declaredGradient.clear(); });
    }
    if (!change.gradientScale.isOne()) {
      ofAttrs(f, op, was + " without scaling the gradient", [](Attrs &a) { a.change.gradientScale = Scale(); });
    }
  }

  void leaveOut(uint32_t f, uint32_t op, size_t p, const std::string &was) {
    const Op &o = module.functions[f].ops[op];
    if (module.attrs[o.attrs.index].change.parts.size() > 1) {
      ofAttrs(f, op, llvm::formatv("{0} without part {1}", was, p + 1).str(), [p](Attrs &a) {
        a.change.parts.erase(a.change.parts.begin() + static_cast<std::ptrdiff_t>(p));
        if (p < a.change.declaredGradient.size()) {
          a.change.declaredGradient.erase(a.change.declaredGradient.begin() + static_cast<std::ptrdiff_t>(p));
        }
      });
      return;
    }
    add(was + " left out", o.range, [f, op](Module &m) {
      m.functions[f].ops[op].kind = OpKind::Identity;
      m.functions[f].ops[op].attrs = AttrsId();
    });
  }

  // Another layout at the end, and a mean in the place of a sum.
  static void otherEnds(const AxisChange &part, size_t dims, llvm::function_ref<void(AxisChange)> edited) {
    for (const State s : {State::R, State::I, State::P}) {
      AxisChange other = part;
      other.to = Endpoint{s, {}, 0, {}};
      edited(other);
    }
    for (size_t d = 0; d < dims; ++d) {
      AxisChange other = part;
      other.to = Endpoint{State::S, {}, static_cast<int32_t>(d), {}};
      edited(other);
    }
    if (!part.from || part.from->state == State::P) {
      AxisChange other = part;
      other.from = Endpoint{State::PAvg, {}, 0, {}};
      edited(other);
    }
  }

  // Another layout of what is declared, by one axis.
  void ofType(uint32_t f, ValueId v) {
    const Value &value = module.functions[f].values[v.index];
    if (!value.declared.valid()) {
      return;
    }
    const Type &t = module.types[value.declared];
    const auto edited = [&](const Type &next) {
      if (!(next == t)) {
        const std::string what = llvm::formatv("`{0}` declared as `{1}`", module.names.str(value.name), print(next, module)).str();
        add(what, value.range, [f, v, next](Module &m) { m.functions[f].values[v.index].declared = m.types.intern(next); });
      }
    };
    for (const llvm::SmallVector<AtomId, 4> &atoms : groups) {
      for (const State s : {State::R, State::I, State::P}) {
        Type next = without(t, atoms);
        for (AtomId a : atoms) {
          setState(next, a, s);
        }
        edited(next);
      }
      for (size_t d = 0; d < t.dims.size(); ++d) {
        Type next = without(t, atoms);
        Factor &factor = next.dims[d].factors.front();
        factor.atoms.append(atoms.begin(), atoms.end());
        if (!next.dims[d].concat && !factor.origin.valid()) {
          edited(next);
        }
      }
    }
    for (size_t d = 0; d < t.dims.size(); ++d) {
      Type next = t;
      std::reverse(next.dims[d].factors.front().atoms.begin(), next.dims[d].factors.front().atoms.end());
      edited(next);
    }
  }

  static Type without(Type t, llvm::ArrayRef<AtomId> atoms) {
    for (AtomId a : atoms) {
      for (Dim &d : t.dims) {
        for (Factor &factor : d.factors) {
          llvm::erase(factor.atoms, a);
        }
      }
      setState(t, a, State::R);
    }
    return t;
  }

  void ofLoss() {
    const std::pair<LossKind, const char *> kinds[] = {{LossKind::LocalMean, "local-mean"},
                                                       {LossKind::Sum, "sum"},
                                                       {LossKind::GlobalMean, "global-mean"},
                                                       {LossKind::Invariant, "invariant"}};
    for (const auto &[kind, name] : kinds) {
      if (module.loss && module.loss->kind != kind) {
        add(std::string("the loss called ") + name, module.loss->range, [to = kind](Module &m) { m.loss->kind = to; });
      }
    }
  }

  void ofRule(uint32_t family, uint32_t index) {
    const SyncFamily &f = module.sync->families[family];
    const SyncRule &rule = f.rules[index];
    const std::string name = "the step `" + rule.step + "` of `" + f.name + "`";
    add(name + " left out", rule.range, [=](Module &m) {
      auto &rules = m.sync->families[family].rules;
      rules.erase(rules.begin() + index);
    });
    const auto edit = [&](const std::string &what, const std::function<void(SyncRule &)> &change) {
      add(name + " " + what, rule.range, [=](Module &m) { change(m.sync->families[family].rules[index]); });
    };
    if (rule.op != SyncOp::None && !rule.over.empty()) {
      const bool sums = rule.op == SyncOp::Sum;
      edit(sums ? "averages" : "sums", [sums](SyncRule &r) { r.op = sums ? SyncOp::Average : SyncOp::Sum; });
      for (size_t k = 0; k < rule.over.size(); ++k) {
        const std::string axis = module.axes.describe({rule.over[k]}, module.view);
        edit("not over `" + axis + "`", [k](SyncRule &r) { r.over.erase(r.over.begin() + static_cast<std::ptrdiff_t>(k)); });
        edit("once more divided by `" + axis + "`",
             [n = module.axes.atom(rule.over[k]).size](SyncRule &r) { r.scale.multiply(Rational{1, n}); });
      }
    }
    for (const llvm::SmallVector<AtomId, 4> &atoms : groups) {
      if (rule.op != SyncOp::None && llvm::none_of(atoms, [&](AtomId a) { return llvm::is_contained(rule.over, a); })) {
        edit("also over `" + module.axes.describe(atoms, module.view) + "`", [atoms](SyncRule &r) { r.over.append(atoms); });
      }
    }
    if (!rule.scale.isOne()) {
      edit("without its scale", [](SyncRule &r) { r.scale = Scale(); });
    }
    if (rule.typed) {
      edit("for parameters of every layout", [](SyncRule &r) { r.typed.reset(); });
    }
  }

  const TypedModule &typed;
  const Module &module;
  llvm::SmallVector<llvm::SmallVector<AtomId, 4>, 8> groups;
  std::vector<Mutation> list;
};

} // namespace

std::vector<Mutation> listMutations(const TypedModule &typed) { return Lister(typed).run(); }

} // namespace shardc
