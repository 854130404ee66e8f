// The rules of local operations, one row per case: operand types, a line, and the type it gives or the finding it makes.
// Expected values are read off the specification (types, sections 3 to 5), not off the program.
#include "Catch.h"
#include "shardc/Frontend/Dialect.h"
#include "shardc/Infer/Infer.h"

using namespace shardc;

namespace {

struct Case {
  const char *operands; // "x: f32[T@tp, D]; w: f32[D]"
  const char *line;     // "y = add(x, w)"
  const char *expected; // the type of y, or "!finding"
};

std::string graphOf(const Case &c) {
  std::string text = "graph: case\nworld: 12\nmesh: {dense: {dp: 3, tp: 4}}\n"
                     "sizes: {T: 48, D: 24, F: 36, N: 12, G: 4, R: 3, H: 8, E: 12, K: 2, V: 60, B: 3, L: 16, U: 13}\ninputs:\n";
  llvm::SmallVector<llvm::StringRef, 4> parts;
  llvm::StringRef(c.operands).split(parts, ';', -1, false);
  for (llvm::StringRef p : parts) {
    auto [name, type] = p.split(':');
    text += "  " + name.trim().str() + ": \"" + type.trim().str() + "\"\n";
  }
  return text + "ops:\n  - \"" + c.line + "\"\n";
}

std::string outcome(const Case &c) {
  SourceManager sources;
  DiagnosticEngine diags(sources);
  FileId file = sources.add("case.yaml", graphOf(c));
  std::optional<ConfigNode> root = parseConfig(file, diags, ConfigFormat::Yaml);
  std::optional<Module> module = root ? readGraph(*root, diags) : std::nullopt;
  if (!module) {
    return diags.all().empty() ? "unreadable" : "unreadable: " + diags.all()[0].message;
  }
  TypedModule typed = infer(std::move(*module), {}, diags);
  if (!diags.all().empty()) {
    return "!" + diagName(diags.all()[0].id);
  }
  const Function &f = typed.module.function(typed.module.root);
  const Op &last = f.ops.back();
  std::string out;
  for (uint32_t r = 0; r < last.numResults; ++r) {
    TypeId t = typed.instances[typed.root].values[f.result(last, r).index];
    out += (r ? "; " : "") + print(typed.module.types[t], typed.module);
  }
  return out;
}

void run(llvm::ArrayRef<Case> cases) {
  for (const Case &c : cases) {
    INFO(c.operands << " | " << c.line);
    CHECK(outcome(c) == c.expected);
  }
}

} // namespace

TEST_CASE("rule 1: all replicated, all invariant, and no mixture") {
  run({
      {"x: f32[T, D]; y: f32[T, D]", "z = add(x, y)", "f32[T, D]"},
      {"x: f32[T, D] I@tp; y: f32[T, D] I@tp", "z = add(x, y)", "f32[T, D] I@tp"},
      {"x: f32[T, D] I@tp; y: f32[T, D]", "z = add(x, y)", "!invariant-mixes"},
      {"x: f32[T, D] I@tp; w: f32[F, D]", "z = linear(x, w)", "!invariant-mixes"},
      {"x: f32[T@tp, D]; w: f32[D] I@tp", "z = rms_norm(x, w)", "!invariant-mixes"},
      // What needs no gradient counts as either.
      {"x: f32[T, D] I@tp; m: bool[T, D]", "z = where(m, x, x)", "f32[T, D] I@tp"},
      {"x: f32[T, D]; m: bool[T, D] I@tp", "z = where(m, x, x)", "f32[T, D]"},
  });
}

TEST_CASE("rule 2: shards pass, reduce, or must be whole") {
  run({
      {"x: f32[T@tp, D]; y: f32[T@tp, D]", "z = mul(x, y)", "f32[T@tp, D]"},
      {"x: f32[T@(dp,tp), D]; w: f32[F, D]", "z = linear(x, w)", "f32[T@(dp,tp), F]"},
      {"x: f32[T, D]; w: f32[F@tp, D]", "z = linear(x, w)", "f32[T, F@tp]"},
      {"x: f32[T@dp, D@tp]; w: f32[F, D@tp]", "z = linear(x, w)", "f32[T@dp, F] P@tp"},
      {"x: f32[T, D@tp]; w: f32[D]", "z = rms_norm(x, w)", "!sharded-whole"},
      {"x: f32[T, D@tp]", "z = softmax(x)", "!sharded-whole"},
      {"x: f32[T, D@tp]", "z = logsumexp(x)", "!sharded-whole"},
      {"x: f32[T, D@tp]", "z = nansum(x)", "!sharded-whole"},
      {"x: f32[T@tp, D]", "z = vector_norm(x)", "!sharded-whole"},
      {"x: f32[T, D@tp]", "z = sum(x)", "f32[T] P@tp"},
      {"x: f32[T@tp, D]", "z = sum(x, dim=0)", "f32[D] P@tp"},
      {"x: f32[T, D@tp]", "z = mean(x)", "f32[T] P(avg)@tp"},
      {"x: f32[T, D@tp]", "z = max(x)", "f32[T] P(max)@tp"},
      {"x: f32[U@tp, D]", "z = sum(x, dim=0)", "f32[D] P@tp"},
      {"x: f32[U@tp, D]", "z = mean(x, dim=0)", "!uneven-mean"},
      {"x: f32[T@tp, D]; w: f32[F@tp, D]", "z = linear(x, w)", "!shard-conflict"},
      {"x: f32[T@(dp,tp), D]; y: f32[T@(tp,dp), D]", "z = add(x, y)", "!shard-order"},
      {"ids: i64[T]; w: f32[V@tp, D]", "z = embedding(ids, w)", "f32[T, D] P@tp"},
      {"ids: i64[T@tp]; w: f32[V@tp, D]", "z = embedding(ids, w)", "!shard-conflict"},
  });
}

TEST_CASE("rule 3: what is linear takes partial values") {
  run({
      {"x: f32[T, D] P@tp; w: f32[F, D]", "z = linear(x, w)", "f32[T, F] P@tp"},
      {"x: f32[T, D] P@tp; y: f32[T, D] P@tp", "z = add(x, y)", "f32[T, D] P@tp"},
      {"x: f32[T, D] P@tp; y: f32[T, D]", "z = add(x, y)", "!replicated-into-partial"},
      {"x: f32[T, D] P(avg)@tp; y: f32[T, D]", "z = add(x, y)", "f32[T, D] P(avg)@tp"},
      {"x: f32[T, D] P(avg)@tp; y: f32[T, D] P@tp", "z = add(x, y)", "!mixed-partials"},
      {"x: f32[T, D] P@tp; y: f32[T, D] P@tp", "z = mul(x, y)", "!partial-times-partial"},
      {"x: f32[T, D] P@tp", "z = silu(x)", "!partial-into-nonlinear"},
      {"x: f32[T, D] P@tp; w: f32[D]", "z = rms_norm(x, w)", "!partial-into-nonlinear"},
      {"x: f32[T, D] P@tp; y: f32[T@tp, D]", "z = add(x, y)", "!add-mixes-layouts"},
      {"x: f32[T, D] P@tp; w: f32[F@tp, D]", "z = linear(x, w)", "!partial-times-shard"},
      {"x: f32[T, D] P@tp; y: f32[T, D]", "z = div(x, y)", "f32[T, D] P@tp"},
      {"x: f32[T, D]; y: f32[T, D] P@tp", "z = div(x, y)", "!partial-into-nonlinear"},
      {"x: f32[T, E]; i: i64[T, K] P@tp", "z = take(x, i)", "!partial-index"},
      {"x: f32[T, E] P@tp; i: i64[T, K]", "z = take(x, i)", "f32[T, K] P@tp"},
      {"x: f32[T, D] P(max)@tp", "z = exp(x)", "f32[T, D] P(max)@tp"},
      {"x: f32[T, D] P(max)@tp", "z = neg(x)", "f32[T, D] P(min)@tp"},
      {"x: f32[T, D] P(max)@tp", "z = scale(x, 2)", "!partial-into-nonlinear"},
      {"x: f32[T, D] P(max)@tp; y: f32[T, D]", "z = add(x, y)", "!partial-into-nonlinear"},
      {"x: f32[T, D] P(max)@tp", "z = max(x)", "f32[T] P(max)@tp"},
  });
}

TEST_CASE("a maximum over ranks passes what takes elements as they are") {
  run({
      {"x: f32[T, D] P(max)@tp", "z = shift(x, 1)", "f32[T, D] P(max)@tp"},
      {"x: f32[T, D] P(max)@tp; y: f32[T, D]", "z = concat(x, y, dim=0)", "f32[96, D] P(max)@tp"},
      {"x: f32[T, D] P(max)@tp; y: f32[T, D] P(min)@tp", "z = concat(x, y)", "!mixed-partials"},
      {"m: i64[T, D]; x: f32[T, D] P(max)@tp; y: f32[T, D]", "z = where(m, x, y)", "f32[T, D] P(max)@tp"},
      {"m: i64[T, D] P(max)@tp; x: f32[T, D]", "z = where(m, x, x)", "!partial-index"},
      {"x: f32[T, E] P(max)@tp; i: i64[T, K]", "z = take(x, i)", "f32[T, K] P(max)@tp"},
      {"x: f32[T, D] P(max)@tp; y: f32[T, D]", "z = maximum(x, y)", "f32[T, D] P(max)@tp"},
      {"x: f32[T, D] P(min)@tp; y: f32[T, D]", "z = maximum(x, y)", "!partial-into-nonlinear"},
      {"x: f32[T, D] P(max)@tp", "z = sum(x)", "!partial-into-nonlinear"},
  });
}

TEST_CASE("parts that are asserted to be shards are alike") {
  run({
      {"x: f32[T, D] V@tp", "z = redistribute(x, S(0)@tp)", "f32[T=192@tp, D]"},
      {"x: f32[T, U@dp] V@tp", "z = redistribute(x, S(1)@tp)", "!varying-extents"},
  });
}

TEST_CASE("a cast is linear between floats only") {
  run({
      {"x: f32[T, D] P@tp", "z = cast(x, bf16)", "bf16[T, D] P@tp"},
      {"x: f32[T, D] P@tp", "z = cast(x, i64)", "!partial-into-nonlinear"},
      {"x: f32[T, D] P(max)@tp", "z = cast(x, i64)", "i64[T, D] P(max)@tp"},
      {"x: f32[T, D] P(max)@tp", "z = cast(x, bool)", "!partial-into-nonlinear"},
      {"x: i64[T, D] P@tp", "z = cast(x, f32)", "f32[T, D] P@tp detached"},
      {"x: i64[T, D] P@tp", "z = cast(x, bool)", "!partial-index"},
  });
}

TEST_CASE("rules 4 and 5: varying values, and shards that meet whole tensors") {
  run({
      {"x: f32[T, D] V@tp; y: f32[T, D]", "z = mul(x, y)", "f32[T, D] V@tp"},
      {"x: f32[T, D] V@tp; y: f32[T, D] P@tp", "z = add(x, y)", "!varying-meets"},
      {"x: f32[T, D] V@tp; y: f32[T, D] I@tp", "z = add(x, y)", "!invariant-mixes"},
      {"x: f32[T@tp, D]; y: f32[T, D]", "z = add(x, y)", "!shard-meets-replicated"},
      {"x: f32[T@tp, D]; y: f32[D]", "z = add(x, y)", "f32[T@tp, D]"},
      {"x: f32[T, D]", "z = mul(x, rank_index(tp))", "f32[T, D] V@tp"},
  });
}

TEST_CASE("several axes: strict for each coordinate of the others") {
  run({
      {"x: f32[T@dp, D@tp]; w: f32[F, D@tp]", "z = linear(x, w)", "f32[T@dp, F] P@tp"},
      {"x: f32[T, D@(dp,tp)]; w: f32[F, D@(dp,tp)]", "z = linear(x, w)", "f32[T, F] P@(dp,tp)"},
      {"x: f32[T, D@(dp,tp)]; w: f32[F, D@(tp,dp)]", "z = linear(x, w)", "!shard-order"},
      {"x: f32[T, D] P@(dp,tp)", "z = silu(x)", "!partial-into-nonlinear"},
  });
}

TEST_CASE("attention sees batch, queries and keys apart") {
  run({
      {"q: f32[(B@dp L@tp), N, H]; k: f32[(B@dp L), N, H]; p: i64[(B@dp L@tp)]; s: i64[(B@dp L)]", "z = attention(q, k, k, p, s)",
       "f32[(B@dp L@tp), N, H]"},
      {"q: f32[B@dp, L, N@tp, H]; k: f32[B@dp, L, N@tp, H]; p: i64[B@dp, L]", "z = attention(q, k, k, p, p)", "f32[B@dp, L, N@tp, H]"},
      {"q: f32[(B L@tp), N, H]; k: f32[(B L@tp), N, H]; p: i64[(B L@tp)]", "z = attention(q, k, k, p, p)", "!sharded-whole"},
      {"q: f32[B, L@tp, N, H]; k: f32[B, L, N, H]", "z = causal_attention(q, k, k)", "!sharded-whole"},
      {"q: f32[B, L@tp, N, H]; k: f32[B, L, N, H]", "z = full_attention(q, k, k)", "f32[B, L@tp, N, H]"},
      {"q: f32[T, N@tp, H]; k: f32[T, (G@tp R), H]", "z = full_attention(q, k, k)", "f32[T, N@tp, H]"},
      {"q: f32[T, N@tp, H]; k: f32[T, (G R@tp), H]", "z = full_attention(q, k, k)", "!not-contiguous"},
      {"q: f32[T, N, H@tp]; v: f32[T, N, H]", "z = full_attention(q, q, v)", "!sharded-whole"},
      {"k: f32[T, G@tp, H]", "z = repeat_heads(k, R)", "f32[T, (G@tp R), H]"},
  });
}

TEST_CASE("a new dimension is sharded as its users want it") {
  run({
      {"x: f32[T, N@tp, H]; k: f32[T, H]", "z = concat(x, expand(k, N))", "f32[T, N@tp, 16]"},
      {"x: f32[T, N, H]; k: f32[T, H]", "z = concat(x, expand(k, N))", "f32[T, N, 16]"},
      {"k: f32[T, H]", "z = expand(k, N@tp)", "f32[T, N@tp, H]"},
      {"k: f32[T, H] P@tp", "z = expand(k, N@tp)", "!new-needs-replicated"},
      {"k: f32[T, N]", "z, ids = topk(k, K@tp)", "!new-needs-replicated"}, // what is chosen from a row is chosen as one
  });
}

TEST_CASE("views keep shards where they stand") {
  run({
      {"x: f32[T, 96@tp]", "z = split(x, N, H)", "f32[T, N@tp, H]"},
      {"x: f32[T, 24@tp]", "z = split(x, R, H)", "!uneven-view"},
      {"x: f32[B@dp, L@tp, D]", "z = merge(x, dim=0)", "f32[(B@dp L@tp), D]"},
      {"x: f32[B, L@tp, D]", "z = reshape(x, T, D)", "f32[(B L@tp), D]"},
      {"x: f32[T@tp, D]", "z = reshape(x, B, L, D)", "!uneven-view"},
      {"x: f32[12, 8]", "z = reshape(x, L, 6)", "f32[L, 6]"},
      {"x: f32[12@tp, 8]", "z = reshape(x, L, 6)", "f32[L@tp, 6]"},
      {"x: f32[12@dp, 8]", "z = reshape(x, L, 6)", "!uneven-view"},
      {"x: f32[12, 8@tp]", "z = reshape(x, L, 6)", "!uneven-view"},
      {"x: f32[T@tp, 1, D]", "z = reshape(x, T, D)", "f32[T@tp, D]"},
      {"x: f32[T@tp, D]", "z = reshape(x, 1, T, D)", "f32[1, T@tp, D]"},
      {"x: f32[T@tp, N, H]", "z = transpose(x, 1, 0, 2)", "f32[N, T@tp, H]"},
      {"x: f32[T, D@tp]", "z = slice(x, 0, 8)", "!sharded-whole"},
      {"x: f32[T@tp, D]", "z = slice(x, 0, 8)", "f32[T@tp, 8]"},
      {"x: f32[T, D@tp]; y: f32[T, F@tp]", "z = concat(x, y)", "f32[T, (D@tp + F@tp)]"},
      {"x: f32[T, D@tp]; y: f32[T, F]", "z = concat(x, y)", "!shard-meets-replicated"},
      {"x: f32[T, (D@tp + F@tp)]", "a, b = unfuse(x)", "f32[T, D@tp]; f32[T, F@tp]"},
      {"x: f32[T, (D@tp + F@tp)]", "z = redistribute(x, S(1)@tp)", "f32[T, (D@tp + F@tp)]"},
      // The gradient of D would be partial, and a sum would add D four times.
      {"x: f32[T, (D + F@tp)]", "a, b = unfuse(x)", "!bad-attribute"},
      {"x: f32[T, (D + F@tp)]", "z = sum(x)", "!bad-attribute"},
  });
}

TEST_CASE("experts: dispatch and combine") {
  run({
      {"x: f32[T, D]; i: i64[T, K]", "z = dispatch(x, i)", "f32[E, c:T, D]"},
      {"x: f32[T@(dp,tp), D]; i: i64[T@(dp,tp), K]", "z = dispatch(x, i)", "f32[E, c@(dp,tp):T, D]"},
      {"x: f32[T, D@tp]; i: i64[T, K]", "z = dispatch(x, i)", "f32[E, c:T, D@tp]"},
      {"x: f32[T, D] P@tp; i: i64[T, K]", "z = dispatch(x, i)", "f32[E, c:T, D] P@tp"},
      {"x: f32[T@tp, D]; i: i64[T, K]", "z = dispatch(x, i)", "!shard-meets-replicated"},
      {"x: f32[T@tp, D]; i: i64[T@tp, K]", "z = dispatch(x, i, capacity=8)", "!sharded-whole"},
      {"x: f32[T, D]; i: i64[T, K]; w: f32[T, K]", "z = combine(redistribute(dispatch(x, i), E@tp), i, w)", "f32[T, D] P@tp"},
      {"x: f32[T, D]; i: i64[T, K]; w: f32[T, K]", "z = combine(redistribute(dispatch(x, i), c@tp), i, w)", "f32[T, D] P@tp"},
      {"x: f32[T@tp, D]; i: i64[T@tp, K]; w: f32[T@tp, K]", "z = combine(dispatch(x, i), i, w)", "f32[T@tp, D]"},
      {"x: f32[T@tp, D]; i: i64[T@tp, K]; w: f32[T@tp, K]", "z = combine(redistribute(redistribute(dispatch(x, i), E@tp), c@tp), i, w)",
       "f32[T@tp, D]"},
      {"x: f32[T@tp, D]; i: i64[T@tp, K]; w: f32[T@tp, K]", "z = combine(redistribute(dispatch(x, i), E@tp), i, w)", "!shard-conflict"},
      {"x: f32[T, D] P@tp; i: i64[T, K]; w: f32[T, K]", "z = combine(dispatch(x, i), i, w)", "f32[T, D] P@tp"},
      {"x: f32[T, D]; i: i64[T, K]", "z = dispatch(x, i, E@tp)", "!bad-attribute"},
      {"x: f32[T, D]; i: i64[T, K]; j: i64[T, K]; w: f32[T, K]", "z = combine(dispatch(x, i), j, w)", "!other-slots"},
  });
}

TEST_CASE("cross entropy with a sharded vocabulary") {
  run({
      {"x: f32[T, V@tp]; l: i64[T]", "z = cross_entropy(x, l)", "f32[] I@tp"},
      {"x: f32[T@dp, V@tp]; l: i64[T@dp]", "z = cross_entropy(x, l)", "f32[] P@dp I@tp"},
      {"x: f32[T@dp, V]; l: i64[T@dp]", "z = cross_entropy(x, l, reduction=mean)", "f32[] P(avg)@dp"},
      {"x: f32[T, V] P@tp; l: i64[T]", "z = cross_entropy(x, l)", "!partial-into-nonlinear"},
      {"x: f32[T, V@tp]; l: i64[T@tp]", "z = cross_entropy(x, l)", "!invariant-mixes"},
  });
}

TEST_CASE("dropout keyed by row numbers") {
  run({
      {"x: f32[T@tp, D]", "z = dropout(x, 0.1, seed=global)", "f32[T@tp, D]"},
      {"x: f32[T@tp, D]", "z = dropout(x, 0.1, seed=same)", "!sharded-whole"},
      {"x: f32[T, D]", "z = dropout(x, 0.1)", "f32[T, D]"},
      {"x: f32[T, D]", "z = dropout(x, 0.1, seed=rank)", "f32[T, D] V@(dp,tp)"},
  });
}

TEST_CASE("changes of layout") {
  run({
      {"x: f32[T, D] P@tp", "z = redistribute(x, P@tp -> T@tp)", "f32[T@tp, D]"},
      {"x: f32[T@(dp,tp), D]", "z = redistribute(x, T@tp -> R@tp)", "f32[T@dp, D]"},
      {"x: f32[T@(dp,tp), D]", "z = redistribute(x, T@dp -> R@dp)", "!not-innermost"},
      {"x: f32[T@(dp,tp), D]", "z = redistribute(x, R@(dp,tp))", "f32[T, D]"},
      {"x: f32[T@tp, D]", "z = redistribute(x, I@tp -> R@tp)", "!wrong-source"},
      {"x: f32[T@tp, D]", "z = redistribute(x, P@tp)", "f32[T, D] P@tp"},
      {"x: f32[T@tp, D]", "z = redistribute(x, D@tp)", "f32[T, D@tp]"},
      {"x: f32[U@tp, D]", "z = redistribute(x, D@tp)", "!uneven-exchange"},
      {"x: f32[T@tp, D]", "z = redistribute(x, H@tp)", "!no-such-dim"},
      {"x: f32[T@(dp,tp), D]; i: i64[T@(dp,tp), K]", "z = redistribute(dispatch(x, i), E@dp)", "f32[E@dp, c@tp:T@(dp,tp), D]"},
  });
}

TEST_CASE("constants that no layout makes right") {
  run({
      {"x: f32[T, D]", "z = scale(x, 1/0)", "!bad-attribute"},
      {"x: f32[T, D]", "z = scale(x, 1/4)", "f32[T, D]"},
      {"x: f32[T, D]", "z = dropout(x, 2)", "!bad-attribute"},
      {"x: f32[T, E]", "w, i = topk(x, 13)", "!bad-attribute"},
      {"x: f32[T, E]", "w, i = topk(x, E)", "f32[T, E]; i64[T, E]"},
      {"x: f32[T]; w: f32[V, D]", "z = embedding(x, w)", "!bad-attribute"},
      {"x: f32[T, D]; i: f32[T, K]", "z = dispatch(x, i)", "!bad-attribute"},
  });
}
