// Field: arithmetic modulo the prime 2^61 - 1, and keyed random functions in it.
//
// Values of the proof are elements of this field, not floats: sums, products and divisions are exact and do not depend on
// order, so parallel and sequential results are compared with ==, and a factor of n cannot hide in a tolerance. A nonlinear
// function is a keyed hash: equal arguments give equal values, different ones independent values.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardc {

using Element = uint64_t; // always less than Prime
constexpr Element Prime = (Element(1) << 61) - 1;

// x < 2^62 brought below Prime.
constexpr Element reduceOnce(Element x) { return x >= Prime ? x - Prime : x; }
// Any 128-bit number: 2^61 is 1, so the digits to base 2^61 are added.
constexpr Element reduce(unsigned __int128 x) {
  const Element low = static_cast<Element>(x) & Prime;
  const Element middle = static_cast<Element>(x >> 61) & Prime;
  const Element high = static_cast<Element>(x >> 122);
  return reduceOnce(reduceOnce(low + middle) + high);
}
constexpr Element add(Element a, Element b) { return reduceOnce(a + b); }
constexpr Element negate(Element a) { return a == 0 ? 0 : Prime - a; }
constexpr Element subtract(Element a, Element b) { return add(a, negate(b)); }
constexpr Element multiply(Element a, Element b) { return reduce(static_cast<unsigned __int128>(a) * b); }
constexpr Element power(Element a, uint64_t e) {
  Element result = 1;
  for (; e != 0; e >>= 1, a = multiply(a, a)) {
    result = (e & 1) != 0 ? multiply(result, a) : result;
  }
  return result;
}
// Fermat: a^(p-2). The inverse of 0 is 0.
constexpr Element inverse(Element a) { return power(a, Prime - 2); }
constexpr Element fromInteger(int64_t n) {
  return n < 0 ? negate(reduce(static_cast<unsigned __int128>(-(n + 1)) + 1)) : reduce(static_cast<unsigned __int128>(n));
}

// Elements in the order of the integers from -(p - 1)/2 to (p - 1)/2 that they stand for: negation reverses it.
constexpr Element HighestElement = Prime / 2;
constexpr Element LowestElement = HighestElement + 1;
constexpr Element placeInOrder(Element a) { return add(a, HighestElement); }
constexpr Element elementAt(Element place) { return subtract(place, HighestElement); }
constexpr bool less(Element a, Element b) { return placeInOrder(a) < placeInOrder(b); }
constexpr Element larger(Element a, Element b) { return less(a, b) ? b : a; }
constexpr Element smaller(Element a, Element b) { return less(b, a) ? b : a; }

// sum of a[i] * b[i]. 32 products of 122 bits fit into 128 bits.
inline Element dot(const Element *a, const Element *b, size_t n) {
  Element total = 0;
  while (n != 0) {
    const size_t run = n < 32 ? n : 32;
    unsigned __int128 sum = 0;
    for (size_t i = 0; i < run; ++i) {
      sum += static_cast<unsigned __int128>(a[i]) * b[i];
    }
    total = add(total, reduce(sum));
    a += run;
    b += run;
    n -= run;
  }
  return total;
}

// A well mixed 64-bit word (the finalizer of SplitMix64).
constexpr uint64_t mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9;
  x ^= x >> 27;
  x *= 0x94d049bb133111eb;
  return x ^ (x >> 31);
}
// A keyed function of words. Elements are uniform but for one value in 2^61.
constexpr uint64_t keyedWord(uint64_t key, uint64_t a) {
  return mix(mix(key + 0x9e3779b97f4a7c15) ^ (a * 0xd6e8feb86659fd93 + 0x2545f4914f6cdd1d));
}
constexpr Element keyed(uint64_t key, uint64_t a) { return reduceOnce(keyedWord(key, a) >> 3); }
constexpr Element keyed(uint64_t key, uint64_t a, uint64_t b) { return keyed(keyedWord(key, a), b); }
constexpr Element keyed(uint64_t key, uint64_t a, uint64_t b, uint64_t c) { return keyed(keyedWord(keyedWord(key, a), b), c); }

} // namespace shardc
