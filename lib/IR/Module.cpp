// Module: how operations and values are added to a function.
//
// What operations mean is said by Ops.def and the phases that read it.
#include "shardc/IR/Module.h"

namespace shardc {

ValueId addValue(Function &f, NameId name, ValueKind kind, TypeId declared, SourceRange range) {
  const ValueId id(f.values.size());
  f.values.push_back({name, kind, declared, range, declared.valid() ? range : SourceRange()});
  switch (kind) {
  case ValueKind::Result:
    break;
  case ValueKind::Input:
    f.inputs.push_back(id);
    break;
  case ValueKind::Param:
    f.params.push_back(id);
    break;
  }
  return id;
}

Op &addOp(Function &f, OpKind kind, llvm::ArrayRef<ValueId> operands, llvm::ArrayRef<NameId> resultNames, SourceRange range) {
  Op op;
  op.kind = kind;
  op.firstOperand = static_cast<uint32_t>(f.operands.size());
  op.numOperands = static_cast<uint32_t>(operands.size());
  op.firstResult = static_cast<uint32_t>(f.values.size());
  op.numResults = static_cast<uint32_t>(resultNames.size());
  op.range = range;
  f.operands.insert(f.operands.end(), operands.begin(), operands.end());
  for (NameId name : resultNames) {
    addValue(f, name, ValueKind::Result, TypeId(), range);
  }
  f.ops.push_back(op);
  return f.ops.back();
}

} // namespace shardc
