// Redistributions that people asked about in public, each at its optimum. The figures were found by an exhaustive search over
// slices, permutes, all-to-alls and all-gathers on prime digits within memory, or by hand from the boxes.
#include "Run.h"

using namespace shardc;

namespace {

// A word per dimension, an axis per letter; what follows a bar is partial: {"ac", "b", "|d"}.
Layout words(const Grid &grid, llvm::ArrayRef<llvm::StringRef> dims) {
  Layout l;
  for (unsigned d = 0; d < dims.size(); ++d) {
    const bool partial = dims[d].starts_with("|");
    for (char axis : dims[d].drop_front(partial ? 1 : 0)) {
      for (uint8_t i = 0; i < grid.digits.size(); ++i) {
        if (grid.digits[i].axis[0] == axis && partial) {
          l.partial |= DigitSet(1) << i;
        } else if (grid.digits[i].axis[0] == axis) {
          l.append(d, i);
        }
      }
    }
  }
  return l;
}

using Words = std::vector<llvm::StringRef>;

struct Case {
  const char *name;
  std::vector<int64_t> mesh, extents;
  Words from, to;
  int64_t alone;    // elements received, without all-to-all-v
  int64_t exchange; // with it
  int64_t bound;
};

int64_t received(const Grid &grid, const Case &c, bool exchange) {
  SearchOptions options;
  options.cost = CostKind::Bytes;
  options.exchange = exchange;
  const std::optional<int64_t> got = planAndRun(grid, words(grid, c.from), words(grid, c.to), options);
  REQUIRE(got);
  return *got;
}

} // namespace

TEST_CASE("published cases are planned at their optimum") {
  const std::vector<int64_t> cube{8, 8, 8};
  const Case cases[] = {
      {"S0,S1,S0 to S1,S0,S0", {2, 2, 2}, cube, {"ac", "b", ""}, {"bc", "a", ""}, 64, 64, 64},
      {"S1,R,S0 to R,S0,S0", {2, 2, 2}, cube, {"c", "a", ""}, {"bc", "", ""}, 128, 128, 128},
      {"16 x 8 swapped", {16, 8}, {32, 32}, {"a", "b"}, {"b", "a"}, 12, 8, 8},
      {"S1,S1 to S1,S2", {2, 2}, cube, {"", "ab", ""}, {"", "a", "b"}, 64, 64, 64},
      {"P(y,-,x) to P(-,(x,y),-)", {4, 2}, {16, 16, 16}, {"b", "", "a"}, {"", "ab", ""}, 640, 448, 448},
      {"P,P to S0,S0", {4, 8}, {32, 32}, {"", "", "|ab"}, {"ab", ""}, 992, 992, 992},
      {"dp,cp,tp to tp alone, tp innermost", {2, 2, 2}, {8, 4}, {"abc", ""}, {"c", ""}, 16, 16, 16},
      {"dp,cp,tp to tp alone, tp outermost", {2, 2, 2}, {8, 4}, {"cab", ""}, {"c", ""}, 12, 12, 12},
      {"all-to-all of axes in another order", {2, 2}, {16, 8, 8}, {"", "ba", ""}, {"ab", "", ""}, 192, 192, 192},
      {"axes of two sizes swapped", {4, 2}, {16, 8}, {"a", "b"}, {"b", "a"}, 24, 16, 16},
      {"slice and replace", {2, 2, 2, 2}, {16, 8, 8}, {"c", "a", ""}, {"d", "", "ab"}, 128, 128, 128},
      {"not contiguous", {2, 2, 2}, {16, 8, 8}, {"b", "ac", ""}, {"", "", "abc"}, 176, 112, 112},
      {"2 x 4 swapped", {2, 4}, {16, 16}, {"a", "b"}, {"b", "a"}, 48, 32, 32},
      {"three all-to-alls are one", {2, 2, 2}, {8, 8}, {"abc", ""}, {"", "abc"}, 7, 7, 7},
      {"a sum behind a shard", {2, 2}, {8}, {"a", "|b"}, {"ab"}, 2, 2, 2},
      {"strided to plain: ranks 1 and 2 swap", {2, 2}, {8}, {"ba"}, {"ab"}, 2, 2, 2},
  };
  for (const Case &c : cases) {
    INFO(c.name);
    const Grid grid = gridOf(c.mesh, c.extents, true);
    CHECK(grid.bound(words(grid, c.from), words(grid, c.to)) == c.bound);
    CHECK(received(grid, c, false) == c.alone);
    CHECK(received(grid, c, true) == c.exchange);
  }
}

TEST_CASE("a sum is reduced before it is gathered") {
  // Reduce-scatter, permute, all-gather: 11/32 of the tensor, where gathering first takes 52/32.
  const Case scattered{"P,S0 to S0,R", {4, 8}, {32, 32}, {"b", "", "|a"}, {"a", ""}, 352, 0, 0};
  CHECK(received(gridOf(scattered.mesh, scattered.extents, true), scattered, false) == 352);
  // A sum that stays one is still cheaper to scatter, gather and fill with zeros: 1/2, where the all-gather alone takes 3/4.
  const Case kept{"P,S0 to P,R", {2, 4}, {8, 8}, {"b", "", "|a"}, {"", "", "|a"}, 32, 0, 0};
  CHECK(received(gridOf(kept.mesh, kept.extents, true), kept, false) == 32);
}

TEST_CASE("uneven and empty shards are counted box by box") {
  Grid three = gridOf({3}, {5, 7}, false);
  three.even = false;
  const Layout rows = words(three, {"a", ""});
  const Layout columns = words(three, {"", "a"});
  const int64_t lacked[] = {9, 9, 4};
  for (int64_t r = 0; r < 3; ++r) {
    CHECK(three.local(columns, r) - three.kept(rows, columns, r) == lacked[r]);
  }
  Grid nested = gridOf({2, 4}, {2}, false);
  nested.even = false;
  const Layout both = words(nested, {"ab"});
  for (int64_t r = 0; r < 8; ++r) {
    CHECK(nested.local(both, r) == (r % 4 == 0 ? 1 : 0));
  }
  CHECK(nested.range(both, 0, 4) == Range{1, 2});
  // Another order of the axes: of 6 rows 2, 1, 2, 1 become 2, 2, 1, 1, and no rank's part may just be passed on.
  Grid six = gridOf({2, 2}, {6}, false);
  six.even = false;
  const int64_t received6[] = {0, 2, 1, 0};
  for (int64_t r = 0; r < 4; ++r) {
    CHECK(six.local(words(six, {"ba"}), r) - six.kept(words(six, {"ab"}), words(six, {"ba"}), r) == received6[r]);
  }
}
