// Attention: linear in the values, with a weight per visible key that is a keyed function of the query's row and of the
// multiset of all visible keys. A rank that sees half of the keys gets other weights. Keys in another order, with their
// positions, give the same.
//
// The derivatives follow the same shape: a weight depends on a number u of the query's row and a number w of each key's row;
// its derivatives in them are keyed (rank one and a diagonal), and so are those of u and w in the rows.
#include "Kernels.h"

namespace shardc {
namespace {

// Rows of queries and keys as [batch, q, heads, width], whatever stands in front.
struct Heads {
  size_t batch = 1, q = 1, s = 1, heads = 1, x = 1, y = 1;
  bool masked = true, positions = false, sinks = false;
  int64_t window = 0;

  size_t query(size_t b, size_t i, size_t h) const { return (b * q + i) * heads + h; }
  size_t key(size_t b, size_t i, size_t h) const { return (b * s + i) * heads + h; }
};

// The factors in front of the rows of one sequence, and those rows.
bool leading(const Tensor &t, size_t behind, size_t &batch, size_t &rows) {
  if (t.slots || t.dims.size() < behind + 1) {
    return false;
  }
  const size_t d = t.dims.size() - behind - 1;
  batch = 1;
  for (size_t i = 0; i < d; ++i) {
    batch *= static_cast<size_t>(t.extent(i));
  }
  rows = t.dims[d].empty() ? 1 : static_cast<size_t>(t.dims[d].back());
  for (size_t f = 0; f + 1 < t.dims[d].size(); ++f) {
    batch *= static_cast<size_t>(t.dims[d][f]);
  }
  return true;
}

bool headsOf(KernelCall &call, Heads &out) {
  const OpKind kind = call.op->kind;
  out.positions = kind == OpKind::Attention || kind == OpKind::SinkAttention;
  out.sinks = kind == OpKind::SinkAttention;
  out.masked = kind != OpKind::FullAttention && call.option("mask").value_or("causal") == "causal";
  call.option("window").value_or("0").getAsInteger(10, out.window);
  const Tensor &q = *call.in[0];
  const Tensor &k = *call.in[1];
  const Tensor &v = *call.in[2];
  size_t batchK = 0;
  size_t batchV = 0;
  size_t rowsV = 0;
  if (!leading(q, 2, out.batch, out.q) || !leading(k, 2, batchK, out.s) || !leading(v, 2, batchV, rowsV)) {
    return call.fail("there are no heads");
  }
  out.heads = static_cast<size_t>(q.extent(q.dims.size() - 2));
  out.x = static_cast<size_t>(q.extent(q.dims.size() - 1));
  out.y = static_cast<size_t>(v.extent(v.dims.size() - 1));
  const bool fits = batchK == out.batch && batchV == out.batch && rowsV == out.s &&
                    k.data.size() == out.batch * out.s * out.heads * out.x && v.data.size() == out.batch * out.s * out.heads * out.y &&
                    q.data.size() == out.batch * out.q * out.heads * out.x;
  if (!fits) {
    return call.fail("queries, keys and values differ in local extent");
  }
  for (size_t i = 3; out.positions && i < 5; ++i) {
    const size_t rows = i == 3 ? out.batch * out.q : out.batch * out.s;
    const size_t have = call.in[i]->data.size();
    if (have == 0 ? rows != 0
                  : rows % have != 0 || call.in[i]->dims.size() + 2 > q.dims.size() ||
                        (call.in[i]->dims.size() + 2 == q.dims.size() && have != rows)) {
      return call.fail("positions and rows differ in local extent");
    }
  }
  return !out.sinks || call.in[5]->data.size() == out.heads || call.fail("sinks and heads differ in local extent");
}

uint64_t rowHash(uint64_t key, const Element *row, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    key = keyedWord(key, row[i]);
  }
  return key;
}

class Attend {
public:
  Attend(KernelCall &c, const Heads &h) : call(c), heads(h), key(keyedWord(7, static_cast<uint64_t>(h.window))) {
    for (size_t r = 0; r < heads.batch * heads.s * heads.heads; ++r) {
      keys.push_back(rowHash(key + 1, call.in[1]->data.data() + r * heads.x, heads.x));
    }
  }

  // visit(b, i, h, visible keys, state) for every query.
  template <class Visit> void each(Visit visit) const {
    std::vector<size_t> visible;
    for (size_t b = 0; b < heads.batch; ++b) {
      for (size_t i = 0; i < heads.q; ++i) {
        visible.clear();
        for (size_t s = 0; s < heads.s; ++s) {
          if (sees(position(3, b, i, heads.q), position(4, b, s, heads.s))) {
            visible.push_back(s);
          }
        }
        for (size_t h = 0; h < heads.heads; ++h) {
          visit(b, i, h, llvm::ArrayRef<size_t>(visible), state(b, i, h, visible));
        }
      }
    }
  }

  uint64_t queryHash(size_t row) const { return rowHash(key, call.in[0]->data.data() + row * heads.x, heads.x); }

  std::vector<uint64_t> keys; // w of each row
private:
  int64_t position(size_t operand, size_t b, size_t i, size_t n) const {
    if (!heads.positions) {
      return static_cast<int64_t>(i);
    }
    const std::vector<Element> &p = call.in[operand]->data;
    return static_cast<int64_t>(p[(b * n + i) % p.size()]);
  }

  bool sees(int64_t q, int64_t s) const { return !heads.masked || (s <= q && (heads.window == 0 || q - s < heads.window)); }

  uint64_t state(size_t b, size_t i, size_t h, llvm::ArrayRef<size_t> visible) const {
    uint64_t sum = visible.size();
    for (size_t s : visible) {
      sum += keyedWord(key + 2, keys[heads.key(b, s, h)]);
    }
    const uint64_t own = keyedWord(queryHash(heads.query(b, i, h)), sum);
    return heads.sinks ? keyedWord(own, call.in[5]->data[h]) : own;
  }

  KernelCall &call;
  const Heads &heads;
  uint64_t key;
};

bool attendForward(KernelCall &call, Tensors &out) {
  Heads heads;
  if (!headsOf(call, heads)) {
    return false;
  }
  Shape dims = call.in[0]->dims;
  dims.back() = call.in[2]->dims.back();
  Tensor y = makeTensor(std::move(dims));
  const Attend attend(call, heads);
  attend.each([&](size_t b, size_t i, size_t h, llvm::ArrayRef<size_t> visible, uint64_t state) {
    Element *row = y.data.data() + heads.query(b, i, h) * heads.y;
    for (size_t s : visible) {
      const size_t at = heads.key(b, s, h);
      const Element weight = keyed(state, attend.keys[at]);
      for (size_t e = 0; e < heads.y; ++e) {
        row[e] = add(row[e], multiply(weight, call.in[2]->data[at * heads.y + e]));
      }
    }
  });
  out.push_back(std::move(y));
  return true;
}

// Spreads the derivative in a row's number over the row.
void spread(Tensor &g, const Tensor &x, size_t width, llvm::ArrayRef<uint64_t> numbers, llvm::ArrayRef<Element> by) {
  for (size_t e = 0; e < x.data.size(); ++e) {
    g.data[e] = multiply(by[e / width], keyed(numbers[e / width], x.data[e], e % width));
  }
}

void attendBackward(KernelCall &call, llvm::ArrayRef<Tensor>, llvm::ArrayRef<const Tensor *> grads, Gradients &in) {
  Heads heads;
  if (!headsOf(call, heads)) {
    return;
  }
  Tensor dq = likeTensor(*call.in[0]);
  Tensor dk = likeTensor(*call.in[1]);
  Tensor dv = likeTensor(*call.in[2]);
  const Attend attend(call, heads);
  std::vector<Element> du(heads.batch * heads.q * heads.heads, 0);
  std::vector<Element> dw(attend.keys.size(), 0);
  std::vector<uint64_t> queries;
  for (size_t r = 0; r < du.size(); ++r) {
    queries.push_back(attend.queryHash(r));
  }
  std::vector<Element> sinks(heads.sinks ? heads.heads : 0, 0);
  attend.each([&](size_t b, size_t i, size_t h, llvm::ArrayRef<size_t> visible, uint64_t state) {
    const size_t row = heads.query(b, i, h);
    const Element *g = grads[0]->data.data() + row * heads.y;
    Element joint = 0;
    for (size_t s : visible) {
      const size_t at = heads.key(b, s, h);
      const uint64_t w = attend.keys[at];
      const Element up = dot(g, call.in[2]->data.data() + at * heads.y, heads.y);
      const Element weight = keyed(state, w);
      for (size_t e = 0; e < heads.y; ++e) {
        dv.data[at * heads.y + e] = add(dv.data[at * heads.y + e], multiply(weight, g[e]));
      }
      du[row] = add(du[row], multiply(up, keyed(state + 1, w)));
      joint = add(joint, multiply(up, keyed(state + 2, w)));
      dw[at] = add(dw[at], multiply(up, keyed(state + 4, w)));
      if (heads.sinks) {
        sinks[h] = add(sinks[h], multiply(up, keyed(state + 5, w)));
      }
    }
    for (size_t s : visible) {
      const size_t at = heads.key(b, s, h);
      dw[at] = add(dw[at], multiply(joint, keyed(state + 3, attend.keys[at])));
    }
  });
  if (heads.x != 0) {
    spread(dq, *call.in[0], heads.x, queries, du);
    spread(dk, *call.in[1], heads.x, attend.keys, dw);
  }
  in[0] = std::move(dq);
  in[1] = std::move(dk);
  in[2] = std::move(dv);
  if (heads.sinks) {
    in[5] = likeTensor(*call.in[5]);
    in[5]->data = std::move(sinks);
  }
}

constexpr Kernel kernels[] = {{"attend", attendForward, attendBackward}};

} // namespace

llvm::ArrayRef<Kernel> attentionKernels() { return kernels; }

} // namespace shardc
