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

TEST_CASE("each change does what the type system says, and so does its gradient") {
  struct Line {
    State from, to;
    Primitive forward, gradient;
  };
  const Line lines[] = {
      {State::P, State::R, Primitive::AllReduce, Primitive::AllReduce},
      {State::P, State::I, Primitive::AllReduce, Primitive::None},
      {State::P, State::S, Primitive::ReduceScatter, Primitive::AllGather},
      {State::S, State::R, Primitive::AllGather, Primitive::ReduceScatter},
      {State::S, State::I, Primitive::AllGather, Primitive::Slice},
      {State::S, State::S, Primitive::AllToAll, Primitive::AllToAll},
      {State::I, State::R, Primitive::None, Primitive::AllReduce},
      {State::R, State::S, Primitive::Slice, Primitive::ZeroFill},
      {State::I, State::S, Primitive::Slice, Primitive::AllGather},
      {State::R, State::P, Primitive::KeepFirst, Primitive::KeepFirst},
      {State::I, State::P, Primitive::KeepFirst, Primitive::None},
      {State::R, State::I, Primitive::None, Primitive::KeepFirst},
      {State::S, State::P, Primitive::ZeroFill, Primitive::Slice},
      {State::V, State::P, Primitive::None, Primitive::None},
      {State::R, State::V, Primitive::None, Primitive::None},
      {State::I, State::V, Primitive::None, Primitive::AllReduce},
      {State::S, State::V, Primitive::None, Primitive::None},
      {State::V, State::S, Primitive::None, Primitive::None},
      {State::V, State::I, Primitive::AllReduce, Primitive::None},
      {State::PAvg, State::R, Primitive::AllReduceMean, Primitive::AllReduce},
      {State::PAvg, State::I, Primitive::AllReduceMean, Primitive::None},
      {State::PMax, State::R, Primitive::AllReduceMax, Primitive::None},
      {State::PMax, State::I, Primitive::AllReduceMax, Primitive::None},
      {State::PMin, State::R, Primitive::AllReduceMin, Primitive::None},
      {State::PMin, State::I, Primitive::AllReduceMin, Primitive::None},
  };
  CHECK(changeRows().size() == std::size(lines));
  for (const Line &line : lines) {
    INFO(stateName(line.from).str() << " -> " << stateName(line.to).str());
    const ChangeRow *row = findChange(line.from, line.to);
    REQUIRE(row);
    CHECK(row->primitive == line.forward);
    if (row->gradient) {
      CHECK(findChange(row->gradient->first, row->gradient->second)->primitive == line.gradient);
    }
  }
}

TEST_CASE("rows move data as the ring algorithms do") {
  struct Line {
    Primitive primitive;
    int64_t steps, bytes;
  };
  // Four ranks, 1000 bytes each before the change.
  const Line lines[] = {
      {Primitive::None, 0, 0},
      {Primitive::AllReduce, 6, 1500},
      {Primitive::AllReduceMax, 6, 1500},
      {Primitive::AllReduceMin, 6, 1500},
      {Primitive::AllReduceMean, 6, 1500},
      {Primitive::ReduceScatter, 3, 750},
      {Primitive::AllGather, 3, 3000},
      {Primitive::AllToAll, 3, 750},
      {Primitive::Slice, 0, 0},
      {Primitive::ZeroFill, 0, 0},
      {Primitive::KeepFirst, 0, 0},
  };
  for (const ChangeRow &row : changeRows()) {
    INFO(stateName(row.from).str() << " -> " << stateName(row.to).str());
    const Line &line = lines[static_cast<size_t>(row.primitive)];
    REQUIRE(line.primitive == row.primitive);
    CHECK(row.cost(4, 1000).steps == line.steps);
    CHECK(row.cost(4, 1000).bytes == line.bytes);
    CHECK(communicates(row.primitive) == (line.steps > 0));
    CHECK((primitiveName(row.primitive) == "") == (row.primitive == Primitive::None));
    CHECK(row.cost(1, 1000).bytes == 0); // one rank has nobody to send to
    CHECK(row.cost(1 << 20, int64_t(1) << 60).bytes >= 0);
  }
}
