// Verdicts, and what a report assumes and leaves out.
#include "shardc/Verify/Verify.h"
#include "Catch.h"

using namespace shardc;

namespace {

struct Fixture {
  SourceManager sources;
  DiagnosticEngine diags{sources};
  TypedModule typed;

  Fixture() {
    Module &module = typed.module;
    module.root = FunctionId(0);
    module.functions.emplace_back();
    module.functions[0].name = module.names.intern("main");
    Instance root;
    root.function = module.root;
    root.uses = 1;
    typed.instances.push_back(root);
  }
  Function &main() { return typed.module.functions[0]; }
};

} // namespace

TEST_CASE("a program without findings is ok") {
  Fixture f;
  CHECK(verify(f.typed, {}, f.diags).verdict == Verdict::Ok);
}

TEST_CASE("an unchecked part makes a verdict incomplete, an error makes it findings") {
  Fixture f;
  Report known;
  known.unchecked = {{"adapters", "no model of them"}};
  CHECK(verify(f.typed, known, f.diags).verdict == Verdict::Incomplete);
  f.diags.emit<Diag::MissingKey>({}, "the job", "world");
  CHECK(verify(f.typed, known, f.diags).verdict == Verdict::Findings);
}

TEST_CASE("a warning alone leaves the verdict ok") {
  Fixture f;
  f.diags.emit<Diag::NoExperts>({}, 2, "llama3");
  CHECK(verify(f.typed, {}, f.diags).verdict == Verdict::Ok);
}

TEST_CASE("a value without a type is never silently ok") {
  Fixture f;
  addValue(f.main(), f.typed.module.names.intern("x"), ValueKind::Input, {}, {});
  f.typed.instances[0].values = {TypeId()};
  const Report report = verify(f.typed, {}, f.diags);
  CHECK(report.verdict == Verdict::Incomplete);
  REQUIRE(report.unchecked.size() == 1);
  CHECK(report.unchecked[0].what == "module `main`");
}

TEST_CASE("the reason of a relabelling is assumed") {
  Fixture f;
  Module &module = f.typed.module;
  const ValueId x = addValue(f.main(), module.names.intern("x"), ValueKind::Input, {}, {});
  Attrs attrs;
  attrs.change.reinterpretReason = "all ranks drew the same seed";
  module.attrs.push_back(attrs);
  addOp(f.main(), OpKind::Reinterpret, {x}, {module.names.intern("noise")}, {}).attrs = AttrsId(0);
  f.typed.instances[0].values = {module.types.intern({}), module.types.intern({})};
  const Report report = verify(f.typed, {}, f.diags);
  CHECK(report.assumes == std::vector<std::string>{"`noise` is relabelled rightly: all ranks drew the same seed"});
}

TEST_CASE("an inserted change is assumed, with what it moves") {
  Fixture f;
  Module &module = f.typed.module;
  const ViewSpec dense{"dense", {{"tp", 4, std::nullopt, {}}}, {}};
  module.axes = *Axes::build({4, {}}, {dense}, {}, f.diags);
  module.view = "dense";
  addValue(f.main(), module.names.intern("y"), ValueKind::Input, {}, {});
  Move move;
  move.value = ValueId(0);
  move.from = State::P;
  move.to = State::R;
  move.atoms = module.axes.find("tp")->atoms;
  move.forward = Primitive::AllReduce;
  move.forwardCost = {6, 96}; // 2 x 3 steps of a quarter of 64 bytes
  move.inserted = true;
  f.typed.instances[0].values = {module.types.intern({})};
  f.typed.instances[0].moves = {move};
  const Report report = verify(f.typed, {}, f.diags);
  CHECK(report.assumes == std::vector<std::string>{"inserted: `y` from P to R over tp, all-reduce of 96 bytes per rank"});
  CHECK(report.verdict == Verdict::Ok);
}
