// Kernels: what each operation computes on one rank from local tensors alone, and its reverse-mode derivative.
//
// A row of Ops.def gives a name, letters and a kernel; which axes a kernel works over is written here a second time, on
// purpose: nothing of what the checker concludes from a row is used. Nonlinear functions are keyed random functions, whose
// derivatives are further keyed functions, so that the chain rule is exercised.
#pragma once

#include "Tensor.h"

namespace shardc {

struct KernelCall {
  const Module *module = nullptr;
  const Op *op = nullptr;
  const Attrs *attrs = nullptr;
  llvm::SmallVector<const Tensor *, 4> in;
  llvm::SmallVector<const Type *, 4> inTypes;  // for the offsets that a kernel is given, and nothing else
  llvm::SmallVector<const Type *, 2> outTypes; // for the local extents of dimensions that the operation makes
  int64_t rank = -1;                           // -1: one device
  uint64_t site = 0;                           // tells calls apart: the key of a dropout
  std::string error;

  bool fail(std::string text) {
    error = std::move(text);
    return false;
  }
  std::optional<llvm::StringRef> option(llvm::StringRef key) const { return attrs ? attrs->option(key) : std::nullopt; }
  const Axes &axes() const { return module->axes; }
  // The dimension that option `dim` names, or the fallback, counted from the end if negative.
  std::optional<size_t> dimension(const Tensor &t, int64_t fallback) const;
  // Local dimensions of a result by its type.
  std::optional<Shape> resultDims(size_t result) const;
};

using Tensors = llvm::SmallVector<Tensor, 2>;
using Gradients = llvm::SmallVector<std::optional<Tensor>, 4>;

struct Kernel {
  llvm::StringRef name;
  // False, with call.error, where local shapes do not fit together.
  bool (*forward)(KernelCall &call, Tensors &out);
  // Adds nothing where no gradient flows. `grads[i]` is null where none reaches result i.
  void (*backward)(KernelCall &call, llvm::ArrayRef<Tensor> out, llvm::ArrayRef<const Tensor *> grads, Gradients &in);
};
// The kernel of an operation; null for moves and calls, which no kernel computes.
const Kernel *findKernel(llvm::StringRef name);

// One table per file.
llvm::ArrayRef<Kernel> pointKernels();
llvm::ArrayRef<Kernel> contractKernels();
llvm::ArrayRef<Kernel> rowKernels();
llvm::ArrayRef<Kernel> viewKernels();
llvm::ArrayRef<Kernel> expertKernels();
llvm::ArrayRef<Kernel> attentionKernels();

// The key of an operation's random function: by its name, so that it is the same in every program.
uint64_t kernelKey(const KernelCall &call);
// The constant written in a call, from the sizes of the module.
Element constantOf(const KernelCall &call, llvm::StringRef text);
// Where each element of a local tensor stands in the whole one, row-major.
std::vector<uint64_t> wholeIndices(const Tensor &t, const Type *type, int64_t rank, const Module &module);
// Positions of the local elements of one dimension in the whole; 0, 1, ... where the type does not say.
std::vector<int64_t> wholePositions(const Type *type, size_t dim, int64_t local, int64_t rank, const Axes &axes);
// Adds b to a gradient that may not exist yet.
void accumulate(std::optional<Tensor> &sum, Tensor part);
bool sameExtents(const Tensor &a, const Tensor &b);

} // namespace shardc
