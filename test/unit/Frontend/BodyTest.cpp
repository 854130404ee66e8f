// The body language: lines become operations, and what is wrong is reported where it stands.
#include "Written.h"

using namespace shardc;

TEST_CASE("nested calls become operations in order of execution", "[body]") {
  Written w;
  BodyBuilder b = w.builder();
  REQUIRE(w.line(b, "y = linear(mul(silu(linear(x, w)), linear(x, w1)), w2)"));
  REQUIRE(w.body().ops.size() == 5);
  CHECK(w.show(0) == "linear(x, w) -> linear");
  CHECK(w.show(1) == "silu(linear) -> silu");
  CHECK(w.show(2) == "linear(x, w1) -> linear_1");
  CHECK(w.show(3) == "mul(silu, linear_1) -> mul");
  CHECK(w.show(4) == "linear(mul, w2) -> y");
  CHECK(w.sources.text(w.body().ops[1].range) == "silu(linear(x, w))");
  CHECK(w.diags.all().empty());
}

TEST_CASE("a linear layer with a bias is a product and a sum", "[body]") {
  Written w;
  BodyBuilder b = w.builder();
  REQUIRE(w.line(b, "y = linear(x, w, bias)"));
  REQUIRE(w.body().ops.size() == 2);
  CHECK(w.show(0) == "linear(x, w) -> linear");
  CHECK(w.show(1) == "add(linear, bias) -> y");
}

TEST_CASE("what a person names keeps its name", "[body]") {
  Written w;
  BodyBuilder b = w.builder();
  REQUIRE(w.line(b, "y = silu(linear(x, w))"));
  REQUIRE(w.line(b, "linear = linear(y, w)"));
  CHECK(w.show(0) == "linear(x, w) -> linear_1");
  CHECK(w.show(1) == "silu(linear_1) -> y");
  CHECK(w.show(2) == "linear(y, w) -> linear");
}

TEST_CASE("a name alone is the same value under another name", "[body]") {
  Written w;
  BodyBuilder b = w.builder();
  REQUIRE(w.line(b, "y = x"));
  CHECK(w.show(0) == "identity(x) -> y");
}

TEST_CASE("after the tensors stand dimensions, numbers, words and options", "[body]") {
  Written w;
  BodyBuilder b = w.builder();
  REQUIRE(w.line(b, "s, i = topk(softmax(x), K, groups=4, limited=2)"));
  const Attrs &topk = w.module.attrs[w.body().ops[1].attrs.index];
  REQUIRE(topk.dims.size() == 1);
  CHECK(print(topk.dims[0], w.module) == "K");
  CHECK(topk.option("groups") == llvm::StringRef("4"));
  CHECK(topk.option("limited") == llvm::StringRef("2"));

  REQUIRE(w.line(b, "slots = dispatch(x, i)")); // as many experts as the size E
  CHECK(print(w.module.attrs[w.body().ops[2].attrs.index].dims[0], w.module) == "E");

  REQUIRE(w.line(b, "heads = split(x, (2 F@tp), 4)"));
  const Attrs &split = w.module.attrs[w.body().ops[3].attrs.index];
  REQUIRE(split.dims.size() == 2);
  CHECK(print(split.dims[0], w.module) == "(2 F@tp)");
  CHECK(print(split.dims[1], w.module) == "4");

  REQUIRE(w.line(b, "t = transpose(x, 1, 0)"));
  CHECK(w.module.attrs[w.body().ops[4].attrs.index].ints == llvm::SmallVector<int64_t, 4>{1, 0});
  REQUIRE(w.line(b, "part = slice(x, 0, D)")); // D = 8
  CHECK(w.module.attrs[w.body().ops[5].attrs.index].ints == llvm::SmallVector<int64_t, 4>{0, 8});
  REQUIRE(w.line(b, "half = scale(x, 1/sqrt(D))"));
  CHECK(w.module.attrs[w.body().ops[6].attrs.index].text == "1/sqrt(D)");
  REQUIRE(w.line(b, "e = einsum(x, w, \"td,fd->tf\")"));
  CHECK(w.module.attrs[w.body().ops[7].attrs.index].text == "td,fd->tf");
  CHECK(w.show(7) == "einsum(x, w) -> e");
}

TEST_CASE("a change is the rest of the call", "[body]") {
  Written w;
  BodyBuilder b = w.builder();
  REQUIRE(w.line(b, "y = redistribute(linear(x, w), P@tp -> T@tp; N@dp -> R@dp)"));
  const Change &c = w.module.attrs[w.body().ops[1].attrs.index].change;
  CHECK(print(c, w.module) == "P@tp -> T@tp; N@dp -> R@dp");
  REQUIRE(w.line(b, "z = redistribute(x, T@tp -> R@tp, gradient=\"P@tp -> I@tp\")"));
  const Change &declared = w.module.attrs[w.body().ops[2].attrs.index].change;
  REQUIRE(declared.declaredGradient.size() == 1);
  CHECK(declared.declaredGradient[0].first.state == State::P);
  CHECK(declared.declaredGradient[0].second.state == State::I);
  REQUIRE(w.line(b, "v = reinterpret(x, V@tp -> P@tp, reason=\"parts, one per rank\")"));
  CHECK(w.module.attrs[w.body().ops[3].attrs.index].change.reinterpretReason == "parts, one per rank");
}

TEST_CASE("submodules are called one after the other", "[body]") {
  Written w;
  Function layer;
  ValueId in = addValue(layer, w.module.names.intern("h"), ValueKind::Input, {}, {});
  layer.results = {in};
  w.module.functions.push_back(layer);
  auto resolve = [&](llvm::StringRef name, SourceRange) -> std::vector<Callee> {
    if (name != "layers") {
      return {};
    }
    return {{FunctionId(1), w.module.names.intern("layers.0")}, {FunctionId(1), w.module.names.intern("layers.1")}};
  };
  BodyBuilder b = w.builder(resolve);
  REQUIRE(w.line(b, "y = layers(silu(x))"));
  CHECK(w.show(1) == "layers.0(silu) -> layers.0");
  CHECK(w.show(2) == "layers.1(layers.0) -> y");
}

TEST_CASE("one function can be called under several names", "[body]") {
  Written w;
  Function layer;
  layer.results = {addValue(layer, w.module.names.intern("h"), ValueKind::Input, {}, {})};
  w.module.functions.push_back(layer);
  auto resolve = [&](llvm::StringRef name, SourceRange) -> std::vector<Callee> {
    return name == "block" ? std::vector<Callee>{{FunctionId(1), w.module.names.intern("block")}} : std::vector<Callee>();
  };
  BodyBuilder b = w.builder(resolve);
  REQUIRE(w.line(b, "y = block(x, as=first)"));
  REQUIRE(w.line(b, "z = block(y, as=layers, repeat=3)"));
  CHECK(w.show(0) == "first(x) -> y");
  CHECK(w.show(1) == "layers.0(y) -> layers.0");
  CHECK(w.show(3) == "layers.2(layers.1) -> z");
  CHECK_FALSE(w.line(b, "u = block(z, repeat=0)"));
  CHECK(w.finding(0) == "out-of-range: 0");
}

TEST_CASE("what is wrong in a line is reported where it stands", "[body]") {
  struct Case {
    const char *line;
    const char *finding;
  };
  const Case cases[] = {
      {"", "bad-expression: "},
      {"linear(x, w)", "bad-expression: linear(x, w)"},
      {"y =", "bad-expression: y ="},
      {"= silu(x)", "bad-expression: = silu(x)"},
      {"3 = silu(x)", "bad-expression: 3"},
      {"y = silu(x", "bad-expression: ("},
      {"y = silu(x))", "bad-expression: )"},
      {"y = silu(x]", "bad-expression: ]"},
      {"y = \"abc", "bad-expression: \""},
      {"y = silu(x) w", "bad-expression: silu(x) w"},
      {"y = add(x,, w)", "bad-expression: add(x,, w)"},
      {"y = silu(3)", "bad-expression: 3"},
      {"y = siluu(x)", "unknown-name: siluu"},
      {"y = call(x)", "unknown-name: call"},
      {"y = silu(xx)", "unknown-name: xx"},
      {"y = add(x, nowhere)", "unknown-name: nowhere"},
      {"y = add(x)", "wrong-arguments: add(x)"},
      {"y = mul(silu(x), add(x))", "wrong-arguments: add(x)"},
      {"y = add(x, w, bias)", "wrong-arguments: bias"},
      {"y = linear(x)", "wrong-arguments: linear(x)"},
      {"y = linear(x, w, bias, x)", "wrong-arguments: linear(x, w, bias, x)"},
      {"y = topk(x, K)", "wrong-results: topk(x, K)"},
      {"y, z = silu(x)", "wrong-results: silu(x)"},
      {"y, z = x", "wrong-results: x"},
      {"y = silu(topk(x, K))", "wrong-results: topk(x, K)"},
      {"y, z = topk(x)", "wrong-arguments: topk(x)"},
      {"y, z = topk(x, M)", "unknown-name: M"},
      {"y, z = topk(x, K, N)", "wrong-arguments: topk(x, K, N)"},
      {"y, z = topk(x, K, group=4)", "unknown-key: group"},
      {"y, z = topk(x, K, groups=4, groups=4)", "duplicate-key: groups"},
      {"y, z = topk(x, K, groups=many)", "out-of-range: many"},
      {"y, z = topk(x, K, groups=)", "bad-expression: groups"},
      {"y = dropout(x, 0.1, seed=none)", "out-of-range: none"},
      {"y = scale(x)", "wrong-arguments: scale(x)"},
      {"y = scale(x, w)", "unknown-name: w"},
      {"y = scale(x, 2 $ 3)", "bad-expression: $"},
      {"y = transpose(x, first)", "bad-expression: first"},
      {"y = slice(x, 1)", "wrong-arguments: slice(x, 1)"},
      {"y = redistribute(x)", "wrong-arguments: redistribute(x)"},
      {"y = redistribute(x, T@tq)", "unknown-name: tq"},
      {"y = redistribute(x, T@tp -> R@tp, gradient=R@tp)", "bad-change: R@tp"},
      {"y = reinterpret(x, V@tp -> P@tp)", "wrong-arguments: reinterpret(x, V@tp -> P@tp)"},
      {"x = silu(w)", "name-taken: x"},
      {"y, y = topk(x, K)", "name-taken: y"},
  };
  for (const Case &c : cases) {
    INFO(c.line);
    Written w;
    BodyBuilder b = w.builder();
    CHECK_FALSE(w.line(b, c.line));
    REQUIRE(w.diags.all().size() == 1);
    CHECK(w.finding(0) == c.finding);
  }
}

TEST_CASE("nearest names are offered", "[body]") {
  Written w;
  BodyBuilder b = w.builder();
  CHECK_FALSE(w.line(b, "y = rms_nrom(x, w)"));
  CHECK_FALSE(w.line(b, "z = silu(bia)"));
  CHECK(w.diags.all()[0].helps == std::vector<std::string>{"did you mean `rms_norm`?"});
  CHECK(w.diags.all()[1].helps == std::vector<std::string>{"did you mean `bias`?"});
}

TEST_CASE("every mistake of a line is reported, and its results are known afterwards", "[body]") {
  Written w;
  BodyBuilder b = w.builder();
  CHECK_FALSE(w.line(b, "y = add(siluu(x), mul(no, nor))"));
  REQUIRE(w.diags.all().size() == 3);
  CHECK(w.line(b, "z = silu(y)"));
  CHECK_FALSE(w.line(b, "u = silu(x"));
  CHECK(w.line(b, "v = silu(u)"));
  CHECK(w.diags.all().size() == 4);
}

TEST_CASE("deep nesting is refused, not followed", "[body]") {
  for (size_t depth : {size_t(127), size_t(129), size_t(1000000)}) {
    Written w;
    BodyBuilder b = w.builder();
    std::string text = "y = ";
    for (size_t i = 0; i < depth; ++i) {
      text += "neg(";
    }
    text += "x" + std::string(depth, ')');
    CHECK(w.line(b, text) == (depth < 128));
    CHECK(w.diags.all().size() == (depth < 128 ? 0 : 1));
  }
}

TEST_CASE("a boundary takes over the name of the value that it changes", "[body]") {
  Written w;
  BodyBuilder b = w.builder();
  SourceRange spec = w.place("T@tp -> R@tp");
  std::optional<ValueId> changed = b.boundary(*b.lookup("x"), w.sources.text(spec), spec);
  REQUIRE(changed);
  CHECK(b.lookup("x") == changed);
  CHECK(w.body().ops[0].boundary);
  CHECK(w.sources.text(w.body().ops[0].range) == "T@tp -> R@tp");
  REQUIRE(w.line(b, "y = silu(x)"));
  CHECK(w.body().operandsOf(w.body().ops[1]).front() == *changed);
}
