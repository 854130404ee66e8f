// Kernels that show the same elements under other dimensions, join or cut them, or make values from nothing.
//
// Locally a view is a view: row-major elements under other extents. How many of a new dimension's elements are local is read
// from the result's type, as a framework is told; that they are the right ones is for the comparison to find out.
#include "Kernels.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc {
namespace {

std::vector<int64_t> count(int64_t from, int64_t to) {
  std::vector<int64_t> out(static_cast<size_t>(std::max<int64_t>(to - from, 0)));
  std::iota(out.begin(), out.end(), from);
  return out;
}

bool isSize(const Shape &dims, int64_t size) {
  int64_t n = 1;
  for (const Extents &d : dims) {
    for (int64_t e : d) {
      n *= e;
    }
  }
  return n == size;
}

bool reshape(KernelCall &call, Tensors &out) {
  const Tensor &x = *call.in[0];
  std::optional<Shape> dims = call.resultDims(0);
  if (call.op->kind == OpKind::Merge && !dims) {
    const std::optional<size_t> d = call.dimension(x, -2);
    dims = x.dims;
    (*dims)[*d].append(x.dims[*d + 1]);
    dims->erase(dims->begin() + static_cast<std::ptrdiff_t>(*d) + 1);
  }
  if (!dims || x.slots || !isSize(*dims, x.size())) {
    return call.fail("the view has another number of local elements");
  }
  Tensor y = x;
  y.dims = *dims;
  out.push_back(std::move(y));
  return true;
}

llvm::SmallVector<size_t, 4> orderOf(const KernelCall &call, size_t n) {
  llvm::SmallVector<size_t, 4> order;
  for (int64_t d : call.attrs->ints) {
    order.push_back(static_cast<size_t>(d < 0 ? d + static_cast<int64_t>(n) : d));
  }
  return order;
}

Tensor transpose(const Tensor &x, llvm::ArrayRef<size_t> order) {
  Tensor y;
  llvm::SmallVector<size_t, 4> strides;
  for (size_t d : order) {
    y.dims.push_back(x.dims[d]);
    strides.push_back(static_cast<size_t>(x.inner(d + 1)));
  }
  y.data.resize(x.data.size());
  for (size_t e = 0; e < y.data.size(); ++e) {
    size_t rest = e;
    size_t from = 0;
    for (size_t d = order.size(); d-- > 0;) {
      from += rest % static_cast<size_t>(y.extent(d)) * strides[d];
      rest /= static_cast<size_t>(y.extent(d));
    }
    y.data[e] = x.data[from];
  }
  return y;
}

// Element i of the last factor becomes element i + n of it; zeros where there is none.
std::vector<int64_t> shifted(const Tensor &x, int64_t n) {
  const int64_t l = x.dims.back().empty() ? 1 : x.dims.back().back();
  std::vector<int64_t> out;
  for (int64_t i = 0; i < x.extent(x.dims.size() - 1); ++i) {
    const int64_t at = i % l + n;
    out.push_back(at >= 0 && at < l ? i - i % l + at : -1);
  }
  return out;
}

bool concatenate(KernelCall &call, Tensors &out) {
  const std::optional<size_t> d = call.dimension(*call.in[0], -1);
  std::vector<std::vector<int64_t>> positions;
  int64_t extent = 0;
  for (const Tensor *t : call.in) {
    bool fits = d && t->dims.size() == call.in[0]->dims.size() && !t->slots;
    for (size_t i = 0; fits && i < t->dims.size(); ++i) {
      fits = i == *d || t->extent(i) == call.in[0]->extent(i);
    }
    if (!fits) {
      return call.fail("local shapes differ");
    }
    positions.push_back(count(extent, extent + t->extent(*d)));
    extent += t->extent(*d);
  }
  out.push_back(place(call.in, *d, positions, extent));
  return true;
}

// Which elements of the dimension stay, one list per result.
bool selections(KernelCall &call, size_t &dim, std::vector<std::vector<int64_t>> &lists) {
  const Tensor &x = *call.in[0];
  const std::optional<size_t> d = call.dimension(x, -1);
  if (!d || x.dims.empty()) {
    return call.fail("there is no such dimension");
  }
  dim = *d;
  const int64_t have = x.extent(dim);
  const bool ownSlots = x.slots && dim < 2;
  switch (call.op->kind) {
  case OpKind::Slice:
    if (ownSlots || call.attrs->ints[1] > have) {
      return call.fail("the slice is not within the local extent");
    }
    lists.push_back(count(call.attrs->ints[0], call.attrs->ints[1]));
    return true;
  case OpKind::Shift:
    lists.push_back(shifted(x, call.attrs->ints.empty() ? 1 : call.attrs->ints[0]));
    return !ownSlots || call.fail("slots cannot be shifted");
  case OpKind::Pad:
  case OpKind::Trim: {
    const std::optional<Shape> dims = call.resultDims(0);
    const bool pad = call.op->kind == OpKind::Pad;
    // On one device the attribute says how long the result is; on a rank its type does.
    const int64_t want = dims ? product((*dims)[dim]) : pad ? call.attrs->ints[0] : have;
    if (pad && want < have) {
      return call.fail("the local extent is longer than the padded one");
    }
    if (ownSlots || want < 0) {
      return call.fail("slots cannot be padded here");
    }
    lists.push_back(count(0, std::min(have, want)));
    lists.back().resize(static_cast<size_t>(want), -1);
    return true;
  }
  default: { // unfuse
    int64_t at = 0;
    for (size_t r = 0; r < call.op->numResults; ++r) {
      const std::optional<Shape> dims = call.resultDims(r);
      const int64_t n = dims && !dims->empty() ? product(dims->back()) : -1;
      if (n < 0 || at + n > have) {
        return call.fail("the parts are longer than the local extent");
      }
      lists.push_back(count(at, at + n));
      at += n;
    }
    return at == have || call.fail("the parts are shorter than the local extent");
  }
  }
}

bool viewForward(KernelCall &call, Tensors &out) {
  switch (call.op->kind) {
  case OpKind::Merge:
  case OpKind::Split:
  case OpKind::Reshape:
    return reshape(call, out);
  case OpKind::Transpose:
    if (call.in[0]->slots) {
      return call.fail("slots cannot be transposed");
    }
    out.push_back(transpose(*call.in[0], orderOf(call, call.in[0]->dims.size())));
    return true;
  case OpKind::Concat:
    return concatenate(call, out);
  default:
    break;
  }
  size_t dim = 0;
  std::vector<std::vector<int64_t>> lists;
  if (!selections(call, dim, lists)) {
    return false;
  }
  for (const std::vector<int64_t> &list : lists) {
    out.push_back(pick(*call.in[0], dim, list));
    if (call.op->kind == OpKind::Shift) {
      out.back().dims = call.in[0]->dims;
    }
  }
  return true;
}

void viewBackward(KernelCall &call, llvm::ArrayRef<Tensor>, llvm::ArrayRef<const Tensor *> grads, Gradients &in) {
  const Tensor &x = *call.in[0];
  switch (call.op->kind) {
  case OpKind::Merge:
  case OpKind::Split:
  case OpKind::Reshape:
    in[0] = *grads[0];
    in[0]->dims = x.dims;
    return;
  case OpKind::Transpose: {
    const llvm::SmallVector<size_t, 4> order = orderOf(call, x.dims.size());
    llvm::SmallVector<size_t, 4> back(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      back[order[i]] = i;
    }
    in[0] = transpose(*grads[0], back);
    return;
  }
  case OpKind::Concat: {
    const std::optional<size_t> d = call.dimension(x, -1);
    int64_t at = 0;
    for (size_t i = 0; i < call.in.size(); ++i) {
      const int64_t n = call.in[i]->extent(*d);
      in[i] = pick(*grads[0], *d, count(at, at + n));
      in[i]->dims = call.in[i]->dims;
      at += n;
    }
    return;
  }
  default:
    break;
  }
  size_t dim = 0;
  std::vector<std::vector<int64_t>> lists;
  if (!selections(call, dim, lists)) {
    return;
  }
  for (size_t r = 0; r < lists.size(); ++r) {
    if (grads[r]) {
      Tensor g = place({grads[r]}, dim, {lists[r]}, x.extent(dim));
      g.dims = x.dims;
      accumulate(in[0], std::move(g));
    }
  }
}

bool fillForward(KernelCall &call, Tensors &out) {
  if (call.op->kind == OpKind::RankIndex) {
    Tensor t = makeTensor({});
    const Axis *axis = call.axes().find(call.attrs->text);
    t.data[0] = axis && call.rank >= 0 ? static_cast<Element>(call.axes().coordinate(call.rank, axis->atoms)) : 0;
    out.push_back(std::move(t));
    return true;
  }
  const std::optional<Shape> dims = call.resultDims(0);
  if (!dims || llvm::any_of(*dims, [](const Extents &d) { return product(d) < 0; })) {
    return call.fail("the dimensions are not known");
  }
  Tensor t = makeTensor(*dims);
  for (size_t e = 0; e < t.data.size(); ++e) {
    t.data[e] = call.op->kind == OpKind::Ones ? 1 : call.op->kind == OpKind::Arange ? e : 0;
  }
  out.push_back(std::move(t));
  return true;
}

void noBackward(KernelCall &, llvm::ArrayRef<Tensor>, llvm::ArrayRef<const Tensor *>, Gradients &) {}

// Comparisons of two, and rows with a one at the index: the part of the new dimension that the result's type gives.
bool compareForward(KernelCall &call, Tensors &out) {
  if (call.op->kind != OpKind::OneHot) {
    return findKernel("elementwise")->forward(call, out);
  }
  const std::optional<Shape> dims = call.resultDims(0);
  if (!dims || call.in[0]->slots) {
    return call.fail("the dimensions are not known");
  }
  const int64_t n = product(dims->back());
  const std::vector<int64_t> held = wholePositions(call.outTypes[0], dims->size() - 1, n, call.rank, call.axes());
  Tensor y;
  y.dims = call.in[0]->dims;
  y.dims.push_back({n});
  for (Element id : call.in[0]->data) {
    for (int64_t h : held) {
      y.data.push_back(static_cast<int64_t>(id) == h);
    }
  }
  out.push_back(std::move(y));
  return true;
}

constexpr Kernel kernels[] = {
    {"view", viewForward, viewBackward}, {"fill", fillForward, noBackward}, {"compare", compareForward, noBackward}};

} // namespace

llvm::ArrayRef<Kernel> viewKernels() { return kernels; }

} // namespace shardc
