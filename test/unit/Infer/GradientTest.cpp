// Gradients of parameters, inferred backwards. Expected types follow from the duals (types, sections 2 and 4); scales from
// arithmetic: a sum over n ranks that hold the whole gradient is n times it.
#include "Catch.h"
#include "shardc/Frontend/Dialect.h"
#include "shardc/IR/Text.h"
#include "shardc/Infer/Gradients.h"

using namespace shardc;

namespace {

// "w: f32[D] P@tp *2; ..." for all parameters, or "!finding".
std::string gradients(const std::string &body) {
  SourceManager sources;
  DiagnosticEngine diags(sources);
  std::string text = "graph: case\nworld: 12\nmesh: {dense: {dp: 3, tp: 4}}\nsizes: {T: 48, D: 24, F: 36, E: 12, K: 2, V: 60}\n" + body;
  FileId file = sources.add("case.yaml", text);
  std::optional<ConfigNode> root = parseConfig(file, diags, ConfigFormat::Yaml);
  std::optional<Module> module = root ? readGraph(*root, diags) : std::nullopt;
  REQUIRE(module);
  TypedModule typed = infer(std::move(*module), {}, diags);
  std::vector<ParamGradient> params = inferGradients(typed, diags);
  if (!diags.all().empty()) {
    return "!" + diagName(diags.all()[0].id);
  }
  std::string out;
  for (const ParamGradient &p : params) {
    out += (out.empty() ? "" : "; ") + p.path + ": " + (p.gradient ? print(p.gradient->type, typed.module) : "none");
    if (p.gradient && !p.gradient->scale.isOne()) {
      out += " *" + p.gradient->scale.text();
    }
  }
  return out;
}

} // namespace

TEST_CASE("without declared gradients a parameter's gradient is its dual") {
  CHECK(gradients("params: {w: \"f32[F@tp, D]\", v: \"f32[D, F@tp]\", n: \"f32[D]\"}\n"
                  "inputs: {x: \"f32[T@dp, D]\"}\n"
                  "ops: [\"h = silu(linear(rms_norm(x, n), w))\", \"y = linear(h, v)\", \"z = redistribute(y, P@tp -> R@tp)\"]\n") ==
        "w: f32[F@tp, D] P@dp; v: f32[D, F@tp] P@dp; n: f32[D] P@(dp,tp)");
  // The norm's weight invariant over tp, the boundary I -> R sums the gradient.
  CHECK(gradients(
            "params: {w: \"f32[F@tp, D]\", v: \"f32[D, F@tp]\", n: \"f32[D] I@tp\"}\n"
            "inputs: {x: \"f32[T@dp, D] I@tp\"}\n"
            "ops: [\"h = silu(linear(redistribute(rms_norm(x, n), I@tp -> R@tp), w))\", \"y = linear(h, v)\", \"z = redistribute(y, P@tp "
            "-> I@tp)\"]\n") == "w: f32[F@tp, D] P@dp; v: f32[D, F@tp] P@dp; n: f32[D] P@dp I@tp");
}

TEST_CASE("a loss that is a local mean starts at the number of ranks") {
  CHECK(gradients("params: {w: \"f32[V, D] I@tp\"}\ninputs: {x: \"f32[T@dp, D] I@tp\", l: \"i64[T@dp]\"}\n"
                  "ops: [\"loss = cross_entropy(linear(x, w), l, reduction=mean)\"]\nloss: {value: loss, kind: local-mean}\n") ==
        "w: f32[V, D] P@dp I@tp *3");
}

TEST_CASE("a declared all-reduce of a whole gradient multiplies it") {
  // Gathered rows whose backward is all-reduce and own rows: right for a consumer that is R, n-fold for one that is I.
  std::string graph = "params: {w: \"f32[D, D]\"}\ninputs: {x: \"f32[T@(dp,tp), D]\"}\nops: [\"h = linear(x, w)\", ";
  CHECK(gradients(graph + "\"y = redistribute(h, T@tp -> R@tp, gradient='P@tp -> T@tp')\"]\n") == "w: f32[D, D] P@(dp,tp)");
  CHECK(gradients(graph + "\"y = redistribute(h, T@tp -> I@tp, gradient='P@tp -> T@tp')\"]\n") == "w: f32[D, D] P@(dp,tp) *4");
  CHECK(gradients(graph + "\"y = redistribute(h, T@tp -> I@tp)\"]\n") == "w: f32[D, D] P@(dp,tp)");
}

TEST_CASE("a gradient that is partial where it is needed whole is found") {
  // A boundary I -> R without its all-reduce in front of a sharded weight.
  CHECK(gradients("params: {u: \"f32[F@tp, D]\", d: \"f32[D, F@tp]\", w: \"f32[F@tp, D]\"}\ninputs: {x: \"f32[T, D]\"}\n"
                  "ops: [\"y = redistribute(linear(linear(x, u), d), P@tp -> I@tp)\", \"z = linear(redistribute(y, I@tp -> R@tp, "
                  "gradient='P@tp -> P@tp'), w)\"]\n") == "!gradient-not-whole");
}

TEST_CASE("paths that differ are shown; common forms are brought together") {
  // y is invariant; one user keeps it so, the other takes shards without the all-reduce: whole + part.
  std::string head = "params: {n: \"f32[D] I@tp\"}\ninputs: {x: \"f32[T, D] I@tp\"}\nops: [\"y = rms_norm(x, n)\", ";
  CHECK(gradients(head + "\"a = redistribute(y, I@tp -> T@tp)\", \"b = redistribute(a, T@tp -> I@tp)\", \"z = add(y, b)\"]\n") ==
        "n: f32[D] P@dp I@tp");
  CHECK(gradients(head + "\"r = redistribute(y, I@tp -> R@tp, gradient='P@tp -> P@tp')\", \"a = redistribute(r, R@tp -> T@tp)\", \"b = "
                         "redistribute(a, T@tp -> I@tp)\", \"z = add(y, b)\"]\n") == "!gradient-paths-differ");
  // With a factor of n in the second path (n = 4), n parts are a mean of the same scale.
  CHECK(gradients(head + "\"r = redistribute(y, I@tp -> R@tp, gradient='P@tp -> P@tp')\", \"a = redistribute(r, R@tp -> T@tp)\", \"b = "
                         "redistribute(a, T@tp -> I@tp, gradient='P@tp -> T@tp')\", \"z = add(y, b)\"]\n") == "n: f32[D] P@dp P(avg)@tp");
}
