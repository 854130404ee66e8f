// Shrink: small sizes for a job, by search.
//
// The problem. Facts about sizes are many (which group divides which dimension, how many heads share a key) and are written
// in several places: model files, strategies, frameworks. What others do: let a person choose small sizes, with which other
// layouts may be right than with the real ones.
//
// What we do. The real program's types say how every dimension is cut. Group sizes are replaced first: 2 and 3 stay, others
// become the least number that no other size has, so that unequal ones stay unequal. Then each size of the model, from the
// smallest, becomes the least number that is cut as it was by every group that cuts it, and with which the sizes that follow
// from it come out. The search ends because candidates are bounded; it costs a few hundred looks at a few dozen facts.
#include "shardc/Prove/Shrink.h"
#include "shardc/Frontend/Config.h"
#include "shardc/Frontend/Derived.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <map>
#include <set>

namespace shardc {
namespace {

constexpr int64_t MostRanks = 64;    // of one stage; beyond this unequal groups may become equal
constexpr int64_t MostExtent = 1024; // candidates for one size

// How a factor is cut: what must stay.
struct CutKind {
  bool even = false, single = false, emptyLast = false;
  bool operator==(const CutKind &) const = default;
};

CutKind cutKind(const Factor &f, const Axes &axes) {
  const int64_t last = localRange(f, axes.world() - 1, axes).size();
  return {isEven(f, axes), localRange(f, 0, axes).size() == 1, last == 0};
}

class Shrinker {
public:
  Shrinker(const Job &j, const TypedModule &r, std::string &w) : job(j), real(r), why(w) {}

  std::optional<SmallJob> run() {
    SourceManager sources;
    DiagnosticEngine ignored(sources);
    out.job = job;
    shrinkAxes();
    axes = Axes::build(out.job.world, out.job.views, out.job.flats, ignored);
    if (!axes || axes->atoms().size() != real.module.axes.atoms().size()) {
      why = "the ranks";
      return std::nullopt;
    }
    derived = derivedSizes(job, ignored);
    gather();
    return shrinkSizes() ? std::optional(std::move(out)) : std::nullopt;
  }

private:
  // New sizes of atoms. Blocks that two views cut differently stay: their sizes depend on one another.
  void chooseAtoms(bool distinct) {
    const Axes &old = real.module.axes;
    std::set<int64_t> taken;
    std::map<int64_t, int64_t> chosen;
    for (const Atom &a : old.atoms()) {
      taken.insert(a.size <= 3 ? a.size : 0);
    }
    atoms.clear();
    std::set<int64_t> large;
    for (const Atom &a : old.atoms()) {
      large.insert(a.size);
    }
    for (int64_t n : large) {
      int64_t to = 2;
      while (distinct && taken.count(to)) {
        ++to;
      }
      chosen[n] = n <= 3 ? n : distinct ? to : 2 + static_cast<int64_t>(chosen.size() % 2);
      taken.insert(chosen[n]);
    }
    for (size_t i = 0; i < old.atoms().size(); ++i) {
      const Atom &a = old.atoms()[i];
      const bool stays = old.variantCount(a.block) > 1;
      atoms.push_back(stays ? a.size : old.isStage(AtomId(i)) ? std::min<int64_t>(a.size, 2) : chosen[a.size]);
    }
  }

  int64_t smallProduct(llvm::ArrayRef<AtomId> list) const {
    int64_t n = 1;
    for (AtomId a : list) {
      n *= atoms[a.index];
    }
    return n;
  }

  int64_t ranksOfStage() const {
    int64_t n = 1;
    for (uint32_t b = 0; b < real.module.axes.blockCount(); ++b) {
      const llvm::ArrayRef<AtomId> list = real.module.axes.blockAtoms(b, 0);
      n *= list.empty() || real.module.axes.isStage(list[0]) ? 1 : smallProduct(list);
    }
    return n;
  }

  // What a stride becomes: the product of all blocks inside it.
  int64_t smallStride(int64_t stride) const {
    int64_t n = 1;
    for (uint32_t b = 0; b < real.module.axes.blockCount(); ++b) {
      const llvm::ArrayRef<AtomId> list = real.module.axes.blockAtoms(b, 0);
      const int64_t inner = list.empty() ? 0 : real.module.axes.atom(list.back()).stride;
      const int64_t size = real.module.axes.product(list);
      if (!list.empty() && inner * size <= stride) {
        n *= smallProduct(list);
      } else if (inner > 0 && inner < stride) {
        n *= stride / inner;
      }
    }
    return n;
  }

  void shrinkAxes() {
    chooseAtoms(true);
    if (ranksOfStage() > MostRanks) {
      chooseAtoms(false);
    }
    const Axes &old = real.module.axes;
    for (ViewSpec &view : out.job.views) {
      for (AxisSpec &axis : view.axes) {
        const Axis *known = old.find(axis.name);
        axis.size = known ? smallProduct(known->atoms) : axis.size;
        axis.stride = axis.stride ? std::optional(smallStride(*axis.stride)) : std::nullopt;
      }
    }
    out.job.world.value = smallStride(old.world());
    for (const Axis &axis : old.axes()) {
      const int64_t to = smallProduct(axis.atoms);
      auto it = out.job.sizes.find(axis.name);
      if (it != out.job.sizes.end()) {
        it->second.value = to;
      }
      if (to != axis.size && !axis.flattened) {
        out.axes.push_back({axis.name, axis.size, to});
      }
    }
  }

  bool isDerived(llvm::StringRef name) const {
    return llvm::any_of(derived, [&](const DerivedSize &d) { return d.name == name; });
  }

  // Of each size the factors that it stands in, once per way of cutting.
  void gather() {
    const TypeTable &types = real.module.types;
    for (uint32_t t = 0; t < types.size(); ++t) {
      for (const Dim &d : types[TypeId(t)].dims) {
        for (const Factor &f : d.factors) {
          const std::string name = f.name.valid() ? real.module.names.str(f.name).str() : "";
          auto it = job.sizes.find(name);
          if (it == job.sizes.end() || f.extent != it->second.value || f.padTo != 0 || real.module.axes.find(name)) {
            continue;
          }
          std::vector<Factor> &list = uses[name];
          if (llvm::none_of(list, [&](const Factor &o) { return o.atoms == f.atoms && o.split == f.split; })) {
            list.push_back(f);
          }
        }
      }
    }
    for (const DerivedSize &d : derived) { // what such a size is made of need not stand in a type itself
      for (const std::string &name : d.from) {
        if (uses.count(d.name) && job.sizes.count(name) && !real.module.axes.find(name)) {
          uses.try_emplace(name);
        }
      }
    }
    for (const Instance &instance : real.instances) {
      const Function &f = real.module.function(instance.function);
      for (const Op &op : f.ops) {
        if (opInfo(op.kind).kernel == "topk" && op.attrs.valid()) {
          gatherChoice(instance, f, op);
        }
      }
    }
  }

  // More experts than choices, in groups that divide them.
  void gatherChoice(const Instance &instance, const Function &f, const Op &op) {
    const TypeId t = instance.values[f.operandsOf(op)[0].index];
    const Attrs &attrs = real.module.attrs[op.attrs.index];
    if (!t.valid() || real.module.types[t].dims.empty() || attrs.dims.empty()) {
      return;
    }
    const Factor &all = real.module.types[t].dims.back().factors.back();
    const Factor &few = attrs.dims[0].factors[0];
    if (!all.name.valid()) {
      return;
    }
    const std::string name = real.module.names.str(all.name).str();
    if (few.name.valid() && few.extent < all.extent) {
      more[name].insert(real.module.names.str(few.name).str());
    }
    for (const auto &[key, value] : attrs.options) {
      auto it = job.sizes.find(value);
      const int64_t n = it != job.sizes.end() ? it->second.value : parseInteger(value).value_or(0);
      if (n > 1 && all.extent % n == 0) {
        multiples[name].insert(n);
      }
    }
  }

  bool cutAlike(const std::string &name, int64_t extent) const {
    auto it = uses.find(name);
    const bool fits = it == uses.end() || llvm::all_of(it->second, [&](const Factor &f) {
                        Factor small = f;
                        small.extent = extent;
                        return cutKind(small, *axes) == cutKind(f, real.module.axes);
                      });
    auto groups = multiples.find(name);
    return fits && (groups == multiples.end() || llvm::all_of(groups->second, [&](int64_t n) { return extent % n == 0; }));
  }

  int64_t now(const std::string &name) const { return out.job.sizes.find(name)->second.value; }

  // A swapped dimension should not fit: two sizes become equal only where nothing else is left, first those that were equal.
  enum class Equal : uint8_t { None, Alike, Any };

  bool fits(const std::string &name, int64_t extent, Equal equal) {
    if (!cutAlike(name, extent)) {
      return false;
    }
    const int64_t own = job.sizes.find(name)->second.value;
    for (const std::string &other : done) {
      const bool same = job.sizes.find(other)->second.value == own;
      if (now(other) == extent && equal != Equal::Any && (equal == Equal::None || !same)) {
        return false;
      }
    }
    auto few = more.find(name);
    if (few != more.end() && llvm::any_of(few->second, [&](const std::string &o) { return now(o) >= extent; })) {
      return false;
    }
    out.job.sizes[name].value = extent;
    for (const DerivedSize &d : derived) {
      const bool ready = llvm::all_of(d.from, [&](const std::string &n) { return n == name || !uses.count(n) || done.count(n); });
      if (!ready || !llvm::is_contained(d.from, name)) {
        continue;
      }
      const std::optional<int64_t> value = valueOf(d, out.job);
      const int64_t before = job.sizes.find(d.name)->second.value;
      if (!value || *value < std::min<int64_t>(before, 2) || (before < 2 && *value != before) || !cutAlike(d.name, *value)) {
        return false;
      }
    }
    return true;
  }

  bool shrinkSizes() {
    std::vector<std::pair<int64_t, std::string>> order;
    for (const auto &[name, list] : uses) {
      if (!isDerived(name)) {
        order.emplace_back(job.sizes.find(name)->second.value, name);
      }
    }
    llvm::sort(order);
    for (const auto &[before, name] : order) {
      bool found = false;
      for (Equal equal : {Equal::None, Equal::Alike, Equal::Any}) {
        for (int64_t n = std::min<int64_t>(before, 2); n <= std::min(before, MostExtent) && !found; ++n) {
          found = fits(name, n, equal);
        }
      }
      if (!found) {
        why = "`" + name + "`";
        return false;
      }
      done.insert(name);
    }
    for (const DerivedSize &d : derived) {
      if (std::optional<int64_t> value = valueOf(d, out.job)) {
        out.job.sizes[d.name].value = *value;
      }
    }
    auto tokens = out.job.sizes.find("T");
    if (tokens != out.job.sizes.end() && out.job.sizes.count("B") && out.job.sizes.count("L")) {
      tokens->second.value = now("B") * now("L");
    }
    for (const auto &[name, list] : uses) {
      if (now(name) != job.sizes.find(name)->second.value) {
        out.sizes.push_back({name, job.sizes.find(name)->second.value, now(name)});
      }
    }
    return true;
  }

  const Job &job;
  const TypedModule &real;
  std::string &why;
  SmallJob out;
  std::vector<int64_t> atoms; // new size of each
  std::optional<Axes> axes;   // small ones
  std::vector<DerivedSize> derived;
  std::map<std::string, std::vector<Factor>> uses;
  std::map<std::string, std::set<int64_t>> multiples; // numbers that must divide a size
  std::map<std::string, std::set<std::string>> more;  // sizes that must stay smaller
  std::set<std::string> done;
};

bool tellsNumbersApart(const Module &module) {
  const auto numbered = [](const std::string &pattern) {
    llvm::SmallVector<llvm::StringRef, 8> parts;
    llvm::StringRef(pattern).split(parts, '.');
    return llvm::any_of(parts, [](llvm::StringRef p) { return !p.empty() && llvm::all_of(p, llvm::isDigit); });
  };
  return module.sync && llvm::any_of(module.sync->families, [&](const SyncFamily &f) { return llvm::any_of(f.patterns, numbered); });
}

// Does `next` do to the result of `op` what `op` did to what it got?
bool repeats(const Function &f, const Op &op, const Op &next) {
  const llvm::ArrayRef<ValueId> a = f.operandsOf(op);
  const llvm::ArrayRef<ValueId> b = f.operandsOf(next);
  return op.kind == OpKind::Call && next.kind == OpKind::Call && op.callee == next.callee && op.numResults == 1 && !b.empty() &&
         b[0] == f.result(op) && a.drop_front() == b.drop_front();
}

} // namespace

std::optional<SmallJob> shrinkJob(const Job &job, const TypedModule &real, std::string &why) { return Shrinker(job, real, why).run(); }

bool sameLayouts(const TypedModule &real, const TypedModule &small, std::string &why) {
  const auto alike = [&](const Type &a, const Type &b) {
    bool same = a.dtype == b.dtype && a.states == b.states && a.dims.size() == b.dims.size();
    for (size_t d = 0; same && d < a.dims.size(); ++d) {
      const auto &x = a.dims[d].factors;
      const auto &y = b.dims[d].factors;
      same = x.size() == y.size() && a.dims[d].concat == b.dims[d].concat;
      for (size_t f = 0; same && f < x.size(); ++f) {
        same = x[f].atoms == y[f].atoms && x[f].pad == y[f].pad && (x[f].padTo != 0) == (y[f].padTo != 0) &&
               isEven(x[f], real.module.axes) == isEven(y[f], small.module.axes);
      }
    }
    return same;
  };
  why = "a call";
  bool same = real.instances.size() == small.instances.size();
  for (size_t i = 0; same && i < real.instances.size(); ++i) {
    const Instance &a = real.instances[i];
    const Instance &b = small.instances[i];
    same = a.function == b.function && a.values.size() == b.values.size();
    for (uint32_t v = 0; same && v < a.values.size(); ++v) {
      const TypeId little = b.values[v];
      if (little.valid() && !alike(real.module.types[a.values[v]], small.module.types[little])) {
        why = "`" + small.module.names.str(small.module.function(b.function).values[v].name).str() + "`";
        return false;
      }
    }
  }
  return same;
}

std::vector<ShrunkSize> dropRepeats(Module &module) {
  std::vector<ShrunkSize> dropped;
  if (tellsNumbersApart(module)) {
    return dropped;
  }
  for (Function &f : module.functions) {
    std::vector<Op> kept;
    std::map<uint32_t, ValueId> instead; // of a dropped call's result what it got
    for (size_t i = 0; i < f.ops.size();) {
      size_t end = i + 1;
      while (end < f.ops.size() && repeats(f, f.ops[end - 1], f.ops[end])) {
        ++end;
      }
      kept.push_back(f.ops[i]);
      if (end - i > 2) { // the last one gets what the second got
        instead[f.operandsOf(f.ops[end - 1])[0].index] = f.result(f.ops[i]);
        const auto [base, number] = module.names.str(f.ops[i].instance).rsplit('.');
        dropped.push_back({(base + ".*").str(), static_cast<int64_t>(end - i), 2});
      }
      if (end - i > 1) {
        kept.push_back(f.ops[end - 1]);
      }
      i = end;
    }
    if (kept.size() == f.ops.size()) {
      continue;
    }
    f.ops = std::move(kept);
    for (ValueId &v : f.operands) {
      auto it = instead.find(v.index);
      v = it != instead.end() ? it->second : v;
    }
  }
  return dropped;
}

} // namespace shardc
