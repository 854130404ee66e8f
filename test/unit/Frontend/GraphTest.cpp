// Graph files: what they mean, that programs print as graph files and read back, and where mistakes are reported.
#include "Written.h"

using namespace shardc;

namespace {

struct GraphFile {
  SourceManager sources;
  DiagnosticEngine diags{sources};
  std::optional<Module> module;

  explicit GraphFile(const std::string &text) {
    FileId file = sources.add("graph.yaml", text);
    if (std::optional<ConfigNode> root = parseConfig(file, diags, ConfigFormat::Yaml)) {
      module = readGraph(*root, diags);
    }
  }
  const Function &root() const { return module->function(module->root); }
  std::string name(ValueId id) const { return module->names.str(root().values[id.index].name).str(); }
  std::string type(llvm::StringRef value) const {
    for (const Value &v : root().values) {
      if (module->names.str(v.name) == value && v.declared.valid()) {
        return print(module->types[v.declared], *module);
      }
    }
    return "";
  }
  std::vector<std::string> findings() const {
    std::vector<std::string> texts;
    for (const Diagnostic &d : diags.all()) {
      LineColumn at = d.range.valid() ? sources.lineColumn(d.range.file, d.range.begin) : LineColumn();
      texts.push_back(std::to_string(at.line) + ":" + std::to_string(at.column) + " " + diagName(d.id));
    }
    return texts;
  }
};

const char *const moe = R"(graph: moe block
world: 8
mesh:   {dense: {dp: 4, tp: 2}, expert: {efsdp: 4, ep: 2}}
flat:   {all: [dp, tp]}
sizes:  {b: 4, l: 1024, T: (b l), D: 256, E: 8, F: 256, K: 3, N: any % 8, M: any}
params:
  gate: bf16[E, D]
  w1: bf16[E@ep, F, D]
inputs:
  x: bf16[T@(dp,tp), D]
  ids: i64[T@(dp,tp)]
constants:
  mask: bf16[T@(dp,tp)]
ops:
  - scores, chosen = topk(softmax(linear(x, gate)), K)
  - slots = dispatch(x, chosen)
  - mine = redistribute(slots, E@ep)          # all-to-all
  - h = grouped_matmul(mine, w1)
types:
  h: "bf16[E@ep, c@dp:T, F]"
outputs: [h, scores]
)";

} // namespace

TEST_CASE("a graph file becomes a program", "[graph]") {
  GraphFile g(moe);
  CHECK(g.findings() == std::vector<std::string>{});
  REQUIRE(g.module);
  CHECK(g.module->name == "moe block");
  CHECK(g.module->view == "dense");
  CHECK(g.module->axes.world() == 8);
  CHECK(g.root().ops.size() == 6);
  CHECK(g.type("w1") == "bf16[E@tp, F, D]"); // ep and tp are the same ranks, and the first view names them
  CHECK(g.type("x") == "bf16[T@(dp,tp), D]");
  CHECK(g.type("h") == "bf16[E@tp, c@dp:T, F]");
  REQUIRE(g.root().results.size() == 2);
  CHECK(g.name(g.root().results[0]) == "h");
  CHECK(g.name(g.root().results[1]) == "scores");
}

TEST_CASE("integers and constants need no gradient", "[graph]") {
  GraphFile g(moe);
  REQUIRE(g.module);
  std::vector<std::pair<std::string, bool>> gradients;
  for (ValueId id : g.root().inputs) {
    gradients.emplace_back(g.name(id), g.module->types[g.root().values[id.index].declared].grad);
  }
  CHECK(gradients == std::vector<std::pair<std::string, bool>>{{"x", true}, {"ids", false}, {"mask", false}});
}

TEST_CASE("without outputs, what nothing reads is the result", "[graph]") {
  GraphFile g("graph: g\nworld: 1\nsizes: {D: 4}\ninputs:\n  x: f32[D]\nops:\n  - y = silu(x)\n  - z = neg(y)\n  - u = neg(y)\n");
  REQUIRE(g.module);
  REQUIRE(g.root().results.size() == 2);
  CHECK(g.name(g.root().results[0]) == "z");
  CHECK(g.name(g.root().results[1]) == "u");
}

TEST_CASE("a mesh of one view needs no name for it, an axis can have a stride", "[graph]") {
  GraphFile one("graph: g\nworld: 4\nmesh: {dp: 2, tp: 2}\n");
  REQUIRE(one.module);
  CHECK(one.module->axes.find("tp")->size == 2);
  GraphFile strided("graph: g\nworld: 4\nmesh: {dense: {tp: {size: 2, stride: 2}, dp: {size: 2, stride: 1}}}\n");
  REQUIRE(strided.module);
  const Axis *tp = strided.module->axes.find("tp");
  REQUIRE(tp->atoms.size() == 1);
  CHECK(strided.module->axes.groups(tp->atoms) == std::vector<std::vector<int64_t>>{{0, 2}, {1, 3}});
}

TEST_CASE("functions are called like operations", "[graph]") {
  GraphFile g(R"(graph: layers
world: 2
mesh: {tp: 2}
sizes: {T: 8, D: 4, F: 16}
functions:
  ffn:
    inputs: [x]
    params:
      w1: f32[F@tp, D]
      w2: f32[D, F@tp]
    ops:
      - y = linear(silu(linear(x, w1)), w2)
    returns: y
  block:
    inputs:
      h: f32[T@tp, D]
      bias:
    ops:
      - out = add(h, ffn(h))
      - again = add(out, ffn(bias))
    returns: [again]
boundaries:
  ffn: {in: {x: T@tp -> R@tp}, out: P@tp -> T@tp}
inputs:
  x: f32[T@tp, D]
ops:
  - y = block(x, x, as=layers, repeat=2)
  - z = block(y, y)
outputs: z
)");
  CHECK(g.findings() == std::vector<std::string>{});
  REQUIRE(g.module);
  const Function &ffn = g.module->function(FunctionId(0));
  REQUIRE(ffn.ops.size() == 5);
  CHECK(ffn.ops[0].boundary);
  CHECK(ffn.ops[4].boundary);
  CHECK(ffn.results[0] == ffn.result(ffn.ops[4]));
  CHECK(ffn.operandsOf(ffn.ops[1])[0] == ffn.result(ffn.ops[0])); // the first linear reads the gathered x
  const Function &block = g.module->function(FunctionId(1));
  CHECK(print(g.module->types[block.values[block.inputs[0].index].declared], *g.module) == "f32[T@tp, D]");
  CHECK_FALSE(block.values[block.inputs[1].index].declared.valid());
  CHECK(g.module->names.str(block.ops[0].instance) == "ffn");
  CHECK(g.module->names.str(block.ops[2].instance) == "ffn_1");
  REQUIRE(g.root().ops.size() == 3);
  CHECK(g.module->names.str(g.root().ops[1].instance) == "layers.1");
  CHECK(g.module->names.str(g.root().ops[2].instance) == "block_1");
}

TEST_CASE("boundaries change a value where it is defined", "[graph]") {
  GraphFile g(R"(graph: boundaries
world: 2
mesh: {tp: 2}
sizes: {T: 8, D: 4, F: 16}
params:
  w1: f32[F@tp, D]
  w2: f32[D, F@tp]
inputs:
  x: f32[T@tp, D]
boundaries:
  x: T@tp -> R@tp
  y: P@tp -> T@tp
ops:
  - y = linear(linear(x, w1), w2)
  - z = neg(y)
  - z: T@tp -> R@tp
)");
  CHECK(g.findings() == std::vector<std::string>{});
  REQUIRE(g.module);
  REQUIRE(g.root().ops.size() == 6);
  std::vector<bool> boundary;
  for (const Op &op : g.root().ops) {
    boundary.push_back(op.boundary);
  }
  CHECK(boundary == std::vector<bool>{true, false, false, true, false, true});
  CHECK(g.root().results == std::vector<ValueId>{g.root().result(g.root().ops[5])});
}

TEST_CASE("a loss says what its local value is", "[graph]") {
  GraphFile g("graph: g\nworld: 1\nsizes: {D: 4}\ninputs:\n  x: f32[D]\nops:\n  - y = sum(x)\nloss: {value: y, kind: global-mean}\n");
  REQUIRE(g.module);
  REQUIRE(g.module->loss);
  CHECK(g.name(g.module->loss->value) == "y");
  CHECK(g.module->loss->kind == LossKind::GlobalMean);
}

TEST_CASE("a program prints as a graph file that means the same", "[graph]") {
  const char *const functions = R"(graph: "tricky: names # and \"quotes\""
world: 8
mesh: {dense: {dp: 2, cp: 2, tp: 2}, expert: {efsdp: 4, ep: 2}}
flat: {dp_cp: [dp, cp], all: [dp, cp, tp]}
sizes: {b: 4, l: 8, T: (b l), D: 4, F: 16, E: 4, K: 2, N: any % 8, X: 2, Q: 2, C: 2}
functions:
  attention:
    inputs: [q, k]
    params:
      w: f32[D]
    ops:
      - a = mul(q, scale(k, 1/sqrt(D)))
      - a = silu(a)
    returns: [b]
  silu:
    inputs: {x: , y: "[T@dp, D]"}
    ops:
      - x: R@tp -> I@tp
      - z = add(x, y)
      - z: I@tp -> R@tp
    types: {z: "[T@dp, D]"}
    returns: [z]
inputs:
  x: f32[(b@dp l@(cp,tp)), D]
  u: f32[N@dp, D]
  mask: "f32[T@dp] detached"
buffers:
  cache: f32[T, D] P(avg)@(dp,cp) I@tp
ops:
  - e = einsum(x, x, "td,ed->te")
  - s, i = topk(x, K, groups=2, limited=1)
  - slots = dispatch(x, i, E)
  - moved = redistribute(slots, c@(cp,tp):T -> E@(cp,tp); N@dp -> R@dp)
  - own = redistribute(x, T@tp -> R@tp, gradient="P@tp -> I@tp")
  - r = reinterpret(x, V@tp -> P@tp, reason="it's the parts, one per rank")
  - t = transpose(x, 1, 0)
  - sp = split(x, (2 X@tp), C, dim=1)
  - d = dropout(x, 0.1, seed=same)
  - y = silu(x, x)
  - z = silu(y, y, as=layers.0)
  - q = cast(silu(z, neg(z)), f32)
loss: {value: q, kind: sum}
)";
  std::string fixed = functions; // `a` twice is a mistake, made right here to keep the text above honest about names
  fixed.replace(fixed.find("- a = silu(a)"), 13, "- b = neg(a)");
  for (const std::string &text : {std::string(moe), fixed}) {
    GraphFile first(text);
    CHECK(first.findings() == std::vector<std::string>(text == fixed ? 1 : 0, "7:3 uncalled-function"));
    REQUIRE(first.module);
    std::string printed = printGraph(*first.module);
    INFO(printed);
    GraphFile second(printed);
    for (const Diagnostic &d : second.diags.all()) {
      CHECK(d.severity != Severity::Error);
      UNSCOPED_INFO(d.message);
    }
    REQUIRE(second.module);
    CHECK(printGraph(*second.module) == printed);
    REQUIRE(second.module->functions.size() == first.module->functions.size());
    for (size_t i = 0; i < first.module->functions.size(); ++i) {
      const Function &a = first.module->functions[i], &b = second.module->functions[i];
      REQUIRE(a.ops.size() == b.ops.size());
      CHECK(a.operands == b.operands);
      CHECK(a.results == b.results);
      for (size_t o = 0; o < a.ops.size(); ++o) {
        CHECK(a.ops[o].kind == b.ops[o].kind);
        CHECK(a.ops[o].boundary == b.ops[o].boundary);
        CHECK(first.module->names.str(a.ops[o].instance) == second.module->names.str(b.ops[o].instance));
      }
      for (size_t v = 0; v < a.values.size(); ++v) {
        CHECK(first.module->names.str(a.values[v].name) == second.module->names.str(b.values[v].name));
        const TypeId ta = a.values[v].declared, tb = b.values[v].declared;
        REQUIRE(ta.valid() == tb.valid());
        CHECK((!ta.valid() || print(first.module->types[ta], *first.module) == print(second.module->types[tb], *second.module)));
      }
    }
  }
}

TEST_CASE("a model with its layouts prints as a graph file that means the same", "[graph]") {
  SourceManager sources;
  DiagnosticEngine diags{sources};
  JobRequest request;
  request.model = Located<std::string>{"deepseek_v3/debugmodel", {}};
  request.world = Located<int64_t>{8, {}};
  request.framework = Located<std::string>{"torchtitan@2026-08-10", {}};
  for (const char *flag : {"--parallelism.tensor_parallel_degree", "2", "--parallelism.expert_parallel_degree", "2"}) {
    request.flags.push_back({flag, {}});
  }
  std::optional<Job> job = buildJob(request, diags);
  REQUIRE(job);
  std::optional<Module> model = buildModule(*job, diags);
  REQUIRE(model);
  std::string printed = printGraph(*model);
  GraphFile again(printed);
  for (const Diagnostic &d : again.diags.all()) {
    LineColumn at = again.sources.lineColumn(d.range.file, d.range.begin);
    UNSCOPED_INFO(again.sources.line(d.range.file, at.line).str() << ": " << d.message);
    CHECK(d.severity != Severity::Error);
  }
  REQUIRE(again.module);
  CHECK(printGraph(*again.module) == printed);
  CHECK(countParameters(*again.module) == countParameters(*model));
  size_t ops[2] = {0, 0}, boundaries[2] = {0, 0};
  for (const Module *m : {&*model, &*again.module}) {
    for (const Function &f : m->functions) {
      ops[m != &*model] += f.ops.size();
      boundaries[m != &*model] += llvm::count_if(f.ops, [](const Op &op) { return op.boundary; });
    }
  }
  CHECK(ops[0] == ops[1]);
  CHECK(boundaries[0] == boundaries[1]);
}

TEST_CASE("mistakes in a graph file are reported where they stand", "[graph]") {
  struct Case {
    const char *text;
    std::vector<std::string> findings;
  };
  const std::string head = "graph: g\nworld: 2\nmesh: {tp: 2}\nsizes: {T: 8, D: 4}\n"; // four lines
  const Case cases[] = {
      {"input: {x: 2}\n", {"5:1 unknown-key"}},
      {"inputs: {x: [T, D]}\n", {"5:13 bad-type"}},
      {"inputs:\n  x: f32[T, M]\n", {"6:13 unknown-name"}},
      {"inputs:\n  x y: f32[T]\n", {"6:3 bad-expression"}},
      {"inputs:\n  x: f32[T]\nparams:\n  x: f32[T]\n", {"6:3 name-taken"}},
      {"ops: y = silu(x)\n", {"5:6 wrong-kind"}},
      {"ops:\n  - [a]\n", {"6:5 bad-expression"}},
      {"ops:\n  - y = silu(x)\n  - z = neg(u)\n", {"6:14 unknown-name", "7:13 unknown-name"}},
      {"ops:\n  - x: R@tp\n", {"6:5 unknown-name"}},
      {"boundaries: {x: R@tp -> I@tp}\n", {"5:14 unknown-name"}},
      {"inputs:\n  x: f32[T]\nboundaries: {x: [R@tp]}\n", {"7:17 bad-change"}},
      {"inputs:\n  x: f32[T]\nboundaries: {x: R@tq}\n", {"7:19 unknown-name"}},
      {"inputs:\n  x: f32[T]\nboundaries: T@tp\n", {"7:13 wrong-kind"}},
      {"types: {y: \"[T]\"}\n", {"5:9 unknown-name"}},
      {"inputs:\n  x: f32[T]\ntypes:\n  x: f32[T]\n", {"8:3 name-taken"}},
      {"outputs: [y]\n", {"5:11 unknown-name"}},
      {"loss: {value: y, kind: sum}\n", {"5:15 unknown-name"}},
      {"inputs:\n  x: f32[T]\nloss: {value: x, kind: median}\n", {"7:24 out-of-range"}},
      {"loss: {kind: sum}\n", {"5:7 missing-key"}},
      {"sync: {x: tp}\n", {"5:8 unknown-key"}},
      {"functions:\n  f: {inputs: [x], ops: [y = silu(x)], returns: y}\n", {"6:3 uncalled-function"}},
      {"functions:\n  f: {inputs: [x], outs: x, returns: x}\nops:\n  - y = f(x)\n", {"6:20 unknown-key", "8:11 unknown-name"}},
      {"functions:\n  f:\n    inputs: [x]\n    ops:\n    - y = g(x)\n    returns: y\n  g: {inputs: [x], returns: x}\n",
       {"9:11 unknown-name", "6:3 uncalled-function", "11:3 uncalled-function"}},
      {"functions:\n  f: {inputs: [x], ops: [y = f(x)], returns: y}\n", {"6:30 unknown-name", "6:3 uncalled-function"}},
      {"functions:\n  f: {inputs: [x], returns: x}\ninputs:\n  x: f32[T]\nops:\n  - y = f(x, x)\n", {"10:9 wrong-arguments"}},
      {"functions:\n  f: {inputs: [x], returns: x}\ninputs:\n  x: f32[T]\nops:\n  - y, z = f(x)\n", {"10:12 wrong-results"}},
      {"functions:\n  f: {inputs: [x]}\n", {"6:6 missing-key", "6:3 uncalled-function"}},
  };
  for (const Case &c : cases) {
    INFO(c.text);
    GraphFile g(head + c.text);
    CHECK(g.findings() == c.findings);
  }
}

TEST_CASE("mistakes in mesh and sizes are reported where they stand", "[graph]") {
  struct Case {
    const char *text;
    std::vector<std::string> findings;
  };
  const Case cases[] = {
      {"mesh: {tp: 2}\n", {"1:1 missing-key"}},
      {"world: 0\n", {"1:8 out-of-range"}},
      {"world: many\n", {"1:8 wrong-kind"}},
      {"world: 2\nmesh: {tp: two}\n", {"2:12 out-of-range"}},
      {"world: 2\nmesh: {dense: {tp: -2}}\n", {"2:20 out-of-range"}},
      {"world: 2\nmesh: {dense: {tp: 2}, expert: 2}\n", {"2:32 wrong-kind"}},
      {"world: 2\nmesh: {dense: {tp: {size: 2, strid: 1}}}\n", {"2:30 unknown-key"}},
      {"world: 2\nmesh: {dense: {tp: {size: 2, stride: 1}, x: {stride: 1}}}\n", {"2:45 missing-key"}},
      {"sizes: {T: -1}\n", {"1:12 out-of-range"}},
      {"sizes: {T: [b, l]}\n", {"1:12 out-of-range"}},
      {"sizes: {T: 99999999999999999999}\n", {"1:12 out-of-range"}},
      {"sizes: {T: any % 0}\n", {"1:12 out-of-range"}},
      {"sizes: {T: any 8}\n", {"1:12 out-of-range"}},
      {"sizes: {T: (b l), b: 2}\n", {"1:12 unknown-name"}},
      {"sizes: {b: 2, l: (b b), T: (b l)}\n", {"1:28 out-of-range"}},
      {"sizes: {1a: 2}\n", {"1:9 bad-expression"}},
  };
  for (const Case &c : cases) {
    INFO(c.text);
    GraphFile g(c.text);
    CHECK(g.findings() == c.findings);
    CHECK_FALSE(g.module);
  }
}
