// The proof does not believe the table: a wrong bracket in a rule makes the two roads disagree.
#include "../../../lib/Infer/Typing.h"
#include "Catch.h"
#include "ProofRun.h"

using namespace shardc;

namespace {

// The types that a program would have if the rule of its one operation were `rule`, on the road that does not read it.
Proof proofWithRule(const char *rule, OpKind kind, const std::string &inputs, const char *line) {
  ProofRun run("graph: test\nworld: 2\nmesh: {tp: 2}\nsizes: {T: 8, D: 12, H: 4, X: 6}\ninputs:\n" + inputs + "ops:\n  - " + line + "\n");
  REQUIRE(run.typed.has_value());
  std::string error;
  const std::optional<Rule> parsed = parseRule(rule, error);
  REQUIRE(parsed.has_value());
  Module &module = run.typed->module;
  const Function &f = module.function(module.root);
  const Op &op = f.ops.back();
  llvm::SmallVector<const Type *, 4> operands;
  for (ValueId v : f.operandsOf(op)) {
    operands.push_back(&module.types[run.typed->instances[run.typed->root].values[v.index]]);
  }
  TypingContext context{module, nullptr, op, 0, false, nullptr};
  const Typed answer = typeByRule(context, *parsed, opInfo(kind).linear, opInfo(kind).reducer, operands);
  REQUIRE(!answer.fault);
  run.typeOf("y") = module.types.intern(answer.results[0]);
  return run.prove();
}

} // namespace

TEST_CASE("a norm whose row need not be whole") {
  const std::string inputs = "  x: 'f32[T, D@tp]'\n  w: 'f32[D@tp]'\n";
  CHECK(!proofWithRule("* d, d -> * d", OpKind::RmsNorm, inputs, "y = rms_norm(x, w)").refutations.empty());
}

TEST_CASE("a softmax whose row need not be whole") {
  CHECK(!proofWithRule("* d -> * d", OpKind::Softmax, "  x: 'f32[T, D@tp]'\n", "y = softmax(x)").refutations.empty());
}

TEST_CASE("a rotary embedding whose width need not be whole") {
  const std::string inputs = "  x: 'f32[T, H, X@tp]'\n  p: 'i64[T]'\n";
  CHECK(!proofWithRule("* h x, * -> * h x", OpKind::Rotary, inputs, "y = rotary(x, p)").refutations.empty());
}

TEST_CASE("the right rule holds") {
  const std::string inputs = "  x: 'f32[T@tp, D]'\n  w: 'f32[D]'\n";
  CHECK(proofWithRule("* [d], [d] -> * [d]", OpKind::RmsNorm, inputs, "y = rms_norm(x, w)").holds());
}
