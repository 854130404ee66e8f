// Changes of layout as people write them.
#include "Written.h"

using namespace shardc;

TEST_CASE("changes of one axis", "[change]") {
  struct Case {
    const char *text;
    std::optional<State> from;
    State to;
  };
  const Case cases[] = {
      {"E@ep", std::nullopt, State::S},
      {"T@tp -> R@tp", State::S, State::R},
      {"P@tp -> I@tp", State::P, State::I},
      {"P@tp -> I", State::P, State::I},
      {"P -> I@tp", State::P, State::I},
      {"P(avg)@dp -> R@dp", State::PAvg, State::R},
      {"P (max) @ dp -> R @ dp", State::PMax, State::R},
      {"P(min)@dp->R@dp", State::PMin, State::R},
      {"P(sum)@dp -> R@dp", State::P, State::R},
      {"varying@tp -> partial@tp", State::V, State::P},
      {"invariant@tp -> replicate@tp", State::I, State::R},
      {"V@tp -> P@tp", State::V, State::P},
      {"'P@tp -> R@tp'", State::P, State::R},
      {"\"P@tp -> R@tp\"", State::P, State::R},
  };
  for (const Case &c : cases) {
    INFO(c.text);
    Written w;
    std::optional<Change> change = w.change(c.text);
    REQUIRE(change);
    REQUIRE(change->parts.size() == 1);
    CHECK(change->parts[0].atoms.size() == 1);
    CHECK(change->parts[0].from.has_value() == c.from.has_value());
    CHECK((!c.from || change->parts[0].from->state == *c.from));
    CHECK(change->parts[0].to.state == c.to);
    CHECK(w.diags.all().empty());
  }
}

TEST_CASE("shards by name, by number, of slots, padded", "[change]") {
  Written w;
  CHECK(w.module.names.str(w.change("F@tp")->parts[0].to.dim) == "F");
  CHECK(w.module.names.str(w.change("l'@tp")->parts[0].to.dim) == "l");
  CHECK(w.change("S(0)@tp")->parts[0].to.index == 0);
  CHECK(w.change("S(-1)@tp")->parts[0].to.index == -1);
  CHECK_FALSE(w.change("S(-1)@tp")->parts[0].to.dim.valid());
  CHECK(w.module.names.str(w.change("c@tp:T -> E@tp")->parts[0].from->origin) == "T");
  CHECK(w.change("R@tp -> l@tp pad")->parts[0].to.pad);
  CHECK_FALSE(w.change("R@tp -> l@tp")->parts[0].to.pad);
}

TEST_CASE("several axes move together, several parts one after the other", "[change]") {
  Written w;
  std::optional<Change> together = w.change("P@(dp,tp) -> T@(dp, tp)");
  REQUIRE(together->parts.size() == 1);
  CHECK(together->parts[0].atoms.size() == 2);
  std::optional<Change> parts = w.change("P@tp -> T@tp; N@dp -> R@dp");
  REQUIRE(parts->parts.size() == 2);
  CHECK(print(*parts, w.module) == "P@tp -> T@tp; N@dp -> R@dp");
}

TEST_CASE("axes of one rank move nothing", "[change]") {
  Written w;
  CHECK(w.change("P@one -> R@one")->parts.empty());
}

TEST_CASE("outer axes of a shard may be listed although they stay", "[change]") {
  Written w;
  CHECK(print(*w.change("P@tp -> T@(dp,tp)"), w.module) == "T@dp -> T@dp; P@tp -> T@tp");
  CHECK(print(*w.change("T@(dp,tp) -> R@tp"), w.module) == "T@dp -> T@dp; T@tp -> R@tp");
  CHECK(print(*w.change("T@(dp,tp) -> T@dp"), w.module) == "T@dp -> T@dp; T@tp -> R@tp");
  CHECK(print(*w.change("T@dp -> T@(dp,tp)"), w.module) == "T@dp -> T@dp; R@tp -> T@tp");
}

TEST_CASE("two views can name the same ranks", "[change]") {
  Written w;
  CHECK(print(*w.change("c@tp -> E@ep"), w.module) == "c@tp -> E@tp");
  CHECK(print(*w.change("c@(cp,tp) -> E@ep"), w.module) == "c@cp -> c@cp; c@tp -> E@tp");
}

TEST_CASE("where a size is called V, V is that dimension", "[change]") {
  Written w({"b", "l", "V"});
  std::optional<Change> change = w.change("V@tp -> R@tp");
  CHECK(change->parts[0].from->state == State::S);
  CHECK(w.change("varying@tp -> P@tp")->parts[0].from->state == State::V);
}

TEST_CASE("what is no change is refused at its place", "[change]") {
  struct Case {
    const char *text;
    const char *finding;
  };
  const Case cases[] = {
      {"", "bad-change: "},
      {";", "bad-change: "},
      {"E", "bad-change: E"},
      {"P -> R", "bad-change: R"},
      {"P@tp -> R@dp", "bad-change: P@tp -> R@dp"},
      {"P@(dp,tp) -> R@tp", "bad-change: P@(dp,tp) -> R@tp"},
      {"P@tp -> R@tp -> I@tp", "bad-change: P@tp -> R@tp -> I@tp"},
      {"@tp", "bad-change: @tp"},
      {"P@", "unknown-name: "},
      {"P@()", "bad-change: ()"},
      {"P@(dp,dp)", "bad-change: dp"},
      {"T@(tp,ep)", "bad-change: ep"}, // the same ranks
      {"P@one -> R@tp", "bad-change: P@one -> R@tp"},
      {"P@(dp,tq)", "unknown-name: tq"},
      {"S(x)@tp", "bad-change: S(x)"},
      {"P(mean)@tp", "bad-change: P(mean)"},
      {"2@tp", "bad-change: 2"},
      {"P@tp pad", "bad-change: P@tp pad"},
      {"l@tp pad -> R@tp", "bad-change: l@tp pad"},
      {"c@tp: -> E@tp", "bad-change: c@tp:"},
      {"R@tp:T -> E@tp", "bad-change: R@tp:T"},
      {"P@(tp -> R@tp", "bad-expression: ("},
  };
  for (const Case &c : cases) {
    INFO(c.text);
    Written w;
    CHECK_FALSE(w.change(c.text));
    REQUIRE_FALSE(w.diags.all().empty());
    CHECK(w.finding(0) == c.finding);
  }
}
