// Kernels of a mixture of experts: routing, counting, slots.
//
// Routing is decided by a keyed hash of the exact row that top-k receives, so a wrong layout of gate or bias shows in the
// ids. Slots are really ragged: one row per routed token, under its expert, which remembers the token that filled it.
#include "Kernels.h"
#include "llvm/ADT/STLExtras.h"
#include <array>
#include <map>

namespace shardc {
namespace {

int64_t choices(const KernelCall &call) {
  return call.attrs->dims.empty() ? 1 : product(localExtents(call.attrs->dims[0], -1, call.axes()));
}

bool topkForward(KernelCall &call, Tensors &out) {
  const Tensor &x = *call.in[0];
  if (x.dims.empty() || x.slots) {
    return call.fail("there is no row to choose from");
  }
  const auto n = static_cast<size_t>(x.extent(x.dims.size() - 1));
  const auto k = static_cast<size_t>(choices(call));
  if (k > n) {
    return call.fail("a row has fewer local elements than are to be chosen");
  }
  Tensor values;
  values.dims = x.dims;
  values.dims.back().assign(1, static_cast<int64_t>(k));
  Tensor ids = values;
  for (size_t r = 0; r * n < x.data.size(); ++r) {
    const Element *row = x.data.data() + r * n;
    uint64_t sum = 0;
    for (size_t i = 0; i < n; ++i) {
      sum += keyedWord(3, row[i]);
    }
    std::vector<std::pair<uint64_t, size_t>> order;
    for (size_t i = 0; i < n; ++i) {
      order.emplace_back(keyedWord(sum, row[i]), i);
    }
    llvm::sort(order);
    for (size_t i = 0; i < k; ++i) {
      values.data.push_back(row[order[i].second]);
      ids.data.push_back(order[i].second);
    }
  }
  out.push_back(std::move(values));
  out.push_back(std::move(ids));
  return true;
}

void topkBackward(KernelCall &call, llvm::ArrayRef<Tensor> out, llvm::ArrayRef<const Tensor *> grads, Gradients &in) {
  if (!grads[0]) {
    return;
  }
  Tensor g = likeTensor(*call.in[0]);
  const auto n = static_cast<size_t>(g.extent(g.dims.size() - 1));
  const auto k = static_cast<size_t>(out[1].extent(out[1].dims.size() - 1));
  for (size_t i = 0; i < out[1].data.size(); ++i) {
    Element &e = g.data[i / k * n + out[1].data[i]];
    e = add(e, grads[0]->data[i]);
  }
  in[0] = std::move(g);
}

bool countForward(KernelCall &call, Tensors &out) {
  const std::optional<Shape> dims = call.resultDims(0);
  if (!dims || dims->size() != 1) {
    return call.fail("the number of experts is not known");
  }
  Tensor y = makeTensor(*dims);
  const std::vector<int64_t> held = wholePositions(call.outTypes[0], 0, y.size(), call.rank, call.axes());
  for (Element id : call.in[0]->data) {
    const auto it = llvm::find(held, static_cast<int64_t>(id));
    if (it != held.end()) {
      y.data[static_cast<size_t>(it - held.begin())] += 1;
    }
  }
  out.push_back(std::move(y));
  return true;
}

void noBackward(KernelCall &, llvm::ArrayRef<Tensor>, llvm::ArrayRef<const Tensor *>, Gradients &) {}

// The global number of each local token of ids or weights [tokens..., k].
std::vector<int64_t> tokenRows(const Tensor &t, const Type &type, int64_t rank, const Axes &axes) {
  std::vector<int64_t> out(1, 0);
  for (size_t d = 0; d + 1 < t.dims.size(); ++d) {
    int64_t extent = 1;
    for (const Factor &f : type.dims[d].factors) {
      extent *= std::max<int64_t>(globalExtent(f), 1);
    }
    std::vector<int64_t> next;
    const std::vector<int64_t> positions = wholePositions(&type, d, t.extent(d), rank, axes);
    for (int64_t major : out) {
      for (int64_t p : positions) {
        next.push_back(major * extent + p);
      }
    }
    out = std::move(next);
  }
  return out;
}

// The local slots that dispatch fills: which token and choice, and the local token that it came from.
struct Filling {
  SlotRow row;
  size_t from;
  auto operator<=>(const Filling &) const = default;
};

bool fillingOf(KernelCall &call, std::vector<Filling> &list, int64_t &experts) {
  const Tensor &x = *call.in[0];
  const Tensor &ids = *call.in[1];
  bool fits = x.dims.size() == ids.dims.size() && x.dims.size() >= 2 && !x.slots && !ids.slots && call.attrs->dims.size() == 1;
  for (size_t d = 0; fits && d + 1 < x.dims.size(); ++d) {
    fits = x.extent(d) == ids.extent(d);
  }
  if (!fits) {
    return call.fail("tokens and ids differ in local extent");
  }
  const auto k = static_cast<size_t>(ids.extent(ids.dims.size() - 1));
  const std::vector<int64_t> rows = tokenRows(ids, *call.inTypes[1], call.rank, call.axes());
  experts = product(localExtents(call.attrs->dims[0], call.rank, call.axes()));
  Type made;
  made.dims.push_back(call.attrs->dims[0]);
  const std::vector<int64_t> held = wholePositions(&made, 0, experts, call.rank, call.axes());
  for (size_t i = 0; i < ids.data.size(); ++i) {
    const auto it = llvm::find(held, static_cast<int64_t>(ids.data[i]));
    if (it != held.end()) {
      list.push_back({{it - held.begin(), rows[i / k], static_cast<int64_t>(i % k)}, i / k});
    }
  }
  llvm::sort(list);
  return true;
}

// With a capacity the first rows of each expert stay; one device counts per shard of the tokens where the call says so.
void dropBeyond(const KernelCall &call, std::vector<Filling> &list) {
  int64_t capacity = 0;
  if (call.option("capacity").value_or("").getAsInteger(10, capacity)) {
    return;
  }
  Dim tokens;
  if (!call.outTypes.empty() && call.outTypes[0] && call.outTypes[0]->dims[1].factors[0].origin.valid()) {
    tokens = call.module->types.origin(call.outTypes[0]->dims[1].factors[0].origin).tokens;
  }
  std::map<std::pair<int64_t, int64_t>, int64_t> filled;
  llvm::erase_if(list, [&](const Filling &f) {
    const int64_t shard = call.rank < 0 ? tokenHolder(tokens, f.row.token, call.axes()) : 0;
    return ++filled[{f.row.expert, shard}] > capacity;
  });
}

bool routeForward(KernelCall &call, Tensors &out) {
  std::vector<Filling> list;
  int64_t experts = 0;
  if (!fillingOf(call, list, experts)) {
    return false;
  }
  dropBeyond(call, list);
  const Tensor &x = *call.in[0];
  const auto width = static_cast<size_t>(x.extent(x.dims.size() - 1));
  Tensor y;
  y.dims = {{experts}, {-1}, x.dims.back()};
  std::vector<SlotRow> rows;
  for (const Filling &f : list) {
    rows.push_back(f.row);
    y.data.insert(y.data.end(), x.data.begin() + static_cast<std::ptrdiff_t>(f.from * width),
                  x.data.begin() + static_cast<std::ptrdiff_t>((f.from + 1) * width));
  }
  y.slots = std::make_shared<const std::vector<SlotRow>>(std::move(rows));
  out.push_back(std::move(y));
  return true;
}

void routeBackward(KernelCall &call, llvm::ArrayRef<Tensor>, llvm::ArrayRef<const Tensor *> grads, Gradients &in) {
  std::vector<Filling> list;
  int64_t experts = 0;
  if (!fillingOf(call, list, experts)) {
    return;
  }
  dropBeyond(call, list);
  Tensor g = likeTensor(*call.in[0]);
  const auto width = static_cast<size_t>(g.extent(g.dims.size() - 1));
  for (size_t s = 0; s < list.size(); ++s) {
    for (size_t i = 0; i < width; ++i) {
      Element &e = g.data[list[s].from * width + i];
      e = add(e, grads[0]->data[s * width + i]);
    }
  }
  in[0] = std::move(g);
}

// Which local weight belongs to which local slot.
bool pairs(KernelCall &call, std::vector<std::pair<size_t, size_t>> &out) {
  const Tensor &made = *call.in[0];
  const Tensor &ids = *call.in[1];
  if (!made.slots || made.dims.size() != 3 || !sameExtents(ids, *call.in[2]) || ids.dims.size() < 2) {
    return call.fail("slots, ids and weights do not fit together");
  }
  // The ids say which expert's slot a choice has.
  std::multimap<std::array<int64_t, 3>, size_t> bySlot;
  const std::vector<int64_t> experts = wholePositions(call.inTypes[0], 0, made.extent(0), call.rank, call.axes());
  for (size_t s = 0; s < made.slots->size(); ++s) {
    const SlotRow &r = (*made.slots)[s];
    bySlot.insert({{r.token, r.choice, experts[static_cast<size_t>(r.expert)]}, s});
  }
  const auto k = static_cast<size_t>(ids.extent(ids.dims.size() - 1));
  const std::vector<int64_t> rows = tokenRows(ids, *call.inTypes[1], call.rank, call.axes());
  for (size_t i = 0; i < ids.data.size(); ++i) {
    const auto [first, last] = bySlot.equal_range({rows[i / k], static_cast<int64_t>(i % k), static_cast<int64_t>(ids.data[i])});
    for (auto it = first; it != last; ++it) {
      out.emplace_back(i, it->second);
    }
  }
  return true;
}

bool unrouteForward(KernelCall &call, Tensors &out) {
  std::vector<std::pair<size_t, size_t>> list;
  if (!pairs(call, list)) {
    return false;
  }
  const Tensor &made = *call.in[0];
  const auto width = static_cast<size_t>(made.inner(2));
  Shape dims(call.in[1]->dims.begin(), call.in[1]->dims.end() - 1);
  dims.push_back(made.dims[2]);
  const auto k = static_cast<size_t>(call.in[1]->dims.empty() ? 1 : call.in[1]->extent(call.in[1]->dims.size() - 1));
  Tensor y = makeTensor(std::move(dims));
  for (const auto &[weight, slot] : list) {
    for (size_t i = 0; i < width; ++i) {
      Element &e = y.data[weight / k * width + i];
      e = add(e, multiply(call.in[2]->data[weight], made.data[slot * width + i]));
    }
  }
  out.push_back(std::move(y));
  return true;
}

void unrouteBackward(KernelCall &call, llvm::ArrayRef<Tensor>, llvm::ArrayRef<const Tensor *> grads, Gradients &in) {
  std::vector<std::pair<size_t, size_t>> list;
  if (!pairs(call, list)) {
    return;
  }
  const Tensor &made = *call.in[0];
  const auto width = static_cast<size_t>(made.inner(2));
  const auto k = static_cast<size_t>(call.in[1]->extent(call.in[1]->dims.size() - 1));
  Tensor dMade = likeTensor(made);
  Tensor dWeights = likeTensor(*call.in[2]);
  for (const auto &[weight, slot] : list) {
    const Element *g = grads[0]->data.data() + weight / k * width;
    dWeights.data[weight] = add(dWeights.data[weight], dot(g, made.data.data() + slot * width, width));
    for (size_t i = 0; i < width; ++i) {
      Element &e = dMade.data[slot * width + i];
      e = add(e, multiply(call.in[2]->data[weight], g[i]));
    }
  }
  in[0] = std::move(dMade);
  in[2] = std::move(dWeights);
}

constexpr Kernel kernels[] = {{"topk", topkForward, topkBackward},
                              {"count", countForward, noBackward},
                              {"route", routeForward, routeBackward},
                              {"unroute", unrouteForward, unrouteBackward}};

} // namespace

llvm::ArrayRef<Kernel> expertKernels() { return kernels; }

} // namespace shardc
