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
// zero but those of keeping parts, which only add digits. Past `MostExpanded` layouts, or on more digits than fit a key, the plan
// is: reduce, keep parts, exchange; it is then marked as perhaps not the best.
#include "shardc/Plan/Search.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <map>
#include <queue>

namespace shardc {
namespace {

constexpr size_t MostExpanded = 200'000;
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

struct Node {
  Price price;
  Key parent = 0;
  Step step; // that led here
  bool closed = false;
};

class Searcher {
public:
  Searcher(const Grid &g, const Layout &f, const Layout &t, int64_t b, const Machine &m, const SearchOptions &o)
      : grid(g), from(f), to(t), elementBytes(b), machine(m), options(o),
        cap(o.cap ? std::max(g.largestLocal(f), g.largestLocal(t)) : INT64_MAX), fromKey(keyOf(f, g)), toKey(keyOf(t, g)),
        sharedHubs(o.cost != CostKind::Time || g.world <= m.node) {
    for (const Protocol &p : m.protocols) {
      least = std::min(least, p.base + std::min(p.link, p.net));
      share = std::max(share, p.share);
    }
  }

  std::optional<Found> run() {
    Node start;
    start.step.after = from;
    nodes.try_emplace(fromKey, start);
    push(fromKey, start.price, from);
    Found found;
    while (!queue.empty() && found.expanded < MostExpanded) {
      const Entry top = queue.top();
      queue.pop();
      Node &node = nodes[top.key];
      if (node.closed || node.price < top.price) {
        continue;
      }
      node.closed = true;
      if (top.key == toKey) {
        found.price = node.price;
        found.steps = path();
        return found;
      }
      ++found.expanded;
      expand(top.key);
    }
    exhausted = queue.empty();
    return std::nullopt;
  }

  bool exhausted = false;

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

  Price toGo(const Layout &l) const { return toGo(grid.bound(l, to)); }
  Price toGo(int64_t elements) const {
    const double bytes = static_cast<double>(elements) * static_cast<double>(elementBytes);
    switch (options.cost) {
    case CostKind::Time:
      return {elements ? least + bytes / (std::max(machine.linkBandwidth, machine.netBandwidth) * share) : 0, 0};
    case CostKind::Bytes:
      return {bytes, elements ? 1.0 : 0.0};
    case CostKind::Steps:
      return {elements ? 1.0 : 0.0, bytes};
    }
    return {};
  }

  void push(Key key, const Price &price, const Layout &at) {
    const Price estimate = price + toGo(at);
    if (!capped || !(limit < estimate)) {
      queue.push({estimate, price, key});
    }
  }

  // All layouts of one local shape, or this one alone.
  Key hubOf(Key key, const Layout &l) {
    llvm::SmallVector<int64_t, 8> shape;
    for (unsigned d = 0; d < grid.dims(); ++d) {
      shape.push_back(grid.product(l.dim(d)));
    }
    shape.push_back(grid.product(l.partial));
    shape.push_back(sharedHubs ? 0 : static_cast<int64_t>(key));
    return HubPlace << 60 | hubs.try_emplace(shape, hubs.size()).first->second;
  }

  void expand(Key key) {
    const Node node = nodes[key];
    const bool hub = key >> 60 == HubPlace;
    const Layout at = node.step.after;
    for (const Step &step : movesFrom(grid, at, to, elementBytes, machine, options, hub)) {
      if (hub != (step.kind == StepKind::Permute)) {
        continue;
      }
      const Price base = hub ? nodes[node.parent].price : node.price;
      relax(hub ? node.parent : key, base + priceOf(step, elementBytes, options.cost), step);
    }
    if (!hub && grid.even) {
      enterHub(key, at);
    }
  }

  // In for the least that leaving it can cost; which layout was left stands as the hub's parent.
  void enterHub(Key key, const Layout &at) {
    if (at.sharded(grid.dims()) == 0 && at.partial == 0) {
      return;
    }
    const Key hub = hubOf(key, at);
    Step step;
    step.kind = StepKind::Permute;
    step.after = at;
    step.elements = grid.largestLocal(at);
    step.time = machine.pairwise(grid, 0, 1, step.elements * elementBytes);
    const Price price = nodes[key].price + priceOf(step, elementBytes, options.cost);
    Node &node = nodes[hub];
    if (node.step.kind == StepKind::Permute && !(price < node.price)) {
      return;
    }
    node = {price, key, step};
    const Price estimate = price + toGo(missedAfterPermute(at));
    if (!capped || !(limit < estimate)) {
      queue.push({estimate, price, hub});
    }
  }

  void relax(Key parent, const Price &price, const Step &step) {
    if (cap < grid.largestLocal(step.after)) {
      return;
    }
    const Key key = keyOf(step.after, grid);
    const auto [it, fresh] = nodes.try_emplace(key);
    if (!fresh && !(price < it->second.price)) {
      return;
    }
    if (key == toKey && (!capped || price < limit)) {
      capped = true;
      limit = price;
    }
    it->second = {price, parent, step};
    push(key, price, step.after);
  }

  std::vector<Step> path() {
    std::vector<Step> steps;
    for (Key key = toKey; key != fromKey; key = nodes[key].parent) {
      steps.push_back(nodes[key].step);
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
  bool sharedHubs;
  double least = 1e300; // of a step
  double share = 0;
  bool capped = false; // some plan is known, of price `limit`
  Price limit;
  llvm::DenseMap<Key, Node> nodes;
  std::map<llvm::SmallVector<int64_t, 8>, Key> hubs;
  std::priority_queue<Entry> queue;
};

// Reduce, keep parts, exchange: on any number of digits.
std::optional<Found> directPlan(const Grid &grid, const Layout &from, const Layout &to, int64_t elementBytes, const Machine &machine,
                                const SearchOptions &options) {
  Found found;
  found.best = false;
  Layout at = from;
  const auto apply = [&](llvm::function_ref<bool(const Step &)> wanted) {
    for (const Step &step : movesFrom(grid, at, to, elementBytes, machine, options, false)) {
      if (wanted(step)) {
        at = step.after;
        found.price = found.price + priceOf(step, elementBytes, options.cost);
        found.steps.push_back(step);
        return true;
      }
    }
    return false;
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

} // namespace

std::optional<Found> findPlan(const Grid &grid, const Layout &from, const Layout &to, int64_t elementBytes, const Machine &machine,
                              const SearchOptions &options) {
  if (from == to) {
    return Found();
  }
  if (!grid.overlap && grid.digits.size() <= KeyDigits && (grid.even || grid.world <= UnevenRanks)) {
    Searcher searcher(grid, from, to, elementBytes, machine, options);
    std::optional<Found> found = searcher.run();
    if (found || searcher.exhausted) {
      return found;
    }
  }
  return directPlan(grid, from, to, elementBytes, machine, options);
}

} // namespace shardc
