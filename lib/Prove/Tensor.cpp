// Tensors and the parts of them that ranks hold. See the header.
#include "Tensor.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc {

int64_t product(llvm::ArrayRef<int64_t> extents) {
  int64_t n = 1;
  for (int64_t e : extents) {
    n *= e;
  }
  return n;
}

int64_t Tensor::extent(size_t d) const { return product(dims[d]); }

int64_t Tensor::inner(size_t d) const {
  int64_t n = 1;
  for (size_t i = d; i < dims.size(); ++i) {
    n *= extent(i);
  }
  return n;
}

Tensor makeTensor(Shape dims) {
  Tensor t;
  t.dims = std::move(dims);
  t.data.assign(static_cast<size_t>(t.inner(0)), 0);
  return t;
}

Tensor likeTensor(const Tensor &t) {
  Tensor out;
  out.dims = t.dims;
  out.slots = t.slots;
  out.data.assign(t.data.size(), 0);
  return out;
}

Ranks::Ranks(const Axes &a) : axes(&a), positions(static_cast<size_t>(a.world()), -1) {
  for (int64_t rank = 0; rank < a.world(); ++rank) {
    bool first = true;
    for (size_t i = 0; i < a.atoms().size(); ++i) {
      first &= !a.isStage(AtomId(i)) || a.coordinate(rank, AtomId(i)) == 0;
    }
    if (first) {
      positions[static_cast<size_t>(rank)] = static_cast<int64_t>(list.size());
      list.push_back(rank);
    }
  }
}

std::vector<std::vector<size_t>> Ranks::groups(llvm::ArrayRef<AtomId> atoms) const {
  std::vector<std::vector<size_t>> out;
  for (const std::vector<int64_t> &group : axes->groups(atoms)) {
    std::vector<size_t> places;
    for (int64_t rank : group) {
      if (positions[static_cast<size_t>(rank)] >= 0) {
        places.push_back(static_cast<size_t>(positions[static_cast<size_t>(rank)]));
      }
    }
    if (places.size() == group.size()) {
      out.push_back(std::move(places));
    }
  }
  return out;
}

static Range rangeOf(const Factor &f, int64_t rank, const Axes &axes) {
  return rank < 0 ? Range{0, globalExtent(f)} : localRange(f, rank, axes);
}

std::optional<std::vector<int64_t>> dimPart(const Dim &dim, int64_t rank, const Axes &axes, int64_t wholeExtent) {
  int64_t padded = dim.concat ? 0 : 1;
  int64_t plain = padded;
  for (const Factor &f : dim.factors) {
    if (globalExtent(f) < 0) {
      return std::nullopt;
    }
    padded = dim.concat ? padded + globalExtent(f) : padded * globalExtent(f);
    plain = dim.concat ? plain + f.extent : plain * f.extent;
  }
  if (wholeExtent != padded && wholeExtent != plain) {
    return std::nullopt;
  }
  const bool usePlain = wholeExtent != padded;
  std::vector<int64_t> out;
  if (dim.concat) {
    int64_t offset = 0;
    for (const Factor &f : dim.factors) {
      const Range r = rangeOf(f, rank, axes);
      const int64_t extent = usePlain ? f.extent : globalExtent(f);
      for (int64_t i = r.begin; i < r.end; ++i) {
        out.push_back(i < extent ? offset + i : -1);
      }
      offset += extent;
    }
    return out;
  }
  out.push_back(0);
  for (const Factor &f : dim.factors) {
    const Range r = rangeOf(f, rank, axes);
    const int64_t extent = usePlain ? f.extent : globalExtent(f);
    std::vector<int64_t> next;
    next.reserve(out.size() * static_cast<size_t>(r.size()));
    for (int64_t major : out) {
      for (int64_t i = r.begin; i < r.end; ++i) {
        next.push_back(major < 0 || i >= extent ? -1 : major * extent + i);
      }
    }
    out = std::move(next);
  }
  return out;
}

Extents localExtents(const Dim &dim, int64_t rank, const Axes &axes) {
  Extents out;
  for (const Factor &f : dim.factors) {
    out.push_back(globalExtent(f) < 0 ? -1 : rangeOf(f, rank, axes).size());
  }
  if (dim.concat) {
    const int64_t sum = std::accumulate(out.begin(), out.end(), int64_t(0));
    out.assign(1, sum);
  }
  return out;
}

Shape localDims(const Type &t, int64_t rank, const Axes &axes) {
  Shape out;
  for (const Dim &d : t.dims) {
    out.push_back(localExtents(d, rank, axes));
  }
  return out;
}

// Elements of the dimensions in front of d; of slots their rows. There may be some where d itself is empty.
static size_t outerOf(const Tensor &t, size_t d) {
  int64_t n = t.slots ? t.rows() : 1;
  for (size_t i = t.slots ? 2 : 0; i < d; ++i) {
    n *= t.extent(i);
  }
  return static_cast<size_t>(n);
}

Tensor pick(const Tensor &t, size_t d, llvm::ArrayRef<int64_t> positions) {
  Tensor out;
  out.dims = t.dims;
  out.dims[d].assign(1, static_cast<int64_t>(positions.size()));
  out.slots = t.slots;
  const auto inner = static_cast<size_t>(t.inner(d + 1));
  const auto extent = static_cast<size_t>(t.extent(d));
  const size_t outer = outerOf(t, d);
  out.data.assign(outer * positions.size() * inner, 0);
  for (size_t o = 0; o < outer; ++o) {
    for (size_t i = 0; i < positions.size(); ++i) {
      if (positions[i] >= 0) {
        const Element *from = t.data.data() + (o * extent + static_cast<size_t>(positions[i])) * inner;
        std::copy(from, from + inner, out.data.data() + (o * positions.size() + i) * inner);
      }
    }
  }
  return out;
}

Tensor place(llvm::ArrayRef<const Tensor *> parts, size_t d, llvm::ArrayRef<std::vector<int64_t>> positions, int64_t extent) {
  Tensor out;
  out.dims = parts[0]->dims;
  out.dims[d].assign(1, extent);
  out.slots = parts[0]->slots;
  const auto inner = static_cast<size_t>(parts[0]->inner(d + 1));
  const size_t outer = outerOf(*parts[0], d);
  out.data.assign(outer * static_cast<size_t>(extent) * inner, 0);
  for (size_t p = 0; p < parts.size(); ++p) {
    const auto own = static_cast<size_t>(parts[p]->extent(d));
    for (size_t o = 0; o < outer; ++o) {
      for (size_t i = 0; i < own && i < positions[p].size(); ++i) {
        if (positions[p][i] >= 0) {
          const Element *from = parts[p]->data.data() + (o * own + i) * inner;
          std::copy(from, from + inner, out.data.data() + (o * static_cast<size_t>(extent) + static_cast<size_t>(positions[p][i])) * inner);
        }
      }
    }
  }
  return out;
}

std::optional<Tensor> cut(const Tensor &whole, const Type &t, int64_t rank, const Axes &axes) {
  if (whole.dims.size() != t.dims.size() || whole.slots) {
    return std::nullopt;
  }
  Tensor part = whole;
  for (size_t d = 0; d < t.dims.size(); ++d) {
    std::optional<std::vector<int64_t>> indices = dimPart(t.dims[d], rank, axes, whole.extent(d));
    if (!indices) {
      return std::nullopt;
    }
    bool everything = static_cast<int64_t>(indices->size()) == whole.extent(d);
    for (size_t i = 0; everything && i < indices->size(); ++i) {
      everything = (*indices)[i] == static_cast<int64_t>(i);
    }
    if (!everything) {
      part = pick(part, d, *indices);
    }
    part.dims[d] = localExtents(t.dims[d], rank, axes);
  }
  return part;
}

// The coordinates, on the atoms that cut a factor, of the ranks that hold an element: as a rank that has just these.
static int64_t holderOf(const Factor &f, int64_t element, const Axes &axes) {
  const int64_t shards = axes.product(f.atoms);
  for (int64_t shard = 0; shard < shards; ++shard) {
    int64_t rank = 0;
    int64_t rest = shard;
    for (AtomId a : llvm::reverse(f.atoms)) {
      rank += rest % axes.atom(a).size * axes.atom(a).stride;
      rest /= axes.atom(a).size;
    }
    const Range r = localRange(f, rank, axes);
    if (r.begin <= element && element < r.end) {
      return rank;
    }
  }
  return 0;
}

int64_t tokenHolder(const Dim &tokens, int64_t row, const Axes &axes) {
  int64_t rank = 0;
  for (const Factor &f : llvm::reverse(tokens.factors)) { // a row's number, factor by factor from the last
    const int64_t extent = std::max<int64_t>(globalExtent(f), 1);
    rank += holderOf(f, row % extent, axes);
    row /= extent;
  }
  return rank;
}

bool holdsRow(const Factor &slots, const SlotRow &row, int64_t rank, const Module &module) {
  const Axes &axes = module.axes;
  const Dim tokens = slots.origin.valid() ? module.types.origin(slots.origin).tokens : Dim();
  const int64_t holder = tokenHolder(tokens, row.token, axes);
  llvm::SmallVector<AtomId, 4> own;
  for (const Factor &f : tokens.factors) {
    own.append(f.atoms);
  }
  for (AtomId a : own) {
    if (llvm::is_contained(slots.atoms, a) && axes.coordinate(holder, a) != axes.coordinate(rank, a)) {
      return false;
    }
  }
  const uint64_t id = keyedWord(static_cast<uint64_t>(row.token), static_cast<uint64_t>(row.choice));
  return llvm::all_of(slots.atoms, [&](AtomId a) {
    const auto n = static_cast<uint64_t>(axes.atom(a).size);
    return llvm::is_contained(own, a) || static_cast<int64_t>(keyedWord(a.index, id) % n) == axes.coordinate(rank, a);
  });
}

std::optional<Tensor> cutSlots(const Tensor &whole, const Type &t, int64_t rank, const Module &module) {
  if (!whole.slots || t.dims.size() != whole.dims.size() || t.dims[1].factors.size() != 1 || t.dims[0].factors.size() != 1) {
    return std::nullopt;
  }
  const Range experts = rank < 0 ? Range{0, whole.extent(0)} : localRange(t.dims[0].factors[0], rank, module.axes);
  Tensor part;
  part.dims = whole.dims;
  part.dims[0].assign(1, experts.size());
  const auto width = static_cast<size_t>(whole.inner(2));
  std::vector<SlotRow> rows;
  for (size_t i = 0; i < whole.slots->size(); ++i) {
    SlotRow row = (*whole.slots)[i];
    if (row.expert < experts.begin || row.expert >= experts.end || (rank >= 0 && !holdsRow(t.dims[1].factors[0], row, rank, module))) {
      continue;
    }
    row.expert -= experts.begin;
    rows.push_back(row);
    part.data.insert(part.data.end(), whole.data.begin() + i * width, whole.data.begin() + (i + 1) * width);
  }
  part.slots = std::make_shared<const std::vector<SlotRow>>(std::move(rows));
  for (size_t d = 2; d < t.dims.size(); ++d) { // pick() needs an outer extent: rows take the place of experts
    std::optional<std::vector<int64_t>> indices = dimPart(t.dims[d], rank, module.axes, whole.extent(d));
    if (!indices) {
      return std::nullopt;
    }
    part = pick(part, d, *indices);
    part.dims[d] = localExtents(t.dims[d], rank, module.axes);
  }
  return part;
}

} // namespace shardc
