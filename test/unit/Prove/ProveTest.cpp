// What the proof says of small programs: that the right ones hold, and what is wrong with others, by exact ratios.
#include "Catch.h"
#include "ProofRun.h"
#include "shardc/Prove/Programs.h"

using namespace shardc;

namespace {

const std::string Head = "graph: test\nworld: 6\nmesh: {dp: 3, tp: 2}\nsizes: {T: 12, D: 8, F: 10, E: 4, K: 2, V: 20}\n";

// A row-parallel layer behind a column-parallel one.
const std::string FeedForward = Head + "params: {w1: 'f32[F@tp, D]', w2: 'f32[D, F@tp]'}\ninputs: {x: 'f32[T@dp, D]'}\nops:\n"
                                       "  - y = redistribute(linear(silu(linear(x, w1)), w2), P@tp -> R@tp)\n";

} // namespace

TEST_CASE("a tensor-parallel layer is what one device computes") {
  const ProofRun run(FeedForward);
  REQUIRE(run.accepted());
  const Proof proof = run.prove();
  CHECK(proof.holds());
  CHECK(proof.ranks == 6);
  CHECK(proof.parameters.size() == 2);
}

TEST_CASE("the same, if the reduction is left out, is refuted") {
  ProofRun run(FeedForward);
  REQUIRE(run.accepted());
  for (Move &m : run.typed->instances[run.typed->root].moves) {
    m.forward = Primitive::None;
  }
  const Proof proof = run.prove();
  REQUIRE(!proof.holds());
  CHECK(proof.refutations.front().value == "y");
}

TEST_CASE("addends are whole only together: a partial value that is called replicated is refuted") {
  ProofRun run(Head + "inputs: {x: 'f32[T, D@tp]', w: 'f32[F, D@tp]'}\nops:\n  - y = linear(x, w)\n");
  REQUIRE(run.accepted());
  Type claimed = run.copyOfType("y");
  claimed.states.clear();
  run.typeOf("y") = run.typed->module.types.intern(claimed);
  const Proof proof = run.prove();
  REQUIRE(!proof.holds());
  CHECK(proof.refutations.front().text == "ranks 0 and 1 should hold the same and do not");
}

TEST_CASE("routed experts, exchanged and back") {
  const ProofRun run(Head +
                     "params: {gate: 'f32[E, D]', w1: 'f32[E@tp, F, D]', w2: 'f32[E@tp, D, F]'}\ninputs: {x: 'f32[T@(dp,tp), D]'}\nops:\n"
                     "  - scores, ids = topk(softmax(linear(x, gate)), K)\n"
                     "  - mine = redistribute(dispatch(x, ids), c@tp -> E@tp)\n"
                     "  - made = grouped_matmul(silu(grouped_matmul(mine, w1)), w2)\n"
                     "  - back = redistribute(made, E@tp -> c@tp)\n"
                     "  - y = combine(back, ids, scores)\n");
  REQUIRE(run.accepted());
  CHECK(run.prove().holds());
}

TEST_CASE("a vocabulary that is sharded has the loss of the whole one") {
  const ProofRun run(Head + "params: {w: 'f32[V@tp, D]'}\ninputs: {x: 'f32[T@dp, D]', labels: 'i64[T@dp] I@tp'}\nops:\n"
                            "  - loss = cross_entropy(linear(x, w), labels)\nloss: {value: loss, kind: sum}\n");
  REQUIRE(run.accepted());
  const Proof proof = run.prove();
  CHECK(proof.refutations.empty());
  CHECK(proof.unable.empty());
}

TEST_CASE("a sum over ranks that hold the whole gradient is found as the exact ratio") {
  ProofRun run(FeedForward);
  REQUIRE(run.accepted());
  const Axes &axes = run.typed->module.axes;
  SyncFamily family;
  family.name = "all";
  family.patterns = {"*"};
  SyncRule rule;
  rule.op = SyncOp::Sum;
  rule.over.assign(axes.find("dp")->atoms.begin(), axes.find("dp")->atoms.end());
  family.rules = {rule};
  SyncPlan plan;
  plan.families = {family};
  run.typed->module.sync = plan;
  Proof proof = run.prove();
  REQUIRE(proof.parameters.size() == 2);
  // Each rank of dp has the part of its tokens: the sum over dp is right.
  CHECK(proof.parameters[0].synced == Rational{1, 1});

  rule.step = "again";
  run.typed->module.sync->families[0].rules.push_back(rule); // and once more: three times too large
  proof = run.prove();
  CHECK(proof.parameters[0].synced == Rational{3, 1});
  CHECK(proof.parameters[1].synced == Rational{3, 1});

  run.typed->module.sync->families[0].rules.clear(); // nobody sums: each rank wrong, their mean a third
  proof = run.prove();
  CHECK(!proof.parameters[0].synced);
  CHECK(proof.parameters[0].mean == Rational{1, 3});
}

TEST_CASE("extents that are no numbers cannot run, and that is said") {
  const ProofRun run("graph: test\nworld: 2\nmesh: {tp: 2}\nsizes: {T: any % 2, D: 4}\ninputs: {x: 'f32[T@tp, D]'}\nops: [y = silu(x)]\n");
  REQUIRE(run.accepted());
  const Proof proof = run.prove();
  CHECK(!proof.holds());
  CHECK(proof.unable == "`x` has an extent that is not a number, or that is too large");
}

TEST_CASE("masks and maxima on small integers, among which there are zeros and ties") {
  ProofRun run(Head + "inputs: {x: 'f32[T@dp, D@tp]', z: 'f32[T@dp, D@tp]'}\nops:\n"
                      "  - chosen = where(greater(x, z), neg(x), relu(z))\n"
                      "  - y = redistribute(max(chosen), P(max)@tp -> R@tp)\n");
  REQUIRE(run.accepted());
  ProveOptions options;
  options.integers = true;
  CHECK(prove(*run.typed, options).holds());
  for (Move &m : run.typed->instances[run.typed->root].moves) {
    m.forward = Primitive::AllReduceMin;
  }
  CHECK(!prove(*run.typed, options).holds());
}

TEST_CASE("the checker accepts no random program that the proof refutes") {
  ProgramsOptions options;
  options.programs = 20000;
  options.seed = 5;
  options.falseAlarms = false;
  const ProgramsReport report = runPrograms(options, [](int64_t) { return true; });
  CHECK(report.programs == 20000);
  CHECK(report.proved > 10000);
  for (const ProgramFailure &f : report.failures) {
    INFO(f.why << "\n" << f.graph);
    CHECK(f.operation.empty());
  }
  CHECK(report.unsound.empty());
}
