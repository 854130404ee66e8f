// Layout: what ranks hold, against lists cut into pieces by hand.
#include "Catch.h"
#include "Meshes.h"
#include "shardc/IR/Types.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <numeric>

using namespace shardc;

namespace {

using Rows = std::vector<int64_t>;

// torch.chunk, with empty pieces where it returns fewer: pieces of ceil(size / n) rows.
std::vector<Rows> chunks(const Rows &rows, int64_t n) {
  const size_t length = (rows.size() + static_cast<size_t>(n) - 1) / static_cast<size_t>(n);
  std::vector<Rows> pieces(static_cast<size_t>(n));
  for (size_t i = 0; i < rows.size(); ++i) {
    pieces[i / length].push_back(rows[i]);
  }
  return pieces;
}

// numpy.array_split: the first size % n pieces have one row more.
std::vector<Rows> arraySplit(const Rows &rows, int64_t n) {
  std::vector<Rows> pieces(static_cast<size_t>(n));
  size_t next = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const size_t size = rows.size() / pieces.size() + (i < rows.size() % pieces.size() ? 1 : 0);
    for (size_t k = 0; k < size; ++k) {
      pieces[i].push_back(rows[next++]);
    }
  }
  return pieces;
}

// The pieces in row-major order of the digits.
std::vector<Rows> pieces(int64_t extent, const std::vector<int64_t> &sizes, Split split) {
  Rows all(static_cast<size_t>(extent));
  std::iota(all.begin(), all.end(), 0);
  const int64_t n = std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>());
  switch (split) {
  case Split::Flat:
    return chunks(all, n);
  case Split::Balanced:
    return arraySplit(all, n);
  case Split::Nested:
    break;
  }
  std::vector<Rows> current = {all};
  for (int64_t size : sizes) {
    std::vector<Rows> next;
    for (const Rows &rows : current) {
      llvm::append_range(next, chunks(rows, size));
    }
    current = std::move(next);
  }
  return current;
}

Rows listed(Range r) {
  Rows rows;
  for (int64_t i = r.begin; i < r.end; ++i) {
    rows.push_back(i);
  }
  return rows;
}

Factor factor(int64_t extent, llvm::ArrayRef<AtomId> atoms = {}, Split split = Split::Nested) {
  Factor f;
  f.extent = extent;
  f.atoms.assign(atoms.begin(), atoms.end());
  f.split = split;
  return f;
}

// a 2, b 3, c 2: the atoms are the axes.
const Axes &smallMesh() {
  static const Axes axes = mesh(12, {view("m", {{"a", 2}, {"b", 3}, {"c", 2}})});
  return axes;
}

// Every ordered choice of axes of the small mesh.
std::vector<std::vector<AtomId>> placements() {
  std::vector<std::vector<AtomId>> all = {{}};
  for (size_t i = 0; i < all.size(); ++i) {
    for (const Atom &atom : smallMesh().atoms()) {
      const AtomId id(static_cast<size_t>(&atom - smallMesh().atoms().data()));
      if (!llvm::is_contained(all[i], id)) {
        std::vector<AtomId> more = all[i];
        more.push_back(id);
        all.push_back(more);
      }
    }
  }
  return all;
}

} // namespace

TEST_CASE("local ranges are the pieces of the list, for every placement, extent and split") {
  int64_t broken = 0;
  for (const auto &atoms : placements()) {
    std::vector<int64_t> sizes;
    for (AtomId id : atoms) {
      sizes.push_back(smallMesh().atom(id).size);
    }
    for (Split split : {Split::Nested, Split::Flat, Split::Balanced}) {
      for (int64_t extent = 0; extent <= 26; ++extent) {
        const Factor f = factor(extent, atoms, split);
        const auto expected = pieces(extent, sizes, split);
        int64_t largest = 0;
        for (int64_t rank = 0; rank < 12; ++rank) {
          const Range range = localRange(f, rank, smallMesh());
          const auto piece = static_cast<size_t>(smallMesh().coordinate(rank, atoms));
          broken += listed(range) != expected[piece] || range.begin > range.end;
          largest = std::max(largest, range.size());
        }
        // They tile the factor: no row is missing, none is held by two coordinates.
        Rows all;
        for (const Rows &rows : expected) {
          llvm::append_range(all, rows);
        }
        broken += all != listed({0, extent});
        const bool even = llvm::all_of(expected, [&](const Rows &rows) { return rows.size() == expected[0].size(); });
        broken += even != isEven(f, smallMesh());
        Type t;
        t.dtype = DType::F32;
        t.dims.push_back({{f}, false});
        broken += maxLocalElements(t, smallMesh()) != largest || maxLocalBytes(t, smallMesh()) != 4 * largest;
      }
    }
  }
  CHECK(placements().size() == 16); // 1 + 3 + 6 + 6
  CHECK(broken == 0);
}

// 10 rows over 2 x 3: chunks of chunks 2 2 1 twice, six chunks of two, and two ranks with two more.
TEST_CASE("ten rows over two by three, three ways") {
  const auto atoms = atomsOf(smallMesh(), {"a", "b"});
  auto sizes = [&](Split split) {
    std::vector<int64_t> found;
    for (int64_t rank = 0; rank < 12; rank += 2) {
      found.push_back(localRange(factor(10, atoms, split), rank, smallMesh()).size());
    }
    return found;
  };
  CHECK(sizes(Split::Nested) == std::vector<int64_t>{2, 2, 1, 2, 2, 1});
  CHECK(sizes(Split::Flat) == std::vector<int64_t>{2, 2, 2, 2, 2, 0});
  CHECK(sizes(Split::Balanced) == std::vector<int64_t>{2, 2, 2, 2, 1, 1});
}

TEST_CASE("a padded factor is cut at its padded extent") {
  Factor f = factor(10, atomsOf(smallMesh(), {"a", "c"}));
  CHECK_FALSE(isEven(f, smallMesh()));
  f.padTo = 12;
  f.pad = Pad::Zero;
  CHECK(globalExtent(f) == 12);
  CHECK(isEven(f, smallMesh()));
  CHECK(localRange(f, 11, smallMesh()) == Range{9, 12});
}

TEST_CASE("the largest sizes do not overflow") {
  const int64_t huge = INT64_MAX;
  Factor f = factor(huge, atomsOf(smallMesh(), {"a", "b", "c"}));
  for (Split split : {Split::Nested, Split::Flat, Split::Balanced}) {
    f.split = split;
    CHECK(localRange(f, 0, smallMesh()).begin == 0);
    CHECK(localRange(f, 11, smallMesh()).end == huge);
  }
  Type t;
  t.dims.push_back({{factor(huge)}, false});
  CHECK(maxLocalElements(t, smallMesh()) == huge);
  CHECK_FALSE(maxLocalBytes(t, smallMesh()));
  t.dims.push_back({{factor(2)}, false});
  CHECK_FALSE(maxLocalElements(t, smallMesh()));
  t.dims = {{{factor(huge), factor(2)}, false}};
  CHECK(localShape(t, 0, smallMesh())[0] == Symbolic);
}

TEST_CASE("local shapes multiply factors and add parts") {
  const auto a = atomsOf(smallMesh(), {"a"});
  const auto b = atomsOf(smallMesh(), {"b"});
  Type t;
  t.dims.push_back({{factor(4, a), factor(5)}, false});
  t.dims.push_back({{factor(6, b), factor(3, b)}, true});
  t.dims.push_back({{factor(7, b)}, false});
  // Rank 11 is a=1, b=2, c=1: of 7 rows over 3 (3, 3, 1) it holds the last one.
  CHECK(localShape(t, 11, smallMesh()) == llvm::SmallVector<int64_t, 4>{10, 3, 1});
  t.dims[2].factors[0].extent = Symbolic;
  CHECK(localShape(t, 11, smallMesh())[2] == Symbolic);
  t.dims[0].factors[1].extent = Ragged;
  CHECK(localShape(t, 11, smallMesh())[0] == Ragged);
  CHECK_FALSE(maxLocalElements(t, smallMesh()));
}

TEST_CASE("an extent that is not known is even if its divisor is") {
  Factor f = factor(Ragged, atomsOf(smallMesh(), {"a", "b"}));
  CHECK_FALSE(isEven(f, smallMesh()));
  f.divisor = 12;
  CHECK(isEven(f, smallMesh()));
}

TEST_CASE("layouts are the same if every rank holds the same rows") {
  NameTable names;
  const auto ab = atomsOf(smallMesh(), {"a", "b"});
  const auto ba = atomsOf(smallMesh(), {"b", "a"});
  CHECK(sameLayout(factor(12, ab), factor(12, ab, Split::Flat), smallMesh()));
  CHECK_FALSE(sameLayout(factor(10, ab), factor(10, ab, Split::Flat), smallMesh()));
  CHECK_FALSE(sameLayout(factor(12, ab), factor(12, ba), smallMesh()));
  CHECK_FALSE(sameLayout(factor(12, ab), factor(18, ab), smallMesh()));
  Factor named = factor(12, ab);
  named.name = names.intern("T");
  CHECK(sameLayout(named, factor(12, ab), smallMesh()));
  Factor permuted = named;
  permuted.permuted = true;
  CHECK_FALSE(sameLayout(named, permuted, smallMesh()));
  Factor other = permuted;
  other.name = names.intern("L");
  CHECK_FALSE(sameLayout(other, permuted, smallMesh()));
  Factor ragged = named;
  ragged.extent = Ragged;
  Factor raggedOther = ragged;
  raggedOther.name = names.intern("c");
  CHECK(sameLayout(ragged, ragged, smallMesh()));
  CHECK_FALSE(sameLayout(ragged, raggedOther, smallMesh()));
}

TEST_CASE("a product reads as one dimension only if its rows are contiguous") {
  NameTable names;
  const auto a = atomsOf(smallMesh(), {"a"});
  const auto b = atomsOf(smallMesh(), {"b"});
  const auto ab = atomsOf(smallMesh(), {"a", "b"});
  auto named = [&](const char *name, int64_t extent, llvm::ArrayRef<AtomId> atoms) {
    Factor f = factor(extent, atoms);
    f.name = names.intern(name);
    return f;
  };
  // Two sequences over a, six tokens each over b: rank (i, j) holds rows 6i + 2j and the next.
  auto one = contiguous({{named("s", 2, a), named("l", 6, b)}, false}, smallMesh(), names);
  REQUIRE(one);
  CHECK(names.str(one->name) == "s.l");
  CHECK(one->extent == 12);
  CHECK(std::vector<AtomId>(one->atoms.begin(), one->atoms.end()) == ab);
  // Four sequences over a: each rank holds two of them, and of each a part.
  CHECK_FALSE(contiguous({{named("s", 4, a), named("l", 6, b)}, false}, smallMesh(), names));
  CHECK_FALSE(contiguous({{named("s", 2, {}), named("l", 6, b)}, false}, smallMesh(), names));
  CHECK_FALSE(contiguous({{named("s", 2, a), named("l", 7, b)}, false}, smallMesh(), names));
  // An unsharded factor on the right follows along.
  one = contiguous({{named("s", 4, a), named("l", 6, {})}, false}, smallMesh(), names);
  REQUIRE(one);
  CHECK(one->extent == 24);
  // Factors of one element count for nothing, even for an uneven shard.
  one = contiguous({{factor(1), named("l", 7, b)}, false}, smallMesh(), names);
  REQUIRE(one);
  CHECK(one->extent == 7);
  CHECK(names.str(one->name) == "1.l");
  // Parts that follow one another: whole, or not at all.
  CHECK(contiguous({{named("q", 4, {}), named("k", 2, {})}, true}, smallMesh(), names)->extent == 6);
  CHECK_FALSE(contiguous({{named("q", 4, a), named("k", 2, a)}, true}, smallMesh(), names));

  const Dim product{{named("s", 2, a), named("l", 6, b)}, false};
  CHECK(sameLayout(product, Dim{{factor(12, ab)}, false}, smallMesh()));
  CHECK_FALSE(sameLayout(product, Dim{{factor(12, a)}, false}, smallMesh()));
}

// Where it reads as one, it is: rows counted through the factors are the rows of the one.
TEST_CASE("a contiguous product holds the rows that it says") {
  NameTable names;
  int64_t broken = 0;
  int64_t read = 0;
  for (const auto &first : placements()) {
    for (const auto &second : placements()) {
      if (llvm::any_of(first, [&](AtomId id) { return llvm::is_contained(second, id); })) {
        continue;
      }
      for (int64_t m : {1, 2, 3, 4, 6, 12}) {
        for (int64_t n : {1, 2, 5, 6, 12}) {
          const Dim d{{factor(m, first), factor(n, second)}, false};
          const auto one = contiguous(d, smallMesh(), names);
          for (int64_t rank = 0; one && rank < 12; ++rank) {
            Rows rows;
            for (int64_t i : listed(localRange(d.factors[0], rank, smallMesh()))) {
              for (int64_t j : listed(localRange(d.factors[1], rank, smallMesh()))) {
                rows.push_back(i * n + j);
              }
            }
            broken += rows != listed(localRange(*one, rank, smallMesh()));
          }
          read += one.has_value();
        }
      }
    }
  }
  CHECK(read > 100);
  CHECK(broken == 0);
}
