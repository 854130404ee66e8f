// Plans between types: whatever cuts a dimension, every element ends where the types say.
#include "Run.h"
#include "shardc/IR/Text.h"
#include "shardc/Plan/Redistribute.h"

using namespace shardc;

namespace {

struct Mesh {
  SourceManager sources;
  DiagnosticEngine diags{sources};
  Module module;
  const SizeTable sizes;

  explicit Mesh(llvm::ArrayRef<std::pair<std::string, int64_t>> axes) {
    ViewSpec view{"mesh", {}, {}};
    int64_t world = 1;
    for (const auto &[name, size] : axes) {
      AxisSpec axis;
      axis.name = name;
      axis.size = size;
      world *= size;
      view.axes.push_back(axis);
    }
    module.axes = *Axes::build({world, {}}, view, {}, diags);
  }

  Type type(llvm::StringRef text) {
    const FileId file = sources.add("type", text.str());
    ParseEnv env{module, sizes, diags};
    std::optional<Type> t = parseType(text, {file, 0, uint32_t(text.size())}, env);
    REQUIRE(t);
    return *t;
  }
};

// What a rank holds by the plan's boxes is what it holds by the type.
void compareBoxes(const Grid &grid, const Layout &l, const Type &type, const Axes &axes) {
  for (int64_t r = 0; r < grid.world; ++r) {
    for (unsigned d = 0; d < grid.dims(); ++d) {
      const Range byType = localRange(type.dims[d].factors[0], r, axes);
      const Range byPlan = grid.range(l, d, r);
      CHECK(byPlan.size() == byType.size());
      CHECK((byType.size() == 0 || byPlan == byType));
    }
  }
}

void planAndRun(Mesh &mesh, llvm::StringRef a, llvm::StringRef b) {
  INFO(a.str() << " to " << b.str());
  std::string why;
  const Type from = mesh.type(a);
  const Type to = mesh.type(b);
  const std::optional<Redistribution> plan = redistribute(from, to, mesh.module, flatMachine(), {}, why);
  REQUIRE(plan);
  compareBoxes(plan->grid, plan->from, from, mesh.module.axes);
  compareBoxes(plan->grid, plan->to, to, mesh.module.axes);
  Runner runner(plan->grid, plan->from);
  for (const Step &s : plan->steps) {
    runner.run(s);
    CHECK(plan->grid.product(s.group) <= plan->grid.world);
  }
  CHECK(runner.holds(plan->to));
}

} // namespace

TEST_CASE("every way to cut a dimension leads to every other") {
  Mesh mesh({{"a", 2}, {"b", 3}, {"c", 2}});
  for (int extent : {0, 1, 5, 7, 12}) {
    const std::string n = std::to_string(extent);
    std::vector<std::string> types;
    for (const char *cut : {"", "@a", "@(a,b)", "@(b,a)", "@(a,b)!flat", "@(b,a)!balanced", "@b!balanced", "@(a,b,c)"}) {
      types.push_back("f32[" + n + cut + ", 4]");
    }
    types.push_back("f32[" + n + "@a, 4@b] P@c");
    for (const std::string &a : types) {
      for (const std::string &b : types) {
        if (b.back() == ']') {
          planAndRun(mesh, a, b);
        }
      }
    }
  }
}

TEST_CASE("more digits than are searched are merged") {
  Mesh mesh({{"a", 16}, {"b", 8}, {"c", 4}});
  planAndRun(mesh, "f32[16@a, 8@b, 4]", "f32[16, 8@b, 4@c]");
  planAndRun(mesh, "f32[128@(a,b)]", "f32[128@(b,a)]");
}
