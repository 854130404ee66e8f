// Collectives on local tensors. See the header.
//
// A tensor is taken apart into its factors first, so that a shard inside a product is one dimension; a dimension whose parts
// follow one another stays one, and each part is moved by itself.
#include "Collectives.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc {
namespace {

using Ints = std::vector<int64_t>;

class Exchanger {
public:
  Exchanger(const Exchange &h, const Spread &i, const Ranks &r, const Module &m, Spread &o)
      : how(h), in(i), ranks(r), module(m), axes(m.axes), out(o) {}

  bool run() {
    out.ranks.assign(in.ranks.size(), Tensor());
    source = shardPlace(*how.before, how.atoms[0]);
    target = shardPlace(*how.after, how.atoms[0]);
    for (const std::vector<size_t> &group : ranks.groups(how.atoms)) {
      if (!one(group)) {
        return false;
      }
    }
    out.failed = false;
    return finish();
  }

  std::string error;

private:
  bool fail(std::string text) {
    error = std::move(text);
    return false;
  }

  bool one(llvm::ArrayRef<size_t> group) {
    const bool slots = in.ranks[group[0]].slots && ((source && source->dim < 2) || (target && target->dim < 2));
    switch (how.primitive) {
    case Primitive::None:
      for (size_t i : group) {
        out.ranks[i] = in.ranks[i];
      }
      return true;
    case Primitive::AllReduce:
    case Primitive::AllReduceMax:
    case Primitive::AllReduceMin:
    case Primitive::AllReduceMean:
      return reduceGroup(group);
    case Primitive::KeepFirst:
      for (size_t i : group) {
        out.ranks[i] = i == group[0] ? in.ranks[i] : likeTensor(in.ranks[i]);
      }
      return true;
    case Primitive::ReduceScatter:
      if (!reduceGroup(group)) {
        return false;
      }
      return slots ? moveRows(group, out.ranks, false) : sliceGroup(group, out.ranks);
    case Primitive::Slice:
      return slots ? moveRows(group, in.ranks, false) : sliceGroup(group, in.ranks);
    case Primitive::AllGather:
      return slots ? moveRows(group, in.ranks, true) : gatherGroup(group, in.ranks);
    case Primitive::AllToAll:
      return slots ? exchangeRows(group) : exchangeGroup(group);
    case Primitive::ZeroFill:
      return slots ? zeroRows(group) : zeroFillGroup(group);
    }
    return true;
  }

  bool reduceGroup(llvm::ArrayRef<size_t> group) {
    Tensor sum = in.ranks[group[0]];
    for (size_t i : group.drop_front()) {
      const Tensor &next = in.ranks[i];
      if (next.data.size() != sum.data.size() || (sum.slots && next.slots && *sum.slots != *next.slots)) {
        return fail("ranks of one reduction hold different shapes");
      }
      for (size_t e = 0; e < sum.data.size(); ++e) {
        const Element a = sum.data[e];
        const Element b = next.data[e];
        sum.data[e] = how.primitive == Primitive::AllReduceMax   ? larger(a, b)
                      : how.primitive == Primitive::AllReduceMin ? smaller(a, b)
                                                                 : add(a, b);
      }
    }
    if (how.primitive == Primitive::AllReduceMean) {
      const Element share = inverse(fromInteger(static_cast<int64_t>(group.size())));
      for (Element &e : sum.data) {
        e = multiply(e, share);
      }
    }
    for (size_t i : group) {
      out.ranks[i] = sum;
    }
    return true;
  }

  // The tensor with one dimension per factor; nothing where the type's local extents are not those of the data.
  std::optional<Tensor> factors(const Tensor &t, const Type &type, size_t rank) const {
    Tensor flat;
    flat.data = t.data;
    flat.slots = t.slots;
    for (size_t d = 0; d < type.dims.size(); ++d) {
      if (t.slots && d < 2) {
        flat.dims.push_back(t.dims[d]);
        continue;
      }
      const Extents local = localExtents(type.dims[d], ranks.list[rank], axes);
      if (d >= t.dims.size() || product(local) != t.extent(d)) {
        return std::nullopt;
      }
      for (int64_t e : local) {
        flat.dims.push_back({e});
      }
    }
    return flat;
  }

  // Where a factor stands among all factors; a dimension of parts counts as one.
  static size_t flatDim(const Type &type, ShardPlace p) {
    size_t at = 0;
    for (uint32_t d = 0; d < p.dim; ++d) {
      at += type.dims[d].concat ? 1 : type.dims[d].factors.size();
    }
    return at + (type.dims[p.dim].concat ? 0 : p.factor);
  }

  // What a rank holds of the factor (of each part, where parts follow one another).
  std::vector<Range> held(const Type &type, ShardPlace p, size_t rank) const {
    const Dim &d = type.dims[p.dim];
    std::vector<Range> ranges;
    for (const Factor &f : d.concat ? llvm::ArrayRef<Factor>(d.factors) : llvm::ArrayRef<Factor>(d.factors[p.factor])) {
      ranges.push_back(localRange(f, ranks.list[rank], axes));
    }
    return ranges;
  }

  // Local positions, in a tensor that holds `have`, of what `want` covers; -1 where it is a pad that is not there.
  static Ints chunk(llvm::ArrayRef<Range> have, llvm::ArrayRef<Range> want) {
    Ints out;
    int64_t base = 0;
    for (size_t p = 0; p < have.size(); ++p) {
      for (int64_t i = want[p].begin; i < want[p].end; ++i) {
        out.push_back(i >= have[p].begin && i < have[p].end ? base + i - have[p].begin : -1);
      }
      base += have[p].size();
    }
    return out;
  }

  bool sliceGroup(llvm::ArrayRef<size_t> group, llvm::ArrayRef<Tensor> from) {
    for (size_t i : group) {
      std::optional<Tensor> flat = target ? factors(from[i], *how.before, i) : std::nullopt;
      if (!flat) {
        return fail("the data has not the shape of its type");
      }
      out.ranks[i] = pick(*flat, flatDim(*how.before, *target), chunk(held(*how.before, *target, i), held(*how.after, *target, i)));
    }
    return true;
  }

  // Chunks one after the other, part by part, in the order of the group.
  Tensor join(llvm::ArrayRef<size_t> group, llvm::ArrayRef<Tensor> parts, size_t dim) const {
    std::vector<Ints> positions(group.size());
    std::vector<const Tensor *> pointers;
    std::vector<std::vector<Range>> ranges;
    for (size_t k = 0; k < group.size(); ++k) {
      pointers.push_back(&parts[k]);
      ranges.push_back(held(*how.before, *source, group[k]));
    }
    int64_t at = 0;
    for (size_t p = 0; p < ranges[0].size(); ++p) {
      for (size_t k = 0; k < group.size(); ++k) {
        for (int64_t i = 0; i < ranges[k][p].size(); ++i) {
          positions[k].push_back(at++);
        }
      }
    }
    return place(pointers, dim, positions, at);
  }

  bool gatherGroup(llvm::ArrayRef<size_t> group, llvm::ArrayRef<Tensor> from) {
    std::vector<Tensor> parts;
    for (size_t i : group) {
      std::optional<Tensor> flat = source ? factors(from[i], *how.before, i) : std::nullopt;
      if (!flat) {
        return fail("the data has not the shape of its type");
      }
      parts.push_back(std::move(*flat));
    }
    const Tensor whole = join(group, parts, flatDim(*how.before, *source));
    for (size_t i : group) {
      out.ranks[i] = whole;
    }
    return true;
  }

  bool exchangeGroup(llvm::ArrayRef<size_t> group) {
    if (!source || !target) {
      return fail("an exchange needs a shard at both ends");
    }
    for (size_t to : group) {
      std::vector<Tensor> pieces;
      for (size_t from : group) {
        const std::optional<Tensor> flat = factors(in.ranks[from], *how.before, from);
        if (!flat) {
          return fail("the data has not the shape of its type");
        }
        pieces.push_back(
            pick(*flat, flatDim(*how.before, *target), chunk(held(*how.before, *target, from), held(*how.after, *target, to))));
      }
      out.ranks[to] = join(group, pieces, flatDim(*how.before, *source));
    }
    return true;
  }

  bool zeroFillGroup(llvm::ArrayRef<size_t> group) {
    for (size_t i : group) {
      const std::optional<Tensor> flat = source ? factors(in.ranks[i], *how.before, i) : std::nullopt;
      if (!flat) {
        return fail("the data has not the shape of its type");
      }
      const std::vector<Range> whole = held(*how.after, *source, i);
      const Ints positions = chunk(whole, held(*how.before, *source, i));
      int64_t extent = 0;
      for (const Range &r : whole) {
        extent += r.size();
      }
      out.ranks[i] = place({&*flat}, flatDim(*how.before, *source), {positions}, extent);
    }
    return true;
  }

  // Between rows of slots and their width: what is exchanged is gathered first, and each rank keeps its part.
  bool exchangeRows(llvm::ArrayRef<size_t> group) {
    if (!source || !target) {
      return fail("an exchange needs a shard at both ends");
    }
    const bool fromWidth = source->dim >= 2;
    if (!(fromWidth ? gatherGroup(group, in.ranks) : moveRows(group, in.ranks, true))) {
      return false;
    }
    const std::vector<Tensor> all = out.ranks;
    if (fromWidth) {
      return moveRows(group, all, false);
    }
    return target->dim < 2 || sliceGroup(group, all);
  }

  int64_t firstExpert(const Type &type, size_t rank) const { return localRange(type.dims[0].factors[0], ranks.list[rank], axes).begin; }

  // Rows of one rank or of the whole group, as far as they belong to the rank afterwards.
  bool moveRows(llvm::ArrayRef<size_t> group, llvm::ArrayRef<Tensor> from, bool gather) {
    std::vector<Tensor> results;
    for (size_t to : group) {
      std::vector<std::pair<SlotRow, std::pair<size_t, size_t>>> rows; // row, where it is now
      for (size_t k : group) {
        if (!gather && k != to) {
          continue;
        }
        for (size_t r = 0; r < from[k].slots->size(); ++r) {
          SlotRow row = (*from[k].slots)[r];
          row.expert += firstExpert(*how.before, k);
          if (belongs(row, to)) {
            rows.push_back({row, {k, r}});
          }
        }
      }
      llvm::stable_sort(rows, [](const auto &a, const auto &b) { return a.first < b.first; });
      results.push_back(collect(rows, from, to));
    }
    for (size_t k = 0; k < group.size(); ++k) {
      out.ranks[group[k]] = std::move(results[k]);
    }
    return true;
  }

  // Only the axes that move decide.
  bool belongs(const SlotRow &row, size_t to) const {
    if (!target) {
      return true;
    }
    if (target->dim == 0) {
      const Range r = localRange(how.after->dims[0].factors[0], ranks.list[to], axes);
      return r.begin <= row.expert && row.expert < r.end;
    }
    Factor moved = how.after->dims[1].factors[0];
    moved.atoms.assign(how.atoms.begin(), how.atoms.end());
    return target->dim != 1 || holdsRow(moved, row, ranks.list[to], module);
  }

  Tensor collect(llvm::ArrayRef<std::pair<SlotRow, std::pair<size_t, size_t>>> rows, llvm::ArrayRef<Tensor> from, size_t to) const {
    Tensor t;
    t.dims = from[to].dims;
    t.dims[0].assign(1, localRange(how.after->dims[0].factors[0], ranks.list[to], axes).size());
    std::vector<SlotRow> list;
    for (auto [row, where] : rows) {
      row.expert -= firstExpert(*how.after, to);
      list.push_back(row);
      const Tensor &x = from[where.first];
      const auto width = static_cast<std::ptrdiff_t>(x.inner(2));
      const auto at = static_cast<std::ptrdiff_t>(where.second) * width;
      t.data.insert(t.data.end(), x.data.begin() + at, x.data.begin() + at + width);
    }
    t.slots = std::make_shared<const std::vector<SlotRow>>(std::move(list));
    return t;
  }

  // All rows of the group, those of others as zeros.
  bool zeroRows(llvm::ArrayRef<size_t> group) {
    std::vector<Tensor> masked(in.ranks);
    std::vector<Tensor> results;
    for (size_t to : group) {
      for (size_t k : group) {
        masked[k] = k == to ? in.ranks[k] : likeTensor(in.ranks[k]);
      }
      if (!moveRows(group, masked, true)) {
        return false;
      }
      results.push_back(out.ranks[to]);
    }
    for (size_t k = 0; k < group.size(); ++k) {
      out.ranks[group[k]] = std::move(results[k]);
    }
    return true;
  }

  // Dimensions as the type after the change groups them.
  bool finish() {
    for (size_t i = 0; i < out.ranks.size(); ++i) {
      Tensor &t = out.ranks[i];
      const Shape dims = localDims(*how.after, ranks.list[i], axes);
      int64_t elements = t.slots ? t.rows() : 1;
      for (size_t d = t.slots ? 2 : 0; d < dims.size(); ++d) {
        elements *= product(dims[d]);
      }
      if (elements != t.size()) {
        return fail("the change leaves another number of local elements than its type says");
      }
      const Extents experts = t.slots ? t.dims[0] : Extents();
      t.dims = dims;
      if (t.slots) {
        t.dims[0] = experts;
        t.dims[1].assign(1, -1);
      }
    }
    return true;
  }

  const Exchange &how;
  const Spread &in;
  const Ranks &ranks;
  const Module &module;
  const Axes &axes;
  Spread &out;
  std::optional<ShardPlace> source, target;
};

} // namespace

bool exchange(const Exchange &how, const Spread &in, const Ranks &ranks, const Module &module, Spread &out, std::string &error) {
  Exchanger exchanger(how, in, ranks, module, out);
  const bool done = exchanger.run();
  error = exchanger.error;
  return done;
}

void scaleSpread(Spread &value, Element by) {
  for (Tensor &t : value.ranks) {
    for (Element &e : t.data) {
      e = multiply(e, by);
    }
  }
}

} // namespace shardc
