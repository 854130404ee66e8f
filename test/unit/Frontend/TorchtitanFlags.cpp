// How torchtitan's command line is read: spellings, precedence, keys of other versions, what is not understood.

#include "Catch.h"
#include "TorchtitanRun.h"

using namespace shardc;

TEST_CASE("torchtitan flags: every spelling of a value") {
  for (const char *flags :
       {"--parallelism.tensor_parallel_degree 2", "--parallelism.tensor_parallel_degree=2", "--parallelism.tensor-parallel-degree 2",
        "--parallelism.tensor-parallel-degree=2", "--parallelism.tensor_parallel_degree 4 --parallelism.tensor_parallel_degree 2"}) {
    TorchtitanRun run("2026-08-10", "llama3/debugmodel", 8, flags);
    INFO(flags);
    CHECK(run.found() == "");
    CHECK(run.size("tp") == 2);
    CHECK(run.size("dp_shard") == 4); // -1: what is left of 8 ranks
  }
}

TEST_CASE("torchtitan flags: booleans, None and lists") {
  TorchtitanRun off("2026-08-10", "llama3/debugmodel", 8,
                    "--parallelism.tensor_parallel_degree 2 --parallelism.no-enable-sequence-parallel "
                    "--parallelism.context_parallel_load_balancer None --compile.components model");
  CHECK(off.found() == "");
  CHECK(off.on("sp") == "false");
  CHECK(off.on("load_balancer") == "None");
  CHECK(TorchtitanRun("2026-08-10", "llama3/debugmodel", 8, "--parallelism.tensor_parallel_degree 2").on("sp") == "true");
  // Sequence parallelism is a part of tensor parallelism.
  CHECK(TorchtitanRun("2026-08-10", "llama3/debugmodel", 8, "").on("sp") == "false");
  CHECK(TorchtitanRun("2026-08-10", "llama3/debugmodel", 8, "--compile.components model,lsos").found() == "out-of-range `model,lsos`");
  CHECK(TorchtitanRun("2026-08-10", "llama3/debugmodel", 8, "--training.steps None").found() == "wrong-kind `None`");
}

TEST_CASE("torchtitan flags: subcommands of activation checkpointing") {
  for (auto [text, policy] : {std::pair{"none", "none"},
                              {"full", "full"},
                              {"full-ac", "full"},
                              {"full-ac.config", "full"},
                              {"selective-ac", "selective"},
                              {"memory-budget", "memory-budget"},
                              {"memory-budget-ac", "memory-budget"}}) {
    TorchtitanRun run("2026-08-10", "llama3/debugmodel", 8, std::string("--compile.enable activation-checkpoint:") + text);
    INFO(text);
    CHECK(run.found() == "");
    CHECK(run.on("checkpoint") == policy);
  }
  CHECK(TorchtitanRun("2026-08-10", "llama3/debugmodel", 8, "").on("checkpoint") == "selective");
  CHECK(TorchtitanRun("2026-08-10", "llama3/debugmodel", 8, "activation-checkpoint:ful").found() ==
        "unknown-name `activation-checkpoint:ful`");
  CHECK(TorchtitanRun("2026-08-10", "llama3/debugmodel", 8,
                      "--compile.enable activation-checkpoint:memory-budget --activation-checkpoint.memory_budget 0.3")
            .found() == "");
  CHECK(
      TorchtitanRun("2026-08-10", "llama3/debugmodel", 8, "activation-checkpoint:full --activation-checkpoint.memory_budget 0.3").found() ==
      "key-of-other-policy `0.3`");
  CHECK(TorchtitanRun("2026-08-10", "llama3/debugmodel", 8, "activation-checkpoint:full --training.steps 10").found(Severity::Warning) ==
        "flag-after-subcommand `--training.steps`");
}

TEST_CASE("torchtitan flags: what is not understood is placed") {
  TorchtitanRun typo("2026-08-10", "llama3/debugmodel", 8, "--parallelism.tensor_paralel_degree 2");
  CHECK(typo.found() == "unknown-key `--parallelism.tensor_paralel_degree`");
  CHECK(typo.helps() == "did you mean `parallelism.tensor_parallel_degree`?");
  TorchtitanRun section("2026-08-10", "llama3/debugmodel", 8, "--paralelism.tensor_parallel_degree 2");
  CHECK(section.found() == "unknown-key `--paralelism.tensor_parallel_degree`");
  CHECK(section.helps() == "did you mean `parallelism`?");
  CHECK(TorchtitanRun("2026-08-10", "llama3/debugmodel", 8, "--help").found() == "unknown-key `--help`");
  CHECK(TorchtitanRun("2026-08-10", "llama3/debugmodel", 8, "stray").found() == "unknown-argument `stray`");
  CHECK(TorchtitanRun("2026-08-10", "llama3/debugmodel", 8, "--").found() == "unknown-argument `--`");
  CHECK(TorchtitanRun("2026-08-10", "llama3/debugmodel", 8, "--parallelism.tensor_parallel_degree").found() ==
        "flag-without-value `--parallelism.tensor_parallel_degree`");
  CHECK(TorchtitanRun("2026-08-10", "llama3/debugmodel", 8, "--parallelism.tensor_parallel_degree --debug.seed 1").found() ==
        "flag-without-value `--parallelism.tensor_parallel_degree`");
  CHECK(TorchtitanRun("2026-08-10", "llama3/debugmodel", 8, "--parallelism.tensor_parallel_degree=two").found() == "wrong-kind `two`");
  CHECK(TorchtitanRun("2026-08-10", "llama3/debugmodel", 8, "--parallelism.tensor_parallel_degree 99999999999999999999").found() ==
        "wrong-kind `99999999999999999999`");
  CHECK(TorchtitanRun("2026-08-10", "llama3/debugmodel", 8, "--training.max_norm nan").found() == "wrong-kind `nan`");
  CHECK(TorchtitanRun("2026-08-10", "llama3/debugmodel", 8, "--training.dtype float16").found() == "out-of-range `float16`");
  // All mistakes in one run, the rules' included.
  CHECK(TorchtitanRun("2026-08-10", "llama3/debugmodel", 8, "--comm.modes x --debug.sed 1 --parallelism.pipeline_parallel_degree 0")
            .found() == "unknown-key `--comm.modes`, unknown-key `--debug.sed`, degree-too-small `0`");
}

TEST_CASE("torchtitan flags: sections that do not decide layouts are accepted unseen") {
  CHECK(TorchtitanRun("2026-08-10", "llama3/debugmodel", 8,
                      "--optimizer.lr 3e-4 --checkpoint.enable --metrics.log_freq=1 --dataloader.dataset c4 --hf_assets_path ./a b "
                      "--dump-folder out --profiler.enable_profiling validator:none")
            .found() == "");
}

TEST_CASE("torchtitan flags: keys of other versions") {
  struct Row {
    const char *version, *flags, *found, *help;
  };
  for (const Row &row : {
           Row{"2026-08-20", "--training.seq_len 2048", "key-of-other-version `--training.seq_len`",
               "2026-08-20 has `training.max_context_length` in its place"},
           Row{"2026-08-20", "--training.local_batch_size 8", "key-of-other-version `--training.local_batch_size`",
               "2026-08-20 has `training.num_tokens_per_microbatch_per_dp_rank` in its place"},
           Row{"2026-08-20", "--training.global_batch_size 8", "key-of-other-version `--training.global_batch_size`",
               "2026-08-20 has `training.num_tokens_per_train_step` in its place"},
           Row{"2026-08-20", "--parallelism.pipeline_parallel_microbatch_size 1",
               "key-of-other-version `--parallelism.pipeline_parallel_microbatch_size`",
               "2026-08-20 has `parallelism.num_pp_microbatches` in its place"},
           Row{"2026-08-10", "--training.max_context_length 2048", "key-of-other-version `--training.max_context_length`",
               "2026-08-10 has `training.seq_len`"},
           Row{"2026-08-05", "--parallelism.num_pp_microbatches 2", "key-of-other-version `--parallelism.num_pp_microbatches`",
               "2026-08-05 has `parallelism.pipeline_parallel_microbatch_size`"},
           Row{"2026-08-20", "--parallelism.enable_async_tensor_parallel",
               "key-of-other-version `--parallelism.enable_async_tensor_parallel`",
               "2026-08-20 has `compile.enable_async_tensor_parallel` in its place"},
           Row{"2026-08-10", "--compile.enable_async_tensor_parallel", "key-of-other-version `--compile.enable_async_tensor_parallel`",
               "2026-08-10 has `parallelism.enable_async_tensor_parallel`"},
           Row{"2026-08-05", "--parallelism.expert_tensor_parallel_degree 1",
               "key-of-other-version `--parallelism.expert_tensor_parallel_degree`", ""},
           Row{"2026-08-05", "--parallelism.no-disable-loss-parallel", "key-of-other-version `--parallelism.no-disable-loss-parallel`", ""},
           Row{"2026-08-10", "--activation_checkpoint.mode full", "key-of-other-version `--activation_checkpoint.mode`",
               "2026-08-10 has `activation-checkpoint:full and its siblings` in its place"},
           Row{"2026-08-10", "--experimental.context_parallel_degree 2", "key-of-other-version `--experimental.context_parallel_degree`",
               "2026-08-10 has `parallelism.context_parallel_degree` in its place"},
           Row{"2026-08-20", "--parallelism.spmd_backend full_dtensor", "out-of-range `full_dtensor`", ""},
           Row{"2026-08-05", "--parallelism.spmd_backend partial_dtensor", "out-of-range `partial_dtensor`", ""},
       }) {
    TorchtitanRun run(row.version, "llama3/debugmodel", 8, row.flags);
    INFO(row.version << " " << row.flags);
    CHECK(run.found() == row.found);
    CHECK(run.helps() == row.help);
  }
}

TEST_CASE("torchtitan flags: base jobs") {
  TorchtitanRun run("2026-08-10", "", 256, "--module llama3 --config llama3_70b --parallelism.context_parallel_degree=1");
  CHECK(run.found() == "");
  REQUIRE(run.job);
  CHECK(run.job->family == "llama3");
  CHECK(run.job->flavour == "70B");
  CHECK(run.size("tp") == 8);
  CHECK(run.size("dp") == 32);
  CHECK(run.size("B") == 8 * 32);
  CHECK(run.size("L") == 8192);
  CHECK(run.on("checkpoint") == "full");
  // Flags win over the base job, wherever they stand.
  CHECK(TorchtitanRun("2026-08-10", "", 256, "--parallelism.tensor_parallel_degree 4 --config=llama3_70b --module=llama3").size("tp") == 4);
  CHECK(TorchtitanRun("2026-08-10", "", 8, "--module llama3 --config llama3_8B").found() == "unknown-name `llama3_8B`, missing-key");
  CHECK(TorchtitanRun("2026-08-10", "", 8, "--module qwen3 --config llama3_8b").found() == "unknown-name `llama3_8b`");
  CHECK(TorchtitanRun("2026-08-10", "llama3/70B", 8, "--module llama3 --config llama3_8b").found() == "model-conflict `llama3/70B`");
  CHECK(TorchtitanRun("2026-08-10", "", 8, "--config").found() == "flag-without-value `--config`, missing-key");
}

TEST_CASE("torchtitan: tokens of a micro-batch") {
  // Before the batch was folded: rows of a sequence length, cut into micro-batches only by a pipeline.
  TorchtitanRun rows("2026-08-10", "llama3/8B", 8, "--training.local_batch_size 4 --training.seq_len 4096");
  CHECK(rows.size("B") == 4 * 8);
  CHECK(rows.size("L") == 4096);
  CHECK(rows.size("T") == 4 * 8 * 4096);
  CHECK(rows.on("folded") == "false");
  TorchtitanRun piped("2026-08-10", "llama3/8B", 8,
                      "--training.local_batch_size 4 --training.seq_len 4096 --parallelism.pipeline_parallel_degree 2 "
                      "--parallelism.pipeline_parallel_microbatch_size 2");
  CHECK(piped.size("B") == 2 * 4);
  CHECK(piped.size("microbatches") == 2);
  // Afterwards: one row of tokens for each data-parallel rank; cp and tp do not multiply it.
  TorchtitanRun folded("2026-08-20", "llama3/8B", 8,
                       "--training.num_tokens_per_microbatch_per_dp_rank 4096 --parallelism.tensor_parallel_degree 2");
  CHECK(folded.size("B") == 4);
  CHECK(folded.size("L") == 4096);
  CHECK(folded.size("T") == 4 * 4096);
  CHECK(folded.on("folded") == "true");
}

TEST_CASE("torchtitan: views of the ranks") {
  TorchtitanRun run(
      "2026-08-10", "deepseek_v3/debugmodel", 16,
      "--parallelism.data_parallel_replicate_degree 2 --parallelism.tensor_parallel_degree 2 --parallelism.expert_parallel_degree 4");
  REQUIRE(run.job);
  std::vector<std::string> seen;
  for (const ViewSpec &view : run.job->views) {
    std::string text = view.name + ":";
    for (const AxisSpec &axis : view.axes) {
      text += " " + axis.name + " " + std::to_string(axis.size);
    }
    seen.push_back(text);
  }
  CHECK(seen == std::vector<std::string>{"dense: pp 1 dp 8 cp 1 tp 2", "storage: pp 1 dp_replicate 2 dp_shard 4 cp 1 tp 2",
                                         "sparse: pp 1 dp_replicate 2 efsdp 2 ep 4"});
}
