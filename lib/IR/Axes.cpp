// Axes: from views to atoms, and the questions that are asked of digits afterwards.
//
// The problem. Several views cut the same ranks into digits. We want few atoms such that every axis of every view is an
// ordered product of atoms; where two views cut at boundaries of which neither divides the other, none exist.
//
// What others do. Re-express a group as a list of ranks (cost grows with the world), or keep one mesh per view and convert
// values at hand-written places.
//
// What we do. A view is the chain of its boundaries: 1, the strides of its digits, the world. A boundary that every other
// boundary divides, or is divided by, can be cut in all views at once: such boundaries delimit the blocks. A block without
// boundaries inside is one atom. Inside any other block some boundaries conflict; the views are then sorted into variants,
// each view joining the first variant with whose boundaries its own still form a chain.
//
// Why it ends and what it costs. Every step is a loop over boundaries, of which there are at most as many as axes; nothing
// depends on the number of ranks, except `groups`, whose answer lists them.
#include "shardc/IR/Axes.h"
#include "AxesBuilder.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

namespace shardc {

namespace {

bool divides(int64_t a, int64_t b) { return b % a == 0; }
bool comparable(int64_t a, int64_t b) { return a <= b ? divides(a, b) : divides(b, a); }

// Sorted boundaries; are they a chain of divisors?
bool isChain(llvm::ArrayRef<int64_t> sorted) {
  for (size_t i = 1; i < sorted.size(); ++i) {
    if (!divides(sorted[i - 1], sorted[i])) {
      return false;
    }
  }
  return true;
}

void sortUnique(std::vector<int64_t> &v) {
  llvm::sort(v);
  v.erase(std::unique(v.begin(), v.end()), v.end());
}

} // namespace

// -- Refinement ---------------------------------------------------------------------------------------------------------

void Axes::Builder::refine() {
  if (digits.empty()) {
    return; // no vocabulary: nothing can be said of any rank
  }
  std::vector<int64_t> all = {1, axes.worldSize};
  for (const std::vector<Digit> &view : digits) {
    for (const Digit &d : view) {
      if (d.size > 1) {
        all.push_back(d.stride);
      }
    }
  }
  sortUnique(all);
  std::vector<int64_t> cuts;
  for (int64_t b : all) {
    if (llvm::all_of(all, [&](int64_t other) { return comparable(b, other); })) {
      cuts.push_back(b);
    }
  }
  // Outermost first, so that sorted ids read like the ranks.
  for (size_t i = cuts.size(); i-- > 1;) {
    addBlock(cuts[i - 1], cuts[i]);
  }
}

void Axes::Builder::addBlock(int64_t low, int64_t high) {
  const auto block = static_cast<uint32_t>(axes.blocks.size());
  std::vector<std::vector<int64_t>> variants; // boundaries strictly inside, sorted
  for (size_t v = 0; v < digits.size(); ++v) {
    std::vector<int64_t> inside;
    for (const Digit &d : digits[v]) {
      if (d.size > 1 && low < d.stride && d.stride < high) {
        inside.push_back(d.stride);
      }
    }
    auto joins = [&](std::vector<int64_t> &variant) {
      std::vector<int64_t> both = variant;
      both.insert(both.end(), inside.begin(), inside.end());
      sortUnique(both);
      if (!isChain(both)) {
        return false;
      }
      variant = std::move(both);
      return true;
    };
    auto it = llvm::find_if(variants, joins);
    variantOf[v].push_back(static_cast<uint32_t>(it - variants.begin()));
    if (it == variants.end()) {
      sortUnique(inside);
      variants.push_back(inside);
    }
  }
  axes.blocks.emplace_back();
  for (uint32_t variant = 0; variant < variants.size(); ++variant) {
    std::vector<int64_t> bounds = variants[variant];
    bounds.insert(bounds.begin(), low);
    bounds.push_back(high);
    axes.blocks.back().emplace_back();
    for (size_t i = bounds.size(); i-- > 1;) {
      axes.blocks.back().back().push_back(AtomId(axes.atomList.size()));
      axes.atomList.push_back({bounds[i] / bounds[i - 1], bounds[i - 1], block, variant});
    }
  }
}

llvm::SmallVector<AtomId, 4> Axes::Builder::atomsOf(size_t view, const Digit &digit) const {
  llvm::SmallVector<AtomId, 4> atoms;
  if (digit.size == 1) {
    return atoms;
  }
  for (uint32_t block = 0; block < axes.blocks.size(); ++block) {
    for (AtomId id : axes.blocks[block][variantOf[view][block]]) {
      const Atom &atom = axes.atom(id);
      if (atom.stride >= digit.stride && atom.stride < digit.stride * digit.size) {
        atoms.push_back(id);
      }
    }
  }
  return atoms;
}

std::optional<Axes> Axes::build(Located<int64_t> world, llvm::ArrayRef<ViewSpec> views, llvm::ArrayRef<FlatSpec> flats,
                                DiagnosticEngine &diags) {
  Builder builder(diags);
  if (!builder.readViews(world, views)) {
    return std::nullopt;
  }
  builder.refine();
  builder.nameAxes();
  if (!builder.nameFlats(flats)) {
    return std::nullopt;
  }
  return std::move(builder.axes);
}

// -- Questions ----------------------------------------------------------------------------------------------------------

const Axis *Axes::find(llvm::StringRef name) const {
  auto it = llvm::find_if(axisList, [&](const Axis &a) { return a.name == name; });
  return it == axisList.end() ? nullptr : &*it;
}

std::vector<llvm::StringRef> Axes::axisNames() const {
  std::vector<llvm::StringRef> names;
  for (const Axis &axis : axisList) {
    names.push_back(axis.name);
  }
  return names;
}

bool Axes::isStage(AtomId atom) const {
  return llvm::any_of(axisList, [&](const Axis &a) { return a.stage && llvm::is_contained(a.atoms, atom); });
}

int64_t Axes::product(llvm::ArrayRef<AtomId> atoms) const {
  int64_t n = 1;
  for (AtomId id : atoms) {
    n *= atom(id).size; // at most the world: atoms of one value are digits of its rank
  }
  return n;
}

int64_t Axes::coordinate(int64_t rank, llvm::ArrayRef<AtomId> atoms) const {
  int64_t c = 0;
  for (AtomId id : atoms) {
    c = c * atom(id).size + coordinate(rank, id);
  }
  return c;
}

std::vector<std::vector<int64_t>> Axes::groups(llvm::ArrayRef<AtomId> atoms) const {
  std::vector<int64_t> offsets = {0};
  for (AtomId id : atoms) {
    std::vector<int64_t> next;
    for (int64_t offset : offsets) {
      for (int64_t i = 0; i < atom(id).size; ++i) {
        next.push_back(offset + i * atom(id).stride);
      }
    }
    offsets = std::move(next);
  }
  std::vector<std::vector<int64_t>> result;
  for (int64_t rank = 0; rank < worldSize; ++rank) {
    if (llvm::all_of(atoms, [&](AtomId id) { return coordinate(rank, id) == 0; })) {
      std::vector<int64_t> &group = result.emplace_back();
      for (int64_t offset : offsets) {
        group.push_back(rank + offset);
      }
    }
  }
  return result;
}

llvm::ArrayRef<AtomId> Axes::blockAtoms(uint32_t block, uint32_t variant) const { return blocks[block][variant]; }

uint32_t Axes::variantCount(uint32_t block) const { return static_cast<uint32_t>(blocks[block].size()); }

std::optional<llvm::SmallVector<AtomId, 4>> Axes::recut(llvm::ArrayRef<AtomId> atoms, uint32_t block, uint32_t variant) const {
  auto inBlock = [&](AtomId id) { return atom(id).block == block; };
  const auto *first = llvm::find_if(atoms, inBlock);
  if (first == atoms.end()) {
    return std::nullopt;
  }
  llvm::ArrayRef<AtomId> whole = blockAtoms(block, atom(*first).variant);
  const auto begin = static_cast<size_t>(first - atoms.begin());
  if (atoms.drop_front(begin).take_front(whole.size()) != whole || llvm::any_of(atoms.drop_front(begin + whole.size()), inBlock)) {
    return std::nullopt;
  }
  llvm::SmallVector<AtomId, 4> result(atoms.begin(), first);
  llvm::append_range(result, blockAtoms(block, variant));
  llvm::append_range(result, atoms.drop_front(begin + whole.size()));
  return result;
}

// -- Names --------------------------------------------------------------------------------------------------------------

namespace {

// The axis whose atoms are the longest prefix of `rest`, among those that `eligible` admits.
template <class Pred> const Axis *longestPrefix(llvm::ArrayRef<Axis> axes, llvm::ArrayRef<AtomId> rest, Pred eligible) {
  const Axis *best = nullptr;
  for (const Axis &axis : axes) {
    const size_t n = axis.atoms.size();
    if (n != 0 && eligible(axis) && rest.take_front(n) == llvm::ArrayRef(axis.atoms) && (!best || n > best->atoms.size())) {
      best = &axis;
    }
  }
  return best;
}

bool names(const ViewSpec &view, const Axis &axis) {
  return !axis.flattened && llvm::any_of(view.axes, [&](const AxisSpec &a) { return a.name == axis.name; });
}

} // namespace

std::string Axes::describe(llvm::ArrayRef<AtomId> atoms, llvm::StringRef view) const {
  std::vector<const ViewSpec *> order;
  for (const ViewSpec &v : viewList) {
    order.push_back(&v);
  }
  std::stable_partition(order.begin(), order.end(), [&](const ViewSpec *v) { return v->name == view; });
  std::string text;
  while (!atoms.empty()) {
    const Axis *axis = nullptr;
    for (size_t i = 0; i < order.size() && !axis; ++i) {
      axis = longestPrefix(axisList, atoms, [&](const Axis &a) { return names(*order[i], a); });
    }
    if (!axis) {
      axis = longestPrefix(axisList, atoms, [](const Axis &a) { return a.flattened; });
    }
    text += text.empty() ? "" : ",";
    if (axis) {
      text += axis->name;
      atoms = atoms.drop_front(axis->atoms.size());
      continue;
    }
    text += describeDigit(atoms.front(), order);
    atoms = atoms.drop_front();
  }
  return text;
}

// An atom that no axis names alone: its place in the first axis that holds it, in the order of `views`.
std::string Axes::describeDigit(AtomId atom, llvm::ArrayRef<const ViewSpec *> views) const {
  for (const ViewSpec *view : views) {
    for (const Axis &axis : axisList) {
      const auto *it = llvm::find(axis.atoms, atom);
      if (it != axis.atoms.end() && names(*view, axis)) {
        return axis.name + "." + std::to_string(it - axis.atoms.begin());
      }
    }
  }
  return "rank/" + std::to_string(atomList[atom.index].stride); // unreachable: every atom belongs to an axis of a view
}

std::optional<llvm::SmallVector<AtomId, 4>> Axes::findAtoms(llvm::StringRef name) const {
  if (const Axis *axis = find(name)) {
    return axis->atoms;
  }
  auto [axisName, digit] = name.rsplit('.');
  const Axis *axis = find(axisName);
  size_t index = 0;
  if (!axis || digit.getAsInteger(10, index) || index >= axis->atoms.size()) {
    return std::nullopt;
  }
  return llvm::SmallVector<AtomId, 4>{axis->atoms[index]};
}

} // namespace shardc
