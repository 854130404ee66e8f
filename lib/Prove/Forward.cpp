// Forward: every operation on every rank and on one device; each value is compared as soon as it is there.
#include "Execution.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

namespace shardc {

std::string Execution::nameOf(const Frame &f, ValueId v) const {
  std::string name = module.names.str(functionOf(f).values[v.index].name).str();
  if (name.empty()) {
    const Function &function = functionOf(f);
    for (const Op &op : function.ops) {
      if (op.firstResult <= v.index && v.index < op.firstResult + op.numResults) {
        name = opInfo(op.kind).name.str();
      }
    }
  }
  return f.path.empty() ? name : f.path + "." + name;
}

bool Execution::unable(SourceRange where, std::string why) {
  if (proof.unable.empty()) {
    proof.unable = std::move(why);
    proof.where = where;
  }
  return false;
}

void Execution::refute(const Frame &f, ValueId v, std::string text, bool gradient) {
  proof.refutations.push_back({nameOf(f, v), std::move(text), functionOf(f).values[v.index].range, gradient});
}

void Execution::run() {
  proof.ranks = static_cast<int64_t>(ranks.list.size());
  const Instance &root = typed.instances[typed.root];
  Frame frame;
  frame.instance = typed.root;
  const size_t n = module.function(root.function).values.size();
  frame.values.resize(n);
  frame.whole.resize(n);
  if (!makeRoots(frame) || !forward(frame) || !options.backward) {
    return;
  }
  seed(frame);
  backward(frame);
  compareGradients(frame);
  judgeParameters(frame);
}

bool Execution::forwardTo(Frame &frame, uint32_t end) {
  const Function &f = functionOf(frame);
  if (!makeParams(frame)) {
    return false;
  }
  frame.callees.resize(f.ops.size());
  for (uint32_t i = 0; i < end; ++i) {
    const Op &op = f.ops[i];
    const bool typedAll = llvm::all_of(llvm::seq<uint32_t>(op.firstResult, op.firstResult + op.numResults),
                                       [&](uint32_t v) { return typeOf(frame, ValueId(v)) != nullptr; });
    if (!typedAll) {
      return unable(op.range, "a value has no type");
    }
    const llvm::StringRef kernel = opInfo(op.kind).kernel;
    const bool done = op.kind == OpKind::Call                   ? runCall(frame, i)
                      : kernel == "move" || kernel == "relabel" ? runMoves(frame, i)
                                                                : runKernel(frame, i);
    if (!done) {
      return false;
    }
    for (uint32_t r = 0; r < op.numResults && op.kind != OpKind::Call; ++r) {
      compareValue(frame, f.result(op, r));
    }
  }
  return true;
}

void Execution::compareValue(const Frame &frame, ValueId v) {
  const Type &t = *typeOf(frame, v);
  const Spread &value = frame.values[v.index];
  ++proof.compared;
  for (const Tensor &part : value.ranks) {
    proof.elements += part.size();
  }
  if (!frame.whole[v.index] && !isVarying(t)) {
    return;
  }
  const Tensor nothing;
  std::string wrong = compareSpread(value, frame.whole[v.index] ? *frame.whole[v.index] : nothing, t, ranks, module);
  if (!wrong.empty()) {
    refute(frame, v, std::move(wrong), false);
  }
}

bool Execution::runCall(Frame &frame, uint32_t index) {
  const Function &f = functionOf(frame);
  const Op &op = f.ops[index];
  auto callee = std::make_unique<Frame>();
  callee->instance = typed.instances[frame.instance].callees[index];
  const llvm::StringRef name = module.names.str(op.instance);
  callee->path = frame.path.empty() ? name.str() : frame.path + "." + name.str();
  const Function &g = module.function(op.callee);
  callee->values.resize(g.values.size());
  callee->whole.resize(g.values.size());
  const llvm::ArrayRef<ValueId> operands = f.operandsOf(op);
  for (size_t k = 0; k < operands.size(); ++k) {
    callee->values[g.inputs[k].index] = frame.values[operands[k].index];
    callee->whole[g.inputs[k].index] = frame.whole[operands[k].index];
  }
  if (!forward(*callee)) {
    return false;
  }
  for (uint32_t r = 0; r < op.numResults; ++r) {
    frame.values[op.firstResult + r] = callee->values[g.results[r].index];
    frame.whole[op.firstResult + r] = callee->whole[g.results[r].index];
  }
  frame.callees[index] = std::move(callee);
  return true;
}

bool Execution::runMoves(Frame &frame, uint32_t index) {
  const Function &f = functionOf(frame);
  const Op &op = f.ops[index];
  const ValueId from = f.operandsOf(op)[0];
  const ValueId to = f.result(op);
  Spread value = frame.values[from.index];
  bool asserted = false;
  for (const Move &m : typed.instances[frame.instance].moves) {
    if (m.op != index) {
      continue;
    }
    asserted |= m.from == State::V || op.kind == OpKind::Reinterpret;
    Spread next;
    std::string error;
    if (!exchange({m.forward, &module.types[m.before], &module.types[m.after], m.atoms}, value, ranks, module, next, error)) {
      refute(frame, to, "the change cannot run: " + error, false);
      return unable(op.range, "");
    }
    value = std::move(next);
  }
  frame.values[to.index] = std::move(value);
  frame.whole[to.index] = frame.whole[from.index];
  const Type &t = *typeOf(frame, to);
  if (isVarying(t)) {
    return true; // what one device has stays, for an assertion to be compared with
  }
  if (asserted && (options.believeAssertions || !frame.whole[to.index])) {
    frame.whole[to.index] = assemble(frame.values[to.index], t);
    proof.cut = true;
  }
  return true;
}

bool Execution::adopt(Tensor &t, const Type &type, int64_t rank) const {
  const Shape dims = localDims(type, rank, module.axes);
  bool fits = dims.size() == t.dims.size();
  for (size_t d = t.slots ? 2 : 0; fits && d < dims.size(); ++d) {
    fits = product(dims[d]) == t.extent(d);
  }
  if (!fits && rank < 0 && dims.size() == t.dims.size()) { // one device does not pad what only the ranks pad
    Type plain = type;
    for (Dim &d : plain.dims) {
      for (Factor &f : d.factors) {
        f.padTo = 0;
      }
    }
    const Shape shorter = localDims(plain, rank, module.axes);
    for (size_t d = t.slots ? 2 : 0; d < dims.size(); ++d) {
      t.dims[d] = product(shorter[d]) == t.extent(d) ? shorter[d] : product(dims[d]) == t.extent(d) ? dims[d] : t.dims[d];
    }
    return true;
  }
  for (size_t d = t.slots ? 2 : 0; fits && d < dims.size(); ++d) {
    t.dims[d] = dims[d];
  }
  return fits;
}

KernelCall Execution::kernelCall(const Frame &frame, uint32_t index, llvm::ArrayRef<const Spread *> operands, int64_t position) {
  const Function &f = functionOf(frame);
  const Op &op = f.ops[index];
  KernelCall call;
  call.module = &module;
  call.op = &op;
  call.attrs = op.attrs.valid() ? &module.attrs[op.attrs.index] : nullptr;
  call.rank = position < 0 ? -1 : ranks.list[static_cast<size_t>(position)];
  call.site = keyedWord(keyOf(frame.path), index);
  const llvm::ArrayRef<ValueId> ids = f.operandsOf(op);
  for (size_t k = 0; k < ids.size(); ++k) {
    call.in.push_back(position < 0 ? &*frame.whole[ids[k].index] : &operands[k]->ranks[static_cast<size_t>(position)]);
    call.inTypes.push_back(typeOf(frame, ids[k]));
  }
  for (uint32_t r = 0; r < op.numResults; ++r) {
    call.outTypes.push_back(typeOf(frame, f.result(op, r)));
  }
  return call;
}

// A kernel whose rows are spread over ranks is fed all of them by a side channel.
bool Execution::gatherVocabulary(const Frame &frame, uint32_t index, const Spread &logits, Spread &rows) {
  const ValueId v = functionOf(frame).operandsOf(functionOf(frame).ops[index])[0];
  const Type &before = *typeOf(frame, v);
  Type after = before;
  llvm::SmallVector<AtomId, 4> atoms;
  for (Factor &f : after.dims.back().factors) {
    atoms.append(f.atoms);
    f.atoms.clear();
  }
  rows = logits;
  std::string error;
  return atoms.empty() || exchange({Primitive::AllGather, &before, &after, atoms}, logits, ranks, module, rows, error);
}

bool Execution::insertedMoves(Frame &frame, uint32_t index, llvm::SmallVectorImpl<const Spread *> &operands, std::vector<Spread> &made) {
  const llvm::ArrayRef<ValueId> ids = functionOf(frame).operandsOf(functionOf(frame).ops[index]);
  made.reserve(ids.size());
  for (const Move &m : typed.instances[frame.instance].moves) {
    if (m.op != index || !m.inserted) {
      continue;
    }
    for (size_t k = 0; k < ids.size(); ++k) {
      if (ids[k] != m.value) {
        continue;
      }
      Spread next;
      std::string error;
      if (!exchange({m.forward, &module.types[m.before], &module.types[m.after], m.atoms}, *operands[k], ranks, module, next, error)) {
        refute(frame, m.value, "the change cannot run: " + error, false);
        return false;
      }
      made.push_back(std::move(next));
      operands[k] = &made.back();
      break;
    }
  }
  return true;
}

// What one device cannot run either says nothing about layouts: no kernel takes slots there.
bool Execution::cannotRun(const Frame &frame, const Op &op, const KernelCall &call, bool known) {
  const std::string name = "`" + opInfo(op.kind).name.str() + "`: " + call.error;
  if (call.rank < 0) {
    return unable(op.range, "one device cannot run " + name);
  }
  if (!known && llvm::any_of(call.in, [](const Tensor *t) { return t->slots != nullptr; })) {
    return unable(op.range, "slots cannot run through " + name);
  }
  refute(frame, functionOf(frame).result(op), llvm::formatv("rank {0} cannot run {1}", call.rank, name).str(), false);
  return unable(op.range, "");
}

bool Execution::runKernel(Frame &frame, uint32_t index) {
  const Function &f = functionOf(frame);
  const Op &op = f.ops[index];
  const Kernel *kernel = findKernel(opInfo(op.kind).kernel);
  if (!kernel) {
    return unable(op.range, "no kernel computes `" + opInfo(op.kind).name.str() + "`");
  }
  llvm::SmallVector<const Spread *, 4> operands;
  bool known = true;
  for (ValueId v : f.operandsOf(op)) {
    operands.push_back(&frame.values[v.index]);
    known &= frame.whole[v.index].has_value();
  }
  // One device has no rank, and no generator per rank.
  known &= op.kind != OpKind::RankIndex &&
           !(op.kind == OpKind::Dropout && module.attrs[op.attrs.index].option("seed") == llvm::StringRef("rank"));
  std::vector<Spread> made;
  if (!insertedMoves(frame, index, operands, made)) {
    return unable(op.range, "");
  }
  Spread rows;
  if (kernel->name == "crossEntropy") {
    if (!gatherVocabulary(frame, index, *operands[0], rows)) {
      return unable(op.range, "the vocabulary's shards cannot be put together");
    }
    operands[0] = &rows;
  }
  const bool varies = isVarying(*typeOf(frame, f.result(op)));
  for (int64_t p = -1; p < static_cast<int64_t>(ranks.list.size()); ++p) {
    if (p < 0 && !known) {
      continue;
    }
    KernelCall call = kernelCall(frame, index, operands, p);
    Tensors results;
    const bool done = kernel->forward(call, results);
    if (!done && (p >= 0 || !varies)) {
      return cannotRun(frame, op, call, known);
    }
    for (uint32_t r = 0; done && r < op.numResults; ++r) {
      const Type &t = *typeOf(frame, f.result(op, r));
      if (!adopt(results[r], t, call.rank) && p >= 0) {
        refute(frame, f.result(op, r), llvm::formatv("rank {0} has another local shape than the type says", call.rank).str(), false);
        return unable(op.range, "");
      }
      if (p < 0) {
        frame.whole[op.firstResult + r] = std::move(results[r]);
      } else {
        frame.values[op.firstResult + r].ranks.push_back(std::move(results[r]));
        frame.values[op.firstResult + r].failed = false;
      }
    }
  }
  return true;
}

Proof prove(const TypedModule &typed, const ProveOptions &options) {
  Proof proof;
  Execution(typed, options, proof).run();
  return proof;
}

std::optional<int64_t> proofElements(const TypedModule &typed) {
  int64_t total = 0;
  for (const Instance &instance : typed.instances) {
    for (TypeId t : instance.values) {
      std::optional<int64_t> n = t.valid() ? maxLocalElements(typed.module.types[t], typed.module.axes) : std::optional<int64_t>(0);
      if (!n) { // slots: as many as their other dimensions say, and a few rows
        n = 0;
      }
      if (__builtin_mul_overflow(*n, instance.uses, &*n) || __builtin_mul_overflow(*n, typed.module.axes.world(), &*n) ||
          __builtin_add_overflow(total, *n, &total)) {
        return std::nullopt;
      }
    }
  }
  return total;
}

} // namespace shardc
