// Arithmetic modulo 2^61 - 1. Expected values follow from 2^61 being 1 in this field.
#include "shardc/Prove/Field.h"
#include "Catch.h"
#include <vector>

using namespace shardc;

TEST_CASE("products wrap at 2^61") {
  CHECK(multiply(Element(1) << 60, 2) == 1);
  CHECK(multiply(Element(1) << 60, 4) == 2);
  CHECK(multiply(Prime - 1, Prime - 1) == 1);
  CHECK(add(Prime - 1, 1) == 0);
  CHECK(subtract(0, 1) == Prime - 1);
}

TEST_CASE("every element but zero has an inverse") {
  for (Element a : {Element(1), Element(2), Element(3), Element(48), Prime - 1, Prime / 2}) {
    CHECK(multiply(a, inverse(a)) == 1);
  }
  CHECK(inverse(2) == Element(1) << 60);
}

TEST_CASE("integers of either sign become elements") {
  CHECK(fromInteger(0) == 0);
  CHECK(fromInteger(-1) == Prime - 1);
  CHECK(fromInteger(INT64_MIN) == Prime - 4); // 2^63 is 4
  CHECK(fromInteger(INT64_MAX) == 3);
}

TEST_CASE("long sums of the largest products are exact") {
  const std::vector<Element> a(1000, Prime - 1); // each product is (-1)(-1)
  CHECK(dot(a.data(), a.data(), 1000) == 1000);
  CHECK(dot(a.data(), a.data(), 33) == 33);
  CHECK(dot(a.data(), a.data(), 0) == 0);
}

TEST_CASE("elements have the order of the integers that they stand for") {
  CHECK(less(fromInteger(-1), 0));
  CHECK(less(0, 1));
  CHECK(!less(0, 0));
  CHECK(larger(fromInteger(-5), 3) == 3);
  CHECK(smaller(fromInteger(-5), fromInteger(-6)) == fromInteger(-6));
  CHECK(less(LowestElement, HighestElement));
  CHECK(negate(LowestElement) == HighestElement); // negation reverses the order
  for (Element e : {Element(0), Element(7), fromInteger(-7), HighestElement, LowestElement}) {
    CHECK(elementAt(placeInOrder(e)) == e);
  }
}
