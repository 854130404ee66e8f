// Moves: what one step can do to a layout (docs/plan.md, "Steps").
//
// Each is a row of Changes.def over several digits at once. Digits that move together may arrive in any order: the same
// collective with another map from chunks to ranks. All orders of up to four are tried; of more, the order they stand in, its
// reverse and the target's.
#include "shardc/Plan/Search.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include <algorithm>

namespace shardc {
namespace {

using List = llvm::SmallVector<uint8_t, MostDigits>;

DigitSet setOf(llvm::ArrayRef<uint8_t> list) {
  DigitSet set = 0;
  for (uint8_t i : list) {
    set |= DigitSet(1) << i;
  }
  return set;
}

List listOf(DigitSet set) {
  List list;
  for (uint8_t i = 0; set >> i; ++i) {
    if (set >> i & 1) {
      list.push_back(i);
    }
  }
  return list;
}

class Mover {
public:
  Mover(const Grid &g, const Layout &f, const Layout &t, int64_t b, const Machine &m, const SearchOptions &o,
        llvm::function_ref<void(const Step &)> v)
      : grid(g), from(f), target(t), elementBytes(b), machine(m), options(o), visit(v), local(g.largestLocal(f)) {}

  void run(Permutes permutes) {
    if (permutes != Permutes::None) {
      permute(permutes);
      return;
    }
    slices();
    for (unsigned d = 0; d < grid.dims(); ++d) {
      for (unsigned n = 1; n <= from.count[d]; ++n) {
        suffix(d, n);
      }
    }
    reductions();
    addends();
    if (options.exchange) {
      exchange();
    }
  }

private:
  void add(StepKind kind, DigitSet group, const Layout &after, int64_t elements) {
    if (grid.even && !grid.divides(after)) {
      return;
    }
    Step s{kind, group, after, elements};
    const int64_t n = grid.product(group);
    const int64_t bytes = elements * elementBytes;
    switch (kind) {
    case StepKind::AllGather:
    case StepKind::ReduceScatter:
      s.time = machine.ring(grid, group, n - 1, bytes);
      break;
    case StepKind::AllReduce:
      s.time = machine.ring(grid, group, 2 * (n - 1), bytes);
      break;
    case StepKind::AllToAll:
      s.time = machine.pairwise(grid, group, n - 1, bytes);
      break;
    case StepKind::Permute:
      s.time = machine.pairwise(grid, group, 1, bytes);
      break;
    case StepKind::Exchange:
      s.time = machine.pairwise(grid, group, grid.peers(from, after), bytes);
      break;
    case StepKind::Slice:
    case StepKind::KeepFirst:
    case StepKind::ZeroFill:
    case StepKind::Scale:
      break;
    }
    visit(s);
  }

  void slices() {
    const DigitSet free = grid.all() & ~from.sharded(grid.dims()) & ~from.partial;
    for (uint8_t i : listOf(free)) {
      for (unsigned d = 0; d < grid.dims(); ++d) {
        Layout after = from;
        after.append(d, i);
        add(StepKind::Slice, DigitSet(1) << i, after, 0);
      }
    }
  }

  // The target's order of some digits that it has in one dimension; otherwise as they stand.
  List targetOrder(llvm::ArrayRef<uint8_t> list) const {
    for (unsigned d = 0; d < grid.dims(); ++d) {
      List order;
      llvm::copy_if(target.dim(d), std::back_inserter(order), [&](uint8_t i) { return llvm::is_contained(list, i); });
      if (order.size() == list.size()) {
        return order;
      }
    }
    return List(list);
  }

  template <typename Fn> void forOrders(llvm::ArrayRef<uint8_t> list, Fn fn) const {
    List order(list);
    if (order.size() <= 4) {
      llvm::sort(order);
      do {
        fn(order);
      } while (std::next_permutation(order.begin(), order.end()));
      return;
    }
    fn(order);
    std::reverse(order.begin(), order.end());
    fn(order);
    fn(targetOrder(list));
  }

  void suffix(unsigned d, unsigned n) {
    const List moved(from.dim(d).take_back(n));
    Layout without = from;
    without.count[d] -= n;
    std::fill(without.word[d].begin() + without.count[d], without.word[d].end(), 0);
    const DigitSet group = setOf(moved);
    add(StepKind::AllGather, group, without, received(without));
    if (n == 1 && options.zeroFill && (group & target.partial)) {
      Layout filled = without;
      filled.partial |= group;
      add(StepKind::ZeroFill, group, filled, 0);
    }
    for (unsigned to = 0; to < grid.dims(); ++to) {
      if (to != d) {
        forOrders(moved, [&](llvm::ArrayRef<uint8_t> order) { toEnd(StepKind::AllToAll, without, to, order); });
      }
    }
  }

  int64_t received(const Layout &after) const { return grid.missing(from, after); }

  void toEnd(StepKind kind, const Layout &without, unsigned dim, llvm::ArrayRef<uint8_t> order) {
    Layout after = without;
    for (uint8_t i : order) {
      after.append(dim, i);
    }
    const DigitSet group = setOf(order);
    add(kind, group, after, kind == StepKind::AllToAll ? received(after) : reduced(after, grid.product(group)));
  }

  // Of a reduce-scatter: a rank receives its part n - 1 times, and sends all but its part.
  int64_t reduced(const Layout &after, int64_t n) const {
    int64_t most = 0;
    for (int64_t rank = 0; rank < (grid.even ? 1 : grid.world); ++rank) {
      const int64_t part = grid.local(after, rank);
      most = std::max({most, (n - 1) * part, grid.local(from, rank) - part});
    }
    return most;
  }

  void reductions() {
    for (DigitSet group = from.partial; group; group = (group - 1) & from.partial) {
      Layout after = from;
      after.partial &= ~group;
      const int64_t n = grid.product(group);
      add(StepKind::AllReduce, group, after, (2 * (n - 1) * local + n - 1) / n);
      for (unsigned d = 0; d < grid.dims(); ++d) {
        forOrders(listOf(group), [&](llvm::ArrayRef<uint8_t> order) { toEnd(StepKind::ReduceScatter, after, d, order); });
      }
    }
  }

  void addends() {
    const DigitSet wanted = target.partial & ~from.partial & ~from.sharded(grid.dims());
    for (uint8_t i : listOf(wanted)) {
      Layout after = from;
      after.partial |= DigitSet(1) << i;
      add(StepKind::KeepFirst, DigitSet(1) << i, after, 0);
    }
  }

  void exchange() {
    if (from.partial & ~target.partial) {
      return; // reduce first
    }
    Layout after = target;
    after.partial = from.partial;
    if (after == from || (after.sharded(grid.dims()) & from.partial)) {
      return;
    }
    DigitSet group = 0;
    for (unsigned d = 0; d < grid.dims(); ++d) {
      const llvm::ArrayRef<uint8_t> a = from.dim(d);
      const llvm::ArrayRef<uint8_t> b = after.dim(d);
      size_t same = 0;
      while (same < a.size() && same < b.size() && a[same] == b[same]) {
        ++same;
      }
      group |= setOf(a.drop_front(same)) | setOf(b.drop_front(same));
    }
    add(StepKind::Exchange, group, after, received(after));
  }

  // Every layout whose dimensions are cut into as many parts, by any digits; or by any of a node.
  void permute(Permutes permutes) {
    fixed = permutes == Permutes::Near ? machine.far(grid) : 0;
    farDigits = permutes == Permutes::Far ? machine.far(grid) : 0;
    other.partial = 0;
    other.count.fill(0);
    for (auto &word : other.word) {
      word.fill(0);
    }
    fillDim(0, 1, 0, grid.product(from.partial));
  }

  void fillDim(unsigned dim, int64_t parts, DigitSet used, int64_t addends) {
    if (dim == grid.dims()) {
      choosePartial(0, 1, 0, used, addends);
      return;
    }
    const int64_t wanted = grid.product(from.dim(dim));
    if (parts == wanted) {
      fillDim(dim + 1, 1, used, addends);
      return;
    }
    for (unsigned i = 0; i < grid.digits.size(); ++i) {
      if (!(used >> i & 1) && wanted % (parts * grid.digits[i].size) == 0 && stays(dim, i)) {
        other.append(dim, static_cast<uint8_t>(i));
        fillDim(dim, parts * grid.digits[i].size, used | DigitSet(1) << i, addends);
        other.word[dim][--other.count[dim]] = 0;
      }
    }
  }

  void choosePartial(unsigned first, int64_t parts, DigitSet chosen, DigitSet used, int64_t addends) {
    if (parts == addends) {
      other.partial = chosen;
      const DigitSet group = changed(other);
      const bool kept = (fixed & (group | (other.partial ^ from.partial))) == 0;
      if (group && kept && (!farDigits || (group & farDigits))) {
        add(StepKind::Permute, group, other, local);
      }
      return;
    }
    for (unsigned i = first; i < grid.digits.size(); ++i) {
      const bool stayed = !(fixed >> i & 1) || (from.partial >> i & 1);
      if (!(used >> i & 1) && stayed && addends % (parts * grid.digits[i].size) == 0) {
        choosePartial(i + 1, parts * grid.digits[i].size, chosen | DigitSet(1) << i, used, addends);
      }
    }
  }

  // A digit that is to stay may be put only where it stood, and nothing else there.
  bool stays(unsigned dim, unsigned digit) const {
    const unsigned p = other.count[dim];
    const bool was = p < from.count[dim];
    const bool here = was && from.word[dim][p] == digit;
    return here || !(fixed >> digit & 1 || (was && fixed >> from.word[dim][p] & 1));
  }

  DigitSet changed(const Layout &after) const {
    DigitSet group = from.partial ^ after.partial;
    for (unsigned d = 0; d < grid.dims(); ++d) {
      for (unsigned p = 0; p < std::max(from.count[d], after.count[d]); ++p) {
        const bool a = p < from.count[d];
        const bool b = p < after.count[d];
        if (!a || !b || from.word[d][p] != after.word[d][p]) {
          group |= (a ? DigitSet(1) << from.word[d][p] : 0) | (b ? DigitSet(1) << after.word[d][p] : 0);
        }
      }
    }
    return group;
  }

  const Grid &grid;
  const Layout &from;
  const Layout &target;
  int64_t elementBytes;
  const Machine &machine;
  const SearchOptions &options;
  llvm::function_ref<void(const Step &)> visit;
  int64_t local;
  Layout other;
  DigitSet farDigits = 0;
  DigitSet fixed = 0; // digits that a permute leaves where they are
};

} // namespace

llvm::StringRef stepName(StepKind k) {
  switch (k) {
  case StepKind::Slice:
    return "slice";
  case StepKind::AllGather:
    return "all-gather";
  case StepKind::AllToAll:
    return "all-to-all";
  case StepKind::Permute:
    return "permute";
  case StepKind::ReduceScatter:
    return "reduce-scatter";
  case StepKind::AllReduce:
    return "all-reduce";
  case StepKind::KeepFirst:
    return "keep on one rank";
  case StepKind::ZeroFill:
    return "fill with zeros";
  case StepKind::Exchange:
    return "all-to-all-v";
  case StepKind::Scale:
    return "scale";
  }
  return "";
}

bool communicates(StepKind k) {
  return k != StepKind::Slice && k != StepKind::KeepFirst && k != StepKind::ZeroFill && k != StepKind::Scale;
}

Price priceOf(const Step &step, int64_t elementBytes, CostKind cost) {
  const double launched = communicates(step.kind) ? 1 : 0;
  const double bytes = static_cast<double>(step.elements) * static_cast<double>(elementBytes);
  switch (cost) {
  case CostKind::Time:
    return {step.time, launched};
  case CostKind::Bytes:
    return {bytes, launched};
  case CostKind::Steps:
    return {launched, bytes};
  }
  return {};
}

void forMoves(const Grid &grid, const Layout &from, const Layout &target, int64_t elementBytes, const Machine &machine,
              const SearchOptions &options, Permutes permutes, llvm::function_ref<void(const Step &)> visit) {
  Mover(grid, from, target, elementBytes, machine, options, visit).run(permutes);
}

} // namespace shardc
