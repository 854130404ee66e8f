// Run: executes the steps of a plan element by element on all ranks. Every rank starts with what the first layout gives it;
// a step may take elements only from its group, and only where they are.
#pragma once

#include "Catch.h"
#include "shardc/Plan/Search.h"
#include <algorithm>
#include <functional>
#include <map>

namespace shardc {

inline Digit digit(int64_t size, int64_t stride, std::string name) {
  Digit d;
  d.size = size;
  d.parts.emplace_back(size, stride);
  d.axis = std::move(name);
  return d;
}

// A row-major mesh of whole axes a, b, c, or of their prime digits.
inline Grid gridOf(llvm::ArrayRef<int64_t> mesh, llvm::ArrayRef<int64_t> extents, bool primes) {
  Grid grid;
  grid.extents.assign(extents.begin(), extents.end());
  for (int64_t n : mesh) {
    grid.world *= n;
  }
  int64_t stride = grid.world;
  for (size_t i = 0; i < mesh.size(); ++i) {
    for (int64_t rest = mesh[i]; rest > 1;) {
      int64_t p = primes ? 2 : rest;
      for (; rest % p != 0; ++p) {
      }
      stride /= p;
      rest /= p;
      grid.digits.push_back(digit(p, stride, std::string(1, char('a' + i))));
    }
  }
  return grid;
}

// One letter per axis: R, P, I (as R) or a dimension's number. The digits of an axis go together, in order of the axes.
inline Layout layoutOf(const Grid &grid, llvm::StringRef letters) {
  Layout l;
  for (uint8_t i = 0; i < grid.digits.size(); ++i) {
    const char letter = letters[size_t(grid.digits[i].axis[0] - 'a')];
    if (letter == 'P') {
      l.partial |= DigitSet(1) << i;
    } else if (letter >= '0' && letter <= '9') {
      l.append(unsigned(letter - '0'), i);
    }
  }
  return l;
}

using Held = std::map<int64_t, int64_t>; // element -> value

class Runner {
public:
  Runner(const Grid &g, const Layout &from) : grid(g), at(from), ranks(size_t(g.world)) {
    for (int64_t r = 0; r < grid.world; ++r) {
      const int64_t n = grid.product(from.partial);
      const int64_t own = index(r, from.partial);
      each(from, r, [&](int64_t e) {
        int64_t rest = value(e);
        for (int64_t i = 0; i + 1 < n; ++i) {
          rest -= addend(e, i);
        }
        ranks[size_t(r)][e] = own + 1 < n ? addend(e, own) : rest;
      });
    }
  }

  void run(const Step &s) {
    std::vector<Held> next(ranks.size());
    int64_t most = 0;
    std::vector<bool> used(ranks.size());
    for (int64_t r = 0; r < grid.world; ++r) {
      int64_t received = 0;
      const std::vector<int64_t> group = groupOf(r, s.group);
      const int64_t source = s.kind == StepKind::Permute ? sender(r, s, used) : r;
      each(s.after, r, [&](int64_t e) { next[size_t(r)][e] = take(s, r, source, group, e, received); });
      most = std::max(most, received);
    }
    const bool exact = s.kind == StepKind::AllGather || s.kind == StepKind::AllToAll || s.kind == StepKind::Exchange;
    CHECK((exact ? most == s.elements : most <= s.elements));
    ranks = std::move(next);
    at = s.after;
  }

  // Whether every element stands where the layout wants it, whole or as addends.
  bool holds(const Layout &to) const {
    bool right = at == to;
    for (int64_t r = 0; r < grid.world; ++r) {
      size_t count = 0;
      each(to, r, [&](int64_t e) {
        int64_t sum = 0;
        for (int64_t other : groupOf(r, to.partial)) {
          const auto it = ranks[size_t(other)].find(e);
          right = right && it != ranks[size_t(other)].end();
          sum += right ? it->second : 0;
        }
        right = right && sum == value(e);
        ++count;
      });
      right = right && count == ranks[size_t(r)].size();
    }
    return right;
  }

private:
  static int64_t value(int64_t e) { return 1000 + 7 * e; }
  static int64_t addend(int64_t e, int64_t i) { return e * (i + 3) % 101 - 50; }

  int64_t index(int64_t rank, DigitSet set) const {
    int64_t at_ = 0;
    for (unsigned i = 0; i < grid.digits.size(); ++i) {
      at_ = set >> i & 1 ? at_ * grid.digits[i].size + grid.coordinate(rank, grid.digits[i]) : at_;
    }
    return at_;
  }

  std::vector<int64_t> groupOf(int64_t rank, DigitSet set) const {
    std::vector<int64_t> group;
    for (int64_t r = 0; r < grid.world; ++r) {
      if (index(r, grid.all() & ~set) == index(rank, grid.all() & ~set)) {
        group.push_back(r);
      }
    }
    return group;
  }

  void each(const Layout &l, int64_t rank, const std::function<void(int64_t)> &fn) const {
    std::function<void(unsigned, int64_t)> walk = [&](unsigned d, int64_t e) {
      if (d == grid.dims()) {
        fn(e);
        return;
      }
      const Range range = grid.range(l, d, rank);
      for (int64_t i = range.begin; i < range.end; ++i) {
        walk(d + 1, e * grid.extents[d] + i);
      }
    };
    walk(0, 0);
  }

  // The one rank whose whole part this rank takes over; each sends once.
  int64_t sender(int64_t r, const Step &s, std::vector<bool> &used) const {
    for (bool self : {true, false}) {
      for (int64_t other : groupOf(r, s.group)) {
        bool same = !used[size_t(other)] && (!self || other == r) && index(other, at.partial) == index(r, s.after.partial);
        for (unsigned d = 0; d < grid.dims(); ++d) {
          same = same && grid.range(at, d, other) == grid.range(s.after, d, r);
        }
        if (same) {
          used[size_t(other)] = true;
          return other;
        }
      }
    }
    FAIL("no rank holds what a permute needs");
    return r;
  }

  int64_t take(const Step &s, int64_t r, int64_t source, llvm::ArrayRef<int64_t> group, int64_t e, int64_t &received) const {
    const Held &own = ranks[size_t(r)];
    const auto mine = own.find(e);
    switch (s.kind) {
    case StepKind::Slice:
    case StepKind::Scale:
      REQUIRE(mine != own.end());
      return mine->second;
    case StepKind::KeepFirst:
      REQUIRE(mine != own.end());
      return index(r, s.group) == 0 ? mine->second : 0;
    case StepKind::ZeroFill:
      return mine != own.end() ? mine->second : 0;
    case StepKind::Permute:
      received += source != r;
      return ranks[size_t(source)].at(e);
    case StepKind::AllGather:
    case StepKind::AllToAll:
    case StepKind::Exchange:
      REQUIRE((s.group & at.partial) == 0);
      if (mine != own.end()) {
        return mine->second;
      }
      ++received;
      for (int64_t other : group) {
        if (const auto it = ranks[size_t(other)].find(e); it != ranks[size_t(other)].end()) {
          return it->second;
        }
      }
      FAIL("no rank of the group holds an element that is needed");
      return 0;
    case StepKind::ReduceScatter:
    case StepKind::AllReduce: {
      int64_t sum = 0;
      for (int64_t other : group) {
        sum += ranks[size_t(other)].at(e);
      }
      received += s.kind == StepKind::AllReduce ? 0 : int64_t(group.size()) - 1;
      return sum;
    }
    }
    return 0;
  }

  const Grid &grid;
  Layout at;
  std::vector<Held> ranks;
};

inline Machine flatMachine() {
  Machine m;
  m.name = "flat";
  m.node = 1 << 20;
  m.linkBandwidth = m.netBandwidth = 1000;
  m.protocols.push_back({1, 1, 1, 1});
  return m;
}

// Plans, executes, and compares; answers what was received.
inline std::optional<int64_t> planAndRun(const Grid &grid, const Layout &from, const Layout &to, const SearchOptions &options) {
  const std::optional<Found> found = findPlan(grid, from, to, 1, flatMachine(), options);
  if (!found) {
    return std::nullopt;
  }
  Runner runner(grid, from);
  int64_t elements = 0;
  const int64_t cap = std::max(grid.largestLocal(from), grid.largestLocal(to));
  for (const Step &s : found->steps) {
    runner.run(s);
    elements += s.elements;
    CHECK((!options.cap || grid.largestLocal(s.after) <= cap));
  }
  CHECK(runner.holds(to));
  CHECK(elements >= grid.bound(from, to));
  return elements;
}

} // namespace shardc
