// What torchtitan reduces each gradient over, row by row: tp-sharded parameters over dp_shard x cp and dp_replicate only,
// those replicated over tp also over tp, invariant ones not over tp, routed experts with expert parallelism over efsdp and
// dp_replicate only. Every gradient is then the true one: the loss is divided by the number of all tokens, and FSDP sums.
#include "Catch.h"
#include "TorchtitanLists.h"
#include "shardc/Frontend/Sync.h"
#include "shardc/Verify/Verify.h"

using namespace shardc;

namespace {

struct Gradients {
  TorchtitanRun run;
  std::optional<TypedModule> typed;
  Report report;

  Gradients(llvm::StringRef version, llvm::StringRef model, int64_t world, llvm::StringRef flags) : run(version, model, world, flags) {
    std::optional<Module> module = run.job ? buildModule(*run.job, run.diags) : std::nullopt;
    if (module && addSync(*run.job, nullptr, *module, run.diags)) {
      typed = infer(std::move(*module), InferOptions(), run.diags);
      report = verify(*typed, {}, run.diags);
    }
  }

  // "sum over tp; sum over dp_shard", "" if there is no such row.
  std::string sync(llvm::StringRef parameters) const {
    for (const SyncRow &row : report.gradients) {
      if (row.parameters == parameters) {
        return row.sync;
      }
    }
    return "";
  }
};

std::string flags(llvm::StringRef version, llvm::StringRef degrees) {
  const llvm::StringRef graphs = version == "2026-08-20" ? "--training.disable_cuda_graphs " : "";
  return ("--parallelism.pipeline_parallel_degree 1 --parallelism.spmd_backend spmd_types " + graphs + degrees +
          " activation-checkpoint:none")
      .str();
}

// The classes of deepseek_v3's parameters.
constexpr const char *TpSharded[] = {"tok_embeddings.weight",
                                     "layers.*.attention.wq.weight",
                                     "layers.*.attention.wkv_b.weight",
                                     "layers.*.attention.wo.weight",
                                     "layers.0.feed_forward.w1.weight",
                                     "layers.0.feed_forward.w2.weight",
                                     "layers.0.feed_forward.w3.weight",
                                     "layers.*.moe.shared_experts.w1.weight",
                                     "layers.*.moe.shared_experts.w2.weight",
                                     "layers.*.moe.shared_experts.w3.weight",
                                     "lm_head.weight"};
constexpr const char *Replicated[] = {"layers.*.attention.wkv_a.weight", "layers.*.attention.kv_norm.weight",
                                      "layers.*.moe.router.gate.weight"};
constexpr const char *Norms[] = {"layers.*.attention_norm.weight", "layers.*.ffn_norm.weight", "norm.weight"};
constexpr const char *Experts[] = {"layers.*.moe.experts.w1", "layers.*.moe.experts.w2", "layers.*.moe.experts.w3"};

struct MapCase {
  const char *name;
  int64_t world;
  const char *degrees;
  const char *sharded, *replicated, *norms, *experts; // what is done to each class
};

constexpr MapCase Map[] = {
    // The published jobs: FSDP 4, TP 2, experts over ep 2 or cut by tp, with and without sequence parallelism.
    {"ep 2", 8, "--parallelism.data_parallel_shard_degree 4 --parallelism.tensor_parallel_degree 2 --parallelism.expert_parallel_degree 2",
     "sum over dp_shard (kept on dim 0)", "sum over tp; sum over dp_shard (kept on dim 0)",
     "sum over tp; sum over dp_shard (kept on dim 0)", "sum over efsdp (kept on dim 0)"},
    {"ep 1", 8, "--parallelism.data_parallel_shard_degree 4 --parallelism.tensor_parallel_degree 2", "sum over dp_shard (kept on dim 0)",
     "sum over tp; sum over dp_shard (kept on dim 0)", "sum over tp; sum over dp_shard (kept on dim 0)",
     "sum over dp_shard (kept on dim 0)"},
    {"ep 2, no sp", 8,
     "--parallelism.data_parallel_shard_degree 4 --parallelism.tensor_parallel_degree 2 --parallelism.expert_parallel_degree 2 "
     "--parallelism.no-enable-sequence-parallel",
     "sum over dp_shard (kept on dim 0)", "sum over tp; sum over dp_shard (kept on dim 0)", "sum over dp_shard (kept on dim 0)",
     "sum over efsdp (kept on dim 0)"},
    {"ep 1, no sp", 8,
     "--parallelism.data_parallel_shard_degree 4 --parallelism.tensor_parallel_degree 2 --parallelism.no-enable-sequence-parallel",
     "sum over dp_shard (kept on dim 0)", "sum over tp; sum over dp_shard (kept on dim 0)", "sum over dp_shard (kept on dim 0)",
     "sum over dp_shard (kept on dim 0)"},
    // More ranks than the 8 experts: 16 in the whole mesh, so experts are cut on dimension 1.
    {"FSDP", 16, "--parallelism.data_parallel_shard_degree 16", "sum over dp_shard (kept on dim 0)", "sum over dp_shard (kept on dim 0)",
     "sum over dp_shard (kept on dim 0)", "sum over dp_shard (kept on dim 1)"},
    {"DDP", 4, "--parallelism.data_parallel_replicate_degree 4 --parallelism.data_parallel_shard_degree 1", "sum over dp_replicate",
     "sum over dp_replicate", "sum over dp_replicate", "sum over dp_replicate"},
    {"HSDP", 8,
     "--parallelism.data_parallel_replicate_degree 2 --parallelism.data_parallel_shard_degree 2 --parallelism.tensor_parallel_degree 2",
     "sum over dp_shard (kept on dim 0); sum over dp_replicate", "sum over tp; sum over dp_shard (kept on dim 0); sum over dp_replicate",
     "sum over tp; sum over dp_shard (kept on dim 0); sum over dp_replicate", "sum over dp_shard (kept on dim 0); sum over dp_replicate"},
    {"CP", 8, "--parallelism.data_parallel_shard_degree 2 --parallelism.context_parallel_degree 2 --parallelism.tensor_parallel_degree 2",
     "sum over dp_shard, cp (kept on dim 0)", "sum over tp; sum over dp_shard, cp (kept on dim 0)",
     "sum over tp; sum over dp_shard, cp (kept on dim 0)", "sum over dp_shard, cp (kept on dim 0)"},
    // Experts over tp and cp, and over dp too: then each rank has experts of its own and nothing is left to reduce.
    {"ep over cp", 8,
     "--parallelism.data_parallel_shard_degree 2 --parallelism.context_parallel_degree 2 --parallelism.tensor_parallel_degree 2 "
     "--parallelism.expert_parallel_degree 4",
     "sum over dp_shard, cp (kept on dim 0)", "sum over tp; sum over dp_shard, cp (kept on dim 0)",
     "sum over tp; sum over dp_shard, cp (kept on dim 0)", "sum over efsdp (kept on dim 0)"},
    {"ep over cp and dp", 8,
     "--parallelism.data_parallel_shard_degree 2 --parallelism.context_parallel_degree 2 --parallelism.tensor_parallel_degree 2 "
     "--parallelism.expert_parallel_degree 8",
     "sum over dp_shard, cp (kept on dim 0)", "sum over tp; sum over dp_shard, cp (kept on dim 0)",
     "sum over tp; sum over dp_shard, cp (kept on dim 0)", "none"},
    // ep splits a tp group: half of it belongs to efsdp.
    {"ep below tp, HSDP", 16,
     "--parallelism.data_parallel_replicate_degree 2 --parallelism.data_parallel_shard_degree 2 --parallelism.tensor_parallel_degree 4 "
     "--parallelism.expert_parallel_degree 2",
     "sum over dp_shard (kept on dim 0); sum over dp_replicate", "sum over tp; sum over dp_shard (kept on dim 0); sum over dp_replicate",
     "sum over tp; sum over dp_shard (kept on dim 0); sum over dp_replicate", "sum over efsdp (kept on dim 0); sum over dp_replicate"},
};

} // namespace

TEST_CASE("torchtitan: what each class of gradients is reduced over") {
  for (const MapCase &c : Map) {
    for (const char *version : TorchtitanVersions) {
      INFO(c.name << ", " << version);
      Gradients g(version, "deepseek_v3/debugmodel", c.world, flags(version, c.degrees));
      REQUIRE(g.run.found(Severity::Warning) == "");
      CHECK(g.report.gradients.size() == 20);
      for (const SyncRow &row : g.report.gradients) {
        INFO(row.parameters);
        CHECK(row.verdict == SyncVerdict::Right);
        CHECK(row.scale.isOne());
      }
      auto expect = [&](llvm::ArrayRef<const char *> names, const char *sync) {
        for (const char *name : names) {
          INFO(name);
          CHECK(g.sync(name) == sync);
        }
      };
      expect(TpSharded, c.sharded);
      expect(Replicated, c.replicated);
      expect(Norms, c.norms);
      expect(Experts, c.experts);
    }
  }
}

TEST_CASE("torchtitan: norms of queries and keys, and compressed queries, are summed over tp with and without sequence parallelism") {
  const std::string both = "sum over tp; sum over dp_shard (kept on dim 0)";
  for (const char *sp : {"", " --parallelism.no-enable-sequence-parallel"}) {
    const std::string degrees = std::string("--parallelism.data_parallel_shard_degree 2 --parallelism.tensor_parallel_degree 2") + sp;
    Gradients qwen("2026-08-20", "qwen3/8B", 4, flags("2026-08-20", degrees));
    CHECK(qwen.run.found(Severity::Warning) == "");
    CHECK(qwen.sync("layers.*.attention.q_norm.weight") == both);
    CHECK(qwen.sync("layers.*.attention.k_norm.weight") == both);
    Gradients mla("2026-08-20", "deepseek_v3/671B", 4, flags("2026-08-20", degrees));
    CHECK(mla.run.found(Severity::Warning) == "");
    CHECK(mla.sync("layers.*.attention.wq_a.weight") == both);
    CHECK(mla.sync("layers.*.attention.q_norm.weight") == both);
    CHECK(mla.sync("layers.*.attention.wq_b.weight") == "sum over dp_shard (kept on dim 0)");
  }
}

TEST_CASE("torchtitan: the clip norm adds dense squares over dp_shard x cp x tp and pp, those of experts over efsdp x ep and pp") {
  Gradients g("2026-08-20", "deepseek_v3/debugmodel", 16,
              "--parallelism.pipeline_parallel_degree 2 --parallelism.data_parallel_replicate_degree 2 "
              "--parallelism.data_parallel_shard_degree 2 --parallelism.tensor_parallel_degree 2 --parallelism.expert_parallel_degree 4 "
              "--training.disable_cuda_graphs --parallelism.num_pp_microbatches 4");
  REQUIRE(g.typed);
  CHECK(g.run.found() == "");
  const Axes &axes = g.typed->module.axes;
  for (const SyncRow &row : g.report.gradients) {
    INFO(row.parameters);
    const bool expert = row.family == "expert";
    llvm::SmallVector<AtomId, 8> over;
    for (const char *name : {"pp", expert ? "efsdp" : "dp_shard", expert ? "ep" : "tp"}) {
      over.append(axes.find(name)->atoms.begin(), axes.find(name)->atoms.end());
    }
    REQUIRE(row.familyIndex);
    const std::optional<SyncNorm> &norm = g.typed->module.sync->families[*row.familyIndex].norm;
    REQUIRE(norm);
    llvm::SmallVector<AtomId, 8> declared(norm->over.begin(), norm->over.end());
    llvm::sort(over);
    llvm::sort(declared);
    CHECK(declared == over);
    // What is not cut by tp has copies there, of which one counts.
    for (AtomId a : distinctOver(row, axes)) {
      CHECK(llvm::is_contained(over, a));
    }
  }
}

TEST_CASE("torchtitan: every gradient of every listed job comes out right") {
  for (const ListedJob &job : Listed) {
    for (const char *version : TorchtitanVersions) {
      INFO(job.name << " " << version << ": " << flagsOf(job, version));
      Gradients g(version, "", job.world, flagsOf(job, version));
      CHECK(g.run.found(Severity::Warning) == "");
      CHECK(!g.report.gradients.empty());
      for (const SyncRow &row : g.report.gradients) {
        INFO(row.parameters);
        CHECK(row.verdict == SyncVerdict::Right);
      }
    }
  }
}
