// Loss: cross entropy whose vocabulary may be sharded.
//
// Over axes that shard the vocabulary the kernel itself reduces maximum, sum and target logit, so every rank of them ends
// with the same loss and its gradient stays with its own logits: logits `S(v)`, labels `I`, loss `I`. Over all other axes
// the row's rule holds.
#include "Typing.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc {

Typed typeLoss(TypingContext &context, Operands operands) {
  if (operands[0]->dims.empty()) {
    return failed(FaultKind::Rank, 0, 0, {}, {}, "1 or more");
  }
  Type logits = *operands[0];
  Dim &vocabulary = logits.dims.back();
  for (Factor &f : vocabulary.factors) {
    if (f.pad != Pad::None) {
      return failed(FaultKind::UnknownPad, 0, 0, f.atoms, dimName(vocabulary, context.module));
    }
    llvm::SmallVector<AtomId, 4> atoms = std::move(f.atoms);
    f.atoms.clear();
    for (AtomId a : atoms) {
      setState(logits, a, State::I);
    }
  }
  const Attrs *attrs = context.op.attrs.valid() ? &context.module.attrs[context.op.attrs.index] : nullptr;
  llvm::StringRef reduction = attrs ? attrs->option("reduction").value_or("sum") : "sum";
  if (reduction != "sum" && reduction != "mean") {
    return failed(FaultKind::BadAttribute, 0, 0, {}, {}, "`reduction` must be `sum` or `mean`");
  }
  Reducer reducer = reduction == "mean" ? Reducer::Mean : Reducer::Sum;
  Typed typed = typeByRule(context, opRule(OpKind::CrossEntropy), Linear{}, reducer, {&logits, operands[1]});
  for (Type &t : typed.results) {
    t.dtype = DType::F32;
    t.grad = operands[0]->grad;
  }
  return typed;
}

} // namespace shardc
