// Slices: from types and rules of storage to what each rank keeps of a parameter.
//
// The problem. A tensor of 10^12 elements is spread over 10^5 ranks in two levels, with pads; whether every element has its
// place must be known exactly. Listing elements or ranks is out of the question.
//
// What we do. Ranks that agree on the atoms which shard a parameter hold the same box; inside a box the cut of a row depends on
// a rank's coordinate in its group alone. So one row of as many parts as the group has ranks says everything: parts are
// intervals, and they tile the row if each begins where the one before ends.
//
// Why it ends and what it costs. A step per rank of a group and kind of parameter; in a buffer per parameter and rank that has some of it.
#include "shardc/Verify/Slices.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

namespace shardc {
namespace {

std::optional<int64_t> times(std::optional<int64_t> a, int64_t b) {
  int64_t product = 0;
  if (!a || b < 0 || __builtin_mul_overflow(*a, b, &product)) {
    return std::nullopt;
  }
  return product;
}

bool hasSizes(const Type &type) {
  return llvm::all_of(
      type.dims, [](const Dim &d) { return !d.concat && llvm::all_of(d.factors, [](const Factor &f) { return globalExtent(f) >= 0; }); });
}

int64_t dimExtent(const Type &type, size_t dim, int64_t rank, const Axes &axes) {
  std::optional<int64_t> extent = 1;
  for (const Factor &f : type.dims[dim].factors) {
    extent = times(extent, localRange(f, rank, axes).size());
  }
  return extent.value_or(INT64_MAX);
}

// What a rule cuts of a rank's box: elements, those of one expert, or rows of a dimension.
std::optional<int64_t> rowOf(const StoredParam &param, const Type &type, int64_t rank, const Axes &axes) {
  if (param.rule.cut == StorageCut::Dim) {
    return dimExtent(type, std::min<size_t>(param.rule.dim, type.dims.size() - 1), rank, axes);
  }
  std::optional<int64_t> row = 1;
  for (size_t d = param.rule.each && type.dims.size() > 1 ? 1 : 0; d < type.dims.size(); ++d) {
    row = times(row, dimExtent(type, d, rank, axes));
  }
  return row;
}

// "layers.12.w" -> "layers.*.w".
std::string folded(llvm::StringRef path) {
  std::string out;
  for (size_t from = 0; from <= path.size();) {
    const size_t to = std::min(path.find('.', from), path.size());
    const llvm::StringRef part = path.slice(from, to);
    const bool number = !part.empty() && llvm::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
    out += (from > 0 ? "." : "") + (number ? std::string("*") : part.str());
    from = to + 1;
  }
  return out;
}

class Collector {
public:
  Collector(const TypedModule &t, llvm::ArrayRef<SyncRow> r) : typed(t), module(t.module), rows(r) {}

  std::vector<StoredParam> run() {
    const bool sharded = llvm::any_of(rows, [](const SyncRow &r) { return !r.shardedOver.empty(); });
    if (!module.storage && !sharded) {
      return {};
    }
    walk(typed, [&](llvm::StringRef path, const Instance &instance) {
      const Function &f = module.function(instance.function);
      for (ValueId p : f.params) {
        add(path, f.values[p.index]);
      }
      return true;
    });
    for (StoredParam &param : params) {
      if (param.rule.cut == StorageCut::Buffer) {
        param.buffer = buffers[param.rule.range];
      }
    }
    return std::move(params);
  }

private:
  void add(llvm::StringRef path, const Value &value) {
    if (!value.declared.valid() || !module.types[value.declared].grad || !hasSizes(module.types[value.declared]) ||
        module.types[value.declared].dims.empty()) {
      return;
    }
    const std::string full = (path + (path.empty() ? "" : ".") + module.names.str(value.name)).str();
    StoredParam param{folded(full), 1, value.declared, {}, 0, 0, value.range};
    param.rule = ruleFor(full);
    if (param.rule.cut == StorageCut::Buffer) {
      addToBuffer(std::move(param), full);
      return;
    }
    auto [it, isNew] = known.try_emplace({param.path, value.declared.index}, params.size());
    if (isNew) {
      params.push_back(std::move(param));
    } else {
      ++params[it->second].count;
    }
  }

  void addToBuffer(StoredParam param, const std::string &full) {
    const bool stages = llvm::any_of(module.axes.axes(), [](const Axis &a) { return a.stage && a.size > 1; });
    const std::optional<int64_t> row = rowOf(param, module.types[param.type], 0, module.axes);
    int64_t &end = buffers[param.rule.range];
    if (stages || !row || __builtin_add_overflow(end, *row, &end)) {
      return;
    }
    param.path = full;
    param.before = end - *row;
    params.push_back(std::move(param));
  }

  StorageRule ruleFor(const std::string &full) const {
    if (module.storage) {
      for (const StorageRule &rule : module.storage->rules) {
        if (llvm::any_of(rule.patterns, [&](const std::string &p) { return matchesPattern(full, p); })) {
          return rule;
        }
      }
      return {};
    }
    for (const SyncRow &row : rows) {
      if (!row.shardedOver.empty() && matchesPattern(full, row.parameters)) {
        StorageRule rule;
        rule.family = row.family;
        rule.cut = StorageCut::Dim;
        rule.share.over = row.shardedOver;
        rule.share.overText = module.axes.describe(row.shardedOver, module.view);
        rule.share.multiple = module.axes.product(row.shardedOver);
        rule.dim = row.shardDim;
        rule.range = row.keptBy;
        return rule;
      }
    }
    return {};
  }

  const TypedModule &typed;
  const Module &module;
  llvm::ArrayRef<SyncRow> rows;
  std::vector<StoredParam> params;
  std::map<std::pair<std::string, uint32_t>, size_t> known;
  std::map<SourceRange, int64_t> buffers; // per rule: elements so far
};

// The part of a buffer that is one parameter's: the others' elements and, but for the last one, the pad are not its own.
Cut within(const Cut &cut, const StoredParam &param, int64_t row) {
  const int64_t end = param.before + row;
  const int64_t from = std::clamp(cut.elements.begin, param.before, end), to = std::clamp(cut.elements.end, param.before, end);
  const bool last = end == param.buffer && (to > from || cut.elements.begin == cut.elements.end);
  return {{from - param.before, to - param.before}, last ? cut.pad : 0};
}

} // namespace

Cut cutAt(int64_t elements, int64_t ranks, int64_t multiple, int64_t index) {
  const int64_t blocks = elements / multiple + (elements % multiple != 0);
  const int64_t all = times(blocks, multiple).value_or(elements), each = all / ranks + (all % ranks != 0);
  const int64_t begin = std::min(times(each, index).value_or(elements), elements);
  const int64_t end = elements - begin <= each ? elements : begin + each;
  return {{begin, end}, each - (end - begin)};
}

std::vector<Cut> cutRow(int64_t elements, int64_t ranks, int64_t multiple) {
  std::vector<Cut> cuts;
  cuts.reserve(ranks);
  for (int64_t r = 0; r < ranks; ++r) {
    cuts.push_back(cutAt(elements, ranks, multiple, r));
  }
  return cuts;
}

std::vector<StoredParam> storedParams(const TypedModule &typed, llvm::ArrayRef<SyncRow> rows) { return Collector(typed, rows).run(); }

// The part of the `index`-th rank of a group whose ranks have the box of `rank`.
static Cut cutOf(const TypedModule &typed, const StoredParam &param, const StorageShare &share, int64_t rank, int64_t index) {
  const Axes &axes = typed.module.axes;
  const int64_t row = rowOf(param, typed.module.types[param.type], rank, axes).value_or(0);
  switch (param.rule.cut) {
  case StorageCut::Whole:
    return {{0, row}, 0};
  case StorageCut::Dim:
  case StorageCut::Flat:
    return cutAt(row, axes.product(share.over), share.multiple, index);
  case StorageCut::Buffer:
    return within(cutAt(param.buffer, axes.product(share.over), share.multiple, index), param, row);
  }
  return {};
}

std::vector<Cut> cutsOf(const TypedModule &typed, const StoredParam &param, bool load) {
  const StorageShare &share = load && param.rule.load ? *param.rule.load : param.rule.share;
  const int64_t ranks = param.rule.cut == StorageCut::Whole ? 1 : typed.module.axes.product(share.over);
  std::vector<Cut> cuts;
  cuts.reserve(ranks);
  for (int64_t i = 0; i < ranks; ++i) {
    cuts.push_back(cutOf(typed, param, share, 0, i));
  }
  return cuts;
}

Slice sliceOf(const TypedModule &typed, const StoredParam &param, int64_t rank) {
  const Axes &axes = typed.module.axes;
  Slice slice;
  for (const Dim &dim : typed.module.types[param.type].dims) {
    for (const Factor &f : dim.factors) {
      slice.box.push_back(localRange(f, rank, axes));
    }
  }
  slice.cut = cutOf(typed, param, param.rule.share, rank, axes.coordinate(rank, param.rule.share.over));
  return slice;
}

// The ranks of a group that may keep something of a parameter: in a buffer a few, else all.
static Range ranksWith(const StoredParam &param, int64_t row, int64_t ranks) {
  if (param.rule.cut != StorageCut::Buffer || row == 0) {
    return {0, param.rule.cut == StorageCut::Whole ? 1 : ranks};
  }
  const Cut first = cutAt(param.buffer, ranks, param.rule.share.multiple, 0);
  const int64_t each = first.elements.size() + first.pad;
  return {param.before / each, std::min(ranks, (param.before + row - 1) / each + 1)};
}

std::optional<Untiled> findUntiled(const TypedModule &typed, const StoredParam &param) {
  const Axes &axes = typed.module.axes;
  const Type &type = typed.module.types[param.type];
  const llvm::ArrayRef<AtomId> over = param.rule.share.over;
  const int64_t row = rowOf(param, type, 0, axes).value_or(0);
  // Ranks that differ on an atom that shards the parameter hold other boxes: of rank 0's box they keep nothing.
  int64_t stride = 1;
  std::vector<std::pair<int64_t, int64_t>> elsewhere; // stride and size of such atoms in the group's order
  for (AtomId a : llvm::reverse(over)) {
    if (stateOf(type, a) == State::S) {
      elsewhere.emplace_back(stride, axes.atom(a).size);
    }
    stride *= axes.atom(a).size;
  }
  int64_t reached = 0;
  const Range ranks = ranksWith(param, row, axes.product(over));
  for (int64_t i = ranks.begin; i < ranks.end; ++i) {
    const bool other =
        param.rule.cut != StorageCut::Whole && llvm::any_of(elsewhere, [&](auto digit) { return i / digit.first % digit.second != 0; });
    const Range part = cutOf(typed, param, param.rule.share, 0, i).elements;
    if (other || part.size() == 0) {
      continue;
    }
    if (part.begin != reached) {
      return Untiled{{std::min(part.begin, reached), std::max(part.begin, reached)}, part.begin < reached};
    }
    reached = part.end;
  }
  return reached == row ? std::nullopt : std::optional(Untiled{{reached, row}, false});
}

} // namespace shardc
