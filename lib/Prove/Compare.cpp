// Compare: is a value on all ranks what its type says of the whole?
//
// Per rank the slice of the reference is cut out; on axes where the value is partial, what the group's ranks hold is added
// up (or averaged, or the extremum taken) first. Ranks that differ only on axes of R or I must hold the same, for every
// coordinate of the others: equality after the sum is not enough.
#include "Tensor.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

namespace shardc {
namespace {

class Comparison {
public:
  Comparison(const Spread &v, const Tensor &w, const Type &t, const Ranks &r, const Module &m)
      : value(v), whole(w), type(t), ranks(r), module(m), axes(m.axes) {}

  std::string run() {
    for (AtomId a : activeAtoms(type)) {
      const State s = stateOf(type, a);
      varying |= s == State::V;
      if (s == State::PMax || s == State::PMin) {
        mixed |= !partial.empty() && s != kind;
        kind = s;
        partial.push_back(a);
      } else if (isPartial(s)) {
        sums.push_back(a);
        mean *= s == State::PAvg ? axes.atom(a).size : 1;
      }
    }
    partial.append(sums); // addends stand next to one another: they are added up before an extremum is taken
    std::string wrong = replicas();
    if (wrong.empty() && !varying) {
      wrong = mixed ? "it is partial in two ways" : slices();
    }
    return wrong;
  }

private:
  // Ranks with equal coordinates on every axis that is not R or I hold the same.
  std::string replicas() const {
    llvm::SmallVector<AtomId, 8> telling;
    for (AtomId a : activeAtoms(type)) {
      if (stateOf(type, a) != State::I) {
        telling.push_back(a);
      }
    }
    std::map<std::vector<int64_t>, size_t> first;
    for (size_t i = 0; i < ranks.list.size(); ++i) {
      std::vector<int64_t> key;
      for (AtomId a : telling) {
        key.push_back(axes.coordinate(ranks.list[i], a));
      }
      const auto [it, isNew] = first.try_emplace(key, i);
      const Tensor &one = value.ranks[it->second];
      const Tensor &other = value.ranks[i];
      if (!isNew && (one.data != other.data || (one.slots && other.slots && *one.slots != *other.slots))) {
        return llvm::formatv("ranks {0} and {1} should hold the same and do not", ranks.list[it->second], ranks.list[i]).str();
      }
    }
    return "";
  }

  std::string slices() const {
    for (const std::vector<size_t> &group : ranks.groups(partial)) {
      const int64_t rank = ranks.list[group[0]];
      const std::optional<Tensor> part = whole.slots ? cutSlots(whole, type, rank, module) : cut(whole, type, rank, axes);
      if (!part) {
        return "its shape is not that of one device";
      }
      const Tensor held = combined(group);
      if (held.data.size() != part->data.size() || (held.slots && *held.slots != *part->slots)) {
        return llvm::formatv("rank {0} holds {1} elements where its part has {2}", rank, held.data.size(), part->data.size()).str();
      }
      if (const std::optional<size_t> at = firstDifference(held, *part, rank)) {
        return llvm::formatv("rank {0} holds other values than its part of the result of one device, first at element {1}", rank, *at)
            .str();
      }
    }
    return "";
  }

  // What the ranks of a group hold together; nothing adds up where shapes differ, which the sizes then show.
  Tensor combined(llvm::ArrayRef<size_t> group) const {
    const auto addends = static_cast<size_t>(axes.product(sums));
    const Element share = inverse(fromInteger(mean));
    Tensor out;
    for (size_t first = 0; first < group.size(); first += addends) {
      Tensor sum = value.ranks[group[first]];
      for (size_t i : group.slice(first + 1, addends - 1)) {
        const Tensor &next = value.ranks[i];
        if (next.data.size() != sum.data.size() || (sum.slots && next.slots && *sum.slots != *next.slots)) {
          sum.data.clear();
          return sum;
        }
        for (size_t e = 0; e < sum.data.size(); ++e) {
          sum.data[e] = add(sum.data[e], next.data[e]);
        }
      }
      for (Element &e : sum.data) {
        e = mean == 1 ? e : multiply(e, share);
      }
      for (size_t e = 0; first != 0 && e < sum.data.size() && e < out.data.size(); ++e) {
        sum.data[e] = kind == State::PMax ? larger(sum.data[e], out.data[e]) : smaller(sum.data[e], out.data[e]);
      }
      out = std::move(sum);
    }
    return out;
  }

  // What stands in a pad of unknown content is not compared.
  std::optional<size_t> firstDifference(const Tensor &held, const Tensor &part, int64_t rank) const {
    const std::vector<std::vector<bool>> unknown = unknownPads(rank);
    for (size_t e = 0; e < held.data.size(); ++e) {
      if (held.data[e] == part.data[e]) {
        continue;
      }
      bool pad = false;
      size_t rest = e;
      for (size_t d = part.dims.size(); d-- > 0 && !unknown.empty();) {
        const auto extent = static_cast<size_t>(part.extent(d));
        pad |= !unknown[d].empty() && unknown[d][rest % extent];
        rest /= extent;
      }
      if (!pad) {
        return e;
      }
    }
    return std::nullopt;
  }

  std::vector<std::vector<bool>> unknownPads(int64_t rank) const {
    std::vector<std::vector<bool>> out;
    bool any = false;
    for (const Dim &dim : type.dims) {
      std::vector<bool> marks(1, false);
      bool here = false;
      for (const Factor &f : dim.concat || whole.slots ? llvm::ArrayRef<Factor>() : llvm::ArrayRef<Factor>(dim.factors)) {
        const Range r = localRange(f, rank, axes);
        std::vector<bool> next;
        for (bool mark : marks) {
          for (int64_t i = r.begin; i < r.end; ++i) {
            next.push_back(mark || (f.pad == Pad::Unknown && i >= f.extent));
          }
        }
        here |= f.pad == Pad::Unknown;
        marks = std::move(next);
      }
      any |= here;
      out.push_back(here ? marks : std::vector<bool>());
    }
    return any ? out : std::vector<std::vector<bool>>();
  }

  const Spread &value;
  const Tensor &whole;
  const Type &type;
  const Ranks &ranks;
  const Module &module;
  const Axes &axes;
  llvm::SmallVector<AtomId, 4> partial, sums;
  State kind = State::P;
  int64_t mean = 1; // of sums: the number of ranks that a mean is taken over
  bool varying = false;
  bool mixed = false;
};

} // namespace

std::string compareSpread(const Spread &value, const Tensor &whole, const Type &type, const Ranks &ranks, const Module &module) {
  return Comparison(value, whole, type, ranks, module).run();
}

} // namespace shardc
