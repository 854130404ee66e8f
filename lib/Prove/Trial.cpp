// Trials of rejected operations. See the header.
#include "Trial.h"
#include "Execution.h"
#include "shardc/IR/Text.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc {

// The results of one run of the last operation, by layouts that fit.
bool Execution::trial(std::vector<Type> &layouts, bool first) {
  Frame frame;
  frame.instance = typed.root;
  const Function &f = functionOf(frame);
  frame.values.resize(f.values.size());
  frame.whole.resize(f.values.size());
  const auto last = static_cast<uint32_t>(f.ops.size() - 1);
  const Op &op = f.ops[last];
  const Kernel *kernel = findKernel(opInfo(op.kind).kernel);
  if (!kernel || kernel->name == "crossEntropy" || !makeRoots(frame) || !forwardTo(frame, last) || !proof.refutations.empty()) {
    return false;
  }
  llvm::SmallVector<const Spread *, 4> operands;
  for (ValueId v : f.operandsOf(op)) {
    operands.push_back(&frame.values[v.index]);
    if (!frame.whole[v.index] || !typeOf(frame, v)) {
      return false;
    }
  }
  Spread result;
  std::optional<Tensor> whole;
  for (int64_t p = -1; p < static_cast<int64_t>(ranks.list.size()); ++p) {
    KernelCall call = kernelCall(frame, last, operands, p);
    call.outTypes.assign(call.outTypes.size(), nullptr);
    Tensors out;
    if (!kernel->forward(call, out)) {
      layouts.clear();
      return p >= 0; // ranks that cannot run it: rightly rejected
    }
    if (p < 0) {
      whole = std::move(out[0]);
    } else {
      result.ranks.push_back(std::move(out[0]));
    }
  }
  result.failed = false;
  if (whole->slots) {
    return false;
  }
  if (first) {
    layouts = allLayouts(*whole);
  }
  llvm::erase_if(layouts, [&](const Type &t) {
    for (size_t i = 0; i < result.ranks.size(); ++i) {
      const Shape dims = localDims(t, ranks.list[i], module.axes);
      for (size_t d = 0; d < dims.size(); ++d) {
        if (d >= result.ranks[i].dims.size() || product(dims[d]) != result.ranks[i].extent(d)) {
          return true;
        }
      }
    }
    return !compareSpread(result, *whole, t, ranks, module).empty();
  });
  return true;
}

// Every layout of a value of this shape on the atoms of the first variants: R, a partial sum, or a shard of one factor.
std::vector<Type> Execution::allLayouts(const Tensor &whole) const {
  Type plain;
  plain.dtype = DType::F32;
  for (const Extents &dim : whole.dims) {
    Dim d;
    for (int64_t e : dim) {
      d.factors.emplace_back();
      d.factors.back().extent = e;
    }
    plain.dims.push_back(std::move(d));
  }
  std::vector<Type> list = {plain};
  for (size_t a = 0; a < module.axes.atoms().size(); ++a) {
    if (module.axes.atoms()[a].variant != 0) {
      continue;
    }
    std::vector<Type> next;
    for (const Type &t : list) {
      for (State s : {State::R, State::P, State::PAvg, State::PMax, State::PMin}) {
        next.push_back(t);
        setState(next.back(), AtomId(a), s);
      }
      for (size_t d = 0; d < t.dims.size(); ++d) {
        for (size_t k = 0; k < t.dims[d].factors.size(); ++k) {
          next.push_back(t);
          next.back().dims[d].factors[k].atoms.push_back(AtomId(a));
          if (t.dims[d].factors[k].atoms.size() == 1) {
            next.push_back(t);
            auto &atoms = next.back().dims[d].factors[k].atoms;
            atoms.insert(atoms.begin(), AtomId(a));
          }
        }
      }
    }
    list = std::move(next);
  }
  return list;
}

TrialResult tryLastOperation(const TypedModule &typed, uint64_t seed) {
  TrialResult result;
  std::vector<Type> layouts;
  for (uint64_t i = 0; i < 8; ++i) {
    const ProveOptions options{seed + i, false, true};
    Proof proof;
    result.ran = Execution(typed, options, proof).trial(layouts, i == 0);
    if (!result.ran || layouts.empty()) {
      return result;
    }
  }
  // Prefer what says least: the first in the list has the most axes replicated.
  result.layout = print(layouts.front(), typed.module);
  return result;
}

} // namespace shardc
