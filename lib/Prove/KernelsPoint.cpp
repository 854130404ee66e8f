// Kernels that work on each element: sums, products, activations, copies, masks.
//
// Operands with fewer dimensions are aligned at the right. An activation is a keyed function of each element; one that real
// arithmetic calls increasing is a keyed step function that keeps the order of elements as integers, so that it commutes
// with a maximum and with nothing else.
#include "Kernels.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc {
namespace {

// Which element of each operand belongs to an element of the result.
struct Alignment {
  const Tensor *largest = nullptr;
  llvm::SmallVector<std::vector<size_t>, 3> maps; // empty: the same element
  size_t of(size_t operand, size_t element) const { return maps[operand].empty() ? element : maps[operand][element]; }
};

bool suffixFits(const Tensor &large, const Tensor &small) {
  const size_t lead = large.dims.size() - small.dims.size();
  if (small.slots || (large.slots && lead < 2)) {
    return false;
  }
  for (size_t d = 0; d < small.dims.size(); ++d) {
    if (small.extent(d) != large.extent(lead + d)) {
      return false;
    }
  }
  return true;
}

// Each expert's own row for all of its slots.
std::optional<std::vector<size_t>> expertRows(const Tensor &large, const Tensor &small) {
  std::vector<size_t> map;
  const auto width = static_cast<size_t>(large.inner(2));
  if (!large.slots || small.dims.size() + 1 != large.dims.size() || small.extent(0) != large.extent(0) ||
      static_cast<size_t>(small.inner(1)) != width) {
    return std::nullopt;
  }
  for (const SlotRow &r : *large.slots) {
    for (size_t i = 0; i < width; ++i) {
      map.push_back(static_cast<size_t>(r.expert) * width + i);
    }
  }
  return map;
}

bool align(KernelCall &call, Alignment &out) {
  out.largest = call.in[0];
  for (const Tensor *t : call.in) {
    out.largest = t->dims.size() > out.largest->dims.size() ? t : out.largest;
  }
  const OpKind kind = call.op->kind;
  for (size_t i = 0; i < call.in.size(); ++i) {
    const Tensor &t = *call.in[i];
    std::vector<size_t> map;
    const size_t n = out.largest->data.size();
    if (kind == OpKind::GroupedBias && i == 1) {
      std::optional<std::vector<size_t>> rows = expertRows(*out.largest, t);
      if (!rows && !t.slots && !out.largest->slots && t.dims.size() == 2 && out.largest->dims.size() == 3) { // dense slots
        rows.emplace();
        const auto c = static_cast<size_t>(out.largest->extent(1));
        const auto w = static_cast<size_t>(out.largest->extent(2));
        for (size_t e = 0; e < n; ++e) {
          rows->push_back(e / (c * w) * w + e % w);
        }
      }
      if (!rows || (!rows->empty() && rows->back() >= t.data.size())) {
        return call.fail("local shapes differ");
      }
      map = std::move(*rows);
    } else if (kind == OpKind::ScaleRows && i == 1) {
      const auto width = static_cast<size_t>(out.largest->dims.empty() ? 1 : out.largest->extent(out.largest->dims.size() - 1));
      if (out.largest->slots || t.slots || t.dims.size() + 1 > out.largest->dims.size()) {
        return call.fail("local shapes differ");
      }
      const size_t lead = out.largest->dims.size() - 1 - t.dims.size();
      for (size_t d = 0; d < t.dims.size(); ++d) {
        if (t.extent(d) != out.largest->extent(lead + d)) {
          return call.fail("local shapes differ");
        }
      }
      for (size_t e = 0; e < n; ++e) {
        map.push_back(e / width % t.data.size());
      }
    } else if (!sameExtents(*out.largest, t)) {
      if (!suffixFits(*out.largest, t)) {
        return call.fail("local shapes differ");
      }
      for (size_t e = 0; e < n; ++e) {
        map.push_back(e % t.data.size());
      }
    }
    out.maps.push_back(std::move(map));
  }
  return true;
}

constexpr Element StepMask = (Element(1) << 30) - 1;

// A step function of the elements' order.
Element step(uint64_t key, Element x) { return reduceOnce((x & ~StepMask) | (keyedWord(key, x & ~StepMask) & StepMask)); }

bool isIncreasing(OpKind k) { return llvm::is_contained({OpKind::Tanh, OpKind::Sqrt, OpKind::Sigmoid, OpKind::Exp, OpKind::Log}, k); }

bool keepsZero(const KernelCall &call) {
  const llvm::StringRef kernel = opInfo(call.op->kind).kernel;
  return kernel == "keepsZero" || kernel == "swiglu";
}

Element activate(const KernelCall &call, uint64_t key, Element x) {
  const bool increasing = isIncreasing(call.op->kind);
  if (keepsZero(call) && (x == 0 || (increasing && x <= StepMask))) {
    return 0;
  }
  return increasing ? step(key, x) : keyed(key, x);
}

Element slope(uint64_t key, Element x) { return keyed(key ^ 0x51f15e, x); }

// The value of one element, and its derivative in operand `by`.
Element value(const KernelCall &call, uint64_t key, llvm::ArrayRef<Element> x) {
  switch (call.op->kind) {
  case OpKind::Add:
  case OpKind::GroupedBias:
    return add(x[0], x[1]);
  case OpKind::Sub:
    return subtract(x[0], x[1]);
  case OpKind::Mul:
  case OpKind::ScaleRows:
    return multiply(x[0], x[1]);
  case OpKind::Div:
    return multiply(x[0], inverse(x[1]));
  case OpKind::Swiglu:
    return multiply(activate(call, key, x[0]), x[1]);
  case OpKind::Maximum:
    return larger(x[0], x[1]);
  case OpKind::Greater:
    return less(x[1], x[0]);
  case OpKind::Equal:
    return x[0] == x[1];
  case OpKind::Where:
    return x[0] != 0 ? x[1] : x[2];
  case OpKind::Relu:
    return larger(x[0], 0);
  case OpKind::Square:
    return multiply(x[0], x[0]);
  default:
    return activate(call, key, x[0]);
  }
}

Element derivative(const KernelCall &call, uint64_t key, llvm::ArrayRef<Element> x, size_t by) {
  switch (call.op->kind) {
  case OpKind::Add:
  case OpKind::GroupedBias:
    return 1;
  case OpKind::Sub:
    return by == 0 ? 1 : negate(1);
  case OpKind::Mul:
  case OpKind::ScaleRows:
    return x[1 - by];
  case OpKind::Div:
    return by == 0 ? inverse(x[1]) : negate(multiply(x[0], inverse(multiply(x[1], x[1]))));
  case OpKind::Swiglu:
    return by == 0 ? multiply(slope(key, x[0]), x[1]) : activate(call, key, x[0]);
  case OpKind::Maximum:
    return less(x[0], x[1]) == (by == 1);
  case OpKind::Greater:
  case OpKind::Equal:
    return 0;
  case OpKind::Relu:
    return less(0, x[0]);
  case OpKind::Square:
    return add(x[0], x[0]);
  case OpKind::Where:
    return by == 0 ? 0 : (x[0] != 0) == (by == 1);
  default:
    return slope(key, x[0]);
  }
}

bool pointForward(KernelCall &call, Tensors &out) {
  Alignment alignment;
  if (!align(call, alignment)) {
    return false;
  }
  const uint64_t key = kernelKey(call);
  Tensor y = likeTensor(*alignment.largest);
  llvm::SmallVector<Element, 3> x(call.in.size());
  for (size_t e = 0; e < y.data.size(); ++e) {
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = call.in[i]->data[alignment.of(i, e)];
    }
    y.data[e] = value(call, key, x);
  }
  out.push_back(std::move(y));
  return true;
}

void pointBackward(KernelCall &call, llvm::ArrayRef<Tensor>, llvm::ArrayRef<const Tensor *> grads, Gradients &in) {
  Alignment alignment;
  if (!align(call, alignment)) {
    return;
  }
  const uint64_t key = kernelKey(call);
  llvm::SmallVector<Element, 3> x(call.in.size());
  for (size_t by = 0; by < call.in.size(); ++by) {
    Tensor g = likeTensor(*call.in[by]);
    for (size_t e = 0; e < grads[0]->data.size(); ++e) {
      for (size_t i = 0; i < x.size(); ++i) {
        x[i] = call.in[i]->data[alignment.of(i, e)];
      }
      Element &sum = g.data[alignment.of(by, e)];
      sum = add(sum, multiply(grads[0]->data[e], derivative(call, key, x, by)));
    }
    in[by] = std::move(g);
  }
}

Element factorOf(const KernelCall &call) {
  return call.op->kind == OpKind::Neg ? negate(1) : constantOf(call, call.attrs ? call.attrs->text : "1");
}

Tensor times(const Tensor &t, Element k) {
  Tensor out = t;
  for (Element &e : out.data) {
    e = multiply(e, k);
  }
  return out;
}

bool scaleForward(KernelCall &call, Tensors &out) {
  out.push_back(times(*call.in[0], factorOf(call)));
  return true;
}

void scaleBackward(KernelCall &call, llvm::ArrayRef<Tensor>, llvm::ArrayRef<const Tensor *> grads, Gradients &in) {
  in[0] = times(*grads[0], factorOf(call));
}

// How often each element is repeated behind its dimensions (expand: each row for every new h; repeat_heads: each head).
std::optional<int64_t> repeats(KernelCall &call, bool heads) {
  std::optional<Shape> dims = call.resultDims(0);
  if (!dims || call.in[0]->slots) {
    return std::nullopt;
  }
  const Tensor &x = *call.in[0];
  const size_t at = dims->size() - std::min<size_t>(dims->size(), 2); // the new heads
  if (dims->size() < 2 || x.dims.size() + (heads ? 0 : 1) != dims->size()) {
    return std::nullopt;
  }
  const int64_t have = heads ? x.extent(at) : 1;
  const int64_t want = product((*dims)[at]);
  if (have == 0 ? want != 0 : want % have != 0 || makeTensor(*dims).size() != x.size() * (want / have)) {
    return std::nullopt;
  }
  return have == 0 ? 1 : want / have;
}

// To integers a cast drops what is behind the point: an increasing function that keeps zero. To truth values it says what is
// not zero. Between floats it rounds, which is not seen here.
Tensor castTo(const KernelCall &call) {
  Tensor y = *call.in[0];
  const std::optional<DType> dtype = parseDType(call.attrs->text);
  const bool truth = dtype == DType::Bool;
  if (!dtype || isFloat(*dtype) || (!truth && !isFloat(call.inTypes[0]->dtype))) {
    return y;
  }
  const uint64_t key = kernelKey(call);
  for (Element &e : y.data) {
    e = truth ? e != 0 : e <= StepMask ? 0 : step(key, e);
  }
  return y;
}

bool copyForward(KernelCall &call, Tensors &out) {
  const bool expand = call.op->kind == OpKind::Expand;
  const bool heads = call.op->kind == OpKind::RepeatHeads;
  if (!expand && !heads) {
    out.push_back(call.op->kind == OpKind::Cast ? castTo(call) : *call.in[0]);
    return true;
  }
  const std::optional<int64_t> n = repeats(call, heads);
  if (!n) {
    return call.fail("local shapes differ");
  }
  const Tensor &x = *call.in[0];
  const auto width = static_cast<size_t>(x.extent(x.dims.size() - 1));
  Tensor y = makeTensor(*call.resultDims(0));
  for (size_t row = 0; row * width < y.data.size(); ++row) {
    const Element *from = x.data.data() + row / static_cast<size_t>(*n) * width;
    std::copy(from, from + width, y.data.data() + row * width);
  }
  out.push_back(std::move(y));
  return true;
}

void copyBackward(KernelCall &call, llvm::ArrayRef<Tensor>, llvm::ArrayRef<const Tensor *> grads, Gradients &in) {
  const OpKind kind = call.op->kind;
  if (kind == OpKind::Detach) {
    return;
  }
  if (kind != OpKind::Expand && kind != OpKind::RepeatHeads) {
    in[0] = *grads[0];
    return;
  }
  const Tensor &x = *call.in[0];
  const auto n = static_cast<size_t>(grads[0]->size() / std::max<int64_t>(x.size(), 1));
  const auto width = static_cast<size_t>(x.extent(x.dims.size() - 1));
  Tensor g = likeTensor(x);
  for (size_t e = 0; e < grads[0]->data.size(); ++e) {
    Element &sum = g.data[e / width / n * width + e % width];
    sum = add(sum, grads[0]->data[e]);
  }
  in[0] = std::move(g);
}

// The mask is keyed by the element's place in the whole, by its place on this rank, or by the rank as well.
Tensor maskOf(const KernelCall &call) {
  const llvm::StringRef seed = call.option("seed").value_or("same");
  Tensor mask = likeTensor(*call.in[0]);
  std::vector<uint64_t> indices;
  if (seed == "global" || call.rank < 0) {
    indices = wholeIndices(mask, call.inTypes[0], call.rank, *call.module);
  } else {
    indices = wholeIndices(mask, nullptr, -1, *call.module); // as if the shard were the whole
  }
  const uint64_t key = seed == "rank" ? keyedWord(call.site, static_cast<uint64_t>(call.rank + 1)) : call.site;
  for (size_t e = 0; e < mask.data.size(); ++e) {
    mask.data[e] = keyedWord(key, indices[e]) & 1; // half is dropped, and nothing scaled: the rate does not matter here
  }
  return mask;
}

bool dropoutForward(KernelCall &call, Tensors &out) {
  Tensor mask = maskOf(call);
  for (size_t e = 0; e < mask.data.size(); ++e) {
    mask.data[e] = multiply(mask.data[e], call.in[0]->data[e]);
  }
  out.push_back(std::move(mask));
  return true;
}

void dropoutBackward(KernelCall &call, llvm::ArrayRef<Tensor>, llvm::ArrayRef<const Tensor *> grads, Gradients &in) {
  Tensor mask = maskOf(call);
  for (size_t e = 0; e < mask.data.size(); ++e) {
    mask.data[e] = multiply(mask.data[e], grads[0]->data[e]);
  }
  in[0] = std::move(mask);
}

constexpr Kernel kernels[] = {
    {"sum", pointForward, pointBackward},      {"difference", pointForward, pointBackward},  {"product", pointForward, pointBackward},
    {"quotient", pointForward, pointBackward}, {"keepsZero", pointForward, pointBackward},   {"elementwise", pointForward, pointBackward},
    {"swiglu", pointForward, pointBackward},   {"select", pointForward, pointBackward},      {"scale", scaleForward, scaleBackward},
    {"copy", copyForward, copyBackward},       {"dropout", dropoutForward, dropoutBackward},
};

} // namespace

llvm::ArrayRef<Kernel> pointKernels() { return kernels; }

} // namespace shardc
