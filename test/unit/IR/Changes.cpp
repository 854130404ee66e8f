// Changes: facts about the table as a whole, and the cost of single rows.
#include "shardc/IR/Changes.h"
#include "Catch.h"

using namespace shardc;

namespace {

// The gradient's state for a value's state (the table of section 2), by itself rather than through `dual`.
std::optional<State> gradientState(State s) {
  switch (s) {
  case State::R:
    return State::P;
  case State::P:
  case State::PAvg:
    return State::R;
  case State::I:
  case State::S:
  case State::V:
    return s;
  case State::PMax:
  case State::PMin:
    return std::nullopt;
  }
  return std::nullopt;
}

} // namespace

TEST_CASE("the gradient of a change goes from the dual of its end to the dual of its beginning") {
  for (const ChangeRow &row : changeRows()) {
    INFO(stateName(row.from).str() << " -> " << stateName(row.to).str());
    const auto from = gradientState(row.to);
    const auto to = gradientState(row.from);
    REQUIRE(row.gradient.has_value() == (from && to));
    if (row.gradient) {
      CHECK(row.gradient->first == *from);
      CHECK(row.gradient->second == *to);
      CHECK(findChange(*from, *to) != nullptr);
    }
    CHECK(row.gradientOverN == (row.from == State::PAvg));
  }
}

TEST_CASE("no change stands in the table twice, and none does nothing") {
  for (const ChangeRow &row : changeRows()) {
    CHECK(findChange(row.from, row.to) == &row);
    CHECK((row.from != row.to || row.from == State::S));
  }
  CHECK(findChange(State::V, State::R) == nullptr);
  CHECK(findChange(State::R, State::PAvg) == nullptr);
}

TEST_CASE("a change and its gradient twice is the change again") {
  for (const ChangeRow &row : changeRows()) {
    if (row.gradient && row.from != State::PAvg) {
      const ChangeRow *back = findChange(row.gradient->first, row.gradient->second);
      REQUIRE(back);
      CHECK(back->gradient == std::pair(row.from, row.to));
    }
  }
}

TEST_CASE("rows move data as the ring algorithms do") {
  auto cost = [](State from, State to) { return findChange(from, to)->cost(4, 1000); };
  CHECK(findChange(State::P, State::R)->primitive == Primitive::AllReduce);
  CHECK(cost(State::P, State::R).steps == 6);
  CHECK(cost(State::P, State::R).bytes == 1500);
  CHECK(findChange(State::P, State::S)->primitive == Primitive::ReduceScatter);
  CHECK(cost(State::P, State::S).steps == 3);
  CHECK(cost(State::P, State::S).bytes == 750);
  CHECK(findChange(State::S, State::R)->primitive == Primitive::AllGather);
  CHECK(cost(State::S, State::R).bytes == 3000);
  CHECK(findChange(State::S, State::S)->primitive == Primitive::AllToAll);
  CHECK(cost(State::S, State::S).steps == 3);
  CHECK(cost(State::S, State::S).bytes == 750);
  CHECK(findChange(State::R, State::S)->primitive == Primitive::Slice);
  CHECK(findChange(State::I, State::S)->primitive == Primitive::Slice);
  CHECK(findChange(State::S, State::P)->primitive == Primitive::ZeroFill);
  CHECK(findChange(State::R, State::P)->primitive == Primitive::KeepFirst);
  CHECK(findChange(State::PMax, State::R)->primitive == Primitive::AllReduceMax);
  CHECK(findChange(State::PMin, State::R)->primitive == Primitive::AllReduceMin);
  CHECK(findChange(State::PAvg, State::R)->primitive == Primitive::AllReduceMean);
  for (const ChangeRow &row : changeRows()) {
    INFO(stateName(row.from).str() << " -> " << stateName(row.to).str());
    CHECK(communicates(row.primitive) == (row.cost(2, 8).bytes > 0));
    CHECK(communicates(row.primitive) == (row.cost(2, 8).steps > 0));
    CHECK(row.cost(1, 1000).bytes == 0); // one rank has nobody to send to
    CHECK(row.cost(1 << 20, int64_t(1) << 60).bytes >= 0);
  }
}
