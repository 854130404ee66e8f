// Redistribute: from two types to a grid, two layouts and a search. See the header.
//
// Even cuts: every atom falls into its prime digits, so that a part of an axis can move alone. Uneven cuts: chunks of chunks are
// other boxes than chunks over the product, so atoms stay whole. A flat or balanced cut that is uneven is one digit over the whole
// list; where the other end cuts the same ranks in another way, only boxes compare the two, and the plan is an exchange.
#include "shardc/Plan/Redistribute.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

namespace shardc {
namespace {

constexpr size_t SearchedDigits = 8; // beyond: digits that stay together in both ends are one

using Factors = llvm::SmallVector<const Factor *, 4>;

llvm::SmallVector<int64_t, 8> primeFactors(int64_t n) {
  llvm::SmallVector<int64_t, 8> primes;
  for (int64_t p = 2; p * p <= n; ++p) {
    for (; n % p == 0; n /= p) {
      primes.push_back(p);
    }
  }
  if (n > 1) {
    primes.push_back(n);
  }
  return primes;
}

class Builder {
public:
  Builder(const Type &f, const Type &t, const Module &m, Redistribution &o, std::string &w)
      : from(f), to(t), axes(m.axes), out(o), why(w) {}

  bool run() {
    if (!flatten(from, source) || !flatten(to, target) || !sameExtents() || !statesFit()) {
      return false;
    }
    out.grid.world = axes.world();
    out.elementBytes = dtypeBytes(from.dtype);
    const auto even = [&](const Factor *f) { return isEven(*f, axes); };
    out.grid.even = llvm::all_of(source, even) && llvm::all_of(target, even);
    makeDigits();
    if (!word(source, from, out.from) || !word(target, to, out.to)) {
      return refuse("the ranks fall into more than " + std::to_string(MostDigits) + " digits");
    }
    dropIdle();
    mergeDigits();
    return out.grid.digits.size() <= MostDigits || refuse("the ranks fall into more than " + std::to_string(MostDigits) + " digits");
  }

  // What a mean divides by and what a sum that becomes one is multiplied with: everything is linear, so once is enough.
  std::optional<Step> scale() const {
    Step s;
    s.kind = StepKind::Scale;
    for (const auto &[atom, state] : from.states) {
      s.denominator *= state == State::PAvg ? axes.atom(atom).size : 1;
    }
    for (const auto &[atom, state] : to.states) {
      s.numerator *= state == State::PAvg ? axes.atom(atom).size : 1;
    }
    const int64_t common = std::gcd(s.numerator, s.denominator);
    s.numerator /= common;
    s.denominator /= common;
    return s.numerator == s.denominator ? std::nullopt : std::optional(s);
  }

  bool merged = false;
  bool extremum = false;

private:
  bool refuse(std::string text) {
    why = std::move(text);
    return false;
  }

  bool flatten(const Type &type, Factors &flat) {
    for (const Dim &d : type.dims) {
      for (const Factor &f : d.factors) {
        if (d.concat && d.factors.size() > 1) {
          return refuse("parts that follow one another, `(a + b)`, are planned one by one");
        }
        if (f.origin.valid() || globalExtent(f) < 0) {
          return refuse("an extent that is known only at run time has no plan");
        }
        flat.push_back(&f);
      }
    }
    return flat.size() <= MostDims || refuse("more than " + std::to_string(MostDims) + " dimensions");
  }

  bool sameExtents() {
    if (from.dtype != to.dtype) {
      return refuse("the dtypes differ");
    }
    if (source.size() != target.size()) {
      return refuse("the numbers of dimensions differ");
    }
    int64_t total = dtypeBytes(from.dtype);
    for (const auto &[a, b] : llvm::zip(source, target)) {
      if (a->extent != b->extent || a->padTo != b->padTo || a->permuted != b->permuted) {
        return refuse("dimension " + std::to_string(out.grid.extents.size()) + " has another extent, pad or order");
      }
      out.grid.extents.push_back(globalExtent(*a));
      if (__builtin_mul_overflow(total, std::max<int64_t>(1, globalExtent(*a)), &total)) {
        return refuse("the tensor is too large to count");
      }
    }
    // What is received in all must be countable too.
    int64_t all = 0;
    return !__builtin_mul_overflow(total, 4 * axes.world(), &all) || refuse("the tensor is too large to count");
  }

  bool statesFit() {
    llvm::SmallVector<State, 4> kinds;
    for (const Type *type : {&from, &to}) {
      for (const auto &[atom, state] : type->states) {
        const Type &other = type == &from ? to : from;
        if (state == State::V && stateOf(other, atom) != State::V) {
          return refuse("a value that varies has no global meaning that could be moved");
        }
        if (isPartial(state)) {
          kinds.push_back(state == State::PAvg ? State::P : state);
        }
      }
    }
    for (uint32_t b = 0; b < axes.blockCount(); ++b) {
      if (axes.variantCount(b) > 1) {
        return refuse("the views of this mesh cut the same ranks in two ways");
      }
    }
    extremum = !kinds.empty() && kinds.front() != State::P;
    return llvm::all_equal(kinds) ||
           refuse("the reducers do not commute: a " + std::string(stateName(kinds[0])) + " and another of its kind cannot be exchanged");
  }

  bool varies(AtomId atom) const { return stateOf(from, atom) == State::V; }

  // More prime digits than layouts can hold: atoms stay whole.
  bool splits() const {
    size_t primes = 0;
    for (const Atom &atom : axes.atoms()) {
      primes += primeFactors(atom.size).size();
    }
    return out.grid.even && primes <= MostDigits;
  }

  void makeDigits() {
    const bool split = splits();
    merged = out.grid.even && !split;
    for (uint32_t i = 0; i < axes.atoms().size(); ++i) {
      const Atom &atom = axes.atom(AtomId(i));
      digitsOf.emplace_back();
      if (varies(AtomId(i))) {
        continue; // every coordinate is a world of its own
      }
      const llvm::SmallVector<int64_t, 8> sizes = split ? primeFactors(atom.size) : llvm::SmallVector<int64_t, 8>{atom.size};
      int64_t stride = atom.stride * atom.size;
      for (unsigned part = 0; part < sizes.size(); ++part) {
        stride /= sizes[part];
        digitsOf.back().push_back(static_cast<unsigned>(out.grid.digits.size()));
        out.grid.digits.push_back({sizes[part], {{sizes[part], stride}}, false, axes.describe({AtomId(i)}), part, unsigned(sizes.size())});
      }
    }
  }

  // An uneven cut that is not chunks of chunks.
  std::optional<unsigned> ownDigit(const Factor &f) {
    const bool own = !isEven(f, axes) && f.split != Split::Nested && (f.split == Split::Balanced || f.atoms.size() > 1);
    if (!own) {
      return std::nullopt;
    }
    Digit digit;
    digit.size = axes.product(f.atoms);
    digit.balanced = f.split == Split::Balanced;
    digit.axis = axes.describe(f.atoms) + (digit.balanced ? "!balanced" : "!flat");
    for (AtomId a : f.atoms) {
      digit.parts.emplace_back(axes.atom(a).size, axes.atom(a).stride);
    }
    for (unsigned i = 0; i < out.grid.digits.size(); ++i) {
      if (out.grid.digits[i].axis == digit.axis) {
        return i;
      }
    }
    out.grid.overlap = true;
    out.grid.digits.push_back(std::move(digit));
    return out.grid.digits.size() - 1;
  }

  bool word(const Factors &flat, const Type &type, Layout &layout) {
    for (unsigned d = 0; d < flat.size(); ++d) {
      const Factor &f = *flat[d];
      llvm::SmallVector<unsigned, 8> list;
      if (const std::optional<unsigned> own = ownDigit(f)) {
        list.push_back(*own);
      } else {
        for (AtomId a : f.atoms) {
          llvm::append_range(list, digitsOf[a.index]);
        }
      }
      for (unsigned digit : list) {
        if (layout.count[d] == MostDigits || digit >= 32) {
          return false;
        }
        layout.append(d, static_cast<uint8_t>(digit));
      }
    }
    for (const auto &[atom, state] : type.states) {
      for (unsigned digit : isPartial(state) ? digitsOf[atom.index] : llvm::SmallVector<unsigned, 8>()) {
        if (digit >= 32) {
          return false;
        }
        layout.partial |= DigitSet(1) << digit;
      }
    }
    return true;
  }

  // Where digits overlap, one that neither end uses would still tell the ranks of a group apart.
  void dropIdle() {
    for (unsigned i = out.grid.overlap ? static_cast<unsigned>(out.grid.digits.size()) : 0; i-- > 0;) {
      const DigitSet used = out.from.sharded(out.grid.dims()) | out.to.sharded(out.grid.dims()) | out.from.partial | out.to.partial;
      if (!(used >> i & 1) && overlapped(i)) {
        out.grid.digits.erase(out.grid.digits.begin() + i);
        drop(out.from, i);
        drop(out.to, i);
      }
    }
  }

  bool overlapped(unsigned i) const {
    for (unsigned j = 0; j < out.grid.digits.size(); ++j) {
      for (const auto &part : out.grid.digits[j].parts) {
        if (j != i && llvm::is_contained(out.grid.digits[i].parts, part)) {
          return true;
        }
      }
    }
    return false;
  }

  // The digit that directly follows i in a layout, or the next one that is as idle; nothing if it has no follower.
  static std::optional<unsigned> follower(const Layout &l, const Grid &grid, unsigned i) {
    for (unsigned d = 0; d < grid.dims(); ++d) {
      for (unsigned p = 0; p < l.count[d]; ++p) {
        if (l.word[d][p] == i) {
          return p + 1 < l.count[d] ? std::optional<unsigned>(l.word[d][p + 1]) : std::nullopt;
        }
      }
    }
    const DigitSet cut = l.sharded(grid.dims());
    for (unsigned j = i + 1; j < grid.digits.size(); ++j) {
      if (!(cut >> j & 1) && (l.partial >> i & 1) == (l.partial >> j & 1)) {
        return j;
      }
    }
    return std::nullopt;
  }

  void mergeDigits() {
    Grid &grid = out.grid;
    const bool can = grid.even && !grid.overlap;
    for (unsigned i = 0; can && grid.digits.size() > SearchedDigits && i < grid.digits.size();) {
      const std::optional<unsigned> a = follower(out.from, grid, i);
      if (a && a == follower(out.to, grid, i)) {
        merge(i, *a);
        merged = true;
        i = 0;
      } else {
        ++i;
      }
    }
  }

  void merge(unsigned i, unsigned j) {
    Digit &one = out.grid.digits[i];
    const Digit next = out.grid.digits[j];
    const bool joins = one.axis == next.axis && one.part + 1 == next.part;
    one.axis = joins && one.part == 0 && next.part + 1 == next.partCount ? one.axis : nameOf(one) + "," + nameOf(next);
    one.part = 0;
    one.partCount = 1;
    one.size *= next.size;
    one.parts.append(next.parts.begin(), next.parts.end());
    out.grid.digits.erase(out.grid.digits.begin() + j);
    for (Layout *l : {&out.from, &out.to}) {
      drop(*l, j);
    }
  }

  static std::string nameOf(const Digit &d) { return d.axis + (d.partCount == 1 ? "" : "." + std::to_string(d.part)); }

  void drop(Layout &l, unsigned j) const {
    Layout other;
    for (unsigned d = 0; d < out.grid.dims(); ++d) {
      for (uint8_t i : l.dim(d)) {
        if (i != j) {
          other.append(d, i > j ? i - 1 : i);
        }
      }
    }
    const DigitSet low = (DigitSet(1) << j) - 1;
    other.partial = (l.partial & low) | (l.partial >> 1 & ~low);
    l = other;
  }

  const Type &from;
  const Type &to;
  const Axes &axes;
  Redistribution &out;
  std::string &why;
  Factors source, target;
  std::vector<llvm::SmallVector<unsigned, 8>> digitsOf; // by atom
};

} // namespace

std::optional<Redistribution> redistribute(const Type &from, const Type &to, const Module &module, const Machine &machine,
                                           const SearchOptions &options, std::string &why) {
  Redistribution out;
  Builder builder(from, to, module, out, why);
  if (!builder.run()) {
    return std::nullopt;
  }
  SearchOptions how = options;
  how.zeroFill = !builder.extremum;
  std::optional<Found> found = findPlan(out.grid, out.from, out.to, out.elementBytes, machine, how);
  if (!found) {
    why = "no sequence of these steps leads there without more memory; `--exchange allow` or `--memory any` may";
    return std::nullopt;
  }
  out.steps = std::move(found->steps);
  out.best = found->best && !builder.merged;
  if (std::optional<Step> scale = builder.scale()) {
    scale->after = out.from;
    out.steps.insert(out.steps.begin(), *scale);
  }
  out.bound = out.grid.bound(out.from, out.to);
  out.allowed = std::max(out.grid.largestLocal(out.from), out.grid.largestLocal(out.to));
  out.peak = out.grid.largestLocal(out.from);
  for (const Step &s : out.steps) {
    out.elements += s.elements;
    out.time += s.time;
    out.peak = std::max(out.peak, out.grid.largestLocal(s.after));
  }
  return out;
}

} // namespace shardc
