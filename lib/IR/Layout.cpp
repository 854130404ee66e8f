// Layout: what each rank holds of a factor, a dimension, a value.
//
// The declarations are in Types.h. Everything here is arithmetic on extents and digits; no list of ranks is made.
#include "shardc/IR/Types.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <numeric>

namespace shardc {

namespace {

bool isNumber(int64_t extent) { return extent >= 0; }

// Without overflow, unlike (m + n - 1) / n.
int64_t ceilDiv(int64_t m, int64_t n) { return m / n + (m % n != 0); }

// The i-th of n chunks of ceil(size / n); the last ones are short or empty.
Range chunk(Range whole, int64_t n, int64_t i) {
  const int64_t length = ceilDiv(whole.size(), n);
  if (length == 0) {
    return {whole.end, whole.end};
  }
  auto bound = [&](int64_t k) { return k >= ceilDiv(whole.size(), length) ? whole.end : whole.begin + k * length; };
  return {bound(i), bound(i + 1)};
}

// Sizes differ by at most one, the larger first.
Range balancedChunk(int64_t size, int64_t n, int64_t i) {
  const int64_t small = size / n;
  const int64_t larger = size % n;
  auto bound = [&](int64_t k) { return k * small + std::min(k, larger); };
  return {bound(i), bound(i + 1)};
}

} // namespace

int64_t globalExtent(const Factor &f) { return f.padTo != 0 ? f.padTo : f.extent; }

Range localRange(const Factor &f, int64_t rank, const Axes &axes) {
  Range range{0, globalExtent(f)};
  assert(isNumber(range.end) && "only numbers have ranges");
  switch (f.split) {
  case Split::Nested:
    for (AtomId atom : f.atoms) {
      range = chunk(range, axes.atom(atom).size, axes.coordinate(rank, atom));
    }
    return range;
  case Split::Flat:
    return chunk(range, axes.product(f.atoms), axes.coordinate(rank, f.atoms));
  case Split::Balanced:
    return balancedChunk(range.end, axes.product(f.atoms), axes.coordinate(rank, f.atoms));
  }
  return range;
}

namespace {

int64_t localExtent(const Factor &f, int64_t rank, const Axes &axes) {
  const int64_t extent = globalExtent(f);
  return isNumber(extent) ? localRange(f, rank, axes).size() : extent;
}

int64_t localExtent(const Dim &d, int64_t rank, const Axes &axes) {
  int64_t total = d.concat ? 0 : 1;
  bool symbolic = false;
  for (const Factor &factor : d.factors) {
    const int64_t extent = localExtent(factor, rank, axes);
    if (extent == Ragged) {
      return Ragged;
    }
    if (extent == Symbolic) {
      symbolic = true;
    } else {
      // Too large to count is no number either.
      symbolic |= static_cast<bool>(d.concat ? llvm::AddOverflow(total, extent, total) : llvm::MulOverflow(total, extent, total));
    }
  }
  return symbolic ? Symbolic : total;
}

} // namespace

llvm::SmallVector<int64_t, 4> localShape(const Type &t, int64_t rank, const Axes &axes) {
  llvm::SmallVector<int64_t, 4> shape;
  for (const Dim &dim : t.dims) {
    shape.push_back(localExtent(dim, rank, axes));
  }
  return shape;
}

// Rank 0 has coordinate 0 on every atom and so the first chunk of every factor, which is the largest in all three splits.
std::optional<int64_t> maxLocalElements(const Type &t, const Axes &axes) {
  int64_t elements = 1;
  for (int64_t extent : localShape(t, 0, axes)) {
    if (!isNumber(extent) || llvm::MulOverflow(elements, extent, elements)) {
      return std::nullopt;
    }
  }
  return elements;
}

std::optional<int64_t> maxLocalBytes(const Type &t, const Axes &axes) {
  std::optional<int64_t> elements = maxLocalElements(t, axes);
  int64_t bytes = 0;
  if (!elements || llvm::MulOverflow(*elements, dtypeBytes(t.dtype), bytes)) {
    return std::nullopt;
  }
  return bytes;
}

bool isEven(const Factor &f, const Axes &axes) {
  const int64_t extent = globalExtent(f);
  return (isNumber(extent) ? extent : f.divisor) % axes.product(f.atoms) == 0;
}

namespace {

// The same digits in the same order, where a block that stands whole may be cut in another way.
bool sameAtoms(llvm::ArrayRef<AtomId> a, llvm::ArrayRef<AtomId> b, const Axes &axes) {
  if (a == b) {
    return true;
  }
  llvm::SmallVector<AtomId, 4> other(b);
  for (AtomId id : a) {
    const Atom &atom = axes.atom(id);
    if (axes.variantCount(atom.block) > 1) {
      if (auto cut = axes.recut(other, atom.block, atom.variant)) {
        other = std::move(*cut);
      }
    }
  }
  return a == llvm::ArrayRef(other);
}

// An extent of which only the divisor is known; a plain number is its own.
int64_t knownDivisor(const Factor &f) { return isNumber(globalExtent(f)) ? globalExtent(f) : f.divisor; }

// The extent of two factors side by side: their product, or their sum where parts follow one another. Nothing on overflow.
bool combineExtent(Factor &one, const Factor &next, bool concat) {
  const int64_t a = one.extent;
  const int64_t b = next.extent;
  int64_t divisor = std::gcd(knownDivisor(one), knownDivisor(next));
  if (!concat && llvm::MulOverflow(knownDivisor(one), knownDivisor(next), divisor)) {
    return false;
  }
  if (isNumber(a) && isNumber(b)) {
    one.extent = divisor;
    return !concat || !llvm::AddOverflow(a, b, one.extent);
  }
  one.extent = a == Ragged || b == Ragged ? Ragged : Symbolic;
  one.divisor = divisor;
  return true;
}

// Several factors as one factor without a name.
std::optional<Factor> fuse(llvm::ArrayRef<Factor> factors, bool concat, const Axes &axes) {
  Factor one;
  one.extent = concat ? 0 : 1;
  bool whole = true; // every factor so far has one local element
  for (const Factor &f : factors) {
    const bool sharded = !f.atoms.empty();
    // Parts lie one after the other: a shard of one is no contiguous piece of the whole. Pads and slots do not multiply.
    if ((sharded && (concat || !whole || !isEven(f, axes))) || f.padTo != 0 || f.origin.valid() || !combineExtent(one, f, concat)) {
      return std::nullopt;
    }
    whole &= f.extent == axes.product(f.atoms);
    llvm::append_range(one.atoms, f.atoms);
    one.permuted |= f.permuted;
  }
  return one;
}

// A dimension as one factor; one that is made of several has no name.
std::optional<Factor> readAsOne(const Dim &d, const Axes &axes) {
  // Factors of one element are there in name only.
  llvm::SmallVector<Factor, 4> factors;
  llvm::copy_if(d.factors, std::back_inserter(factors),
                [&](const Factor &f) { return d.concat || globalExtent(f) != 1 || !f.atoms.empty() || f.permuted; });
  if (d.factors.size() == 1) {
    return d.factors.front();
  }
  if (factors.size() == 1) {
    return factors.front();
  }
  return fuse(factors, d.concat, axes);
}

} // namespace

bool sameLayout(const Factor &a, const Factor &b, const Axes &axes) {
  if (a.extent != b.extent || a.divisor != b.divisor || a.padTo != b.padTo || a.pad != b.pad || a.permuted != b.permuted ||
      a.origin != b.origin || !sameAtoms(a.atoms, b.atoms, axes)) {
    return false;
  }
  // Without a name (a product read as one) nothing says that two unknown extents or orders are the same.
  if ((!isNumber(a.extent) || a.permuted) && (a.name != b.name || !a.name.valid())) {
    return false;
  }
  // Even or not depends on extent and digits, which are equal. One chunk has no boundaries that a split could move.
  if (a.atoms.empty() || (isEven(a, axes) && isEven(b, axes))) {
    return true;
  }
  // Chunks of chunks of a block that is cut differently are other chunks.
  const bool nested = a.split == Split::Nested || b.split == Split::Nested;
  return a.split == b.split && (!nested || a.atoms == b.atoms);
}

bool sameLayout(const Dim &a, const Dim &b, const Axes &axes) {
  if (a.concat == b.concat && a.factors.size() == b.factors.size()) {
    auto same = [&](const auto &pair) { return sameLayout(std::get<0>(pair), std::get<1>(pair), axes); };
    if (llvm::all_of(llvm::zip(a.factors, b.factors), same)) {
      return true;
    }
  }
  std::optional<Factor> one = readAsOne(a, axes);
  std::optional<Factor> other = readAsOne(b, axes);
  return one && other && sameLayout(*one, *other, axes);
}

std::optional<Factor> contiguous(const Dim &d, const Axes &axes, NameTable &names) {
  std::optional<Factor> one = readAsOne(d, axes);
  if (one && d.factors.size() > 1) {
    std::string joined;
    bool named = false; // numbers alone make another number
    for (const Factor &f : d.factors) {
      named |= f.name.valid();
      joined += joined.empty() ? "" : ".";
      joined += f.name.valid() ? names.str(f.name).str() : std::to_string(globalExtent(f));
    }
    one->name = named ? names.intern(joined) : NameId();
  }
  return one;
}

} // namespace shardc
