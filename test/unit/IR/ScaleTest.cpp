// Exact factors and what they are made of. Expected values by arithmetic.
#include "shardc/IR/Scale.h"
#include "Catch.h"

using namespace shardc;

TEST_CASE("a scale knows which group sizes it is made of") {
  SourceManager sources;
  DiagnosticEngine diags(sources);
  const ViewSpec dense{"dense", {{"dp", 4, std::nullopt, {}}, {"tp", 2, std::nullopt, {}}}, {}};
  const ViewSpec sparse{"sparse", {{"efsdp", 2, std::nullopt, {}}, {"ep", 4, std::nullopt, {}}}, {}};
  const Axes axes = *Axes::build({8, {}}, {dense, sparse}, {}, diags);
  auto times = [&](Scale s, const char *axis, int32_t power) {
    for (AtomId a : axes.find(axis)->atoms) {
      s.multiplyRanks(axes, a, power);
    }
    return s;
  };
  Scale one;
  CHECK(one.isOne());
  CHECK(one.describe(axes, "dense") == "1");
  CHECK(times(one, "dp", 1).describe(axes, "dense") == "4 (dp)");
  CHECK(times(one, "tp", -1).describe(axes, "dense") == "1/2 (1/tp)");
  CHECK(times(times(one, "dp", 1), "tp", 1).describe(axes, "dense") == "8 (dp * tp)");
  CHECK(times(times(one, "dp", 1), "tp", -1).describe(axes, "dense") == "2 (dp / tp)");
  CHECK(times(times(one, "dp", -1), "tp", -1).describe(axes, "dense") == "1/8 (1 / (dp * tp))");
  CHECK(times(one, "tp", 2).describe(axes, "dense") == "4 (tp * tp)");
  // 4 of dp over 2 of efsdp leaves the half of dp that belongs to ep.
  CHECK(times(times(one, "dp", 1), "efsdp", -1).value == Rational{2, 1});
  CHECK(times(times(times(one, "dp", 1), "tp", 1), "efsdp", -1).describe(axes, "sparse") == "4 (ep)");
  CHECK(times(times(one, "dp", 1), "dp", -1).isOne());
  Scale two = times(one, "dp", 1);
  two.multiply(Rational{3, 2});
  CHECK(two.describe(axes, "dense") == "6 (3 * dp / 2)");
  // Equal numbers are equal scales.
  CHECK(times(one, "tp", 2) == times(one, "dp", 1));
}
