// The groups of ColossalAI's two plugins: rows of a row-major mesh whose axes the plugin orders, by hand.
#include "Catch.h"
#include "TorchtitanRun.h"

using namespace shardc;

namespace {

// "{0,2}{1,3}", "" for an axis of that name that the job does not have.
std::string groups(const Axes &axes, llvm::StringRef name) {
  const Axis *axis = axes.find(name);
  std::string text;
  for (const std::vector<int64_t> &group : axis ? axes.groups(axis->atoms) : std::vector<std::vector<int64_t>>()) {
    text += '{';
    for (size_t i = 0; i < group.size(); ++i) {
      text += (i ? "," : "") + std::to_string(group[i]);
    }
    text += '}';
  }
  return text;
}

constexpr const char *Alone4 = "{0}{1}{2}{3}";
constexpr const char *Alone8 = "{0}{1}{2}{3}{4}{5}{6}{7}";
constexpr const char *Pairs = "{0,1}{2,3}{4,5}{6,7}";
constexpr const char *Halves = "{0,4}{1,5}{2,6}{3,7}";
constexpr const char *Twos = "{0,2}{1,3}{4,6}{5,7}";
constexpr const char *Evens = "{0,2,4,6}{1,3,5,7}";
constexpr const char *Quads = "{0,1,2,3}{4,5,6,7}";
constexpr const char *All8 = "{0,1,2,3,4,5,6,7}";

struct Row {
  int64_t world;
  const char *flags;
  const char *ep, *moeDp, *dp, *mixedDp, *mixedMoeDp, *pp;
};

constexpr const char *AllToAll = " --enable_sequence_parallelism --sequence_parallelism_mode all_to_all";

constexpr Row MoeRows[] = {
    {4, "--tp 1 --pp 1 --ep 2 --sp 2", "{0,2}{1,3}", Alone4, "{0,2}{1,3}", "{0,1,2,3}", "{0,1}{2,3}", Alone4},
    {4, "--tp 1 --pp 1 --ep 2 --sp 1", "{0,1}{2,3}", "{0,2}{1,3}", "{0,1,2,3}", "{0,1,2,3}", "{0,2}{1,3}", Alone4},
    {4, "--tp 1 --pp 1 --ep 4 --sp 1", "{0,1,2,3}", Alone4, "{0,1,2,3}", "{0,1,2,3}", Alone4, Alone4},
    {8, "--tp 1 --pp 1 --ep 2 --sp 2", Twos, Halves, Evens, All8, "{0,1,4,5}{2,3,6,7}", Alone8},
    {8, "--tp 2 --pp 1 --ep 2 --sp 1", Twos, Halves, Evens, Evens, Halves, Alone8},
    {8, "--tp 2 --pp 1 --ep 2 --sp 2", Halves, Alone8, Halves, "{0,1,4,5}{2,3,6,7}", Pairs, Alone8},
    {8, "--tp 1 --pp 2 --ep 2 --sp 1", Pairs, Halves, "{0,1,4,5}{2,3,6,7}", "{0,1,4,5}{2,3,6,7}", Halves, Twos},
    {8, "--tp 1 --pp 2 --ep 2 --sp 1 --moe_dp_outside false", Pairs, Twos, Quads, Quads, Twos, Halves},
    {8, "--tp 2 --pp 2 --ep 2 --sp 1", Twos, Alone8, Twos, Twos, Alone8, Halves},
};

} // namespace

TEST_CASE("colossalai: the groups of the plugin for experts") {
  for (const Row &row : MoeRows) {
    for (const char *version : {"0.5.0", "6466"}) {
      INFO(version << " " << row.world << " " << row.flags);
      const bool sequences = llvm::StringRef(row.flags).contains("--sp 2"), stages = llvm::StringRef(row.flags).contains("--pp 2");
      const std::string flags = std::string(row.flags) + " --zero 1" + (sequences ? AllToAll : "") + (stages ? " --mbs 1" : "");
      TorchtitanRun run(version, "mixtral/8x7B", row.world, flags, false, "colossalai");
      REQUIRE(run.found() == "");
      REQUIRE(run.job);
      const std::optional<Axes> axes = Axes::build(run.job->world, run.job->views, run.job->flats, run.diags);
      REQUIRE(axes);
      CHECK(groups(*axes, "ep") == row.ep);
      CHECK(groups(*axes, "moe_dp") == row.moeDp);
      CHECK(groups(*axes, "dp") == row.dp);
      CHECK(groups(*axes, "mixed_dp") == row.mixedDp);
      CHECK(groups(*axes, "pp") == row.pp);
      // Before the mend experts were reduced over moe_dp alone, and the group had no name.
      CHECK(groups(*axes, "mixed_moe_dp") == (llvm::StringRef(version) == "6466" ? row.mixedMoeDp : ""));
    }
  }
}

TEST_CASE("colossalai: ring attention has its ranks outside of tensor parallelism, all-to-all inside") {
  struct {
    const char *flags, *tp, *sp, *dp, *mixed;
  } rows[] = {
      {"--sequence_parallelism_mode all_to_all --sp 2 --tp 2 --pp 1", Twos, Pairs, Halves, "{0,1,4,5}{2,3,6,7}"},
      {"--sequence_parallelism_mode ring_attn --sp 2 --tp 2 --pp 1", Pairs, Twos, Halves, Evens},
      // The ranks of tp share the sequences, and the axis has one.
      {"--sequence_parallelism_mode split_gather --tp 2 --pp 1", Pairs, Alone8, Evens, Evens},
      {"--sequence_parallelism_mode ring --tp 2 --pp 1", Pairs, Alone8, Evens, Evens},
      // pp outermost: dp, tp and sp stay within a stage.
      {"--sequence_parallelism_mode all_to_all --sp 2 --tp 1 --pp 2 --mbs 1 --dp_outside false", Alone8, Pairs, Twos, Quads},
      {"--sequence_parallelism_mode ring_attn --sp 2 --tp 1 --pp 2 --mbs 1", Alone8, Pairs, Halves, "{0,1,4,5}{2,3,6,7}"},
  };
  for (const auto &row : rows) {
    INFO(row.flags);
    TorchtitanRun run("6466", "llama3/8B", 8, std::string("--zero 1 --enable_sequence_parallelism ") + row.flags, false, "colossalai");
    REQUIRE(run.found() == "");
    const std::optional<Axes> axes = Axes::build(run.job->world, run.job->views, run.job->flats, run.diags);
    REQUIRE(axes);
    CHECK(groups(*axes, "tp") == row.tp);
    CHECK(groups(*axes, "sp") == row.sp);
    CHECK(groups(*axes, "dp") == row.dp);
    CHECK(groups(*axes, "mixed_dp") == row.mixed);
    const bool shared = groups(*axes, "sp_group") != "";
    CHECK(shared == (groups(*axes, "sp") == Alone8));
    CHECK((!shared || groups(*axes, "sp_group") == row.tp));
  }
}
