// Slices: parts of a row follow one another and end where it does; and over all ranks every element of every parameter is kept
// equally often, whatever the widths.
#include "Catch.h"
#include "shardc/Frontend/Dialect.h"
#include "shardc/Frontend/Storage.h"
#include "shardc/Frontend/Sync.h"
#include "shardc/Verify/Verify.h"
#include "llvm/ADT/StringExtras.h"

using namespace shardc;

namespace {

struct Graph {
  SourceManager sources;
  DiagnosticEngine diags{sources};
  std::optional<TypedModule> typed;
  std::vector<StoredParam> stored;

  explicit Graph(const std::string &text) {
    const std::optional<ConfigNode> root = parseConfig(sources.add("graph.yaml", text), diags, ConfigFormat::Yaml);
    std::optional<Module> module = root ? readGraph(*root, diags) : std::nullopt;
    if (module) {
      typed = infer(std::move(*module), InferOptions(), diags);
      stored = storedParams(*typed, {});
    }
  }
};

int64_t strideOf(const std::vector<int64_t> &shape, size_t dim) {
  int64_t stride = 1;
  for (size_t d = dim + 1; d < shape.size(); ++d) {
    stride *= shape[d];
  }
  return stride;
}

// How often each element of a parameter is kept, by listing the elements of every rank's slice. One factor per dimension.
std::vector<int64_t> coverage(const Graph &g, const StoredParam &param) {
  const Type &type = g.typed->module.types[param.type];
  std::vector<int64_t> shape;
  for (const Dim &dim : type.dims) {
    shape.push_back(dim.factors[0].extent);
  }
  std::vector<int64_t> seen(static_cast<size_t>(shape[0] * strideOf(shape, 0)), 0);
  for (int64_t rank = 0; rank < g.typed->module.axes.world(); ++rank) {
    const Slice slice = sliceOf(*g.typed, g.stored, param, rank);
    std::vector<Range> box(slice.box.begin(), slice.box.end());
    if (param.rule.cut == StorageCut::Dim) { // rows of the box
      Range &rows = box[static_cast<size_t>(param.rule.dim)];
      rows = {rows.begin + slice.cut.elements.begin, rows.begin + slice.cut.elements.end};
    }
    int64_t elements = 1;
    std::vector<int64_t> extents;
    for (const Range &r : box) {
      extents.push_back(r.size());
      elements *= r.size();
    }
    for (int64_t e = 0; e < elements; ++e) {
      int64_t global = 0;
      for (size_t d = 0; d < box.size(); ++d) {
        global += (box[d].begin + e / strideOf(extents, d) % extents[d]) * strideOf(shape, d);
      }
      const bool own = param.rule.cut == StorageCut::Dim || (e >= slice.cut.elements.begin && e < slice.cut.elements.end);
      seen[static_cast<size_t>(global)] += own;
    }
  }
  return seen;
}

std::string graphOf(const std::string &mesh, int64_t world, int64_t rows, int64_t columns, const std::string &rule) {
  return "world: " + std::to_string(world) + "\nmesh: {dense: " + mesh + "}\nsizes: {T: 64, D: " + std::to_string(columns) +
         ", F: " + std::to_string(rows) + "}\nparams:\n  w: f32[F@tp, D]\n  n: f32[D]\ninputs:\n  x: f32[T@dp, D]\nops:\n" +
         "  - y = linear(rms_norm(x, n), w)\nstorage:\n  rules:\n    - " + rule + "\n";
}

} // namespace

TEST_CASE("the parts of a row follow one another to its end") {
  for (int64_t elements : {0, 1, 2, 7, 30, 32, 97, 1 << 20}) {
    for (int64_t ranks : {1, 2, 3, 4, 7, 64}) {
      for (int64_t multiple : {int64_t(1), ranks, 2 * ranks, int64_t(3), int64_t(1) << 40}) {
        const CutRow row = CutRow::make(elements, ranks, multiple);
        int64_t end = 0;
        for (int64_t i = 0; i < ranks; ++i) {
          const Cut cut = row.at(i);
          CHECK(cut.elements.begin == end);
          CHECK(cut.elements.size() + cut.pad == row.each);
          end = cut.elements.end;
        }
        CHECK(end == elements);
      }
    }
  }
}

TEST_CASE("parts of published and of extreme rows") {
  CHECK(cutsText(CutRow::make(30, 4, 8)) == "8, 8, 8, 6+2"); // ZeRO 1 and 2: a multiple of twice the ranks
  CHECK(cutsText(CutRow::make(30, 2, 4)) == "16, 14+2");
  CHECK(cutsText(CutRow::make(30, 4, 4)) == "8, 8, 8, 6+2"); // ZeRO 3, and dense parameters of ColossalAI
  CHECK(cutsText(CutRow::make(30, 2, 2)) == "15, 15");
  CHECK(cutsText(CutRow::make(10, 4, 4)) == "3, 3, 3, 1+2"); // FSDP's chunks
  CHECK(cutsText(CutRow::make(2, 4, 4)) == "1, 1, 0+1, 0+1");
  CHECK(cutsText(CutRow::make(1, 8, 16)) == "1+1, 0+2, 0+2, ..., 0+2");
  CHECK(cutsText(CutRow::make(INT64_MAX, 2, 2)) == "4611686018427387904, 4611686018427387903+1");
}

TEST_CASE("over all ranks every element is kept equally often") {
  constexpr const char *Rules[] = {"{params: '*', cut: whole}",
                                   "{params: '*', cut: dim, over: dp}",
                                   "{params: '*', cut: dim, dim: 1, over: dp}",
                                   "{params: '*', cut: flat, over: dp}",
                                   "{params: '*', cut: flat, over: dp, align: 2}",
                                   "{params: '*', cut: buffer, over: dp, align: 2}"};
  struct MeshCase {
    const char *mesh;
    int64_t world;
  };
  for (const MeshCase &mesh :
       {MeshCase{"{dp: 4, tp: 2}", 8}, MeshCase{"{tp: 3, dp: 2}", 6}, MeshCase{"{dp: 1, tp: 1}", 1}, MeshCase{"{dp: 7, tp: 1}", 7}}) {
    for (const auto &[rows, columns] : {std::pair<int64_t, int64_t>{8, 5}, {7, 3}, {1, 1}, {13, 2}}) {
      for (const char *rule : Rules) {
        INFO(mesh.mesh << " [" << rows << ", " << columns << "] " << rule);
        const Graph g(graphOf(mesh.mesh, mesh.world, rows, columns, rule));
        REQUIRE(g.typed);
        REQUIRE(g.stored.size() == 2);
        for (const StoredParam &param : g.stored) {
          CHECK(!findUntiled(*g.typed, param));
          if (param.rule.cut == StorageCut::Dim && param.rule.dim == 1 && g.typed->module.types[param.type].dims.size() == 1) {
            continue; // said elsewhere: it has no such dimension
          }
          const std::vector<int64_t> seen = coverage(g, param);
          CHECK(llvm::all_of(seen, [&](int64_t n) { return n == seen[0] && n > 0; }));
        }
      }
    }
  }
}

namespace {

// All ranks' elements, against those of the parameter.
void checkSums(const TypedModule &typed, llvm::ArrayRef<StoredParam> stored) {
  const Axes &axes = typed.module.axes;
  REQUIRE(!stored.empty());
  for (const StoredParam &param : stored) {
    INFO(param.path);
    const Type &type = typed.module.types[param.type];
    int64_t all = 1, sum = 0, distinct = 1;
    for (const Dim &dim : type.dims) {
      int64_t extent = dim.concat ? 0 : 1;
      for (const Factor &f : dim.factors) {
        extent = dim.concat ? extent + globalExtent(f) : extent * globalExtent(f);
      }
      all *= extent;
    }
    for (size_t a = 0; a < axes.atoms().size(); ++a) {
      const bool over = param.rule.cut != StorageCut::Whole && llvm::is_contained(param.rule.share.over, AtomId(a));
      distinct *= over || stateOf(type, AtomId(a)) == State::S ? axes.atom(AtomId(a)).size : 1;
    }
    for (int64_t rank = 0; rank < axes.world(); ++rank) {
      const Slice slice = sliceOf(typed, stored, param, rank);
      const llvm::SmallVector<int64_t, 4> shape = localShape(type, rank, axes);
      int64_t box = 1;
      for (int64_t extent : shape) {
        box *= extent;
      }
      const int64_t rows = param.rule.cut == StorageCut::Dim ? shape[static_cast<size_t>(param.rule.dim)]
                           : param.rule.each                 ? box / shape[0]
                                                             : box;
      CHECK(slice.cut.elements.end <= rows);
      sum += rows == 0 ? 0 : box / rows * slice.cut.elements.size();
    }
    CHECK(sum == all * (axes.world() / distinct));
  }
}

struct FrameworkCase {
  const char *framework, *model;
  int64_t world;
  const char *flags;
};

} // namespace

TEST_CASE("over all ranks of a framework's job every element is kept equally often") {
  constexpr FrameworkCase Cases[] = {
      {"torchtitan", "deepseek_v3/debugmodel", 8,
       "--parallelism.data_parallel_shard_degree 4 --parallelism.tensor_parallel_degree 2 --parallelism.expert_parallel_degree 2 "
       "--training.disable_cuda_graphs activation-checkpoint:none"},
      {"torchtitan", "llama3/debugmodel", 8, "--parallelism.data_parallel_replicate_degree 2 --parallelism.data_parallel_shard_degree 4"},
      {"torchtitan", "llama3/debugmodel", 6, "--parallelism.data_parallel_shard_degree 6"},
      {"deepspeed", "mixtral/8x7B", 4, "--train_micro_batch_size_per_gpu 1 --zero_optimization.stage 1"},
      {"deepspeed", "mixtral/8x7B", 6, "--train_micro_batch_size_per_gpu 1 --zero_optimization.stage 3"},
      {"deepspeed", "mixtral/8x7B", 8,
       "--train_micro_batch_size_per_gpu 1 --zero_optimization.stage 2 --expert_parallel.enabled --expert_parallel.autoep_size 4"},
      {"deepspeed", "mixtral/8x7B", 8, "--train_micro_batch_size_per_gpu 1 --tensor_parallel.autotp_size 2"},
  };
  for (const FrameworkCase &c : Cases) {
    INFO(c.framework << " " << c.model << " " << c.flags);
    SourceManager sources;
    DiagnosticEngine diags(sources);
    JobRequest request;
    request.name = "test";
    request.framework = Located<std::string>{c.framework, {}};
    request.model = Located<std::string>{c.model, {}};
    request.world = Located<int64_t>{c.world, {}};
    for (llvm::StringRef flag : llvm::split(c.flags, ' ')) {
      request.flags.push_back({flag.str(), {}});
    }
    const std::optional<Job> job = buildJob(request, diags);
    REQUIRE(job);
    std::optional<Module> module = buildModule(*job, diags);
    REQUIRE(module);
    REQUIRE(addSync(*job, nullptr, *module, diags));
    REQUIRE(addStorage(*job, nullptr, *module, diags));
    const TypedModule typed = infer(std::move(*module), InferOptions(), diags);
    const Report report = verify(typed, {}, diags);
    CHECK(!diags.hasErrors());
    checkSums(typed, report.slices);
  }
}
