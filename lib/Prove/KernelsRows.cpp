// Kernels that see whole rows: norms, softmax, rotary embedding, look-ups, reductions.
//
// A norm or softmax is a keyed function of the exact row that it sees: half a row has another image than the row. What it
// sees is the multiset of the row's elements, so an order of its own changes nothing. Its Jacobian is a keyed rank-one
// matrix and a keyed diagonal.
#include "Kernels.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc {
namespace {

uint64_t multiset(uint64_t key, const Element *x, size_t n) {
  uint64_t sum = n;
  for (size_t i = 0; i < n; ++i) {
    sum += keyedWord(key, x[i]);
  }
  return sum;
}

// The whole tensor is one row of a vector norm; otherwise the last dimension is.
size_t rowWidth(const KernelCall &call) {
  const Tensor &x = *call.in[0];
  return call.op->kind == OpKind::VectorNorm ? x.data.size() : static_cast<size_t>(x.extent(x.dims.size() - 1));
}

bool givesScalars(OpKind k) { return llvm::is_contained({OpKind::LogSumExp, OpKind::Variance, OpKind::VectorNorm, OpKind::NanSum}, k); }

bool rowForward(KernelCall &call, Tensors &out) {
  const Tensor &x = *call.in[0];
  if (x.dims.empty() && call.op->kind != OpKind::VectorNorm) {
    return call.fail("there is no row");
  }
  const uint64_t key = kernelKey(call);
  const size_t n = rowWidth(call);
  const size_t rows = n == 0 ? 0 : x.data.size() / n;
  if (givesScalars(call.op->kind)) {
    Tensor y;
    y.dims.append(x.dims.begin(), call.op->kind == OpKind::VectorNorm ? x.dims.begin() : x.dims.end() - 1);
    y.slots = x.slots;
    for (size_t r = 0; r < rows; ++r) {
      y.data.push_back(keyed(key, multiset(key, x.data.data() + r * n, n)));
    }
    if (call.op->kind == OpKind::VectorNorm && rows == 0) {
      y.data.push_back(keyed(key, 0));
    }
    out.push_back(std::move(y));
    return true;
  }
  for (const Tensor *t : llvm::ArrayRef(call.in).drop_front()) {
    if (t->data.size() != n || t->dims.size() != 1) {
      return call.fail("weight and row differ in local extent");
    }
  }
  Tensor y = likeTensor(x);
  for (size_t r = 0; r < rows; ++r) {
    const Element *row = x.data.data() + r * n;
    const uint64_t sum = multiset(key, row, n);
    for (size_t i = 0; i < n; ++i) {
      const Element e = keyed(key + 1, sum, row[i]);
      y.data[r * n + i] = call.in.size() > 1 ? multiply(e, call.in[1]->data[i]) : e;
      if (call.in.size() > 2) {
        y.data[r * n + i] = add(y.data[r * n + i], call.in[2]->data[i]);
      }
    }
  }
  out.push_back(std::move(y));
  return true;
}

void rowBackward(KernelCall &call, llvm::ArrayRef<Tensor>, llvm::ArrayRef<const Tensor *> grads, Gradients &in) {
  const Tensor &x = *call.in[0];
  const uint64_t key = kernelKey(call);
  const size_t n = rowWidth(call);
  const bool scalars = givesScalars(call.op->kind);
  Gradients g;
  for (const Tensor *t : call.in) {
    g.push_back(likeTensor(*t));
  }
  for (size_t r = 0; n != 0 && r < x.data.size() / n; ++r) {
    const Element *row = x.data.data() + r * n;
    const uint64_t sum = multiset(key, row, n);
    Element joint = scalars ? grads[0]->data[r] : 0;
    for (size_t i = 0; !scalars && i < n; ++i) {
      const Element up = grads[0]->data[r * n + i];
      const Element weighted = call.in.size() > 1 ? multiply(up, call.in[1]->data[i]) : up;
      joint = add(joint, multiply(weighted, keyed(key + 2, sum, row[i])));
      g[0]->data[r * n + i] = multiply(weighted, keyed(key + 4, sum, row[i]));
      if (call.in.size() > 1) {
        g[1]->data[i] = add(g[1]->data[i], multiply(up, keyed(key + 1, sum, row[i])));
      }
      if (call.in.size() > 2) {
        g[2]->data[i] = add(g[2]->data[i], up);
      }
    }
    for (size_t i = 0; i < n; ++i) {
      Element &e = g[0]->data[r * n + i];
      e = add(e, multiply(joint, keyed(key + 3, sum, row[i])));
    }
  }
  in = std::move(g);
}

// Element i with coefficients of its position: x_i cos + x_(i + d/2) sin, both keyed.
bool rotateAll(KernelCall &call, const Tensor &x, bool reverse, Tensor &y) {
  if (x.dims.size() < 2 || x.slots || call.in[1]->slots) {
    return call.fail("there are no heads");
  }
  const auto n = static_cast<size_t>(x.extent(x.dims.size() - 1));
  const auto heads = static_cast<size_t>(x.extent(x.dims.size() - 2));
  const std::vector<Element> &positions = call.in[1]->data;
  size_t rows = 1;
  for (size_t d = 0; d + 2 < x.dims.size() && !x.slots; ++d) {
    rows *= static_cast<size_t>(x.extent(d));
  }
  if (positions.empty() ? rows != 0 : rows % positions.size() != 0) {
    return call.fail("positions and rows differ in local extent");
  }
  if (call.in[1]->dims.size() + 2 > x.dims.size() || (call.in[1]->dims.size() + 2 == x.dims.size() && positions.size() != rows)) {
    return call.fail("positions and rows differ in local extent");
  }
  y = likeTensor(x);
  for (size_t e = 0; e < x.data.size(); ++e) {
    const size_t i = e % n;
    const size_t j = (i + n / 2) % n;
    const Element at = positions[e / n / heads % positions.size()];
    Element &own = y.data[e];
    const Element first = keyed(11, at, i, n);
    const Element second = keyed(12, at, i, n);
    if (!reverse) {
      own = add(multiply(x.data[e], first), multiply(x.data[e - i + j], second));
    } else {
      own = add(own, multiply(x.data[e], first));
      Element &other = y.data[e - i + j];
      other = add(other, multiply(x.data[e], second));
    }
  }
  return true;
}

bool rotateForward(KernelCall &call, Tensors &out) {
  Tensor y;
  if (!rotateAll(call, *call.in[0], false, y)) {
    return false;
  }
  out.push_back(std::move(y));
  return true;
}

void rotateBackward(KernelCall &call, llvm::ArrayRef<Tensor>, llvm::ArrayRef<const Tensor *> grads, Gradients &in) {
  Tensor g;
  if (rotateAll(call, *grads[0], true, g)) {
    in[0] = std::move(g);
  }
}

// The local row of each index; -1 where this rank's part of the table has it not.
std::vector<int64_t> tableRows(const KernelCall &call) {
  const Tensor &table = *call.in[1];
  const std::vector<int64_t> held = wholePositions(call.inTypes[1], 0, table.extent(0), call.rank, call.axes());
  std::vector<int64_t> out;
  for (Element id : call.in[0]->data) {
    const auto it = llvm::find(held, static_cast<int64_t>(id));
    out.push_back(it == held.end() ? -1 : it - held.begin());
  }
  return out;
}

bool lookupForward(KernelCall &call, Tensors &out) {
  const Tensor &table = *call.in[1];
  const auto width = static_cast<size_t>(table.inner(1));
  Tensor y;
  y.dims = call.in[0]->dims;
  y.dims.append(table.dims.begin() + 1, table.dims.end());
  y.slots = call.in[0]->slots;
  for (int64_t row : tableRows(call)) {
    for (size_t i = 0; i < width; ++i) {
      y.data.push_back(row < 0 ? 0 : table.data[static_cast<size_t>(row) * width + i]);
    }
  }
  out.push_back(std::move(y));
  return true;
}

void lookupBackward(KernelCall &call, llvm::ArrayRef<Tensor>, llvm::ArrayRef<const Tensor *> grads, Gradients &in) {
  const auto width = static_cast<size_t>(call.in[1]->inner(1));
  Tensor g = likeTensor(*call.in[1]);
  size_t at = 0;
  for (int64_t row : tableRows(call)) {
    for (size_t i = 0; i < width; ++i, ++at) {
      if (row >= 0) {
        Element &e = g.data[static_cast<size_t>(row) * width + i];
        e = add(e, grads[0]->data[at]);
      }
    }
  }
  in[1] = std::move(g);
}

bool gatherFits(KernelCall &call) {
  const Tensor &x = *call.in[0];
  const Tensor &ids = *call.in[1];
  bool fits = !x.slots && !ids.slots && x.dims.size() == ids.dims.size() && !x.dims.empty();
  for (size_t d = 0; fits && d + 1 < x.dims.size(); ++d) {
    fits = x.extent(d) == ids.extent(d);
  }
  return fits || call.fail("local shapes differ");
}

bool gatherForward(KernelCall &call, Tensors &out) {
  if (!gatherFits(call)) {
    return false;
  }
  const auto e = static_cast<size_t>(call.in[0]->extent(call.in[0]->dims.size() - 1));
  Tensor y = likeTensor(*call.in[1]);
  const auto k = static_cast<size_t>(y.extent(y.dims.size() - 1));
  for (size_t i = 0; i < y.data.size(); ++i) {
    const Element id = call.in[1]->data[i];
    y.data[i] = id < e ? call.in[0]->data[i / k * e + id] : 0;
  }
  out.push_back(std::move(y));
  return true;
}

void gatherBackward(KernelCall &call, llvm::ArrayRef<Tensor>, llvm::ArrayRef<const Tensor *> grads, Gradients &in) {
  const auto e = static_cast<size_t>(call.in[0]->extent(call.in[0]->dims.size() - 1));
  const auto k = static_cast<size_t>(call.in[1]->extent(call.in[1]->dims.size() - 1));
  Tensor g = likeTensor(*call.in[0]);
  for (size_t i = 0; i < grads[0]->data.size(); ++i) {
    const Element id = call.in[1]->data[i];
    if (id < e) {
      g.data[i / k * e + id] = add(g.data[i / k * e + id], grads[0]->data[i]);
    }
  }
  in[0] = std::move(g);
}

// outer x n x inner around the reduced dimension.
struct Fold {
  size_t outer = 1, n = 1, inner = 1, dim = 0;
  bool all = false;
};

std::optional<Fold> foldOf(KernelCall &call) {
  const Tensor &x = *call.in[0];
  Fold f;
  f.all = call.option("dim") == llvm::StringRef("all");
  if (f.all) {
    f.n = x.data.size();
    return f;
  }
  const std::optional<size_t> d = call.dimension(x, -1);
  if (!d || (x.slots && *d < 2)) {
    call.fail("this dimension cannot be reduced here");
    return std::nullopt;
  }
  f.dim = *d;
  f.n = static_cast<size_t>(x.extent(*d));
  f.inner = static_cast<size_t>(x.inner(*d + 1));
  f.outer = x.slots ? static_cast<size_t>(x.rows()) : 1;
  for (size_t i = x.slots ? 2 : 0; i < *d; ++i) {
    f.outer *= static_cast<size_t>(x.extent(i));
  }
  return f;
}

bool reduceForward(KernelCall &call, Tensors &out) {
  const std::optional<Fold> f = foldOf(call);
  if (!f) {
    return false;
  }
  const OpKind kind = call.op->kind;
  const Tensor &x = *call.in[0];
  Tensor y;
  if (!f->all) {
    y.dims = x.dims;
    y.dims.erase(y.dims.begin() + static_cast<std::ptrdiff_t>(f->dim));
    y.slots = x.slots;
  }
  const Element share = kind == OpKind::Mean ? inverse(fromInteger(static_cast<int64_t>(f->n))) : 1;
  for (size_t o = 0; o < f->outer; ++o) {
    for (size_t i = 0; i < f->inner; ++i) {
      Element sum = kind == OpKind::Min ? HighestElement : kind == OpKind::Max ? LowestElement : 0;
      for (size_t k = 0; k < f->n; ++k) {
        const Element e = x.data[(o * f->n + k) * f->inner + i];
        sum = kind == OpKind::Max ? larger(sum, e) : kind == OpKind::Min ? smaller(sum, e) : add(sum, e);
      }
      y.data.push_back(multiply(sum, share));
    }
  }
  out.push_back(std::move(y));
  return true;
}

void reduceBackward(KernelCall &call, llvm::ArrayRef<Tensor> out, llvm::ArrayRef<const Tensor *> grads, Gradients &in) {
  const std::optional<Fold> f = foldOf(call);
  if (!f) {
    return;
  }
  const OpKind kind = call.op->kind;
  const bool extremum = kind == OpKind::Max || kind == OpKind::Min;
  const Element share = kind == OpKind::Mean ? inverse(fromInteger(static_cast<int64_t>(f->n))) : 1;
  Tensor g = likeTensor(*call.in[0]);
  for (size_t e = 0; e < g.data.size(); ++e) {
    const size_t at = e / f->inner / std::max<size_t>(f->n, 1) * f->inner + e % f->inner;
    const bool reached = !extremum || call.in[0]->data[e] == out[0].data[at];
    g.data[e] = reached ? multiply(grads[0]->data[at], share) : 0;
  }
  in[0] = std::move(g);
}

// Operand 0 holds whole rows of logits: over axes that shard the vocabulary the kernel itself exchanges them.
bool lossForward(KernelCall &call, Tensors &out) {
  const Tensor &x = *call.in[0];
  const std::vector<Element> &labels = call.in[1]->data;
  const auto v = static_cast<size_t>(x.extent(x.dims.size() - 1));
  if (v == 0 || x.data.size() != labels.size() * v) {
    return call.fail("logits and labels differ in local extent");
  }
  const uint64_t key = kernelKey(call);
  Tensor y = makeTensor({});
  for (size_t r = 0; r < labels.size(); ++r) {
    const Element *row = x.data.data() + r * v;
    const Element label = labels[r] < v ? row[labels[r]] : 0;
    y.data[0] = add(y.data[0], keyed(key + 1, multiset(key, row, v), label));
  }
  if (call.option("reduction") == llvm::StringRef("mean")) {
    y.data[0] = multiply(y.data[0], inverse(fromInteger(static_cast<int64_t>(labels.size()))));
  }
  out.push_back(std::move(y));
  return true;
}

void lossBackward(KernelCall &call, llvm::ArrayRef<Tensor>, llvm::ArrayRef<const Tensor *> grads, Gradients &in) {
  const Tensor &x = *call.in[0];
  const std::vector<Element> &labels = call.in[1]->data;
  const auto v = static_cast<size_t>(x.extent(x.dims.size() - 1));
  const uint64_t key = kernelKey(call);
  Element up = grads[0]->data[0];
  if (call.option("reduction") == llvm::StringRef("mean")) {
    up = multiply(up, inverse(fromInteger(static_cast<int64_t>(labels.size()))));
  }
  Tensor g = likeTensor(x);
  for (size_t r = 0; r < labels.size(); ++r) {
    const Element *row = x.data.data() + r * v;
    const uint64_t sum = keyedWord(multiset(key, row, v), labels[r] < v ? row[labels[r]] : 0);
    for (size_t i = 0; i < v; ++i) {
      g.data[r * v + i] = multiply(up, keyed(key + 2, sum, row[i], labels[r] == i));
    }
  }
  in[0] = std::move(g);
}

constexpr Kernel kernels[] = {
    {"rowwise", rowForward, rowBackward},      {"rotate", rotateForward, rotateBackward}, {"lookup", lookupForward, lookupBackward},
    {"gather", gatherForward, gatherBackward}, {"reduce", reduceForward, reduceBackward}, {"crossEntropy", lossForward, lossBackward},
};

} // namespace

llvm::ArrayRef<Kernel> rowKernels() { return kernels; }

} // namespace shardc
