// Backward: reverse mode over the program of each rank, and over that of one device.
//
// A kernel has its own derivative; a change of layout runs the primitive of its gradient's row, or of the gradient that a
// framework declares, on what really arrives. What is expected at the end is what the types say: the dual of each type.
#include "Execution.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc {

void Execution::addGrad(Frame &frame, ValueId v, Spread part) {
  Spread &sum = frame.grads[v.index];
  if (sum.failed) {
    sum = std::move(part);
    return;
  }
  for (size_t i = 0; i < sum.ranks.size(); ++i) {
    for (size_t e = 0; e < sum.ranks[i].data.size() && e < part.ranks[i].data.size(); ++e) {
      sum.ranks[i].data[e] = add(sum.ranks[i].data[e], part.ranks[i].data[e]);
    }
  }
}

// One per rank where there is a loss; otherwise random gradients of all results, cut as the duals of their types say.
void Execution::seed(Frame &frame) {
  const Function &f = functionOf(frame);
  frame.grads.assign(f.values.size(), Spread());
  frame.wholeGrads.assign(f.values.size(), std::nullopt);
  std::vector<ValueId> starts(f.results.begin(), f.results.end());
  if (module.loss) {
    starts.assign(1, module.loss->value);
  }
  for (ValueId v : starts) {
    const Type &t = *typeOf(frame, v);
    const std::optional<Type> backwards = dual(t, module.axes);
    if (!frame.whole[v.index] || isVarying(t) || !backwards || frame.wholeGrads[v.index]) {
      continue;
    }
    Tensor whole = likeTensor(*frame.whole[v.index]);
    const uint64_t key = keyOf("gradient " + nameOf(frame, v));
    for (size_t e = 0; e < whole.data.size(); ++e) {
      whole.data[e] = module.loss ? 1 : keyed(key, e);
    }
    Spread spread;
    bool done = true;
    if (module.loss) {
      spread.ranks.assign(ranks.list.size(), whole);
      spread.failed = false;
    } else if (!whole.slots) {
      done = spreadOut(whole, *backwards, key, spread);
    } else {
      for (int64_t rank : ranks.list) {
        std::optional<Tensor> part = cutSlots(whole, t, rank, module);
        const bool first = llvm::all_of(
            activeAtoms(*backwards), [&](AtomId a) { return !isPartial(stateOf(*backwards, a)) || module.axes.coordinate(rank, a) == 0; });
        done &= part.has_value();
        spread.ranks.push_back(!part ? Tensor() : first ? std::move(*part) : likeTensor(*part));
      }
      spread.failed = false;
    }
    for (AtomId a : activeAtoms(t)) { // the gradient of a mean of n values is 1/n for each
      if (stateOf(t, a) == State::PAvg && !module.loss) {
        scaleSpread(spread, inverse(fromInteger(module.axes.atom(a).size)));
      }
    }
    if (done) {
      frame.grads[v.index] = std::move(spread);
      frame.wholeGrads[v.index] = std::move(whole);
    }
  }
}

void Execution::backward(Frame &frame) {
  const Function &f = functionOf(frame);
  for (uint32_t i = static_cast<uint32_t>(f.ops.size()); i-- > 0;) {
    const Op &op = f.ops[i];
    bool any = false;
    for (uint32_t r = 0; r < op.numResults; ++r) {
      any |= !frame.grads[op.firstResult + r].failed || frame.wholeGrads[op.firstResult + r];
    }
    if (!any) {
      continue;
    }
    const llvm::StringRef kernel = opInfo(op.kind).kernel;
    if (op.kind == OpKind::Call) {
      backCall(frame, i);
    } else if (kernel == "move" || kernel == "relabel") {
      backMoves(frame, i);
    } else {
      backKernel(frame, i);
    }
  }
}

void Execution::backCall(Frame &frame, uint32_t index) {
  const Function &f = functionOf(frame);
  const Op &op = f.ops[index];
  Frame &callee = *frame.callees[index];
  const Function &g = functionOf(callee);
  callee.grads.assign(g.values.size(), Spread());
  callee.wholeGrads.assign(g.values.size(), std::nullopt);
  for (uint32_t r = 0; r < op.numResults; ++r) {
    if (!frame.grads[op.firstResult + r].failed) {
      addGrad(callee, g.results[r], frame.grads[op.firstResult + r]);
    }
    if (frame.wholeGrads[op.firstResult + r]) {
      accumulate(callee.wholeGrads[g.results[r].index], *frame.wholeGrads[op.firstResult + r]);
    }
  }
  backward(callee);
  const llvm::ArrayRef<ValueId> operands = f.operandsOf(op);
  for (size_t k = 0; k < operands.size(); ++k) {
    const ValueId in = g.inputs[k];
    if (!callee.grads[in.index].failed) {
      addGrad(frame, operands[k], callee.grads[in.index]);
    }
    if (callee.wholeGrads[in.index]) {
      accumulate(frame.wholeGrads[operands[k].index], *callee.wholeGrads[in.index]);
    }
  }
}

// The gradient of one change: the declared one, the table's, or none.
bool Execution::moveBack(const Frame &frame, const Move &m, uint32_t index, Spread &g) {
  const Op &op = functionOf(frame).ops[index];
  const Type &before = module.types[m.before];
  const Type &after = module.types[m.after];
  Primitive primitive = Primitive::None;
  bool ownRows = false;
  bool overN = false;
  const Change *change = op.attrs.valid() && !m.inserted ? &module.attrs[op.attrs.index].change : nullptr;
  std::optional<std::pair<State, State>> declared;
  for (size_t p = 0; change && p < change->declaredGradient.size() && p < change->parts.size(); ++p) {
    if (change->parts[p].atoms == m.atoms) {
      declared = {change->declaredGradient[p].first.state, change->declaredGradient[p].second.state};
    }
  }
  if (declared) {
    const ChangeRow *row = findChange(declared->first, declared->second);
    primitive = row ? row->primitive : Primitive::None;
    ownRows = m.from == State::S && m.to != State::S && declared->second != State::S;
  } else if (!change || change->reinterpretReason.empty()) {
    const ChangeRow *row = findChange(m.from, m.to);
    if (!row || !row->gradient) {
      g = Spread();
      proof.cut = true; // for a parameter that is a finding of the checker's
      return true;
    }
    const ChangeRow *back = findChange(row->gradient->first, row->gradient->second);
    primitive = back ? back->primitive : Primitive::None;
    overN = row->gradientOverN;
  }
  Spread next;
  std::string error;
  bool done = exchange({primitive, &after, ownRows ? &after : &before, m.atoms}, g, ranks, module, next, error);
  if (done && ownRows) {
    g = std::move(next);
    next = Spread();
    done = exchange({Primitive::Slice, &after, &before, m.atoms}, g, ranks, module, next, error);
  }
  if (!done) {
    refute(frame, functionOf(frame).result(op), "the gradient of the change cannot run: " + error, true);
    return false;
  }
  if (overN) {
    scaleSpread(next, inverse(fromInteger(module.axes.product(m.atoms))));
  }
  g = std::move(next);
  return true;
}

void Execution::backMoves(Frame &frame, uint32_t index) {
  const Function &f = functionOf(frame);
  const Op &op = f.ops[index];
  const ValueId from = f.operandsOf(op)[0];
  if (!typeOf(frame, from)->grad) {
    return;
  }
  Spread g = frame.grads[op.firstResult];
  for (const Move &m : llvm::reverse(typed.instances[frame.instance].moves)) {
    if (m.op == index && !g.failed && !moveBack(frame, m, index, g)) {
      return;
    }
  }
  if (!g.failed) {
    if (op.attrs.valid()) { // what the framework multiplies by on the way back
      const Rational &factor = module.attrs[op.attrs.index].change.gradientScale.value;
      scaleSpread(g, multiply(fromInteger(factor.num), inverse(fromInteger(factor.den))));
    }
    addGrad(frame, from, std::move(g));
  }
  if (frame.wholeGrads[op.firstResult]) {
    accumulate(frame.wholeGrads[from.index], *frame.wholeGrads[op.firstResult]);
  }
}

// Of logits that were gathered over the vocabulary each rank keeps the columns that are its own.
void Execution::keepOwnColumns(const Type &own, Spread &g) {
  Type all = own;
  llvm::SmallVector<AtomId, 4> atoms;
  for (Factor &factor : all.dims.back().factors) {
    atoms.append(factor.atoms);
    factor.atoms.clear();
  }
  Spread kept;
  std::string error;
  if (!atoms.empty() && exchange({Primitive::Slice, &all, &own, atoms}, g, ranks, module, kept, error)) {
    g = std::move(kept);
  }
}

// Back through the moves that were inserted in front of the operation.
void Execution::moveBackInserted(Frame &frame, uint32_t index, bool loss, llvm::MutableArrayRef<Spread> parts) {
  const llvm::ArrayRef<ValueId> ids = functionOf(frame).operandsOf(functionOf(frame).ops[index]);
  if (loss && !parts[0].failed) {
    keepOwnColumns(*typeOf(frame, ids[0]), parts[0]);
  }
  for (const Move &m : llvm::reverse(typed.instances[frame.instance].moves)) {
    for (size_t k = 0; m.op == index && m.inserted && k < ids.size(); ++k) {
      if (ids[k] == m.value && !parts[k].failed) {
        moveBack(frame, m, index, parts[k]);
        break;
      }
    }
  }
}

void Execution::backKernel(Frame &frame, uint32_t index) {
  const Function &f = functionOf(frame);
  const Op &op = f.ops[index];
  const Kernel *kernel = findKernel(opInfo(op.kind).kernel);
  const llvm::ArrayRef<ValueId> ids = f.operandsOf(op);
  llvm::SmallVector<const Spread *, 4> operands;
  bool known = true;
  for (ValueId v : ids) {
    operands.push_back(&frame.values[v.index]);
    known &= frame.whole[v.index].has_value();
  }
  for (uint32_t r = 0; r < op.numResults; ++r) {
    known &= frame.whole[op.firstResult + r].has_value();
  }
  std::vector<Spread> made;
  Spread rows;
  insertedMoves(frame, index, operands, made);
  const bool loss = kernel->name == "crossEntropy";
  if (loss && gatherVocabulary(frame, index, *operands[0], rows)) {
    operands[0] = &rows;
  }
  std::vector<Spread> parts(ids.size());
  for (int64_t p = known ? -1 : 0; p < static_cast<int64_t>(ranks.list.size()); ++p) {
    Tensors results;
    llvm::SmallVector<const Tensor *, 2> grads;
    bool any = false;
    for (uint32_t r = 0; r < op.numResults; ++r) {
      const uint32_t v = op.firstResult + r;
      const bool have = typeOf(frame, ValueId(v))->grad && (p < 0 ? frame.wholeGrads[v].has_value() : !frame.grads[v].failed);
      results.push_back(p < 0 ? *frame.whole[v] : frame.values[v].ranks[static_cast<size_t>(p)]);
      grads.push_back(!have ? nullptr : p < 0 ? &*frame.wholeGrads[v] : &frame.grads[v].ranks[static_cast<size_t>(p)]);
      any |= have;
    }
    if (!any) {
      continue;
    }
    KernelCall call = kernelCall(frame, index, operands, p);
    Gradients in(ids.size());
    kernel->backward(call, results, grads, in);
    for (size_t k = 0; k < ids.size(); ++k) {
      if (!in[k] || !typeOf(frame, ids[k])->grad) {
        continue;
      }
      in[k]->dims = call.in[k]->dims;
      if (p < 0) {
        accumulate(frame.wholeGrads[ids[k].index], std::move(*in[k]));
      } else {
        parts[k].ranks.resize(ranks.list.size());
        parts[k].ranks[static_cast<size_t>(p)] = std::move(*in[k]);
        parts[k].failed = false;
      }
    }
  }
  moveBackInserted(frame, index, loss, parts);
  for (size_t k = 0; k < ids.size(); ++k) {
    if (!parts[k].failed) {
      addGrad(frame, ids[k], std::move(parts[k]));
    }
  }
}

// Inputs of the root: what their types say, where no framework's own gradient stands between.
void Execution::compareGradients(const Frame &frame) {
  const bool declared = llvm::any_of(module.attrs, [](const Attrs &a) {
    return !a.change.declaredGradient.empty() || !a.change.gradientScale.isOne() || !a.change.reinterpretReason.empty();
  });
  Element scale = 1;
  if (module.loss) {
    const Type &t = *typeOf(frame, module.loss->value);
    for (AtomId a : activeAtoms(t)) {
      scale = stateOf(t, a) == State::PAvg ? multiply(scale, fromInteger(module.axes.atom(a).size)) : scale;
    }
  }
  for (ValueId v : functionOf(frame).inputs) {
    const Type &t = *typeOf(frame, v);
    const std::optional<Type> backwards = dual(t, module.axes);
    if (declared || proof.cut || isVarying(t) || !backwards || frame.grads[v.index].failed || !frame.wholeGrads[v.index]) {
      continue;
    }
    Tensor whole = *frame.wholeGrads[v.index];
    Element own = scale;
    for (AtomId a : activeAtoms(t)) {
      own = stateOf(t, a) == State::PAvg ? multiply(own, inverse(fromInteger(module.axes.atom(a).size))) : own;
    }
    for (Element &e : whole.data) {
      e = multiply(e, own);
    }
    ++proof.compared;
    std::string wrong = compareSpread(frame.grads[v.index], whole, *backwards, ranks, module);
    if (!wrong.empty()) {
      refute(frame, v, std::move(wrong), true);
    }
  }
}

} // namespace shardc
