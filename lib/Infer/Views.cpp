// Views: operations that see the same elements under other dimensions, and what joins or cuts dimensions.
//
// A view never moves data: the local shards of the result must be views of the operand's local shards. A dimension that is
// cut through a sharded factor must therefore be even, and atoms stay with the major part.
#include "Typing.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc {
namespace {

using Factors = llvm::SmallVector<Factor, 4>;

// f as major x minor. Atoms go to the major part as long as they divide it, the rest to the minor part.
std::optional<std::pair<Factor, Factor>> splitFactor(const Factor &f, int64_t major, const Axes &axes) {
  bool plain = f.extent > 0 && f.padTo == 0 && !f.permuted && !f.origin.valid() && f.extent % major == 0;
  if (!plain || (!f.atoms.empty() && !isEven(f, axes))) {
    return std::nullopt;
  }
  Factor a, b;
  a.extent = major;
  b.extent = f.extent / major;
  int64_t rest = major;
  for (AtomId atom : f.atoms) {
    int64_t n = axes.atom(atom).size;
    if (rest % n == 0 && b.atoms.empty()) {
      a.atoms.push_back(atom);
      rest /= n;
    } else if (rest == 1) {
      b.atoms.push_back(atom);
    } else {
      return std::nullopt; // the cut falls inside a shard
    }
  }
  return std::pair(a, b);
}

// The factors in row-major order, regrouped so that group i has the elements of `wanted[i]`, each factor kept or cut once;
// nothing where that is not possible.
std::optional<std::vector<Factors>> regroupFactors(Factors from, llvm::ArrayRef<Factor> wanted, const Axes &axes) {
  std::vector<Factors> groups;
  std::reverse(from.begin(), from.end());
  for (const Factor &w : wanted) {
    Factors group;
    int64_t need = w.extent;
    while (need > 1 || (group.empty() && !from.empty() && w.extent == 1 && from.back().extent == 1)) {
      if (from.empty()) {
        return std::nullopt;
      }
      Factor f = from.pop_back_val();
      if (f.extent > 0 && need % f.extent == 0) {
        need /= f.extent;
        group.push_back(std::move(f));
        if (w.extent == 1) {
          break;
        }
        continue;
      }
      std::optional<std::pair<Factor, Factor>> cut =
          need > 0 && f.extent > 0 && f.extent % need == 0 ? splitFactor(f, need, axes) : std::nullopt;
      if (!cut) {
        return std::nullopt;
      }
      group.push_back(std::move(cut->first));
      from.push_back(std::move(cut->second));
      need = 1;
    }
    if (group.empty()) {
      Factor unit;
      unit.extent = 1;
      group.push_back(unit);
    }
    llvm::erase_if(group, [&](const Factor &f) { return f.extent == 1 && f.atoms.empty() && w.extent > 1; });
    if (group.size() == 1) {
      group[0].name = w.name;
    }
    groups.push_back(std::move(group));
  }
  for (const Factor &f : from) {
    if (f.extent != 1) {
      return std::nullopt;
    }
  }
  return groups;
}

// The same through one flat dimension, where the factors read as one: its shards are runs of rows, which the first of the
// wanted dimensions takes if they divide it.
std::optional<std::vector<Factors>> regroupFlat(const Factors &from, llvm::ArrayRef<Factor> wanted, const Axes &axes, NameTable &names) {
  Dim product;
  product.factors.append(from.begin(), from.end());
  std::optional<Factor> rest = contiguous(product, axes, names);
  std::vector<Factors> groups;
  for (size_t i = 0; rest && i < wanted.size(); ++i) {
    std::optional<std::pair<Factor, Factor>> cut = splitFactor(*rest, wanted[i].extent, axes);
    if (!cut) {
      return std::nullopt;
    }
    cut->first.name = wanted[i].name;
    groups.push_back({cut->first});
    *rest = cut->second;
  }
  return rest ? std::optional(groups) : std::nullopt;
}

// Factors to wanted dimensions, run by run: a run ends where both sides have the same number of elements behind them.
std::optional<std::vector<Factors>> regroup(const Factors &from, llvm::ArrayRef<Factor> wanted, Module &module,
                                            llvm::SmallVectorImpl<AtomId> &atoms) {
  std::vector<Factors> groups;
  size_t f = 0, w = 0;
  while (f < from.size() || w < wanted.size()) {
    size_t firstF = f, firstW = w;
    int64_t have = f < from.size() ? from[f++].extent : 1, want = w < wanted.size() ? wanted[w++].extent : 1;
    while (have != want) {
      bool more = have < want;
      if (more ? f == from.size() : w == wanted.size()) {
        return std::nullopt;
      }
      (more ? have : want) *= more ? from[f++].extent : wanted[w++].extent; // bounded by the totals, which were counted
    }
    // Extents of 1 at the end belong to the last run.
    f = w == wanted.size() ? from.size() : f;
    w = f == from.size() ? wanted.size() : w;
    Factors run(from.begin() + firstF, from.begin() + f);
    llvm::ArrayRef<Factor> goal = wanted.slice(firstW, w - firstW);
    std::optional<std::vector<Factors>> done = regroupFactors(run, goal, module.axes);
    done = done ? done : regroupFlat(run, goal, module.axes, module.names);
    if (!done) {
      for (const Factor &factor : run) {
        atoms.append(factor.atoms.begin(), factor.atoms.end());
      }
      return std::nullopt;
    }
    groups.insert(groups.end(), done->begin(), done->end());
  }
  return groups;
}

Factors factorsOf(llvm::ArrayRef<Dim> dims) {
  Factors out;
  for (const Dim &d : dims) {
    out.append(d.factors.begin(), d.factors.end());
  }
  return out;
}

// Written factors of the target dimensions, flattened; parts that follow one another are one factor of their sum.
Factors writtenFactors(llvm::ArrayRef<Dim> dims) {
  Factors out;
  for (const Dim &d : dims) {
    if (!d.concat) {
      out.append(d.factors.begin(), d.factors.end());
      continue;
    }
    Factor sum;
    for (const Factor &f : d.factors) {
      sum.extent = sum.extent < 0 || f.extent < 0 ? Symbolic : sum.extent + f.extent;
    }
    out.push_back(std::move(sum));
  }
  return out;
}

bool countable(llvm::ArrayRef<Factor> factors, int64_t &total) {
  total = 1;
  return llvm::all_of(factors, [&](const Factor &f) { return f.extent > 0 && !__builtin_mul_overflow(total, f.extent, &total); });
}

// Replaces dimensions [first, first + count) by `dims`.
Typed viewAs(TypingContext &context, const Type &x, uint32_t first, uint32_t count, llvm::ArrayRef<Dim> dims) {
  Factors from = factorsOf(llvm::ArrayRef(x.dims).slice(first, count));
  bool concat = llvm::any_of(llvm::ArrayRef(x.dims).slice(first, count), [](const Dim &d) { return d.concat; });
  Factors wanted = writtenFactors(dims);
  Dim whole;
  whole.factors.append(from.begin(), from.end());
  // Dimensions that already have these factors only lose or gain brackets, whatever they hold.
  bool same = from.size() == wanted.size() && llvm::all_of(llvm::zip(from, wanted), [](const auto &p) {
                const auto &[f, w] = p;
                return f.extent == w.extent && (f.extent >= 0 || f.name == w.name);
              });
  std::vector<Factors> groups;
  if (same && !concat) {
    for (const Factor &f : from) {
      groups.push_back({f});
    }
  } else {
    int64_t have = 1, want = 1;
    if (concat || !countable(from, have) || !countable(wanted, want)) {
      return failed(FaultKind::NotContiguous, 0, 0, {}, dimName(whole, context.module));
    }
    if (have != want) {
      return failed(FaultKind::BadAttribute, 0, 0, {}, {},
                    llvm::formatv("the written dimensions hold {0} elements, but the operand's hold {1}", want, have).str());
    }
    llvm::SmallVector<AtomId, 4> atoms;
    std::optional<std::vector<Factors>> found = regroup(from, wanted, context.module, atoms);
    if (!found) {
      return failed(FaultKind::UnevenView, 0, 0, atoms, dimName(whole, context.module));
    }
    groups = std::move(*found);
  }
  Type out = x;
  out.dims.clear();
  out.dims.append(x.dims.begin(), x.dims.begin() + first);
  size_t g = 0;
  for (const Dim &d : dims) {
    Dim made;
    if (d.concat) { // a sum of parts inside one whole dimension
      const Factors &group = groups[g++];
      if (group.size() != 1 || !group[0].atoms.empty()) {
        return failed(FaultKind::UnevenView, 0, 0, group[0].atoms, dimName(d, context.module));
      }
      out.dims.push_back(d);
      continue;
    }
    for (const Factor &w : d.factors) {
      if (!w.atoms.empty() && !(groups[g].size() == 1 && groups[g][0].atoms == w.atoms)) {
        return failed(FaultKind::BadAttribute, 0, 0, w.atoms, {}, "a view cannot shard; redistribute first");
      }
      made.factors.append(groups[g++]);
    }
    out.dims.push_back(std::move(made));
  }
  out.dims.append(x.dims.begin() + first + count, x.dims.end());
  return one(std::move(out));
}

Typed typeMerge(TypingContext &context, const Type &x) {
  std::optional<uint32_t> d = dimOption(context, x, -2);
  if (!d || *d + 1 >= x.dims.size()) {
    return badDim();
  }
  if (x.dims[*d].concat || x.dims[*d + 1].concat) {
    return failed(FaultKind::NotContiguous, 0, 0, {}, dimName(x.dims[*d], context.module));
  }
  Type out = x;
  out.dims[*d].factors.append(x.dims[*d + 1].factors);
  out.dims.erase(out.dims.begin() + *d + 1);
  return one(std::move(out));
}

Typed typeSplit(TypingContext &context, const Type &x) {
  std::optional<uint32_t> d = dimOption(context, x, -1);
  if (!d || attrsOf(context).dims.empty()) {
    return badDim();
  }
  return viewAs(context, x, *d, 1, attrsOf(context).dims);
}

Typed typeTranspose(TypingContext &context, const Type &x) {
  llvm::ArrayRef<int64_t> order = attrsOf(context).ints;
  Type out = x;
  std::vector<bool> seen(x.dims.size());
  bool good = order.size() == x.dims.size();
  for (size_t i = 0; good && i < order.size(); ++i) {
    int64_t d = order[i] < 0 ? order[i] + int64_t(order.size()) : order[i];
    good = d >= 0 && d < int64_t(order.size()) && !seen[size_t(d)];
    if (good) {
      seen[size_t(d)] = true;
      out.dims[i] = x.dims[size_t(d)];
    }
  }
  return good ? one(std::move(out)) : failed(FaultKind::BadAttribute, 0, 0, {}, {}, "every dimension must be named once");
}

// The joined dimension is compared by its sharding alone; all others by the rule of addition.
Typed typeConcat(TypingContext &context, Operands operands) {
  constexpr int64_t AnyExtent = 720720; // stands for every part's own extent, and divides evenly
  llvm::SmallVector<Type, 4> types;
  std::string rule;
  for (const Type *t : operands) {
    std::optional<uint32_t> d = dimOption(context, *t, -1);
    if (!d) {
      return badDim();
    }
    Type marked = *t;
    Dim mark;
    mark.factors.emplace_back();
    mark.factors[0].extent = AnyExtent;
    for (const Factor &f : t->dims[*d].factors) {
      if (f.extent < 0 || f.padTo || (f.atoms.size() && !isEven(f, context.module.axes))) {
        return failed(FaultKind::UnevenView, uint32_t(types.size()), 0, f.atoms, dimName(t->dims[*d], context.module));
      }
      mark.factors[0].atoms.append(f.atoms);
    }
    marked.dims[*d] = mark;
    types.push_back(std::move(marked));
    rule += rule.empty() ? "*" : ", *";
  }
  std::string error;
  std::optional<Rule> parsed = parseRule(rule + " -> *", error);
  llvm::SmallVector<const Type *, 4> pointers;
  for (const Type &t : types) {
    if (t.dims.size() != types[0].dims.size()) {
      return failed(FaultKind::Rank, uint32_t(&t - types.data()), 0, {}, {}, std::to_string(types[0].dims.size()));
    }
    pointers.push_back(&t);
  }
  Typed typed = typeByRule(context, *parsed, opInfo(OpKind::Concat).linear, Reducer::Sum, pointers);
  if (typed.fault) {
    return typed;
  }
  uint32_t d = *dimOption(context, *operands[0], -1);
  Dim joined;
  bool sharded = !typed.results[0].dims[d].factors[0].atoms.empty();
  int64_t total = 0;
  for (const Type *t : operands) {
    int64_t extent = 1;
    if (!countable(t->dims[d].factors, extent) || __builtin_add_overflow(total, extent, &total) ||
        (sharded && t->dims[d].factors.size() > 1)) {
      return failed(FaultKind::NotContiguous, 0, 0, {}, dimName(t->dims[d], context.module));
    }
    joined.factors.append(t->dims[d].factors);
  }
  joined.concat = sharded && operands.size() > 1;
  if (!sharded) {
    Factor f;
    f.extent = total;
    joined.factors.assign(1, f);
  }
  typed.results[0].dims[d] = std::move(joined);
  return typed;
}

Typed typeSlice(TypingContext &context, const Type &x) {
  std::optional<uint32_t> d = dimOption(context, x, -1);
  llvm::ArrayRef<int64_t> range = attrsOf(context).ints;
  if (!d) {
    return badDim();
  }
  Dim whole = x.dims[*d];
  int64_t extent = 1;
  if (whole.concat || !countable(whole.factors, extent)) {
    return failed(FaultKind::NotContiguous, 0, 0, {}, dimName(whole, context.module));
  }
  for (const Factor &f : whole.factors) {
    if (!f.atoms.empty() || f.padTo) {
      return failed(f.padTo ? FaultKind::UnknownPad : FaultKind::ShardedWhole, 0, 0, f.atoms, dimName(whole, context.module));
    }
  }
  if (range.size() != 2 || range[0] < 0 || range[1] <= range[0] || range[1] > extent) {
    return failed(FaultKind::BadAttribute, 0, 0, {}, {}, llvm::formatv("start and stop must lie in order within 0 and {0}", extent).str());
  }
  Type out = x;
  Factor f;
  f.extent = range[1] - range[0];
  out.dims[*d].factors.assign(1, f);
  return one(std::move(out));
}

// Does an uneven factor have the chunks of ceil(m/n) of the product of its atoms? Chunks of chunks do as long as each level
// divides what the ones below cut.
bool cutAtMultiples(const Factor &f, const Axes &axes) {
  int64_t rest = axes.product(f.atoms), chunk = f.extent;
  if (f.split == Split::Balanced) {
    return f.extent % rest == 0;
  }
  for (AtomId atom : f.split == Split::Flat ? llvm::ArrayRef<AtomId>() : llvm::ArrayRef<AtomId>(f.atoms)) {
    int64_t n = axes.atom(atom).size;
    rest /= n;
    chunk = (chunk + n - 1) / n;
    if (chunk % rest != 0) {
      return false;
    }
  }
  return true;
}

Typed typePad(TypingContext &context, const Type &x) {
  std::optional<uint32_t> d = dimOption(context, x, -1);
  llvm::ArrayRef<int64_t> to = attrsOf(context).ints;
  if (!d || x.dims[*d].factors.size() != 1) {
    return badDim();
  }
  Type out = x;
  Factor &f = out.dims[*d].factors[0];
  // A shard can be padded where it is, if every rank keeps its place: chunks of ceil(m/n) become chunks of that size.
  int64_t n = context.module.axes.product(f.atoms);
  bool inPlace = to.size() == 1 && f.extent > 0 && cutAtMultiples(f, context.module.axes) && to[0] == (f.extent + n - 1) / n * n;
  if (!f.atoms.empty() && !inPlace) {
    return failed(FaultKind::ShardedWhole, 0, 0, f.atoms, dimName(x.dims[*d], context.module));
  }
  if (to.size() != 1 || f.extent < 0 || f.padTo || to[0] < f.extent) {
    return failed(FaultKind::BadAttribute, 0, 0, {}, {},
                  "the padded extent must be one number, not below the extent, of a dimension without a pad");
  }
  if (std::optional<llvm::StringRef> with = attrsOf(context).option("with"); with && *with != "zero") {
    return failed(FaultKind::BadAttribute, 0, 0, {}, {}, "`with` must be `zero`");
  }
  if (to[0] > f.extent) {
    f.padTo = to[0];
    f.pad = Pad::Zero;
  }
  return one(std::move(out));
}

// What remains are chunks of ceil(m/n) of the unpadded extent, over the product of the axes.
Typed typeTrim(TypingContext &context, const Type &x) {
  std::optional<uint32_t> d = dimOption(context, x, -1);
  if (!d || x.dims[*d].factors.size() != 1) {
    return badDim();
  }
  Type out = x;
  Factor &f = out.dims[*d].factors[0];
  int64_t n = context.module.axes.product(f.atoms);
  if (f.padTo && f.padTo != (f.extent + n - 1) / n * n && n > 1) {
    return failed(FaultKind::UnevenView, 0, 0, f.atoms, dimName(x.dims[*d], context.module));
  }
  f.split = f.padTo && f.atoms.size() > 1 && !cutAtMultiples(f, context.module.axes) ? Split::Flat : f.split;
  f.padTo = 0;
  f.pad = Pad::None;
  return one(std::move(out));
}

Typed typeUnfuse(TypingContext &context, const Type &x) {
  if (x.dims.empty() || !x.dims.back().concat || x.dims.back().factors.size() != context.op.numResults) {
    return failed(FaultKind::BadAttribute, 0, 0, {}, {},
                  "the last dimension must be written as a sum of as many parts as there are results, (q + k + v)");
  }
  Typed typed;
  for (const Factor &f : x.dims.back().factors) {
    Type part = x;
    part.dims.back().concat = false;
    part.dims.back().factors.assign(1, f);
    typed.results.push_back(std::move(part));
  }
  return typed;
}

} // namespace

Typed typeView(TypingContext &context, Operands operands) {
  switch (context.op.kind) {
  case OpKind::Merge:
    return typeMerge(context, *operands[0]);
  case OpKind::Split:
    return typeSplit(context, *operands[0]);
  case OpKind::Reshape:
    return viewAs(context, *operands[0], 0, uint32_t(operands[0]->dims.size()), attrsOf(context).dims);
  case OpKind::Transpose:
    return typeTranspose(context, *operands[0]);
  case OpKind::Concat:
    return typeConcat(context, operands);
  case OpKind::Slice:
    return typeSlice(context, *operands[0]);
  case OpKind::Pad:
    return typePad(context, *operands[0]);
  case OpKind::Trim:
    return typeTrim(context, *operands[0]);
  case OpKind::Unfuse:
    return typeUnfuse(context, *operands[0]);
  case OpKind::Sum:
  case OpKind::Mean:
  case OpKind::Max:
  case OpKind::Min:
    return typeReduction(context, *operands[0]);
  case OpKind::Einsum:
    return typeEinsum(context, operands);
  case OpKind::Dropout:
    return typeDropout(context, *operands[0]);
  default:
    return typeCreation(context);
  }
}

} // namespace shardc
