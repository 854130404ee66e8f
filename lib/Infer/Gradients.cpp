// Gradients: one pass backwards over each function per distinct signature of result gradients.
//
// The problem. Forward types say what each local gradient would be if all changes had the table's gradients. A framework's
// own collective may hand back a whole gradient where a part is due, or the n-fold one; behind it, types and scales differ
// from the duals, and residual paths bring both forms together.
//
// What we do. The adjoint of an operation is linear in the result's gradient, so per atom its state follows from the forward
// states, which the forward rules made consistent:
//
//   operand   result   gradient in    gradient out
//   R, I      R, I     any            the same: all ranks do the same linear work
//   R, I      S        S              P: each rank has its rows' addend
//   R, I      P        whole          P
//   S         S        S              S
//   S         P, I     whole          S
//   P         P        any            the same
//   V         V        V              V
//
// A gradient that is partial where `whole` is needed is a finding. A change runs its gradient's primitive on what really
// arrives: a sum over n ranks that hold the whole gradient is n times it. Contributions to one value must agree; `whole` of
// scale k is also P(avg) of scale k, P of scale k over n ranks is P(avg) of scale k/n.
//
// Why it ends and what it costs. Functions nest finitely; operands times atoms per operation.
#include "shardc/Infer/Gradients.h"
#include "shardc/IR/Text.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

namespace shardc {
namespace {

using MaybeGradient = std::optional<Gradient>;

bool whole(State s) { return s == State::R || s == State::I; }

// A gradient may have other states than its value, so atoms are set whether or not a factor shards them.
void giveState(Type &t, AtomId atom, State s) {
  for (Dim &d : t.dims) {
    for (Factor &f : d.factors) {
      if (s != State::S) {
        llvm::erase(f.atoms, atom);
      }
    }
  }
  if (s != State::S) {
    setState(t, atom, s == State::I ? State::R : s);
  }
}

class Backward {
public:
  Backward(const TypedModule &t, DiagnosticEngine &d) : typed(t), module(t.module), axes(t.module.axes), diags(d) {}

  std::vector<ParamGradient> run() {
    const Instance &root = typed.instances[typed.root];
    const Function &f = module.function(root.function);
    std::vector<MaybeGradient> seeds(f.values.size());
    if (module.loss) {
      seedLoss(root, seeds);
    } else {
      for (ValueId r : f.results) {
        if (root.values[r.index].valid()) {
          seeds[r.index] = natural(module.types[root.values[r.index]]);
        }
      }
    }
    pass(typed.root, std::move(seeds), "", 1);
    return std::move(params);
  }

private:
  // The dual, of scale 1.
  MaybeGradient natural(const Type &t) const {
    std::optional<Type> d = dual(t, axes);
    if (!d) {
      return std::nullopt;
    }
    return Gradient{std::move(*d), {}};
  }

  // Only a loss that is invariant or an addend of the whole may start: a rank's own derivative is then its part.
  void seedLoss(const Instance &root, std::vector<MaybeGradient> &seeds) {
    ValueId v = module.loss->value;
    if (!root.values[v.index].valid()) {
      return;
    }
    const Type &t = module.types[root.values[v.index]];
    Gradient g{t, {}};
    for (AtomId a : activeAtoms(t)) {
      State s = stateOf(t, a);
      if (s == State::PAvg) {
        g.scale = g.scale.times(axes.atom(a).size, 1); // each rank starts from its own mean
      }
      if (s != State::I && s != State::P && s != State::PAvg) {
        diags.emit<Diag::LossNotReady>(module.loss->range, module.names.str(module.function(root.function).values[v.index].name).str(),
                                       print(t, module, module.view));
        return;
      }
      giveState(g.type, a, State::R);
    }
    seeds[v.index] = std::move(g);
  }

  // Runs the function's operations backwards; returns the gradients of its inputs.
  std::vector<MaybeGradient> pass(uint32_t index, std::vector<MaybeGradient> grads, const std::string &path, int64_t uses) {
    const Instance &instance = typed.instances[index];
    const Function &f = module.function(instance.function);
    for (size_t i = f.ops.size(); i-- > 0;) {
      operation(instance, f, i, grads, path, uses);
    }
    for (ValueId p : f.params) {
      std::string name = module.names.str(f.values[p.index].name).str();
      params.push_back({index, p, path.empty() ? name : path + "." + name, uses, grads[p.index]});
    }
    std::vector<MaybeGradient> inputs;
    for (ValueId v : f.inputs) {
      inputs.push_back(std::move(grads[v.index]));
    }
    return inputs;
  }

  void operation(const Instance &instance, const Function &f, size_t i, std::vector<MaybeGradient> &grads, const std::string &path,
                 int64_t uses) {
    const Op &op = f.ops[i];
    bool any = false;
    for (uint32_t r = 0; r < op.numResults; ++r) {
      any |= grads[op.firstResult + r].has_value();
    }
    if (!any) {
      return;
    }
    llvm::ArrayRef<ValueId> operands = f.operandsOf(op);
    if (op.kind == OpKind::Call) {
      call(instance, f, i, grads, path, uses);
      return;
    }
    for (uint32_t k = 0; k < operands.size(); ++k) {
      TypeId type = instance.values[operands[k].index];
      if (!type.valid() || !module.types[type].grad) {
        continue;
      }
      for (uint32_t r = 0; r < op.numResults; ++r) {
        TypeId result = instance.values[op.firstResult + r];
        const MaybeGradient &g = grads[op.firstResult + r];
        if (g && result.valid() && module.types[result].grad) {
          add(f, op, operands[k], grads[operands[k].index], adjoint(instance, f, i, module.types[type], module.types[result], *g));
        }
      }
    }
  }

  // Calls that are alike, one after the other, get one pass: the second layer's gradients enter the first as they left.
  void call(const Instance &instance, const Function &f, size_t i, std::vector<MaybeGradient> &grads, const std::string &path,
            int64_t uses) {
    const Op &op = f.ops[i];
    uint32_t callee = instance.callees[i];
    if (callee == ~0u) {
      return;
    }
    const Function &g = module.function(op.callee);
    std::vector<MaybeGradient> seeds(g.values.size());
    std::string key = std::to_string(callee);
    for (uint32_t r = 0; r < op.numResults && r < g.results.size(); ++r) {
      const MaybeGradient &in = grads[op.firstResult + r];
      if (in) {
        seeds[g.results[r].index] = in;
      }
      key += in ? "|" + print(in->type, module) + "*" + in->scale.text() : "|";
    }
    llvm::StringRef name = module.names.str(op.instance);
    std::string inner = path.empty() ? name.str() : path + "." + name.str();
    auto known = passes.find(key);
    if (known == passes.end()) {
      size_t first = params.size();
      std::vector<MaybeGradient> inputs = pass(callee, std::move(seeds), inner, uses);
      known = passes.emplace(key, Pass{std::move(inputs), first, params.size()}).first;
    } else {
      for (size_t p = known->second.firstParam; p < known->second.lastParam; ++p) {
        params[p].uses += uses;
      }
    }
    llvm::ArrayRef<ValueId> operands = f.operandsOf(op);
    for (size_t k = 0; k < operands.size() && k < known->second.inputs.size(); ++k) {
      add(f, op, operands[k], grads[operands[k].index], known->second.inputs[k]);
    }
  }

  // The operand's gradient from one result's.
  MaybeGradient adjoint(const Instance &instance, const Function &f, size_t i, const Type &operand, const Type &result, const Gradient &g) {
    const Op &op = f.ops[i];
    if (op.kind == OpKind::Redistribute || op.kind == OpKind::Reinterpret) {
      return changed(instance, f, i, operand, result, g);
    }
    Gradient out{operand, g.scale};
    llvm::SmallVector<AtomId, 8> atoms = activeAtoms(operand);
    llvm::append_range(atoms, activeAtoms(result));
    llvm::append_range(atoms, activeAtoms(g.type));
    for (AtomId a : atoms) {
      State so = stateOf(operand, a), sr = stateOf(result, a), in = stateOf(g.type, a);
      std::optional<State> state = flow(so, sr, in);
      if (!state) {
        return fault(f, op, a, in);
      }
      giveState(out.type, a, *state);
    }
    return out;
  }

  // The table at the head of this file; nothing where the gradient is needed whole and is not.
  static std::optional<State> flow(State operand, State result, State in) {
    if (operand == State::V) {
      return State::V;
    }
    if (whole(operand) && whole(result)) {
      return in;
    }
    if (isPartial(operand)) {
      return in;
    }
    if (result == State::S || result == State::V) {
      return operand == State::S ? State::S : State::P;
    }
    if (!whole(in)) {
      return std::nullopt;
    }
    return operand == State::S ? State::S : State::P;
  }

  MaybeGradient fault(const Function &f, const Op &op, AtomId atom, State in) {
    std::string name = module.names.str(f.values[op.firstResult].name).str();
    diags.emit<Diag::GradientNotWhole>(op.range, name, stateName(in), axes.describe({atom}, module.view), opInfo(op.kind).name);
    return std::nullopt;
  }

  // Runs the gradients of a change's parts backwards on what really arrives.
  MaybeGradient changed(const Instance &instance, const Function &f, size_t i, const Type &operand, const Type &result, const Gradient &g) {
    const Op &op = f.ops[i];
    const Change &change = module.attrs[op.attrs.index].change;
    Gradient out{operand, g.scale};
    llvm::SmallVector<AtomId, 8> moved;
    for (const Move &m : llvm::reverse(instance.moves)) {
      if (m.op != i || m.inserted) {
        continue;
      }
      std::optional<std::pair<State, State>> row = gradientOf(change, m);
      for (AtomId a : m.atoms) {
        moved.push_back(a);
        std::optional<State> state = row ? run(*row, stateOf(g.type, a), axes.atom(a).size, out.scale) : std::nullopt;
        if (!state) {
          return fault(f, op, a, stateOf(g.type, a));
        }
        giveState(out.type, a, *state);
      }
    }
    llvm::SmallVector<AtomId, 8> atoms = activeAtoms(operand);
    llvm::append_range(atoms, activeAtoms(result));
    llvm::append_range(atoms, activeAtoms(g.type));
    for (AtomId a : atoms) {
      if (!llvm::is_contained(moved, a)) {
        giveState(out.type, a, stateOf(g.type, a));
      }
    }
    return out;
  }

  std::optional<std::pair<State, State>> gradientOf(const Change &change, const Move &m) const {
    for (size_t p = 0; p < change.declaredGradient.size() && p < change.parts.size(); ++p) {
      if (change.parts[p].atoms == m.atoms) {
        return std::pair(change.declaredGradient[p].first.state, change.declaredGradient[p].second.state);
      }
    }
    if (!change.reinterpretReason.empty()) {
      return std::pair(dualState(m.to), dualState(m.from));
    }
    const ChangeRow *row = findChange(m.from, m.to);
    return row ? row->gradient : std::nullopt;
  }

  static State dualState(State s) { return s == State::R ? State::P : isPartial(s) ? State::R : s; }

  // One collective of a backward pass on what arrives. `declared` is what the change expects: from -> to.
  static std::optional<State> run(std::pair<State, State> declared, State in, int64_t n, Rational &scale) {
    auto [from, to] = declared;
    const ChangeRow *row = findChange(from, to);
    Primitive primitive = row ? row->primitive : Primitive::None;
    switch (primitive) {
    case Primitive::None:
      if (from == to || (whole(from) && whole(to))) {
        return in;
      }
      if (whole(from) ? whole(in) : in == from) {
        return whole(to) ? State::R : to;
      }
      return std::nullopt;
    case Primitive::AllReduce:
    case Primitive::ReduceScatter: {
      if (whole(in) || in == State::PAvg) {
        scale = scale.times(n, 1); // a sum of n whole gradients, or of n parts of a mean
      } else if (in != State::P && in != State::V) {
        return std::nullopt;
      }
      return primitive == Primitive::AllReduce ? State::R : State::S;
    }
    case Primitive::AllReduceMean:
      if (in == State::P) {
        scale = scale.times(1, n);
      }
      return whole(in) || isPartial(in) ? std::optional(State::R) : std::nullopt;
    case Primitive::AllGather:
      return in == State::S ? std::optional(State::R) : std::nullopt;
    case Primitive::AllToAll:
      return in == State::S ? std::optional(State::S) : std::nullopt;
    case Primitive::ZeroFill:
      return in == State::S ? std::optional(State::P) : std::nullopt;
    case Primitive::Slice:
      return whole(in) ? std::optional(State::S) : std::nullopt;
    case Primitive::KeepFirst:
      return whole(in) ? std::optional(State::P) : std::nullopt;
    case Primitive::AllReduceMax:
    case Primitive::AllReduceMin:
      return std::nullopt;
    }
    return std::nullopt;
  }

  // Adds a contribution; both must have a common form of equal scale.
  void add(const Function &f, const Op &op, ValueId value, MaybeGradient &sum, MaybeGradient part) {
    if (!part) {
      return;
    }
    if (!sum) {
      sum = std::move(part);
      return;
    }
    Gradient a = *sum, b = *part;
    llvm::SmallVector<AtomId, 8> atoms = activeAtoms(a.type);
    llvm::append_range(atoms, activeAtoms(b.type));
    bool possible = true;
    for (AtomId atom : atoms) {
      State x = stateOf(a.type, atom), y = stateOf(b.type, atom);
      if (x != y && !(whole(x) && whole(y))) {
        possible &= average(a, atom) && average(b, atom);
      }
    }
    if (possible && a.scale == b.scale) {
      sum = std::move(a);
      return;
    }
    diags.emit<Diag::GradientPathsDiffer>(op.range, module.names.str(f.values[value.index].name).str(), describe(*sum), describe(*part))
        .label(f.values[value.index].range, "the value whose gradients meet");
  }

  // `whole` of scale k is P(avg) of scale k; P of scale k over n ranks is P(avg) of scale k/n.
  bool average(Gradient &g, AtomId atom) {
    State s = stateOf(g.type, atom);
    if (s == State::S || s == State::V) {
      return false;
    }
    if (s == State::P) {
      g.scale = g.scale.times(1, axes.atom(atom).size);
    }
    giveState(g.type, atom, State::PAvg);
    return true;
  }

  std::string describe(const Gradient &g) const {
    std::string text = "`" + print(g.type, module, module.view) + "`";
    return g.scale.isOne() ? text : g.scale.text() + " times " + text;
  }

  struct Pass {
    std::vector<MaybeGradient> inputs;
    size_t firstParam, lastParam;
  };

  const TypedModule &typed;
  const Module &module;
  const Axes &axes;
  DiagnosticEngine &diags;
  std::vector<ParamGradient> params;
  std::map<std::string, Pass> passes;
};

} // namespace

std::vector<ParamGradient> inferGradients(const TypedModule &typed, DiagnosticEngine &diags) { return Backward(typed, diags).run(); }

} // namespace shardc
