// CatalogCount: how many parameters a program has on one device.
//
// A function's own are counted once per instance of it; several calls of one instance (an output layer that two heads share)
// are one module. Buffers are no parameters: nothing trains them.
#include "shardc/Frontend/Catalog.h"
#include "llvm/ADT/DenseSet.h"

namespace shardc {
namespace {

// Sums and products that stop at the largest number instead of overflowing.
int64_t plus(int64_t a, int64_t b) {
  int64_t r = 0;
  return __builtin_add_overflow(a, b, &r) ? INT64_MAX : r;
}
int64_t times(int64_t a, int64_t b) {
  int64_t r = 0;
  return __builtin_mul_overflow(a, b, &r) ? INT64_MAX : r;
}

int64_t elements(const Type &type) {
  int64_t n = 1;
  for (const Dim &dim : type.dims) {
    int64_t extent = dim.concat ? 0 : 1;
    for (const Factor &f : dim.factors) {
      int64_t size = std::max<int64_t>(f.extent, 0);
      extent = dim.concat ? plus(extent, size) : times(extent, size);
    }
    n = times(n, extent);
  }
  return n;
}

// Functions call only those that were made before or are made while they are; a function never calls itself.
int64_t count(const Module &module, FunctionId id, std::vector<int64_t> &known) {
  int64_t &memo = known[id.index];
  if (memo >= 0) {
    return memo;
  }
  const Function &f = module.function(id);
  int64_t n = 0;
  for (ValueId param : f.params) {
    const Type &type = module.types[f.values[param.index].declared];
    n = type.grad ? plus(n, elements(type)) : n;
  }
  llvm::DenseSet<NameId> seen;
  for (const Op &op : f.ops) {
    if (op.kind == OpKind::Call && op.callee.valid() && seen.insert(op.instance).second) {
      n = plus(n, count(module, op.callee, known));
    }
  }
  return memo = n;
}

} // namespace

int64_t countParameters(const Module &module) {
  std::vector<int64_t> known(module.functions.size(), -1);
  return module.root.valid() ? count(module, module.root, known) : 0;
}

} // namespace shardc
