// The proof does not believe the table: a wrong bracket in a rule, or an operation that is
// wrongly called linear, makes the two roads disagree.
#include "../../../lib/Infer/Typing.h"
#include "Catch.h"
#include "ProofRun.h"

using namespace shardc;

namespace {

// The types that a program would have if the rule of its one operation were `rule`, on the road that does not read it.
Proof proofWithRule(const char *rule, OpKind kind, const std::string &inputs, const char *line, const Linear *linear = nullptr) {
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
  const Typed answer = typeByRule(context, *parsed, linear ? *linear : opInfo(kind).linear, opInfo(kind).reducer, operands);
  REQUIRE(!answer.fault);
  run.typeOf("y") = module.types.intern(answer.results[0]);
  return run.prove();
}

} // namespace

TEST_CASE("a bracket that is missing in a rule") {
  struct Case {
    OpKind kind;
    const char *rule;
    const char *inputs;
    const char *line;
  };
  const char *const row = "  x: 'f32[T, D@tp]'\n";
  const char *const heads = "  q: 'f32[T, H, X]'\n  k: 'f32[D@tp, H, X]'\n  i: 'i64[T]'\n  j: 'i64[D@tp]'\n";
  const char *const widths = "  q: 'f32[T, H, X@tp]'\n  v: 'f32[T, H, D]'\n";
  const Case cases[] = {
      {OpKind::RmsNorm, "* d, d -> * d", "  x: 'f32[T, D@tp]'\n  w: 'f32[D@tp]'\n", "y = rms_norm(x, w)"},
      {OpKind::LayerNorm, "* d, d, d -> * d", "  x: 'f32[T, D@tp]'\n  w: 'f32[D@tp]'\n", "y = layer_norm(x, w, w)"},
      {OpKind::Softmax, "* d -> * d", row, "y = softmax(x)"},
      {OpKind::LogSoftmax, "* d -> * d", row, "y = log_softmax(x)"},
      {OpKind::Normalize, "* d -> * d", row, "y = normalize(x)"},
      {OpKind::LogSumExp, "* d -> *", row, "y = logsumexp(x)"},
      {OpKind::Variance, "* d -> *", row, "y = variance(x)"},
      {OpKind::NanSum, "* d -> *", row, "y = nansum(x)"},
      {OpKind::Rotary, "* h x, * -> * h x", "  x: 'f32[T, H, X@tp]'\n  p: 'i64[T]'\n", "y = rotary(x, p)"},
      {OpKind::Shift, "(* l) -> (* l)", row, "y = shift(x, 1)"},
      {OpKind::Take, "* e, * k -> * k", "  x: 'f32[T, D@tp]'\n  i: 'i64[T, H]'\n", "y = take(x, i)"},
      {OpKind::Attention, "(* q) h [x], (* s) h [x], (* s) h y, (* q), (* s) -> (* q) h y", heads, "y = attention(q, k, k, i, j)"},
      {OpKind::FullAttention, "(* q) h x, (* [s]) h x, (* [s]) h y -> (* q) h y", widths, "y = full_attention(q, q, v)"},
      {OpKind::CausalAttention, "(* q) h [x], (* [s]) h [x], (* [s]) h y -> (* q) h y", "  q: 'f32[T@tp, H, X]'\n  k: 'f32[T, H, X]'\n",
       "y = causal_attention(q, k, k)"},
  };
  for (const Case &c : cases) {
    INFO(c.line << " by " << c.rule);
    CHECK(!proofWithRule(c.rule, c.kind, c.inputs, c.line).refutations.empty());
  }
}

TEST_CASE("an operation that is called linear and is not") {
  struct Case {
    OpKind kind;
    const char *rule;
    uint32_t operands; // in each of which, alone, it is called linear
    const char *inputs;
    const char *line;
  };
  const char *const part = "  x: 'f32[T, D] P@tp'\n";
  const Case cases[] = {
      {OpKind::Silu, "* -> *", 1, part, "y = silu(x)"},
      {OpKind::Sqrt, "* -> *", 1, part, "y = sqrt(x)"},
      {OpKind::NanSum, "* [d] -> *", 1, part, "y = nansum(x)"},
      {OpKind::Softmax, "* [d] -> * [d]", 1, part, "y = softmax(x)"},
      {OpKind::Cast, "* -> *", 1, part, "y = cast(x, i64)"},
      {OpKind::Add, "*, * -> *", 1, "  x: 'f32[T, D] P@tp'\n  z: 'f32[T, D]'\n", "y = add(x, z)"},
      {OpKind::Div, "*, * -> *", 2, "  x: 'f32[T, D]'\n  z: 'f32[T, D] P@tp'\n", "y = div(x, z)"},
      {OpKind::Embed, "*, v d -> * d", 1, "  x: 'i64[T] P@tp'\n  w: 'f32[D, H]'\n", "y = embedding(x, w)"},
      {OpKind::Take, "* [e], * k -> * k", 2, "  x: 'f32[T, D]'\n  i: 'i64[T, H] P@tp'\n", "y = take(x, i)"},
      {OpKind::Where, "*, *, * -> *", 1, "  m: 'i64[T, D] P@tp'\n  x: 'f32[T, D]'\n  z: 'f32[T, D]'\n", "y = where(m, x, z)"},
  };
  for (const Case &c : cases) {
    INFO(c.line);
    const Linear linear{Linearity::Alone, c.operands};
    CHECK(!proofWithRule(c.rule, c.kind, c.inputs, c.line, &linear).refutations.empty());
  }
}

TEST_CASE("the right rule holds") {
  const std::string inputs = "  x: 'f32[T@tp, D]'\n  w: 'f32[D]'\n";
  CHECK(proofWithRule("* [d], [d] -> * [d]", OpKind::RmsNorm, inputs, "y = rms_norm(x, w)").holds());
}
