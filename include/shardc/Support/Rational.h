// Rational: an exact ratio of two integers, for scales of gradients. Kept in lowest terms with a positive denominator.
#pragma once

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <numeric>
#include <string>

namespace shardc {

struct Rational {
  int64_t num = 1;
  int64_t den = 1;

  bool operator==(const Rational &) const = default;
  bool isOne() const { return num == 1 && den == 1; }

  // Scales are products of group sizes, all of which divide the world, and of written factors; `valid` turns false where a
  // product leaves 64 bits.
  Rational times(int64_t n, int64_t d) const {
    Rational r;
    int64_t a = std::gcd(num, d), b = std::gcd(n, den);
    a = a ? a : 1;
    b = b ? b : 1;
    r.valid = valid && !__builtin_mul_overflow(num / a, n / b, &r.num) && !__builtin_mul_overflow(den / b, d / a, &r.den);
    if (r.den < 0) {
      r.num = -r.num;
      r.den = -r.den;
    }
    return r;
  }
  Rational times(const Rational &o) const { return times(o.num, o.den); }
  std::string text() const { return den == 1 ? std::to_string(num) : std::to_string(num) + "/" + std::to_string(den); }

  bool valid = true;
};

} // namespace shardc
