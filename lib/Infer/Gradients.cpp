// Gradients: one pass backwards over each function per distinct signature of result gradients.
//
// The problem. Forward types say what each local gradient would be if all changes had the table's gradients. A framework's
// own collective may hand back a whole gradient where a part is due, or the n-fold one; behind it, types and scales differ
// from the duals, and residual paths bring both forms together.
//
// What others do. Take the dual and believe it; or run the backward pass on numbers.
//
// What we do. Each operation's adjoint is typed by the forward states (Adjoint.cpp), from the loss back. Contributions to one
// value must agree; `whole` of scale k is also P(avg) of scale k, P of scale k over n ranks is P(avg) of scale k/n. A function
// is passed once per distinct gradients of its results, so 61 equal layers are one pass.
//
// Why it ends and what it costs. Functions nest finitely; a look-up per operand, and typing per distinct triple of types.
#include "GradientPass.h"
#include "shardc/IR/Text.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc {
namespace {

class Backward {
public:
  Backward(const TypedModule &t, DiagnosticEngine &d, bool keep = false)
      : typed(t), module(t.module), axes(t.module.axes), diags(d), adjoint(t, result.table), keepValues(keep) {}

  GradientRuns run() {
    const Instance &root = typed.instances[typed.root];
    const Function &f = module.function(root.function);
    std::vector<Slot> seeds(f.values.size());
    if (module.loss) {
      seedLoss(root, seeds);
    } else {
      for (ValueId r : f.results) {
        if (root.values[r.index].valid()) {
          seeds[r.index] = natural(module.types[root.values[r.index]]);
        }
      }
    }
    pass(typed.root, std::move(seeds));
    return std::move(result);
  }

private:
  // The dual, of scale 1.
  Slot natural(const Type &t) {
    std::optional<Type> d = dual(t, axes);
    return d ? result.table.make(*d, {}) : Slot();
  }

  std::string nameOf(const Function &f, ValueId v) const { return module.names.str(f.values[v.index].name).str(); }

  // Only a loss that is invariant or an addend of the whole may start: a rank's own derivative is then its part.
  void seedLoss(const Instance &root, std::vector<Slot> &seeds) {
    const Loss &loss = *module.loss;
    Slot &seed = seeds[loss.value.index];
    if (!root.values[loss.value.index].valid()) {
      return;
    }
    const Type &t = module.types[root.values[loss.value.index]];
    const std::string name = nameOf(module.function(root.function), loss.value);
    Type gradient = t;
    Scale scale;
    bool sums = false, means = false;
    if (const llvm::SmallVector<AtomId, 4> copies = replicatedOver(t); !copies.empty()) {
      const std::string over = axes.describe(copies, module.view);
      diags.emit<Diag::LossNotReady>(loss.range, name, print(t, module, module.view))
          .note("it is replicated over `" + over + "`: a copy that each rank may use in its own way is no one loss")
          .help("make what it is computed from invariant there: `I@" + (copies.size() > 1 ? "(" + over + ")" : over) + "`");
      seed.faulty = true;
      return;
    }
    for (AtomId a : activeAtoms(t)) {
      const State s = stateOf(t, a);
      sums |= s == State::P;
      means |= s == State::PAvg;
      if (s != State::I && s != State::P && s != State::PAvg) {
        diags.emit<Diag::LossNotReady>(loss.range, name, print(t, module, module.view));
        seed.faulty = true;
        return;
      }
      if (s == State::PAvg) {
        scale.multiplyRanks(axes, a, 1); // each rank starts from its own mean
      }
      giveState(gradient, a, State::R);
    }
    const bool wrong = (loss.kind == LossKind::Invariant && (sums || means)) || (loss.kind == LossKind::LocalMean && sums) ||
                       ((loss.kind == LossKind::Sum || loss.kind == LossKind::GlobalMean) && means);
    if (wrong) {
      diags.emit<Diag::LossKindDiffers>(loss.range, name, kindText(loss.kind), print(t, module, module.view));
    }
    seed = result.table.make(gradient, scale);
  }

  // What is not written is replicated; but not where another view names the ranks, nor over stages.
  llvm::SmallVector<AtomId, 4> replicatedOver(const Type &t) const {
    llvm::SmallVector<AtomId, 4> atoms;
    for (uint32_t i = 0; i < axes.atoms().size(); ++i) {
      const AtomId a{i};
      const Atom &atom = axes.atom(a);
      const uint32_t variant = usedVariant(t, atom.block, axes).value_or(0);
      if (atom.size > 1 && atom.variant == variant && stateOf(t, a) == State::R && !axes.isStage(a)) {
        atoms.push_back(a);
      }
    }
    return atoms;
  }

  static llvm::StringRef kindText(LossKind k) {
    switch (k) {
    case LossKind::LocalMean:
      return "a mean of local tokens";
    case LossKind::Sum:
      return "a sum";
    case LossKind::GlobalMean:
      return "a sum over the number of all tokens";
    case LossKind::Invariant:
      return "the same on all ranks";
    }
    return "";
  }

  // Runs the function's operations backwards.
  uint32_t pass(uint32_t index, std::vector<Slot> grads) {
    const Instance &instance = typed.instances[index];
    const Function &f = module.function(instance.function);
    GradientRun run;
    run.instance = index;
    for (uint32_t i = uint32_t(f.ops.size()); i-- > 0;) {
      const Op &op = f.ops[i];
      llvm::ArrayRef<Slot> incoming = llvm::ArrayRef(grads).slice(op.firstResult, op.numResults);
      if (op.kind == OpKind::Call) {
        // Without a gradient the call is passed too: its parameters have a row.
        call(instance, f, i, grads, run);
      } else if (llvm::any_of(incoming, [](const Slot &s) { return s.known() || s.faulty; })) {
        operation(instance, f, i, grads);
      }
    }
    std::reverse(run.calls.begin(), run.calls.end());
    for (ValueId p : f.params) {
      run.params.push_back(grads[p.index]);
    }
    for (ValueId v : f.inputs) {
      run.inputs.push_back(grads[v.index]);
    }
    if (keepValues) {
      run.values = std::move(grads);
    }
    result.runs.push_back(std::move(run));
    return uint32_t(result.runs.size() - 1);
  }

  bool needsGradient(TypeId t) const { return t.valid() && module.types[t].grad; }

  void operation(const Instance &instance, const Function &f, uint32_t i, std::vector<Slot> &grads) {
    const Op &op = f.ops[i];
    llvm::ArrayRef<ValueId> operands = f.operandsOf(op);
    bool told = false; // what arrives wrongly is wrong for all operands
    for (uint32_t k = 0; k < operands.size(); ++k) {
      const TypeId type = instance.values[operands[k].index];
      for (uint32_t r = 0; r < op.numResults && needsGradient(type); ++r) {
        const TypeId resultType = instance.values[op.firstResult + r];
        const Slot in = grads[op.firstResult + r];
        if (!needsGradient(resultType) || (!in.known() && !in.faulty)) {
          continue;
        }
        Slot out{{}, 0, true};
        if (in.known()) {
          std::optional<AdjointFault> fault;
          out = adjoint.run(instance, i, k, type, resultType, in, fault);
          if (fault && !told) {
            report(f, op, *fault);
          }
          told |= fault.has_value();
        }
        add(f, op, operands[k], grads[operands[k].index], out);
      }
    }
  }

  void report(const Function &f, const Op &op, const AdjointFault &fault) {
    const std::string axis = axes.describe({fault.atom}, module.view);
    const std::string name = nameOf(f, ValueId(op.firstResult));
    if (fault.declared) {
      diags.emit<Diag::DeclaredGradientMisfit>(op.range, nameOf(f, f.operandsOf(op)[0]), stateName(*fault.declared), axis,
                                               stateName(fault.value));
      return;
    }
    diags.emit<Diag::GradientNotWhole>(op.range, name, isWhole(fault.arrives) ? "whole" : stateName(fault.arrives), axis,
                                       opInfo(op.kind).name);
  }

  // Calls that are alike get one pass: the second layer's gradients enter the first as they left.
  void call(const Instance &instance, const Function &f, uint32_t i, std::vector<Slot> &grads, GradientRun &run) {
    const Op &op = f.ops[i];
    const uint32_t callee = instance.callees[i];
    if (callee >= typed.instances.size()) {
      return;
    }
    const Function &g = module.function(op.callee);
    std::vector<Slot> seeds(g.values.size());
    std::vector<uint32_t> key = {callee};
    for (uint32_t r = 0; r < op.numResults && r < g.results.size(); ++r) {
      const Slot in = grads[op.firstResult + r];
      add(f, op, ValueId(op.firstResult + r), seeds[g.results[r].index], in); // one value may be two results
      key.insert(key.end(), {in.type.index, in.scale, in.faulty});
    }
    auto known = passes.find(key);
    if (known == passes.end()) {
      known = passes.emplace(std::move(key), pass(callee, std::move(seeds))).first;
    }
    run.calls.emplace_back(i, known->second);
    llvm::ArrayRef<ValueId> operands = f.operandsOf(op);
    const std::vector<Slot> &inputs = result.runs[known->second].inputs;
    for (size_t k = 0; k < operands.size() && k < inputs.size(); ++k) {
      add(f, op, operands[k], grads[operands[k].index], inputs[k]);
    }
  }

  // Adds a contribution; both must have a common form of equal scale.
  void add(const Function &f, const Op &op, ValueId value, Slot &sum, Slot part) {
    if (!part.known() || (sum.type == part.type && sum.scale == part.scale)) {
      sum.faulty |= part.faulty && !part.known();
      return;
    }
    if (!sum.known()) {
      part.faulty |= sum.faulty;
      sum = part;
      return;
    }
    llvm::SmallVector<Type, 2> both = {result.table.type(sum.type), result.table.type(part.type)};
    Scale a = result.table.scale(sum.scale), b = result.table.scale(part.scale);
    bool possible = !recutOperands(both, axes);
    for (AtomId atom : atomsOf({&both[0], &both[1]})) {
      const State x = stateOf(both[0], atom), y = stateOf(both[1], atom);
      if (possible && x != y && !(isWhole(x) && isWhole(y))) {
        possible = average(both[0], a, atom) && average(both[1], b, atom);
      }
    }
    if (possible && a == b) {
      const bool faulty = sum.faulty;
      sum = result.table.make(both[0], a);
      sum.faulty = faulty;
      return;
    }
    diags.emit<Diag::GradientPathsDiffer>(op.range, nameOf(f, value), describe(sum), describe(part))
        .label(f.values[value.index].range, "the value whose gradients meet");
    sum = Slot{{}, 0, true};
  }

  // `whole` of scale k is P(avg) of scale k; P of scale k over n ranks is P(avg) of scale k/n.
  bool average(Type &t, Scale &scale, AtomId atom) {
    const State s = stateOf(t, atom);
    if (s == State::S || s == State::V) {
      return false;
    }
    if (s == State::P) {
      scale.multiplyRanks(axes, atom, -1);
    }
    giveState(t, atom, State::PAvg);
    return true;
  }

  std::string describe(const Slot &s) const {
    const std::string text = "`" + print(result.table.type(s.type), module, module.view) + "`";
    const Scale &scale = result.table.scale(s.scale);
    return scale.isOne() ? text : scale.describe(axes, module.view) + " times " + text;
  }

  const TypedModule &typed;
  const Module &module;
  const Axes &axes;
  DiagnosticEngine &diags;
  GradientRuns result;
  Adjoint adjoint;
  bool keepValues; // of every function, not only of its inputs and parameters
  std::map<std::vector<uint32_t>, uint32_t> passes;
};

} // namespace

bool hasTrainable(const Module &module) {
  return llvm::any_of(module.functions, [&](const Function &f) {
    return llvm::any_of(f.params, [&](ValueId p) {
      const TypeId t = f.values[p.index].declared;
      return t.valid() && module.types[t].grad;
    });
  });
}

std::vector<ParamGradient> inferGradients(const TypedModule &typed, DiagnosticEngine &diags) {
  if (typed.instances.empty() || !hasTrainable(typed.module)) {
    return {};
  }
  GradientRuns runs = Backward(typed, diags).run();
  return collectParams(typed, runs, diags);
}

ValueGradients inferValueGradients(const TypedModule &typed) {
  ValueGradients values;
  if (llvm::any_of(typed.instances, [](const Instance &i) { return i.failed; }) || !hasTrainable(typed.module)) {
    return values;
  }
  SourceManager nowhere;
  DiagnosticEngine ignored(nowhere); // said where the job is checked
  GradientRuns runs = Backward(typed, ignored, true).run();
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> known; // type of the value, type and scale of the gradient
  for (GradientRun &run : runs.runs) {
    ValueGradients::Run &out = values.runs.emplace_back();
    out.instance = run.instance;
    out.calls = std::move(run.calls);
    for (size_t v = 0; v < run.values.size(); ++v) {
      const Slot &slot = run.values[v];
      const TypeId value = typed.instances[run.instance].values[v];
      if (!value.valid() || !slot.known() || slot.faulty) {
        out.values.push_back(slot.faulty ? ValueGradients::Wrong : ValueGradients::None);
        continue;
      }
      const auto [it, isNew] = known.try_emplace({value.index, slot.type.index, slot.scale}, uint32_t(values.gradients.size()));
      if (isNew) {
        const Type type = asWritten(runs.table.type(slot.type), typed.module.types[value], typed.module.axes);
        values.gradients.push_back({type, runs.table.scale(slot.scale)});
      }
      out.values.push_back(it->second);
    }
  }
  return values;
}

} // namespace shardc
