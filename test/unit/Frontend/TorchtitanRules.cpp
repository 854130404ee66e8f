// The rules of torchtitan's configs: each is broken once, and the finding named with its place and the nearest legal value.
//
// Expected values are divisors and products worked out from the shapes of the registry's models: llama3 debugmodel has 16
// heads, 6 layers, width 768, vocabulary 2048; llama3 8B 32/8 heads, width 14336; qwen3 debugmodel 16/8 heads, width 3072;
// deepseek_v3 debugmodel 16 heads, widths 1024 dense, 512 shared, 256 routed, 8 experts, 6 layers.

#include "Catch.h"
#include "TorchtitanRun.h"

using namespace shardc;

namespace {
struct Row {
  const char *version, *model;
  int64_t world;
  const char *flags, *found, *helps;
};

void check(std::initializer_list<Row> rows) {
  for (const Row &row : rows) {
    TorchtitanRun run(row.version, row.model, row.world, row.flags);
    INFO(row.version << " " << row.model << " " << row.world << " " << row.flags);
    CHECK(run.found() == row.found);
    CHECK(run.helps() == row.helps);
  }
}

const char *const Llama = "llama3/debugmodel", *const Llama8 = "llama3/8B", *const Qwen = "qwen3/debugmodel",
                  *const Deepseek = "deepseek_v3/debugmodel";
} // namespace

TEST_CASE("torchtitan rules: degrees and world") {
  check({
      {"2026-08-10", Llama, 8, "--parallelism.tensor_parallel_degree 0", "degree-too-small `0`", ""},
      {"2026-08-10", Llama, 8, "--parallelism.data_parallel_shard_degree 0", "degree-too-small `0`", ""},
      {"2026-08-10", Llama, 8, "--parallelism.data_parallel_shard_degree -2", "degree-too-small `-2`", ""},
      {"2026-08-10", Llama, 8, "--parallelism.expert_parallel_degree=-1 --parallelism.context_parallel_degree 0",
       "degree-too-small `0`, degree-too-small `-1`", ""},
      {"2026-08-10", Llama, 10,
       "--parallelism.data_parallel_replicate_degree 2 --parallelism.data_parallel_shard_degree 2 --parallelism.tensor_parallel_degree 2",
       "degrees-not-world `10`", "nearest legal world: 8"},
      {"2026-08-10", Llama, 16, "--parallelism.data_parallel_shard_degree 2 --parallelism.tensor_parallel_degree 2",
       "degrees-not-world `16`", "nearest legal data_parallel_shard_degree: 8, or -1 for the ranks that are left"},
      {"2026-08-10", Llama, 10, "--parallelism.tensor_parallel_degree 4", "degrees-not-in-world `10`", "nearest legal world: 8 or 12"},
      {"2026-08-10", Llama, 2, "--parallelism.tensor_parallel_degree 4", "degrees-not-in-world `2`", "nearest legal world: 4"},
      {"2026-08-10", Llama, 0, "", "missing-key", ""},
      {"2026-08-10", Llama, 8, "--parallelism.tensor_parallel_degree 4611686018427387904 --parallelism.context_parallel_degree 4",
       "degrees-not-in-world `8`", ""},
      {"2026-08-10", Llama, 8, "--parallelism.expert_parallel_degree 9223372036854775807",
       "expert-degree-not-in-mesh `9223372036854775807`", "nearest legal expert_parallel_degree: 8"},
      {"2026-08-10", Llama, 9223372036854775807, "--training.seq_len 131072", "out-of-range `131072`", ""},
  });
}

TEST_CASE("torchtitan rules: experts") {
  check({
      // 4 ranks cannot be cut in 3; of the divisors of 4 only 1, 2 and 4 divide 8 experts.
      {"2026-08-10", Deepseek, 4, "--parallelism.expert_parallel_degree 3", "expert-degree-not-in-mesh `3`, experts-not-divisible `3`",
       "nearest legal expert_parallel_degree: 2 or 4; nearest legal expert_parallel_degree: 2 or 4"},
      {"2026-08-10", Deepseek, 16, "--parallelism.expert_parallel_degree 16", "experts-not-divisible `16`",
       "nearest legal expert_parallel_degree: 8"},
      // The replicate degree is outside: 2 x 4 ranks have room for 4.
      {"2026-08-10", Deepseek, 8, "--parallelism.data_parallel_replicate_degree 2 --parallelism.expert_parallel_degree 8",
       "expert-degree-not-in-mesh `8`", "nearest legal expert_parallel_degree: 4"},
  });
  TorchtitanRun later("2026-08-20", Deepseek, 4, "--parallelism.expert_parallel_degree 3 --training.disable_cuda_graphs");
  CHECK(later.notes() == "not checked by this version");
  TorchtitanRun dense("2026-08-10", Llama, 8, "--parallelism.expert_parallel_degree 2");
  CHECK(dense.found(Severity::Warning) == "no-experts `2`");
}

TEST_CASE("torchtitan rules: heads, widths and vocabulary") {
  check({
      {"2026-08-10", Llama8, 64, "--parallelism.tensor_parallel_degree 16", "heads-not-divisible `16`",
       "nearest legal tensor_parallel_degree: 8"},
      {"2026-08-10", Qwen, 48, "--parallelism.tensor_parallel_degree 6 --training.seq_len 1536",
       "heads-not-divisible `6`, heads-not-divisible `6`",
       "nearest legal tensor_parallel_degree: 4 or 8; nearest legal tensor_parallel_degree: 4 or 8"},
      // 16 heads of the latent attention, without a rule for key and value heads.
      {"2026-08-10", Deepseek, 32, "--parallelism.tensor_parallel_degree 16", "", ""},
      // 27 layers of 16 heads; the dense width 10944 = 2^6 * 171 and the routed one, 1408, divide by 16, so does 2816.
      {"2026-08-10", "deepseek_v3/16B", 96, "--parallelism.tensor_parallel_degree 3 --training.seq_len 3072",
       "heads-not-divisible `3`, width-not-divisible `3`, width-not-divisible `3`",
       "nearest legal tensor_parallel_degree: 2 or 4; nearest legal tensor_parallel_degree: 2 or 4; nearest legal tensor_parallel_degree: "
       "2 or 4"},
  });
  // 40 heads and 17408 = 2^10 * 17: tp 5 fits the query heads alone.
  TorchtitanRun run("2026-08-10", "qwen3/14B", 40, "--parallelism.tensor_parallel_degree 5 --training.seq_len 2560");
  CHECK(run.found() == "heads-not-divisible `5`, width-not-divisible `5`");
  CHECK(run.notes() == "not checked by this version");
}

TEST_CASE("torchtitan rules: tokens") {
  check({
      {"2026-08-10", Llama, 4, "--parallelism.tensor_parallel_degree 4 --training.seq_len 2046", "tokens-not-divisible `2046`",
       "nearest legal seq_len: 2044 or 2048"},
      {"2026-08-20", Llama, 4, "--parallelism.tensor_parallel_degree 4 --training.num_tokens_per_microbatch_per_dp_rank 2046",
       "tokens-not-divisible `2046`", "nearest legal num_tokens_per_microbatch_per_dp_rank: 2044 or 2048"},
      // Head-tail balance cuts in 2 x cp; tp counts only with sequence parallelism.
      {"2026-08-20", Llama, 8,
       "--parallelism.tensor_parallel_degree 2 --parallelism.context_parallel_degree 4 --training.num_tokens_per_microbatch_per_dp_rank "
       "2056",
       "tokens-not-divisible `2056`", "nearest legal num_tokens_per_microbatch_per_dp_rank: 2048 or 2064"},
      {"2026-08-20", Llama, 8,
       "--parallelism.tensor_parallel_degree 2 --parallelism.context_parallel_degree 4 --parallelism.no-enable-sequence-parallel "
       "--training.num_tokens_per_microbatch_per_dp_rank 2056",
       "", ""},
      {"2026-08-20", Llama, 4, "--training.num_tokens_per_microbatch_per_dp_rank 0", "out-of-range `0`", ""},
      {"2026-08-10", Llama, 4, "--training.local_batch_size 0", "out-of-range `0`", ""},
      {"2026-08-20", Llama, 4, "--training.num_tokens_per_train_step 100000", "step-not-whole `100000`",
       "nearest legal num_tokens_per_train_step: 65536 or 131072"},
      {"2026-08-10", Llama, 4, "--training.global_batch_size 33", "step-not-whole `33`", "nearest legal global_batch_size: 32 or 64"},
      {"2026-08-10", Llama, 4, "--training.global_batch_size 0", "out-of-range `0`", ""},
      {"2026-08-10", Llama, 4, "--training.seq_len 131073", "context-too-long `131073`", "nearest legal seq_len: 131072"},
      {"2026-08-20", Qwen, 4, "--training.max_context_length 4097", "context-too-long `4097`", "nearest legal max_context_length: 4096"},
      // The batch of 8 rows does not come into it before the fold: each row is cut in chunks.
      {"2026-08-10", "", 4, "--module llama3 --config llama3_debugmodel --training.seq_len 2044", "chunks-not-whole `llama3_debugmodel`",
       "nearest legal loss.num_chunks: 7 or 14"},
      {"2026-08-20", Llama, 4, "--loss.num_chunks 5 --training.num_tokens_per_microbatch_per_dp_rank 2048", "chunks-not-whole `5`",
       "nearest legal loss.num_chunks: 4 or 8"},
      // Expert parallel without sequence parallel: each tp rank routes its part of the tokens.
      {"2026-08-10", Deepseek, 8,
       "--parallelism.tensor_parallel_degree 4 --parallelism.expert_parallel_degree 4 --parallelism.no-enable-sequence-parallel "
       "--training.seq_len 2046",
       "expert-tokens-not-divisible `2046`", "nearest legal seq_len: 2044 or 2048"},
      {"2026-08-10", Deepseek, 8,
       "--parallelism.tensor_parallel_degree 4 --parallelism.no-enable-sequence-parallel --training.seq_len 2046", "", ""},
      {"2026-08-10", "", 8,
       "--module qwen3 --config qwen3_moe_deepep --parallelism.tensor_parallel_degree 2 --parallelism.no-enable-sequence-parallel "
       "--training.seq_len 510 --loss.num_chunks 1",
       "", ""},
      {"2026-08-10", "", 8,
       "--module qwen3 --config qwen3_moe_deepep --parallelism.tensor_parallel_degree 2 --parallelism.no-enable-sequence-parallel "
       "--training.seq_len 511 --loss.num_chunks 1 --parallelism.expert_parallel_degree 1",
       "dispatcher-needs `1`, dispatcher-tokens-not-divisible `511`", "nearest legal seq_len: 510 or 512"},
  });
}

TEST_CASE("torchtitan rules: training's own rules are not applied to inference") {
  const char *const flags = "--parallelism.tensor_parallel_degree 2 --parallelism.expert_parallel_degree 2 --training.seq_len 7";
  TorchtitanRun training("2026-08-10", Deepseek, 8, flags);
  CHECK(training.found() == "tokens-not-divisible `7`");
  TorchtitanRun inference("2026-08-10", Deepseek, 8, flags, true);
  CHECK(inference.found() == "");
  CHECK(inference.size("L") == 7);
  CHECK(inference.on("inference") == "true");
}

TEST_CASE("torchtitan rules: CUDA graphs from 2026-08-20") {
  check({
      {"2026-08-20", Deepseek, 8, "--parallelism.expert_parallel_degree 2", "cuda-graphs-not-disabled `2`",
       "add `--training.disable_cuda_graphs`"},
      {"2026-08-20", Deepseek, 8, "--parallelism.expert_parallel_degree 2 --training.disable_cuda_graphs", "", ""},
      {"2026-08-10", Deepseek, 8, "--parallelism.expert_parallel_degree 2", "", ""},
      {"2026-08-20", Llama, 8, "--parallelism.pipeline_parallel_degree 2 --parallelism.num_pp_microbatches 8",
       "cuda-graphs-not-disabled `2`", "add `--training.disable_cuda_graphs`"},
      {"2026-08-20", "", 4, "--module deepseek_v3 --config deepseek_v3_debugmodel_hybridep --parallelism.expert_parallel_degree 2", "", ""},
      {"2026-08-20", "", 4,
       "--module deepseek_v3 --config deepseek_v3_debugmodel_minimal_async_ep --parallelism.data_parallel_shard_degree 4 "
       "--parallelism.expert_parallel_degree 4",
       "dispatcher-needs `deepseek_v3_debugmodel_minimal_async_ep`", "add `activation-checkpoint:full` at the end"},
  });
}

TEST_CASE("torchtitan rules: context parallel") {
  check({
      {"2026-08-10", Llama, 4, "--parallelism.context_parallel_degree 4", "context-parallel-backend `4`",
       "set `--parallelism.spmd_backend spmd_types`, or context_parallel_degree 1"},
      {"2026-08-20", Llama, 4, "--parallelism.context_parallel_degree 4 --parallelism.spmd_backend partial_dtensor",
       "context-parallel-backend `partial_dtensor`", "set `--parallelism.spmd_backend spmd_types`, or context_parallel_degree 1"},
      {"2026-08-20", Llama, 4, "--parallelism.context_parallel_degree 4", "", ""},
      {"2026-08-20", "", 4, "--module llama3 --config llama3_debugmodel_varlen_attn --parallelism.context_parallel_degree 4",
       "context-parallel-attention `4`", "use FlexAttention, or context_parallel_degree 1"},
      {"2026-08-20", Llama, 4, "--parallelism.context_parallel_load_balancer=", "out-of-range ``", ""},
  });
}

TEST_CASE("torchtitan rules: type checking") {
  const std::string on = "--parallelism.spmd_backend spmd_types --debug.spmd_typechecking ";
  check({
      {"2026-08-10", Deepseek, 8, (on + "activation-checkpoint:none").c_str(), "", ""},
      {"2026-08-10", Deepseek, 8, (on + "activation-checkpoint:full").c_str(), "", ""},
      {"2026-08-10", Deepseek, 8, on.c_str(), "typecheck-selective `--debug.spmd_typechecking`",
       "add `activation-checkpoint:none` or `activation-checkpoint:full` at the end"},
      {"2026-08-10", Deepseek, 8, "--debug.spmd_typechecking activation-checkpoint:none", "typecheck-backend `--debug.spmd_typechecking`",
       "set `--parallelism.spmd_backend spmd_types`"},
      {"2026-08-10", Llama, 8, (on + "--parallelism.pipeline_parallel_degree 2 activation-checkpoint:none").c_str(),
       "typecheck-pipeline `2`", "nearest legal pipeline_parallel_degree: 1"},
      {"2026-08-10", "", 8, (on + "--module llama3 --config llama3_debugmodel_varlen_attn").c_str(), "", ""},
  });
}

TEST_CASE("torchtitan rules: compile and checkpointing") {
  check({
      {"2026-08-10", Llama, 4, "--parallelism.enable_async_tensor_parallel", "compile-needed `--parallelism.enable_async_tensor_parallel`",
       "add `--compile.enable`"},
      {"2026-08-20", Llama, 4, "--compile.enable_async_tensor_parallel --compile.enable --compile.components loss",
       "compile-needed `--compile.enable_async_tensor_parallel`", "add `--compile.enable`"},
      {"2026-08-20", Llama, 4, "--compile.enable_async_tensor_parallel --compile.enable", "", ""},
      {"2026-08-20", Llama, 4, "activation-checkpoint:memory-budget", "compile-needed `activation-checkpoint:memory-budget`",
       "add `--compile.enable`"},
  });
}

TEST_CASE("torchtitan rules: multi-token prediction") {
  check({
      {"2026-08-20", "", 8,
       "--module deepseek_v3 --config deepseek_v3_debugmodel_mtp --parallelism.context_parallel_degree 2 --loss.num_chunks 8",
       "prediction-layers `2`, prediction-layers `8`", "nearest legal context_parallel_degree: 1; use a loss without chunks"},
      {"2026-08-20", "", 8, "--module deepseek_v3 --config deepseek_v3_debugmodel_mtp", "", ""},
  });
}

TEST_CASE("torchtitan rules: pipelines") {
  const std::string pp2 = "--parallelism.pipeline_parallel_degree 2 ";
  const std::string pp4 = "--parallelism.pipeline_parallel_degree 4 ";
  const std::string schedule = "--parallelism.pipeline_parallel_schedule ";
  const std::string perStage = "--parallelism.pipeline_parallel_layers_per_stage ";
  check({
      {"2026-08-10", Qwen, 8, pp2.c_str(), "tied-across-stages `2`", "nearest legal pipeline_parallel_degree: 1"},
      {"2026-08-10", Llama, 8, (pp2 + schedule + "1F1C").c_str(), "unknown-schedule `1F1C`", "did you mean `1F1B`?"},
      {"2026-08-10", Llama, 8, (pp2 + schedule + "interleaved1f1b").c_str(), "", ""},
      // 6 layers and one each for embedding and output: 8 over 2 ranks.
      {"2026-08-10", Llama, 8, (pp2 + perStage + "4").c_str(), "", ""},
      {"2026-08-10", Llama, 8, (pp2 + perStage + "2").c_str(), "stages-per-rank `2`",
       "nearest legal pipeline_parallel_layers_per_stage: 4"},
      {"2026-08-10", Llama, 8, (pp2 + perStage + "3").c_str(), "stages-not-divisible `3`",
       "nearest legal pipeline_parallel_layers_per_stage: 4"},
      {"2026-08-10", Llama, 8, (pp2 + schedule + "Interleaved1F1B " + perStage + "4").c_str(), "stages-per-rank `4`",
       "nearest legal pipeline_parallel_layers_per_stage: 2"},
      {"2026-08-10", Llama, 8, (pp2 + schedule + "ZBVZeroBubble " + perStage + "1").c_str(), "stages-per-rank `1`",
       "nearest legal pipeline_parallel_layers_per_stage: 2"},
      {"2026-08-10", Llama, 8, (pp2 + perStage + "0").c_str(), "out-of-range `0`", ""},
      {"2026-08-10", Llama, 16, "--parallelism.pipeline_parallel_degree 16", "too-many-stages `16`",
       "nearest legal pipeline_parallel_degree: 8"},
      {"2026-08-10", Llama, 8, (pp4 + "--parallelism.pipeline_parallel_first_stage_less_layers 3").c_str(), "stage-weight `3`",
       "nearest legal pipeline_parallel_first_stage_less_layers: 2"},
      {"2026-08-10", Llama, 8, (pp2 + "--parallelism.pipeline_parallel_last_stage_less_layers -1").c_str(), "out-of-range `-1`", ""},
      {"2026-08-10", Llama, 8, (pp2 + "--parallelism.pipeline_parallel_microbatch_size 3").c_str(), "microbatch-not-whole `3`",
       "nearest legal pipeline_parallel_microbatch_size: 2 or 4"},
      // 7 micro-batches over 2 ranks make 3 rounds, which 7 does not share.
      {"2026-08-10", Llama, 8, (pp2 + schedule + "Interleaved1F1B --training.local_batch_size 7").c_str(), "schedule-microbatches `7`",
       "nearest legal number of micro-batches: 6 or 8"},
      {"2026-08-10", Llama, 8, (pp2 + schedule + "DualPipeV --training.local_batch_size 3").c_str(), "schedule-microbatches `3`",
       "nearest legal number of micro-batches: 4"},
      {"2026-08-10", Llama, 8,
       (pp2 + "--parallelism.module_fqns_per_model_part tok_embeddings,layers.0 layers.1 layers.2,layers.3,layers.4,layers.5,norm,lm_head")
           .c_str(),
       "stages-not-divisible `tok_embeddings,layers.0`", ""},
      {"2026-08-10", Llama, 8, (pp2 + "--parallelism.pipeline_parallel_schedule_csv x.csv").c_str(), "schedule-file `x.csv`", ""},
      {"2026-08-20", Llama, 8, (pp2 + "--training.disable_cuda_graphs --parallelism.num_pp_microbatches 0").c_str(), "out-of-range `0`",
       ""},
  });
  TorchtitanRun idle("2026-08-20", Llama, 8, pp4 + "--training.disable_cuda_graphs --parallelism.num_pp_microbatches 2");
  CHECK(idle.found(Severity::Warning) == "pipeline-bubble `2`");
}

TEST_CASE("torchtitan rules: values that nobody wrote say where they come from") {
  TorchtitanRun run("2026-08-10", "", 24, "--module llama3 --config llama3_70b --training.seq_len 8190");
  CHECK(run.found() == "chunks-not-whole `llama3_70b`, tokens-not-divisible `8190`");
  CHECK(run.notes() == "`loss.num_chunks` 8 comes from base job `llama3_70b`");
  TorchtitanRun backend("2026-08-10", Llama, 4, "--parallelism.context_parallel_degree 4");
  CHECK(backend.notes() == "`parallelism.spmd_backend` is at its default, default");
}

TEST_CASE("torchtitan: versions, families and the model") {
  CHECK(TorchtitanRun("2026-08-11", Llama, 8, "").found() == "unknown-version `2026-08-11`");
  CHECK(TorchtitanRun("2026-08-11", Llama, 8, "").helps() == "known versions: 2026-08-05, 2026-08-10, 2026-08-20");
  TorchtitanRun newest("", Llama, 8, "");
  CHECK(newest.found() == "");
  REQUIRE(newest.job);
  CHECK(newest.job->version == "2026-08-20");
  CHECK(TorchtitanRun("2026-08-10", "mixtral/8x7B", 8, "").found() == "family-not-in-framework `mixtral/8x7B`");
  CHECK(TorchtitanRun("2026-08-10", "", 8, "").found() == "missing-key");
}
