// Plans are right, element by element; and as short as they can be.
#include "Run.h"
#include <cmath>

using namespace shardc;

namespace {

std::vector<std::string> allLetters(size_t axes, llvm::StringRef alphabet) {
  std::vector<std::string> all{""};
  for (size_t i = 0; i < axes; ++i) {
    std::vector<std::string> next;
    for (const std::string &start : all) {
      for (char c : alphabet) {
        next.push_back(start + c);
      }
    }
    all = std::move(next);
  }
  return all;
}

SearchOptions byBytes(bool exchange) {
  SearchOptions o;
  o.cost = CostKind::Bytes;
  o.exchange = exchange;
  return o;
}

struct Mean {
  double log = 0;
  size_t pairs = 0;
  double value() const { return std::exp(log / double(pairs)); }
};

// The geometric mean, over all pairs that must move something, of what is received over the bound.
Mean overBound(llvm::ArrayRef<int64_t> mesh, llvm::ArrayRef<int64_t> extents, llvm::StringRef alphabet, bool exchange) {
  Mean mean;
  const Grid grid = gridOf(mesh, extents, true);
  const std::vector<std::string> all = allLetters(mesh.size(), alphabet);
  for (const std::string &a : all) {
    for (const std::string &b : all) {
      const Layout from = layoutOf(grid, a);
      const Layout to = layoutOf(grid, b);
      const int64_t bound = grid.bound(from, to);
      INFO(a << " to " << b);
      const std::optional<int64_t> got = planAndRun(grid, from, to, byBytes(exchange));
      REQUIRE(got);
      if (bound == 0) {
        CHECK((*got == 0 || alphabet.contains('P'))); // the bound is loose where zeros may be made
        continue;
      }
      mean.log += std::log(double(*got) / double(bound));
      ++mean.pairs;
    }
  }
  return mean;
}

std::vector<Step> allMoves(const Grid &grid, const Layout &from, const Layout &to, const Machine &machine, const SearchOptions &options) {
  std::vector<Step> moves;
  for (Permutes permutes : {Permutes::None, Permutes::Near, Permutes::Far}) {
    forMoves(grid, from, to, 1, machine, options, permutes, [&](const Step &s) { moves.push_back(s); });
  }
  return moves;
}

} // namespace

// All ordered pairs of {R, S0, S1} per axis; the limits are those of the reference search with the same steps.
TEST_CASE("collectives alone come near the bound, an exchange reaches it") {
  const struct {
    std::vector<int64_t> mesh, extents;
    size_t pairs;
    double limit;
  } cases[] = {{{2, 2}, {8, 8}, 58, 1.04}, {{2, 3}, {12, 12}, 58, 1.12}, {{2, 4}, {8, 8}, 58, 1.09}, {{2, 2, 2}, {8, 8}, 630, 1.05}};
  for (const auto &c : cases) {
    const Mean alone = overBound(c.mesh, c.extents, "R01", false);
    CHECK(alone.pairs == c.pairs);
    CHECK(alone.value() <= c.limit);
    CHECK(overBound(c.mesh, c.extents, "R01", true).value() == Approx(1.0));
  }
}

TEST_CASE("partial values are reduced first and end whole") {
  overBound({2, 2}, {4, 4}, "RP01", true);
  overBound({2, 2}, {4, 4}, "RP01", false);
  overBound({2, 3}, {6, 6}, "RP01", true);
}

// Extents that the ranks do not divide, down to one element: short and empty shards take part.
TEST_CASE("uneven shards end where they should") {
  for (int64_t rows = 1; rows <= 9; ++rows) {
    for (const std::vector<int64_t> &mesh : {std::vector<int64_t>{2, 2}, std::vector<int64_t>{2, 3}, std::vector<int64_t>{3}}) {
      Grid grid = gridOf(mesh, {rows, 3}, false);
      grid.even = false;
      for (const std::string &a : allLetters(mesh.size(), "RP01")) {
        for (const std::string &b : allLetters(mesh.size(), "RP01")) {
          INFO(rows << " rows, " << mesh.size() << " axes, " << a << " to " << b);
          for (bool exchange : {true, false}) {
            SearchOptions options = byBytes(exchange);
            options.cap = exchange; // without it some pairs must gather more than either end
            CHECK(planAndRun(grid, layoutOf(grid, a), layoutOf(grid, b), options));
          }
        }
      }
    }
  }
}

// Against a search without a bound, a queue or a hub: prices are lowered until none changes.
TEST_CASE("no cheaper sequence of steps exists") {
  const Machine machine = flatMachine();
  for (CostKind cost : {CostKind::Bytes, CostKind::Steps, CostKind::Time}) {
    SearchOptions options;
    options.cost = cost;
    options.exchange = false;
    options.cap = false;
    const Grid grid = gridOf({2, 4}, {8, 8}, true);
    const std::vector<std::string> all = allLetters(2, "R01");
    for (const std::string &b : all) {
      const Layout to = layoutOf(grid, b);
      for (const std::string &a : all) {
        const Layout from = layoutOf(grid, a);
        std::vector<std::pair<Layout, Price>> reached{{from, {}}};
        std::vector<size_t> queue{0};
        while (!queue.empty()) {
          const auto [at, price] = reached[queue.back()];
          queue.pop_back();
          for (const Step &s : allMoves(grid, at, to, machine, options)) {
            const Price next = price + priceOf(s, 1, cost);
            auto *known = llvm::find_if(reached, [&](const auto &r) { return r.first == s.after; }).base();
            if (known == reached.data() + reached.size()) {
              reached.emplace_back(s.after, next);
              queue.push_back(reached.size() - 1);
            } else if (next < known->second) {
              known->second = next;
              queue.push_back(size_t(known - reached.data()));
            }
          }
        }
        const auto best = llvm::find_if(reached, [&](const auto &r) { return r.first == to; });
        REQUIRE(best != reached.end());
        const std::optional<Found> found = findPlan(grid, from, to, 1, machine, options);
        REQUIRE(found);
        INFO(a << " to " << b);
        CHECK(found->price.main == Approx(best->second.main));
      }
    }
  }
}

// By way of a third layout it is never cheaper.
TEST_CASE("prices obey the triangle inequality") {
  const Machine machine = flatMachine();
  const Grid grid = gridOf({2, 4}, {8, 8}, true);
  const std::vector<std::string> all = allLetters(2, "R01");
  for (bool exchange : {false, true}) {
    for (CostKind cost : {CostKind::Bytes, CostKind::Steps, CostKind::Time}) {
      if (exchange && cost == CostKind::Time) {
        continue; // the messages of an exchange are not those of its parts
      }
      SearchOptions options;
      options.cost = cost;
      options.exchange = exchange;
      options.cap = false;
      std::map<std::pair<size_t, size_t>, double> price;
      for (size_t i = 0; i < all.size(); ++i) {
        for (size_t j = 0; j < all.size(); ++j) {
          price[{i, j}] = findPlan(grid, layoutOf(grid, all[i]), layoutOf(grid, all[j]), 1, machine, options)->price.main;
        }
      }
      for (size_t i = 0; i < all.size(); ++i) {
        for (size_t j = 0; j < all.size(); ++j) {
          for (size_t k = 0; k < all.size(); ++k) {
            CHECK(price[{i, k}] <= price[{i, j}] + price[{j, k}] + 1e-9);
          }
        }
      }
    }
  }
}
