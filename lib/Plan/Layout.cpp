// Layout: boxes and what follows from them. See the header.
//
// Where every cut is even, the largest count over ranks has a closed form: two words cut a dimension at compatible places only
// if one begins with the other; otherwise some rank's old and new part are disjoint, and it lacks all of its new one. Uneven
// cuts are counted rank by rank.
#include "shardc/Plan/Layout.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

namespace shardc {
namespace {

int64_t ceilDiv(int64_t m, int64_t n) { return m / n + (m % n != 0); }

Range chunk(Range whole, int64_t n, int64_t i, bool balanced) {
  const int64_t size = whole.size();
  const int64_t length = ceilDiv(size, n);
  const auto bound = [&](int64_t k) {
    return whole.begin + (balanced ? k * (size / n) + std::min(k, size % n) : std::min(size, k * length));
  };
  return {bound(i), bound(i + 1)};
}

bool beginsWith(llvm::ArrayRef<uint8_t> word, llvm::ArrayRef<uint8_t> start) {
  return word.size() >= start.size() && word.take_front(start.size()) == start;
}

// The most ranges of one list that a range of the other meets; both are sorted and cover the same.
int64_t mostParts(llvm::ArrayRef<Range> from, llvm::ArrayRef<Range> to) {
  int64_t most = 0;
  for (const Range &r : to) {
    const auto *first = llvm::partition_point(from, [&](const Range &f) { return f.end <= r.begin; });
    const auto *last = llvm::partition_point(from, [&](const Range &f) { return f.begin < r.end; });
    most = std::max<int64_t>(most, last - first);
  }
  return most;
}

} // namespace

DigitSet Layout::sharded(unsigned dims) const {
  DigitSet set = 0;
  for (unsigned d = 0; d < dims; ++d) {
    for (uint8_t i : dim(d)) {
      set |= DigitSet(1) << i;
    }
  }
  return set;
}

int64_t Grid::elements() const {
  int64_t total = 1;
  for (int64_t e : extents) {
    total *= e;
  }
  return total;
}

int64_t Grid::coordinate(int64_t rank, const Digit &digit) const {
  int64_t at = 0;
  for (const auto &[size, stride] : digit.parts) {
    at = at * size + rank / stride % size;
  }
  return at;
}

int64_t Grid::product(llvm::ArrayRef<uint8_t> list) const {
  int64_t total = 1;
  for (uint8_t i : list) {
    total *= digits[i].size;
  }
  return total;
}

// Ranks that two digits cut in two ways count once.
int64_t Grid::product(DigitSet set) const {
  int64_t total = 1;
  llvm::SmallVector<int64_t, MostDigits> seen;
  for (unsigned i = 0; i < digits.size(); ++i) {
    for (const auto &[size, stride] : digits[i].parts) {
      if ((set >> i & 1) && !(overlap && llvm::is_contained(seen, stride))) {
        total *= size;
        seen.push_back(stride);
      }
    }
  }
  return total;
}

std::string Grid::describe(llvm::ArrayRef<uint8_t> list) const {
  std::string text;
  for (size_t i = 0; i < list.size();) {
    const Digit &digit = digits[list[i]];
    size_t same = 0;
    while (i + same < list.size() && digits[list[i + same]].axis == digit.axis && digits[list[i + same]].part == same) {
      ++same;
    }
    const bool whole = same == digit.partCount;
    text += (text.empty() ? "" : ",") + digit.axis + (whole ? "" : "." + std::to_string(digit.part));
    i += whole ? same : 1;
  }
  return text;
}

std::string Grid::describe(DigitSet set) const {
  llvm::SmallVector<uint8_t, MostDigits> list;
  for (unsigned i = 0; i < digits.size(); ++i) {
    if (set >> i & 1) {
      list.push_back(static_cast<uint8_t>(i));
    }
  }
  return describe(list);
}

Range Grid::range(const Layout &l, unsigned dim, int64_t rank) const {
  Range r{0, extents[dim]};
  for (uint8_t i : l.dim(dim)) {
    r = chunk(r, digits[i].size, coordinate(rank, digits[i]), digits[i].balanced);
  }
  return r;
}

bool Grid::divides(const Layout &l) const {
  for (unsigned d = 0; d < dims(); ++d) {
    if (extents[d] % product(l.dim(d)) != 0) {
      return false;
    }
  }
  return true;
}

int64_t Grid::local(const Layout &l, int64_t rank) const {
  int64_t total = 1;
  for (unsigned d = 0; d < dims(); ++d) {
    total *= even ? extents[d] / product(l.dim(d)) : range(l, d, rank).size();
  }
  return total;
}

// Rank 0 has the first chunk of every dimension, which is the largest.
int64_t Grid::largestLocal(const Layout &l) const { return local(l, 0); }

int64_t Grid::kept(const Layout &from, const Layout &to, int64_t rank) const {
  int64_t total = 1;
  for (unsigned d = 0; d < dims(); ++d) {
    const Range a = range(from, d, rank);
    const Range b = range(to, d, rank);
    total *= std::max<int64_t>(0, std::min(a.end, b.end) - std::max(a.begin, b.begin));
  }
  return total;
}

int64_t Grid::missing(const Layout &from, const Layout &to) const {
  if (!even) {
    int64_t most = 0;
    for (int64_t rank = 0; rank < world; ++rank) {
      most = std::max(most, local(to, rank) - kept(from, to, rank));
    }
    return most;
  }
  int64_t whole = 1;
  int64_t common = 1;
  for (unsigned d = 0; d < dims(); ++d) {
    const llvm::ArrayRef<uint8_t> a = from.dim(d);
    const llvm::ArrayRef<uint8_t> b = to.dim(d);
    whole *= extents[d] / product(b);
    common *= beginsWith(a, b) ? extents[d] / product(a) : beginsWith(b, a) ? extents[d] / product(b) : 0;
  }
  return whole - common;
}

// What the ranks hold of a dimension, in order, without empty ranges.
std::vector<Range> Grid::rangesOf(const Layout &l, unsigned dim) const {
  std::vector<Range> ranges{{0, extents[dim]}};
  for (uint8_t i : l.dim(dim)) {
    std::vector<Range> next;
    for (const Range &whole : ranges) {
      for (int64_t c = 0; c < digits[i].size && whole.size() > 0; ++c) {
        next.push_back(chunk(whole, digits[i].size, c, digits[i].balanced));
      }
    }
    ranges = std::move(next);
  }
  llvm::erase_if(ranges, [](const Range &r) { return r.size() == 0; });
  return ranges;
}

int64_t Grid::peers(const Layout &from, const Layout &to) const {
  if (!even) {
    int64_t most = 1;
    for (unsigned d = 0; d < dims(); ++d) {
      most *= mostParts(rangesOf(from, d), rangesOf(to, d));
    }
    return std::max<int64_t>(0, most - (missing(from, to) == largestLocal(to) ? 0 : 1));
  }
  int64_t parts = 1;
  bool own = true; // a rank's own part is always among them
  for (unsigned d = 0; d < dims(); ++d) {
    const llvm::ArrayRef<uint8_t> a = from.dim(d);
    const llvm::ArrayRef<uint8_t> b = to.dim(d);
    const int64_t m = product(a);
    const int64_t n = product(b);
    int64_t most = 1;
    for (int64_t j = 0; m % n != 0 && n % m != 0 && j < n; ++j) {
      most = std::max(most, ceilDiv((j + 1) * m, n) - j * m / n);
    }
    parts *= m % n == 0 ? m / n : most;
    own &= beginsWith(a, b) || beginsWith(b, a);
  }
  return parts - (own ? 1 : 0);
}

int64_t Grid::bound(const Layout &from, const Layout &to) const {
  const DigitSet reduced = from.partial & ~to.partial;
  // Of the ranks that end with addends, one may receive what the others then need not; and what one of them holds none lacks.
  const int64_t keepers = product(to.partial);
  Layout held = from;
  for (unsigned d = 0; d < dims(); ++d) {
    const auto *cut = llvm::find_if(from.dim(d), [&](uint8_t i) { return to.partial >> i & 1; });
    held.count[d] = static_cast<uint8_t>(cut - from.dim(d).begin());
  }
  const int64_t lacked = missing(held, to);
  if (reduced == 0 || overlap) {
    return ceilDiv(lacked, keepers);
  }
  // Nobody holds a sum at the start. An element has n addends that n - 1 messages bring together, and every further copy of
  // the sum takes one more.
  const int64_t copies = product(all() & ~to.sharded(dims()) & ~to.partial);
  const int64_t messages = product(from.partial & to.partial) * (product(reduced) - 1) + copies - 1;
  const __int128 total = static_cast<__int128>(elements()) * messages;
  const __int128 ranks = product(all());
  return std::max(ceilDiv(largestLocal(to), keepers), static_cast<int64_t>((total + ranks - 1) / ranks));
}

} // namespace shardc
