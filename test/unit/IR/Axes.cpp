// Axes: the laws of digits on every small mesh, and what is said of meshes that are none.
#include "Catch.h"
#include "Meshes.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <map>

using namespace shardc;

namespace {

// An axis as arithmetic has it, without atoms.
struct Plain {
  std::string name;
  int64_t size;
  int64_t stride;
};

std::vector<Plain> plain(const std::vector<int64_t> &sizes, const std::string &prefix) {
  std::vector<Plain> axes(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0; stride *= sizes[i]) {
    axes[i] = {prefix + std::to_string(i), sizes[i], stride};
  }
  return axes;
}

ViewSpec spec(const std::vector<Plain> &axes, const std::string &name) {
  ViewSpec v;
  v.name = name;
  for (const Plain &axis : axes) {
    v.axes.push_back({axis.name, axis.size, std::nullopt, {}});
  }
  return v;
}

// Ranks that differ in nothing but the given axes of a view: by comparing all other coordinates.
std::vector<std::vector<int64_t>> bruteGroups(int64_t world, const std::vector<Plain> &axes, const std::vector<bool> &chosen) {
  std::map<std::vector<int64_t>, std::vector<int64_t>> byOthers;
  for (int64_t rank = 0; rank < world; ++rank) {
    std::vector<int64_t> others;
    for (size_t i = 0; i < axes.size(); ++i) {
      if (!chosen[i]) {
        others.push_back(rank / axes[i].stride % axes[i].size);
      }
    }
    byOthers[others].push_back(rank);
  }
  std::vector<std::vector<int64_t>> groups;
  for (auto &entry : byOthers) {
    groups.push_back(entry.second);
  }
  std::sort(groups.begin(), groups.end());
  return groups;
}

bool boundariesConflict(const std::vector<Plain> &a, const std::vector<Plain> &b) {
  return llvm::any_of(a, [&](const Plain &x) {
    return llvm::any_of(b, [&](const Plain &y) { return x.stride % y.stride != 0 && y.stride % x.stride != 0; });
  });
}

// Counts failures, so that a million checks are one assertion.
struct Law {
  int64_t checked = 0;
  int64_t broken = 0;
  void holds(bool yes) {
    ++checked;
    broken += !yes;
  }
};

template <class F> void forEachPairOfViews(F &&visit) {
  for (int64_t world = 1; world <= 24; ++world) {
    const auto all = factorisations(world, 4);
    for (const auto &first : all) {
      for (const auto &second : all) {
        const auto a = plain(first, "a");
        const auto b = plain(second, "b");
        visit(world, a, b, mesh(world, {spec(a, "A"), spec(b, "B")}));
      }
    }
  }
}

} // namespace

TEST_CASE("an axis is the ordered product of its atoms") {
  Law law;
  forEachPairOfViews([&](int64_t world, const auto &a, const auto &b, const Axes &axes) {
    for (const auto &view : {a, b}) {
      for (const Plain &p : view) {
        const Axis *axis = axes.find(p.name);
        law.holds(axis && axes.product(axis->atoms) == p.size);
        for (int64_t rank = 0; axis && rank < world; ++rank) {
          law.holds(axes.coordinate(rank, axis->atoms) == rank / p.stride % p.size);
        }
      }
    }
  });
  CHECK(law.checked > 50000);
  CHECK(law.broken == 0);
}

TEST_CASE("groups of digits are the groups of ranks") {
  Law law;
  forEachPairOfViews([&](int64_t world, const auto &a, const auto &b, const Axes &axes) {
    for (const auto &view : {a, b}) {
      for (size_t set = 0; set < size_t(1) << view.size(); ++set) {
        std::vector<bool> chosen;
        std::vector<AtomId> atoms;
        for (size_t i = 0; i < view.size(); ++i) {
          chosen.push_back((set >> i & 1) != 0);
          if (chosen.back()) {
            llvm::append_range(atoms, axes.find(view[i].name)->atoms);
          }
        }
        law.holds(axes.groups(atoms) == bruteGroups(world, view, chosen));
      }
    }
  });
  CHECK(law.broken == 0);
}

TEST_CASE("a block has variants exactly where boundaries do not divide one another") {
  Law law;
  forEachPairOfViews([&](int64_t world, const auto &a, const auto &b, const Axes &axes) {
    bool variants = false;
    for (uint32_t block = 0; block < axes.blockCount(); ++block) {
      variants |= axes.variantCount(block) > 1;
      for (uint32_t v = 1; v < axes.variantCount(block); ++v) {
        // Two ways of cutting the same ranks.
        law.holds(axes.groups(axes.blockAtoms(block, 0)) == axes.groups(axes.blockAtoms(block, v)));
        law.holds(llvm::ArrayRef(*axes.recut(axes.blockAtoms(block, 0), block, v)) == axes.blockAtoms(block, v));
      }
    }
    law.holds(variants == boundariesConflict(a, b));
    for (const auto &view : {a, b}) {
      int64_t covered = 1;
      for (const Plain &p : view) {
        covered *= axes.product(axes.find(p.name)->atoms);
      }
      law.holds(covered == world);
    }
  });
  CHECK(law.broken == 0);
}

TEST_CASE("what is described is found again") {
  Law law;
  forEachPairOfViews([&](int64_t, const auto &a, const auto &b, const Axes &axes) {
    for (const char *wanted : {"A", "B"}) {
      for (const auto &view : {a, b}) {
        for (size_t i = 0; i < view.size(); ++i) {
          std::vector<AtomId> atoms(axes.find(view[i].name)->atoms.begin(), axes.find(view[i].name)->atoms.end());
          if (i + 1 < view.size()) { // also reversed, where no axis covers the two
            llvm::append_range(atoms, axes.find(view[i + 1].name)->atoms);
            std::reverse(atoms.begin(), atoms.end());
          }
          std::vector<AtomId> again;
          const std::string text = axes.describe(atoms, wanted);
          for (llvm::StringRef rest = text; !rest.empty();) {
            auto [name, tail] = rest.split(',');
            const auto found = axes.findAtoms(name);
            law.holds(found.has_value());
            again.insert(again.end(), found->begin(), found->end());
            rest = tail;
          }
          law.holds(again == atoms);
        }
      }
    }
  });
  CHECK(law.broken == 0);
}

// dp_shard 3 and tp 2 against expert groups of 3: ranks 0..5 are cut 3 x 2 and 2 x 3.
TEST_CASE("expert groups across tensor groups make one block of six with two variants") {
  const Axes axes = mesh(12,
                         {view("dense", {{"pp", 1}, {"dp", 6}, {"cp", 1}, {"tp", 2}}),
                          view("storage", {{"pp", 1}, {"dp_replicate", 2}, {"dp_shard", 3}, {"cp", 1}, {"tp", 2}}),
                          view("sparse", {{"pp", 1}, {"dp_replicate", 2}, {"efsdp", 2}, {"ep", 3}})},
                         {{"fsdp", {"dp_shard", "cp"}, {}}, {"loss", {"dp", "cp"}, {}}});
  REQUIRE(axes.blockCount() == 2);
  CHECK(axes.variantCount(0) == 1);
  REQUIRE(axes.variantCount(1) == 2);
  CHECK(axes.find("dp")->atoms.size() == 2); // dp_replicate, dp_shard
  CHECK(axes.find("fsdp")->atoms == axes.find("dp_shard")->atoms);
  CHECK(axes.find("loss")->atoms == axes.find("dp")->atoms);
  CHECK(axes.find("cp")->atoms.empty());
  CHECK(axes.groups(axes.find("ep")->atoms).front() == std::vector<int64_t>{0, 1, 2});
  CHECK(axes.groups(axes.find("efsdp")->atoms).front() == std::vector<int64_t>{0, 3});
  CHECK(axes.groups(axes.find("dp_shard")->atoms).front() == std::vector<int64_t>{0, 2, 4});

  const auto dpTp = atomsOf(axes, {"dp", "tp"});
  const auto recut = axes.recut(dpTp, 1, 1);
  REQUIRE(recut);
  CHECK(std::vector<AtomId>(recut->begin(), recut->end()) == atomsOf(axes, {"dp_replicate", "efsdp", "ep"}));
  CHECK_FALSE(axes.recut(atomsOf(axes, {"dp"}), 1, 1));             // tp is missing
  CHECK_FALSE(axes.recut(atomsOf(axes, {"tp", "dp_shard"}), 1, 1)); // not in rank order
  CHECK(axes.describe(dpTp) == "dp,tp");
  CHECK(axes.describe(dpTp, "storage") == "dp_replicate,dp_shard,tp");
  CHECK(axes.describe(atomsOf(axes, {"dp_shard"}), "dense") == "dp_shard");
  CHECK(axes.describe(atomsOf(axes, {"dp_replicate", "ep"}), "dense") == "dp_replicate,ep");
}

// ep 8 over tp 4 swallows tp and then the inner half of dp.
TEST_CASE("a digit that no axis names alone is named by its place in an axis") {
  const Axes axes = mesh(16, {view("dense", {{"dp", 4}, {"tp", 4}}), view("expert", {{"edp", 2}, {"ep", 8}})});
  CHECK(axes.describe(atomsOf(axes, {"dp.1"})) == "dp.1");
  CHECK(axes.describe(atomsOf(axes, {"tp", "dp.1"})) == "tp,dp.1");
  CHECK(axes.describe(atomsOf(axes, {"ep"}), "dense") == "ep"); // one name rather than two digits
  CHECK(axes.describe(atomsOf(axes, {"edp"}), "dense") == "edp");
  CHECK_FALSE(axes.findAtoms("dp.2"));
  CHECK_FALSE(axes.findAtoms("dp.x"));
  CHECK_FALSE(axes.findAtoms("xp.0"));
}

TEST_CASE("strides may be written") {
  ViewSpec v = view("dense", {{"tp", 2}, {"dp", 3}});
  v.axes[0].stride = 1;
  v.axes[1].stride = 2;
  const Axes axes = mesh(6, {v});
  CHECK(axes.groups(axes.find("tp")->atoms) == std::vector<std::vector<int64_t>>{{0, 1}, {2, 3}, {4, 5}});
  CHECK(axes.groups(axes.find("dp")->atoms) == std::vector<std::vector<int64_t>>{{0, 2, 4}, {1, 3, 5}});
}

TEST_CASE("a large world costs nothing until its groups are asked for") {
  const int64_t dp = int64_t(1) << 40;
  const Axes axes = mesh(dp * 8, {view("dense", {{"dp", dp}, {"tp", 8}}), view("expert", {{"edp", dp / 4}, {"ep", 32}})});
  CHECK(axes.atoms().size() == 3);
  CHECK(axes.coordinate(dp * 8 - 1, axes.find("dp")->atoms) == dp - 1);
}

namespace {

struct Fault {
  std::string message;
  SourceRange range;
};

std::vector<Fault> faults(int64_t world, std::vector<ViewSpec> views, std::vector<FlatSpec> flats = {}) {
  SourceManager sources;
  DiagnosticEngine diags(sources);
  CHECK_FALSE(Axes::build({world, {FileId(0), 1, 2}}, views, flats, diags));
  std::vector<Fault> found;
  for (const Diagnostic &d : diags.all()) {
    found.push_back({d.message + " [" + diagName(d.id) + "]", d.range});
  }
  return found;
}

SourceRange at(uint32_t begin) { return {FileId(0), begin, begin + 1}; }

} // namespace

TEST_CASE("wrong meshes are reported where they are written") {
  ViewSpec v = view("dense", {{"dp", 0}, {"tp", -2}, {"tp", 2}, {"1x", 2}});
  for (uint32_t i = 0; i < v.axes.size(); ++i) {
    v.axes[i].range = at(10 + i);
  }
  auto found = faults(8, {v});
  REQUIRE(found.size() == 4);
  CHECK(found[0].message == "axis `dp` must have at least 1 rank, not 0 [bad-axis]");
  CHECK(found[0].range == at(10));
  CHECK(found[1].message == "axis `tp` must have at least 1 rank, not -2 [bad-axis]");
  CHECK(found[2].message == "axis `tp` stands twice in `dense` [bad-axis]");
  CHECK(found[2].range == at(12));
  CHECK(found[3].message == "axis `1x` needs a name of letters, digits and `_` that does not begin with a digit [bad-axis]");
}

TEST_CASE("a view must name every rank once") {
  ViewSpec v = view("dense", {{"dp", 2}, {"tp", 2}});
  v.range = at(5);
  auto found = faults(8, {v});
  REQUIRE(found.size() == 1);
  CHECK(found[0].message == "the axes of `dense` make 4 ranks, but the world has 8 [world-mismatch]");
  CHECK(found[0].range == at(5));

  v.axes[1].stride = 2;
  v.axes[1].range = at(7);
  found = faults(4, {v});
  REQUIRE(found.size() == 1);
  CHECK(found[0].message == "axis `dp` has stride 2 where `dense` needs 1 to name every rank once [bad-axis]");

  found = faults(0, {view("dense", {{"dp", 1}})});
  REQUIRE(found.size() == 1);
  CHECK(found[0].message == "`world` must be at least 1, not 0 [out-of-range]");
  CHECK(found[0].range == SourceRange{FileId(0), 1, 2});

  const int64_t huge = int64_t(1) << 40;
  found = faults(8, {view("dense", {{"dp", huge}, {"tp", huge}})});
  REQUIRE(found.size() == 1);
  CHECK(found[0].message == "axis `dp` makes more ranks than can be counted [bad-axis]");
}

TEST_CASE("a name means one digit in all views") {
  ViewSpec expert = view("expert", {{"tp", 2}, {"ep", 4}});
  expert.axes[0].range = at(9);
  auto found = faults(8, {view("dense", {{"dp", 4}, {"tp", 2}}), expert});
  REQUIRE(found.size() == 1);
  CHECK(found[0].message == "axis `tp` is 2 ranks with stride 4 in `expert` but 2 ranks with stride 1 in `dense` [axis-conflict]");
  CHECK(found[0].range == at(9));
}

TEST_CASE("flattened axes are products of axes, outermost first") {
  const std::vector<ViewSpec> views = {view("dense", {{"dp", 3}, {"tp", 2}}), view("expert", {{"edp", 2}, {"ep", 3}})};
  auto found = faults(6, views, {{"x", {"dp", "tpp"}, at(3)}});
  REQUIRE(found.size() == 1);
  CHECK(found[0].message == "`tpp` is not an axis [unknown-name]");
  CHECK(found[0].range == at(3));
  CHECK(faults(6, views, {{"x", {"tp", "dp"}, {}}})[0].message ==
        "axis `x` cannot be a product: `dp` stands outside of what is named before it (outermost first) [bad-axis]");
  CHECK(faults(6, views, {{"x", {"dp", "dp"}, {}}})[0].message ==
        "axis `x` cannot be a product: `dp` overlaps what is named before it (outermost first) [bad-axis]");
  CHECK(faults(6, views, {{"x", {"dp", "ep"}, {}}})[0].message ==
        "axis `x` cannot be a product: `ep` cuts the same ranks differently than what is named before it (outermost first) [bad-axis]");
  CHECK(faults(6, views, {{"tp", {"dp"}, {}}})[0].message == "axis `tp` is named already and means other ranks there [bad-axis]");
}
