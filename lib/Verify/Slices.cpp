// Slices: from types and rules of storage to what each rank keeps of a parameter.
//
// The problem. A tensor of 10^12 elements is spread over 10^5 ranks in two levels, with pads; whether every element has its
// place must be known exactly. Listing elements or ranks is out of the question.
//
// What we do. Ranks that agree on the atoms which shard a parameter hold the same box; inside a box the cut of a row depends on
// a rank's coordinate in its group alone. So one row of as many parts as the group has ranks says everything: parts are
// intervals, and they tile the row if each begins where the one before ends.
//
// Why it ends and what it costs. Parts of a row are equal but for the last ones, so a step per kind of parameter says all of
// them, whatever the number of ranks; in a buffer per parameter.
#include "shardc/Verify/Slices.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include <map>
#include <set>

namespace shardc {
namespace {

std::optional<int64_t> times(std::optional<int64_t> a, int64_t b) {
  int64_t product = 0;
  if (!a || b < 0 || __builtin_mul_overflow(*a, b, &product)) {
    return std::nullopt;
  }
  return product;
}

// A dimension's elements where each factor has `size`: their product, or their sum where they follow one another.
std::optional<int64_t> extentOf(const Dim &dim, llvm::function_ref<int64_t(const Factor &)> size) {
  std::optional<int64_t> extent = dim.concat ? 0 : 1;
  for (const Factor &f : dim.factors) {
    const int64_t own = size(f);
    int64_t sum = 0;
    const bool fits = extent && own >= 0 && !__builtin_add_overflow(*extent, own, &sum);
    extent = !fits ? std::nullopt : dim.concat ? std::optional(sum) : times(extent, own);
  }
  return extent;
}

// Every extent is a number, and so is their product.
bool hasSizes(const Type &type) {
  std::optional<int64_t> elements = 1;
  for (const Dim &d : type.dims) {
    elements = times(elements, extentOf(d, globalExtent).value_or(-1));
  }
  return elements.has_value();
}

int64_t dimExtent(const Type &type, size_t dim, int64_t rank, const Axes &axes) {
  return extentOf(type.dims[dim], [&](const Factor &f) { return localRange(f, rank, axes).size(); }).value_or(INT64_MAX);
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

class Collector {
public:
  Collector(const TypedModule &t, llvm::ArrayRef<SyncRow> r, Listing l) : typed(t), module(t.module), rows(r), listing(l) {}

  std::vector<StoredParam> run() {
    const bool ruled = module.storage && !module.storage->rules.empty();
    if (!ruled && llvm::none_of(rows, [](const SyncRow &r) { return !r.shardedOver.empty(); })) {
      return {};
    }
    if (tooManyModules(typed)) {
      leftOut = int64_t(MostModules);
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

  int64_t leftOut = 0;

private:
  void add(llvm::StringRef path, const Value &value) {
    if (!value.declared.valid() || !module.types[value.declared].grad || module.types[value.declared].dims.empty()) {
      return;
    }
    const std::string full = (path + (path.empty() ? "" : ".") + module.names.str(value.name)).str();
    if (!seen.insert(full).second) {
      return; // two calls of one module share it
    }
    if (!hasSizes(module.types[value.declared])) {
      ++leftOut;
      return;
    }
    StoredParam param{full, 1, value.declared, {}, 0, 0, value.range};
    param.rule = ruleFor(full);
    if (param.rule.cut == StorageCut::Buffer) {
      addToBuffer(std::move(param));
      return;
    }
    const std::string kind = listing == Listing::Each ? full : kindOf(full);
    const auto [it, isNew] = known.try_emplace({kind, value.declared.index, param.rule.range}, params.size());
    if (isNew) {
      params.push_back(std::move(param));
    } else {
      params[it->second].path = kind;
      ++params[it->second].count;
    }
  }

  void addToBuffer(StoredParam param) {
    const bool stages = llvm::any_of(module.axes.axes(), [](const Axis &a) { return a.stage && a.size > 1; });
    const std::optional<int64_t> row = rowOf(param, module.types[param.type], 0, module.axes);
    int64_t &end = buffers[param.rule.range];
    if (stages || !row || __builtin_add_overflow(end, *row, &end)) {
      ++leftOut;
      return;
    }
    param.before = end - *row;
    params.push_back(std::move(param));
  }

  StorageRule ruleFor(const std::string &full) const {
    for (const StorageRule &rule : module.storage ? llvm::ArrayRef(module.storage->rules) : llvm::ArrayRef<StorageRule>()) {
      if (llvm::any_of(rule.patterns, [&](const std::string &p) { return matchesPattern(full, p); })) {
        return rule;
      }
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
        rule.even = row.shardEven;
        rule.range = row.keptBy;
        rule.decided = row.keptAt;
        return rule;
      }
    }
    return {};
  }

  const TypedModule &typed;
  const Module &module;
  llvm::ArrayRef<SyncRow> rows;
  Listing listing;
  std::vector<StoredParam> params;
  std::map<std::tuple<std::string, uint32_t, SourceRange>, size_t> known;
  std::map<SourceRange, int64_t> buffers; // per rule: elements so far
  std::set<std::string> seen;
};

// The part of a buffer that is one parameter's: the others' elements and, but for the last one, the pad are not its own.
Cut within(const Cut &cut, const Range &own, int64_t buffer) {
  const int64_t from = std::clamp(cut.elements.begin, own.begin, own.end), to = std::clamp(cut.elements.end, own.begin, own.end);
  const bool last = own.end == buffer && (to > from || cut.elements.begin == cut.elements.end);
  return {{from - own.begin, to - own.begin}, last ? cut.pad : 0};
}

const StorageShare &shareOf(const StoredParam &param, bool load) { return load && param.rule.load ? *param.rule.load : param.rule.share; }

} // namespace

std::string kindOf(llvm::StringRef path) {
  std::string kind;
  for (llvm::StringRef part : llvm::split(path, '.')) {
    const bool number = !part.empty() && llvm::all_of(part, llvm::isDigit);
    kind += (kind.empty() ? "" : ".") + (number ? "*" : part.str());
  }
  return kind;
}

CutRow CutRow::make(int64_t elements, int64_t ranks, int64_t multiple) {
  const int64_t blocks = elements / multiple + (elements % multiple != 0);
  const int64_t all = times(blocks, multiple).value_or(elements);
  return {elements, ranks, all / ranks + (all % ranks != 0)};
}

Cut CutRow::at(int64_t index) const {
  const int64_t begin = std::min(times(each, index).value_or(elements), elements);
  const int64_t end = elements - begin <= each ? elements : begin + each;
  return {{begin, end}, each - (end - begin)};
}

std::vector<StoredParam> storedParams(const TypedModule &typed, llvm::ArrayRef<SyncRow> rows, Listing listing, int64_t *leftOut) {
  Collector collector(typed, rows, listing);
  std::vector<StoredParam> params = collector.run();
  if (leftOut) {
    *leftOut = collector.leftOut;
  }
  return params;
}

bool tooManyModules(const TypedModule &typed) {
  std::vector<uint64_t> counts; // of the calls below each instance and itself: callees stand before callers
  for (const Instance &instance : typed.instances) {
    uint64_t count = 1;
    for (uint32_t callee : instance.callees) {
      count = llvm::SaturatingAdd(count, callee < counts.size() ? counts[callee] : 0);
    }
    counts.push_back(count);
  }
  return !counts.empty() && counts[typed.root] > MostModules;
}

CutRow cutRowOf(const TypedModule &typed, const StoredParam &param, bool load) {
  const StorageShare &share = shareOf(param, load);
  const bool buffer = param.rule.cut == StorageCut::Buffer;
  const int64_t row = buffer ? param.buffer : rowOf(param, typed.module.types[param.type], 0, typed.module.axes).value_or(0);
  return param.rule.cut == StorageCut::Whole ? CutRow{row, 1, row}
                                             : CutRow::make(row, typed.module.axes.product(share.over), share.multiple);
}

// Where a parameter lies in the buffer of a rank, and how long that is: boxes that are cut unevenly differ by rank.
static std::pair<Range, int64_t> inBuffer(const TypedModule &typed, llvm::ArrayRef<StoredParam> all, const StoredParam &param,
                                          int64_t rank) {
  const int64_t row = rowOf(param, typed.module.types[param.type], rank, typed.module.axes).value_or(0);
  const auto uneven = [&](const StoredParam &p) {
    return p.rule.range == param.rule.range && llvm::any_of(typed.module.types[p.type].dims, [&](const Dim &d) {
             return llvm::any_of(d.factors, [&](const Factor &f) { return !isEven(f, typed.module.axes); });
           });
  };
  if (rank == 0 || llvm::none_of(all, uneven)) {
    return {{param.before, param.before + row}, param.buffer};
  }
  Range own;
  int64_t end = 0;
  for (const StoredParam &p : all) {
    if (p.rule.range == param.rule.range) {
      own = &p == &param ? Range{end, end + row} : own;
      end += rowOf(p, typed.module.types[p.type], rank, typed.module.axes).value_or(0);
    }
  }
  return {own, end};
}

Slice sliceOf(const TypedModule &typed, llvm::ArrayRef<StoredParam> all, const StoredParam &param, int64_t rank) {
  const Axes &axes = typed.module.axes;
  const Type &type = typed.module.types[param.type];
  const StorageShare &share = param.rule.share;
  Slice slice;
  for (const Dim &dim : type.dims) {
    for (const Factor &f : dim.factors) {
      slice.box.push_back(localRange(f, rank, axes));
    }
  }
  const int64_t index = axes.coordinate(rank, share.over), ranks = axes.product(share.over);
  const int64_t row = rowOf(param, type, rank, axes).value_or(0);
  switch (param.rule.cut) {
  case StorageCut::Whole:
    slice.cut = {{0, row}, 0};
    break;
  case StorageCut::Dim:
  case StorageCut::Flat:
    slice.cut = CutRow::make(row, ranks, share.multiple).at(index);
    break;
  case StorageCut::Buffer:
    const auto [own, buffer] = inBuffer(typed, all, param, rank);
    slice.cut = within(CutRow::make(buffer, ranks, share.multiple).at(index), own, buffer);
    break;
  }
  return slice;
}

std::optional<Untiled> findUntiled(const TypedModule &typed, const StoredParam &param) {
  const Axes &axes = typed.module.axes;
  const Type &type = typed.module.types[param.type];
  // Ranks that differ on an atom that shards the parameter hold other boxes: of rank 0's box they keep nothing.
  int64_t stride = 1;
  std::vector<std::pair<int64_t, int64_t>> elsewhere; // stride and size of such atoms in the group's order
  for (AtomId a : llvm::reverse(param.rule.share.over)) {
    if (stateOf(type, a) == State::S) {
      elsewhere.emplace_back(stride, axes.atom(a).size);
    }
    stride *= axes.atom(a).size;
  }
  if (param.rule.cut == StorageCut::Whole || elsewhere.empty()) {
    return std::nullopt; // the parts of a row follow one another to its end
  }
  const CutRow row = cutRowOf(typed, param);
  int64_t reached = 0;
  for (int64_t i = 0; i < row.ranks && reached < row.elements; ++i) {
    const Range part = row.at(i).elements;
    const bool other = llvm::any_of(elsewhere, [&](auto digit) { return i / digit.first % digit.second != 0; });
    if (other || part.size() == 0) {
      continue;
    }
    if (part.begin != reached) {
      return Untiled{{std::min(part.begin, reached), std::max(part.begin, reached)}, part.begin < reached};
    }
    reached = part.end;
  }
  return reached == row.elements ? std::nullopt : std::optional(Untiled{{reached, row.elements}, false});
}

} // namespace shardc
