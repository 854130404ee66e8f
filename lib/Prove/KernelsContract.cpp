// Contractions: sums of products over the letters that a rule writes, in the field.
//
// Linear layers and grouped products, which make nearly all the work, are rows times rows with both sides contiguous; every
// other einsum runs through one loop over all its letters.
#include "Kernels.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc {
namespace {

// c[m, n] += sum over k of a[m, k] * b[n, k].
void rowsTimesRows(const Element *a, const Element *b, Element *c, size_t m, size_t n, size_t k) {
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      c[i * n + j] = add(c[i * n + j], dot(a + i * k, b + j * k, k));
    }
  }
}

std::vector<Element> transposed(const Element *a, size_t m, size_t n) {
  std::vector<Element> out(m * n);
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      out[j * m + i] = a[i * n + j];
    }
  }
  return out;
}

// Blocks of rows with a weight [n, k] each: one for a linear layer, one per expert for grouped products.
struct Block {
  size_t row, rows, weight;
};
struct Blocks {
  std::vector<Block> list;
  size_t n = 0, k = 0;
};

bool blocksOf(KernelCall &call, Blocks &out) {
  const Tensor &x = *call.in[0];
  const Tensor &w = *call.in[1];
  const bool grouped = call.op->kind == OpKind::GroupedMatmul;
  const size_t lead = grouped ? 1 : 0;
  if (x.dims.empty() || w.dims.size() != 2 + lead || w.slots || w.extent(1 + lead) != x.extent(x.dims.size() - 1)) {
    return call.fail("local shapes differ");
  }
  out.n = static_cast<size_t>(w.extent(lead));
  out.k = static_cast<size_t>(w.extent(1 + lead));
  const size_t rows = out.k == 0 ? 0 : x.data.size() / out.k;
  if (!grouped) {
    out.list.push_back({0, rows, 0});
    return true;
  }
  if (x.dims.size() != 3 || x.extent(0) != w.extent(0)) {
    return call.fail("local numbers of experts differ");
  }
  const auto experts = static_cast<size_t>(x.extent(0));
  size_t row = 0;
  for (size_t e = 0; e < experts; ++e) {
    size_t count = experts == 0 ? 0 : rows / experts;
    if (x.slots) {
      count = 0;
      while (row + count < x.slots->size() && (*x.slots)[row + count].expert == static_cast<int64_t>(e)) {
        ++count;
      }
    }
    out.list.push_back({row, count, e});
    row += count;
  }
  return true;
}

bool blockForward(KernelCall &call, Tensors &out) {
  Blocks blocks;
  if (!blocksOf(call, blocks)) {
    return false;
  }
  const auto &[list, n, k] = blocks;
  const Tensor &x = *call.in[0];
  Tensor y;
  y.dims = x.dims;
  y.dims.back().assign(1, static_cast<int64_t>(n));
  y.slots = x.slots;
  auto rows = static_cast<size_t>(x.slots ? x.rows() : 1);
  for (size_t d = 0; !x.slots && d + 1 < x.dims.size(); ++d) {
    rows *= static_cast<size_t>(x.extent(d));
  }
  y.data.assign(rows * n, 0);
  for (const Block &b : list) {
    rowsTimesRows(x.data.data() + b.row * k, call.in[1]->data.data() + b.weight * n * k, y.data.data() + b.row * n, b.rows, n, k);
  }
  out.push_back(std::move(y));
  return true;
}

void blockBackward(KernelCall &call, llvm::ArrayRef<Tensor>, llvm::ArrayRef<const Tensor *> grads, Gradients &in) {
  Blocks blocks;
  if (!blocksOf(call, blocks)) {
    return;
  }
  const auto &[list, n, k] = blocks;
  Tensor dx = likeTensor(*call.in[0]);
  Tensor dw = likeTensor(*call.in[1]);
  for (const Block &b : list) {
    const Element *g = grads[0]->data.data() + b.row * n;
    const std::vector<Element> w = transposed(call.in[1]->data.data() + b.weight * n * k, n, k);
    rowsTimesRows(g, w.data(), dx.data.data() + b.row * k, b.rows, k, n);
    const std::vector<Element> gt = transposed(g, b.rows, n);
    const std::vector<Element> xt = transposed(call.in[0]->data.data() + b.row * k, b.rows, k);
    rowsTimesRows(gt.data(), xt.data(), dw.data.data() + b.weight * n * k, n, k, b.rows);
  }
  in[0] = std::move(dx);
  in[1] = std::move(dw);
}

// Letters with extents, and for each operand and the result how far one step of a letter goes.
struct Loop {
  std::vector<size_t> extents;
  std::vector<std::vector<size_t>> strides; // operands, then the result
  Shape result;
};

bool enter(KernelCall &call, Loop &loop, std::vector<size_t> &stride, size_t letter, size_t extent, size_t step) {
  size_t &known = loop.extents[letter];
  if (known != 0 && known != extent + 1) {
    return call.fail("local extents of one letter differ");
  }
  known = extent + 1; // 0 means not seen
  stride[letter] += step;
  return true;
}

// Dimensions of one operand, from the last to the first.
bool enterOperand(KernelCall &call, Loop &loop, llvm::ArrayRef<RuleDim> pattern, const Tensor &t, size_t stars) {
  std::vector<size_t> stride(loop.extents.size(), 0);
  size_t step = 1;
  size_t d = t.dims.size();
  size_t star = stars;
  for (const RuleDim &p : llvm::reverse(pattern)) {
    if (p.isStar()) {
      for (; d > 0; --d) {
        if (!enter(call, loop, stride, --star, static_cast<size_t>(t.extent(d - 1)), step)) {
          return false;
        }
        step *= static_cast<size_t>(t.extent(d - 1));
      }
      continue;
    }
    if (d == 0 || p.startsWithStar() || (p.factors.size() > 1 && t.dims[d - 1].size() != p.factors.size())) {
      return call.fail("the operand has not the rule's dimensions");
    }
    --d;
    for (size_t f = p.factors.size(); f-- > 0;) {
      const auto extent = static_cast<size_t>(p.factors.size() == 1 ? t.extent(d) : t.dims[d][f]);
      if (!enter(call, loop, stride, stars + p.factors[f], extent, step)) {
        return false;
      }
      step *= extent;
    }
  }
  loop.strides.push_back(std::move(stride));
  return d == 0 || call.fail("the operand has more dimensions than the rule");
}

bool makeLoop(KernelCall &call, Loop &loop) {
  std::string error;
  const bool own = call.op->kind == OpKind::Einsum;
  const std::optional<Rule> rule = own ? parseRule(call.attrs->text, error) : opRule(call.op->kind);
  if (!rule || rule->operands.size() != call.in.size()) {
    return call.fail("the rule cannot be read");
  }
  size_t stars = 0;
  for (size_t i = 0; i < call.in.size(); ++i) {
    const bool star = !rule->operands[i].empty() && rule->operands[i][0].isStar();
    stars = star ? std::max(stars, call.in[i]->dims.size() + 1 - rule->operands[i].size()) : stars;
    if (call.in[i]->slots) {
      return call.fail("slots take part in grouped products only");
    }
  }
  loop.extents.assign(stars + rule->factors.size(), 0);
  for (size_t i = 0; i < call.in.size(); ++i) {
    if (!enterOperand(call, loop, rule->operands[i], *call.in[i], stars)) {
      return false;
    }
  }
  for (size_t &e : loop.extents) {
    e = e == 0 ? 1 : e - 1;
  }
  std::vector<size_t> stride(loop.extents.size(), 0);
  size_t step = 1;
  for (const RuleDim &p : llvm::reverse(rule->results[0])) {
    Extents dim;
    if (p.isStar()) {
      for (size_t s = stars; s-- > 0;) {
        loop.result.insert(loop.result.begin(), Extents{static_cast<int64_t>(loop.extents[s])});
        stride[s] = step;
        step *= loop.extents[s];
      }
      continue;
    }
    for (uint8_t f : llvm::reverse(p.factors)) {
      dim.insert(dim.begin(), static_cast<int64_t>(loop.extents[stars + f]));
      stride[stars + f] = step;
      step *= loop.extents[stars + f];
    }
    loop.result.insert(loop.result.begin(), std::move(dim));
  }
  loop.strides.push_back(std::move(stride));
  return true;
}

// Calls visit(offsets) for every setting of the letters; offsets of the operands, then of the result.
void runLoop(const Loop &loop, llvm::function_ref<void(llvm::ArrayRef<size_t>)> visit) {
  std::vector<size_t> at(loop.extents.size(), 0);
  std::vector<size_t> offsets(loop.strides.size(), 0);
  if (llvm::is_contained(loop.extents, size_t(0))) {
    return;
  }
  for (;;) {
    visit(offsets);
    size_t letter = loop.extents.size();
    while (letter-- > 0) {
      for (size_t i = 0; i < offsets.size(); ++i) {
        offsets[i] += loop.strides[i][letter];
      }
      if (++at[letter] < loop.extents[letter]) {
        break;
      }
      for (size_t i = 0; i < offsets.size(); ++i) {
        offsets[i] -= loop.strides[i][letter] * loop.extents[letter];
      }
      at[letter] = 0;
    }
    if (letter == static_cast<size_t>(-1)) {
      return;
    }
  }
}

bool contractForward(KernelCall &call, Tensors &out) {
  if (call.op->kind == OpKind::Linear || call.op->kind == OpKind::GroupedMatmul) {
    return blockForward(call, out);
  }
  Loop loop;
  if (!makeLoop(call, loop)) {
    return false;
  }
  Tensor y = makeTensor(loop.result);
  const size_t last = call.in.size();
  runLoop(loop, [&](llvm::ArrayRef<size_t> at) {
    Element term = 1;
    for (size_t i = 0; i < last; ++i) {
      term = multiply(term, call.in[i]->data[at[i]]);
    }
    y.data[at[last]] = add(y.data[at[last]], term);
  });
  out.push_back(std::move(y));
  return true;
}

void contractBackward(KernelCall &call, llvm::ArrayRef<Tensor> out, llvm::ArrayRef<const Tensor *> grads, Gradients &in) {
  if (call.op->kind == OpKind::Linear || call.op->kind == OpKind::GroupedMatmul) {
    return blockBackward(call, out, grads, in);
  }
  Loop loop;
  if (!makeLoop(call, loop)) {
    return;
  }
  const size_t last = call.in.size();
  for (size_t by = 0; by < last; ++by) {
    Tensor g = likeTensor(*call.in[by]);
    runLoop(loop, [&](llvm::ArrayRef<size_t> at) {
      Element term = grads[0]->data[at[last]];
      for (size_t i = 0; i < last; ++i) {
        term = i == by ? term : multiply(term, call.in[i]->data[at[i]]);
      }
      g.data[at[by]] = add(g.data[at[by]], term);
    });
    in[by] = std::move(g);
  }
}

constexpr Kernel kernels[] = {{"contract", contractForward, contractBackward}};

} // namespace

llvm::ArrayRef<Kernel> contractKernels() { return kernels; }

} // namespace shardc
