// Types: states, duals, interning, and blocks that views cut differently.
#include "shardc/IR/Types.h"
#include "Catch.h"
#include "Meshes.h"
#include "llvm/ADT/STLExtras.h"

using namespace shardc;

namespace {

Type vector(int64_t extent, llvm::ArrayRef<AtomId> atoms = {}) {
  Factor f;
  f.extent = extent;
  f.atoms.assign(atoms.begin(), atoms.end());
  Type t;
  t.dims.push_back({{f}, false});
  return t;
}

void setStates(Type &t, llvm::ArrayRef<AtomId> atoms, State s) {
  for (AtomId id : atoms) {
    setState(t, id, s);
  }
}

// Six ranks cut 3 x 2 (dp, tp) and 2 x 3 (edp, ep).
Axes sixRanks() { return mesh(6, {view("dense", {{"dp", 3}, {"tp", 2}}), view("expert", {{"edp", 2}, {"ep", 3}})}); }

} // namespace

TEST_CASE("states are set, read and taken back") {
  const Axes axes = mesh(8, {view("m", {{"a", 2}, {"b", 2}, {"c", 2}})});
  const AtomId a = atomsOf(axes, {"a"})[0];
  const AtomId b = atomsOf(axes, {"b"})[0];
  const AtomId c = atomsOf(axes, {"c"})[0];
  Type t = vector(4, {b});
  setState(t, c, State::P);
  setState(t, a, State::I);
  CHECK(stateOf(t, a) == State::I);
  CHECK(stateOf(t, b) == State::S);
  CHECK(stateOf(t, c) == State::P);
  CHECK(shardPlace(t, b) == ShardPlace{0, 0, 0});
  CHECK_FALSE(shardPlace(t, a));
  CHECK(activeAtoms(t) == llvm::SmallVector<AtomId, 8>{a, b, c});
  // In whatever order they were set, equal types are equal.
  Type other = vector(4, {b});
  setState(other, a, State::V);
  setState(other, c, State::P);
  setState(other, a, State::I);
  CHECK(other == t);
  setState(t, a, State::R);
  setState(t, c, State::R);
  CHECK(t == vector(4, {b}));
}

TEST_CASE("equal types have one id") {
  TypeTable table;
  const TypeId first = table.intern(vector(4));
  const TypeId second = table.intern(vector(5));
  CHECK(first != second);
  CHECK(table.intern(vector(4)) == first);
  CHECK(table[second] == vector(5));
  CHECK(table.size() == 2);
  Type partial = vector(4);
  setState(partial, AtomId(0), State::P);
  CHECK(table.intern(partial) != first);
  Type detached = vector(4);
  detached.grad = false;
  CHECK(table.intern(detached) != first);
  Origin o;
  o.site = 1;
  const OriginId origin = table.internOrigin(o);
  CHECK(table.internOrigin(o) == origin);
  o.fromSlice = true;
  CHECK(table.internOrigin(o) != origin);
}

TEST_CASE("dtypes are named and sized") {
  CHECK(parseDType("bf16") == DType::BF16);
  CHECK(dtypeName(DType::F8E4M3) == "f8e4m3");
  CHECK(dtypeBytes(DType::F64) == 8);
  CHECK(dtypeBytes(DType::Bool) == 1);
  CHECK(isFloat(DType::F8E5M2));
  CHECK_FALSE(isFloat(DType::I32));
  CHECK_FALSE(parseDType("float"));
}

TEST_CASE("R and P are each other's gradient, all others their own") {
  const Axes axes = mesh(16, {view("m", {{"a", 2}, {"b", 2}, {"c", 2}, {"d", 2}})});
  const auto all = atomsOf(axes, {"a", "b", "c", "d"});
  const State states[] = {State::R, State::I, State::V, State::P, State::S};
  for (int code = 0; code < 5 * 5 * 5 * 5; ++code) {
    Type t = vector(16);
    Type expected = vector(16);
    for (int i = 0, rest = code; i < 4; ++i, rest /= 5) {
      const State s = states[rest % 5];
      if (s == State::S) {
        t.dims[0].factors[0].atoms.push_back(all[i]);
        expected.dims[0].factors[0].atoms.push_back(all[i]);
      } else {
        setState(t, all[i], s);
        setState(expected, all[i], s == State::R ? State::P : s == State::P ? State::R : s);
      }
    }
    const auto gradient = dual(t, axes);
    REQUIRE(gradient);
    CHECK(*gradient == expected);
    CHECK(dual(*gradient, axes) == t);
  }
}

TEST_CASE("a mean has the gradient R, an extremum and a detached value none") {
  const Axes axes = mesh(2, {view("m", {{"a", 2}})});
  Type t = vector(4);
  setState(t, AtomId(0), State::PAvg);
  CHECK(dual(t, axes) == vector(4));
  setState(t, AtomId(0), State::PMax);
  CHECK_FALSE(dual(t, axes));
  setState(t, AtomId(0), State::PMin);
  CHECK_FALSE(dual(t, axes));
  Type detached = vector(4);
  detached.grad = false;
  CHECK_FALSE(dual(detached, axes));
}

TEST_CASE("a stage's values have no gradient over the stages") {
  const Axes axes = mesh(4, {view("m", {{"pp", 2}, {"dp", 2}})});
  Type expected = vector(4);
  setStates(expected, atomsOf(axes, {"dp"}), State::P);
  CHECK(dual(vector(4), axes) == expected);
}

TEST_CASE("a uniform type passes from one way of cutting to the other") {
  const Axes axes = sixRanks();
  const auto dense = atomsOf(axes, {"dp", "tp"});
  const auto expert = atomsOf(axes, {"edp", "ep"});
  REQUIRE(axes.variantCount(0) == 2);
  CHECK(recut(vector(12), 0, 1, axes) == vector(12));
  for (State s : {State::I, State::V, State::P, State::PAvg, State::PMax, State::PMin}) {
    Type t = vector(12);
    Type expected = vector(12);
    setStates(t, dense, s);
    setStates(expected, expert, s);
    CHECK(recut(t, 0, 1, axes) == expected);
    CHECK(recut(expected, 0, 0, axes) == t);
    CHECK(equalTypes(t, expected, axes));
    CHECK(equalTypes(expected, t, axes));
  }
  CHECK(recut(vector(12, dense), 0, 1, axes) == vector(12, expert));
  CHECK(equalTypes(vector(12, dense), vector(12, expert), axes));
  CHECK(sameLayout(vector(12, dense).dims[0], vector(12, expert).dims[0], axes));
  // Parts that follow one another, each sharded by itself.
  auto parts = [&](llvm::ArrayRef<AtomId> atoms) {
    Type t = vector(12, atoms);
    t.dims[0].factors.push_back(vector(6, atoms).dims[0].factors[0]);
    t.dims[0].concat = true;
    return t;
  };
  CHECK(recut(parts(dense), 0, 1, axes) == parts(expert));
  CHECK(activeAtoms(parts(dense)).size() == 2);
  CHECK(usedVariant(vector(12, expert), 0, axes) == 1u);
  CHECK_FALSE(usedVariant(vector(12), 0, axes));
}

TEST_CASE("a type that is not uniform over a block stays as it is cut") {
  const Axes axes = sixRanks();
  const auto dp = atomsOf(axes, {"dp"});
  const auto tp = atomsOf(axes, {"tp"});
  const auto dense = atomsOf(axes, {"dp", "tp"});
  CHECK_FALSE(recut(vector(12, dp), 0, 1, axes));                          // tp is R
  CHECK_FALSE(recut(vector(12, atomsOf(axes, {"tp", "dp"})), 0, 1, axes)); // not in rank order
  CHECK_FALSE(recut(vector(10, dense), 0, 1, axes));                       // chunks of chunks of 10 differ
  Type flat = vector(10, dense);
  flat.dims[0].factors[0].split = Split::Flat;
  CHECK(recut(flat, 0, 1, axes)); // one chunk per rank, however they are counted
  Type mixed = vector(12);
  setStates(mixed, dp, State::P);
  setStates(mixed, tp, State::I);
  CHECK_FALSE(recut(mixed, 0, 1, axes));
  Type twoDims = vector(12, dp);
  twoDims.dims.push_back(vector(12, tp).dims[0]);
  CHECK_FALSE(recut(twoDims, 0, 1, axes));
  CHECK_FALSE(equalTypes(vector(12, dense), vector(12, atomsOf(axes, {"ep", "edp"})), axes));
  CHECK_FALSE(equalTypes(vector(12, dp), vector(12, atomsOf(axes, {"ep"})), axes));
}

// A recut that exists leaves every rank what it had.
TEST_CASE("recutting moves no row") {
  const Axes axes = sixRanks();
  for (int64_t extent = 0; extent <= 24; ++extent) {
    for (Split split : {Split::Nested, Split::Flat, Split::Balanced}) {
      Type t = vector(extent, atomsOf(axes, {"dp", "tp"}));
      t.dims[0].factors[0].split = split;
      const auto other = recut(t, 0, 1, axes);
      for (int64_t rank = 0; other && rank < 6; ++rank) {
        CHECK(localRange(t.dims[0].factors[0], rank, axes) == localRange(other->dims[0].factors[0], rank, axes));
      }
      CHECK((other || (split == Split::Nested && extent % 6 != 0)));
    }
  }
}
