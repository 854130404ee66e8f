// Search: the cheapest sequence of steps from one layout to another.
//
// The problem. A layout over k digits is a word per dimension and a set of digits that hold addends; a step rewrites one or several
// digits. Wanted is the cheapest rewriting under a price per step, with no layout on the way larger than the larger end.
//
// What others do. Greedy, axis by axis (up to 32 times too many bytes on 2x4x8); a search over whole axes (cannot split or fuse
// them); a normal form of slices, one exchange, gathers (safe in memory, not the fewest bytes).
//
// What we do. A* over words on prime digits, with the bound of Grid::bound as what a plan must still cost. It never exceeds the cost
// to go: whatever a step brings, what is still missed after it must arrive too. A layout whose price is found again and lower is
// opened again, so the first time the target is taken from the queue its path is the best. A permute leads to very many layouts;
// where its price does not depend on which, all layouts of one local shape meet in a hub: in for the price, out for nothing.
//
// Why it ends, what it costs. Words are finite (1,631 on five digits and two dimensions, 11,743 on six), and every price is above
// zero but those of keeping parts, which only add digits. A first search that believes the bound too much gives some plan, and the
// second looks only at what can be cheaper; past `MostVisited` steps the first plan stands, marked as perhaps not the best. On more
// digits than fit a key the plan is: reduce, exchange.
#include "shardc/Plan/Search.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <map>
#include <queue>

namespace shardc {
namespace {

constexpr double Greed = 10;
constexpr size_t MostGreedy = 300'000;
constexpr size_t MostVisited = 400'000;
constexpr unsigned KeyDigits = 8;
constexpr int64_t UnevenRanks = 256; // counted one by one at every layout

using Key = uint64_t;
constexpr Key PartialPlace = 15;
constexpr Key HubPlace = 14;

// Eight bits per digit: dimension + 1 and position, or partial, or nothing.
Key keyOf(const Layout &l, const Grid &grid) {
  Key key = 0;
  for (unsigned d = 0; d < grid.dims(); ++d) {
    for (unsigned p = 0; p < l.count[d]; ++p) {
      key |= (static_cast<Key>(d + 1) << 4 | p) << 8 * l.word[d][p];
    }
  }
  for (unsigned i = 0; i < grid.digits.size(); ++i) {
    key |= l.partial >> i & 1 ? PartialPlace << 4 << 8 * i : 0;
  }
  return key;
}

Layout layoutOf(Key key, const Grid &grid) {
  Layout l;
  for (unsigned i = 0; i < grid.digits.size(); ++i) {
    const Key place = key >> (8 * i + 4) & 15;
    if (place == PartialPlace) {
      l.partial |= DigitSet(1) << i;
    } else if (place != 0) {
      l.word[place - 1][key >> 8 * i & 15] = static_cast<uint8_t>(i);
      ++l.count[place - 1];
    }
  }
  return l;
}

struct Node {
  Price price;
  Key parent = 0;
  StepKind kind{}; // of the step that led here
  bool known = false;
  bool closed = false;
};

class Searcher {
public:
  Searcher(const Grid &g, const Layout &f, const Layout &t, int64_t b, const Machine &m, const SearchOptions &o)
      : grid(g), from(f), to(t), elementBytes(b), machine(m), options(o),
        cap(o.cap ? std::max(g.largestLocal(f), g.largestLocal(t)) : INT64_MAX), fromKey(keyOf(f, g)), toKey(keyOf(t, g)), far(m.far(g)) {
    for (const Protocol &p : m.protocols) {
      least = std::min(least, p.base + std::min(p.link, p.net));
      share = std::max(share, p.share);
    }
    fastest = std::max(m.linkBandwidth, m.netBandwidth) * share;
  }

  // `greed` above 1: a plan soon, perhaps not the best. `below`: only what is cheaper.
  std::optional<Found> run(double greed, size_t mostVisited, std::optional<Price> below) {
    nodes.clear();
    hubs.clear();
    queue = {};
    weight = greed;
    limit = below;
    visited = 0;
    exhausted = false;
    nodes[fromKey].known = true;
    push(fromKey, {}, grid.bound(from, to));
    while (!queue.empty() && visited < mostVisited) {
      const Entry top = queue.top();
      queue.pop();
      Node &node = nodes[top.key];
      if (node.closed || node.price < top.price) {
        continue;
      }
      node.closed = true;
      if (top.key == toKey) {
        return Found{path(), node.price, weight == 1};
      }
      expand(top.key);
    }
    exhausted = queue.empty();
    return std::nullopt;
  }

  bool exhausted = false; // nothing is left to try

private:
  struct Entry {
    Price estimate;
    Price price;
    Key key;
    bool operator<(const Entry &o) const { // the queue's top is the largest: the cheapest, then the smaller key
      return o.estimate < estimate || (!(estimate < o.estimate) && o.key < key);
    }
  };

  // What is missed at least by any layout of this local shape: where each dimension is cut as if one word began with the other.
  int64_t missedAfterPermute(const Layout &at) const {
    int64_t whole = 1;
    int64_t common = 1;
    for (unsigned d = 0; d < grid.dims(); ++d) {
      const int64_t wanted = grid.product(to.dim(d));
      whole *= grid.extents[d] / wanted;
      common *= grid.extents[d] / std::max(wanted, grid.product(at.dim(d)));
    }
    return to.partial || at.partial ? 0 : std::max<int64_t>(0, whole - common);
  }

  Price toGo(int64_t elements) const {
    const double bytes = static_cast<double>(elements) * static_cast<double>(elementBytes);
    const double some = elements ? 1.0 : 0.0;
    switch (options.cost) {
    case CostKind::Time:
      return {some * least + bytes / fastest, 0};
    case CostKind::Bytes:
      return {bytes, some};
    case CostKind::Steps:
      return {some, bytes};
    }
    return {};
  }

  void push(Key key, const Price &price, int64_t missing) {
    const Price rest = toGo(missing);
    if (!limit || price + rest < *limit) {
      queue.push({price + Price{rest.main * weight, rest.tie * weight}, price, key});
    }
  }

  void relax(Key parent, Key key, const Price &price, StepKind kind, int64_t missing) {
    if (limit && !(price + toGo(missing) < *limit)) {
      return;
    }
    Node &node = nodes[key];
    if (node.known && !(price < node.price)) {
      return;
    }
    // Closed nodes are opened again.
    node = {price, parent, kind, true, false};
    push(key, price, missing);
  }

  void expand(Key key) {
    const Node node = nodes[key];
    if (key >> 60 == HubPlace) {
      leaveHub(node, key >> 59 & 1 ? Permutes::Near : Permutes::Far);
      return;
    }
    const Layout at = layoutOf(key, grid);
    forMoves(grid, at, to, elementBytes, machine, options, Permutes::None, [&](const Step &step) { take(key, node.price, step); });
    if (grid.even) {
      for (Permutes permutes : {Permutes::Near, Permutes::Far}) {
        enterHub(key, node.price, at, permutes);
      }
    }
  }

  void take(Key parent, const Price &price, const Step &step) {
    ++visited;
    if (grid.largestLocal(step.after) <= cap) {
      relax(parent, keyOf(step.after, grid), price + priceOf(step, elementBytes, options.cost), step.kind, grid.bound(step.after, to));
    }
  }

  // All layouts of one local shape meet in a hub, in which the layout that was left stands as the parent; in a near one only those
  // whose digits across nodes stand alike.
  void enterHub(Key key, const Price &price, const Layout &at, Permutes permutes) {
    if ((permutes == Permutes::Far ? far : grid.all() & ~far) == 0) {
      return;
    }
    llvm::SmallVector<int64_t, 16> shape{static_cast<int64_t>(permutes)};
    for (unsigned d = 0; d < grid.dims(); ++d) {
      shape.push_back(grid.product(at.dim(d)));
    }
    shape.push_back(grid.product(at.partial));
    for (unsigned i = 0; permutes == Permutes::Near && i < grid.digits.size(); ++i) {
      shape.push_back(far >> i & 1 ? static_cast<int64_t>(key >> 8 * i & 255) : -1);
    }
    const Key hub = HubPlace << 60 | Key(permutes == Permutes::Near) << 59 | hubs.try_emplace(shape, hubs.size()).first->second;
    Step step;
    step.kind = StepKind::Permute;
    step.elements = grid.largestLocal(at);
    step.time = machine.pairwise(grid, permutes == Permutes::Near ? 0 : far, 1, step.elements * elementBytes);
    relax(key, hub, price + priceOf(step, elementBytes, options.cost), StepKind::Permute, missedAfterPermute(at));
  }

  void leaveHub(const Node &hub, Permutes permutes) {
    const Price price = nodes[hub.parent].price;
    forMoves(grid, layoutOf(hub.parent, grid), to, elementBytes, machine, options, permutes,
             [&](const Step &step) { take(hub.parent, price, step); });
  }

  // The steps, found again from the layouts on the way.
  std::vector<Step> path() {
    std::vector<Step> steps;
    for (Key key = toKey; key != fromKey; key = nodes[key].parent) {
      const Node &node = nodes[key];
      const Layout before = layoutOf(node.parent, grid);
      const Layout after = layoutOf(key, grid);
      std::optional<Step> best;
      const auto consider = [&](const Step &s) {
        const bool better = !best || priceOf(s, elementBytes, options.cost) < priceOf(*best, elementBytes, options.cost);
        if (s.kind == node.kind && s.after == after && better) {
          best = s;
        }
      };
      for (Permutes permutes : {Permutes::None, Permutes::Near, Permutes::Far}) {
        if ((permutes == Permutes::None) != (node.kind == StepKind::Permute)) {
          forMoves(grid, before, to, elementBytes, machine, options, permutes, consider);
        }
      }
      assert(best && "a step that was taken is among the moves");
      steps.push_back(*best);
    }
    std::reverse(steps.begin(), steps.end());
    return steps;
  }

  const Grid &grid;
  const Layout &from;
  const Layout &to;
  int64_t elementBytes;
  const Machine &machine;
  const SearchOptions &options;
  int64_t cap;
  Key fromKey, toKey;
  DigitSet far;
  double least = 1e300; // of a step
  double share = 0;
  double fastest = 1;
  double weight = 1;
  std::optional<Price> limit;
  size_t visited = 0;
  llvm::DenseMap<Key, Node> nodes;
  std::map<llvm::SmallVector<int64_t, 16>, Key> hubs;
  std::priority_queue<Entry> queue;
};

// Reduce, keep parts, exchange: on any number of digits.
std::optional<Found> directPlan(const Grid &grid, const Layout &from, const Layout &to, int64_t elementBytes, const Machine &machine,
                                const SearchOptions &options) {
  Found found;
  found.best = false;
  Layout at = from;
  const auto apply = [&](llvm::function_ref<bool(const Step &)> wanted) {
    std::optional<Step> first;
    forMoves(grid, at, to, elementBytes, machine, options, Permutes::None, [&](const Step &step) {
      if (!first && wanted(step)) {
        first = step;
      }
    });
    if (first) {
      at = first->after;
      found.price = found.price + priceOf(*first, elementBytes, options.cost);
      found.steps.push_back(*first);
    }
    return first.has_value();
  };
  const DigitSet reduced = from.partial & ~to.partial;
  if (reduced) {
    apply([&](const Step &s) { return s.kind == StepKind::AllReduce && s.group == reduced; });
  }
  while (at.partial != to.partial && apply([&](const Step &s) { return s.kind == StepKind::KeepFirst; })) {
  }
  if (!(at == to)) {
    apply([&](const Step &s) { return s.kind == StepKind::Exchange; });
  }
  while (at.partial != to.partial && apply([&](const Step &s) { return s.kind == StepKind::KeepFirst; })) {
  }
  return at == to ? std::optional(std::move(found)) : std::nullopt;
}

bool withinCap(const Grid &grid, const Found &plan, const Layout &from, const Layout &to, const SearchOptions &options) {
  const int64_t cap = std::max(grid.largestLocal(from), grid.largestLocal(to));
  return !options.cap || llvm::all_of(plan.steps, [&](const Step &s) { return grid.largestLocal(s.after) <= cap; });
}

} // namespace

std::optional<Found> findPlan(const Grid &grid, const Layout &from, const Layout &to, int64_t elementBytes, const Machine &machine,
                              const SearchOptions &options) {
  if (from == to) {
    return Found();
  }
  std::optional<Found> direct = directPlan(grid, from, to, elementBytes, machine, options);
  if (grid.overlap || grid.digits.size() > KeyDigits || !(grid.even || grid.world <= UnevenRanks)) {
    return direct;
  }
  // Any plan first, by bytes, which lead straight to the target: what costs as much need not be looked at.
  SearchOptions byBytes = options;
  byBytes.cost = CostKind::Bytes;
  Searcher first(grid, from, to, elementBytes, machine, byBytes);
  std::optional<Found> some = first.run(Greed, MostGreedy, std::nullopt);
  if (!some && first.exhausted) {
    return std::nullopt;
  }
  if (some) {
    some->price = {};
    for (const Step &s : some->steps) {
      some->price = some->price + priceOf(s, elementBytes, options.cost);
    }
  }
  Searcher searcher(grid, from, to, elementBytes, machine, options);
  if (!some || (direct && withinCap(grid, *direct, from, to, options) && direct->price < some->price)) {
    some = std::move(direct);
  }
  if (std::optional<Found> best = searcher.run(1, MostVisited, some ? std::optional(some->price) : std::nullopt)) {
    return best;
  }
  if (some) {
    some->best = searcher.exhausted;
  }
  return some;
}

} // namespace shardc
