// Scale: an exact factor, and which group sizes it is made of: 4, which is `dp`.
//
// Two scales are equal if their numbers are. The group sizes are kept for people: they say where a factor came from.
#pragma once

#include "shardc/IR/Axes.h"
#include "shardc/Support/Rational.h"

namespace shardc {

struct Scale {
  Rational value;
  llvm::SmallVector<std::pair<AtomId, int32_t>, 2> powers; // sorted by atom, none of them 0

  bool operator==(const Scale &o) const { return value == o.value; }
  operator Rational() const { return value; } // where only the number counts
  bool isOne() const { return value.isOne(); }
  std::string text() const { return value.text(); } // "4", "1/2"

  void multiply(const Rational &r) { value = value.times(r); }
  void multiply(const Scale &o);
  // Times the number of ranks on an atom (power 1), or divided by it (power -1).
  void multiplyRanks(const Axes &axes, AtomId atom, int32_t power);
  // "dp", "1/tp", "2 * dp / ep"; "" if no group size is in it.
  std::string formula(const Axes &axes, llvm::StringRef view) const;
  // "4" or "4 (dp)".
  std::string describe(const Axes &axes, llvm::StringRef view) const;

private:
  void addPower(AtomId atom, int32_t power);
};

} // namespace shardc
