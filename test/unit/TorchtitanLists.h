// TorchtitanLists: the jobs that torchtitan's own tests run, and the base jobs of its registry, as flags of any version.
//
// Each row says what the public lists say: base job, ranks, degrees. What they leave out is stated here: pipelines train 8
// micro-batches of 2048 tokens; from 2026-08-20 pipelines and expert parallelism need CUDA graphs off; type checking needs the
// backend spmd_types and no activation checkpointing; context parallelism needs spmd_types before it was the default.
// A row whose key a version lacks names the key of that version.
#pragma once

#include "TorchtitanRun.h"

namespace shardc {

struct ListedJob {
  const char *name, *config;
  int64_t world;
  const char *words; // replicateN shardN tpN cpN ppN epN, nosp, tc, compile, full, always, asynctp, or SCHEDULE=..., a flag
};

inline const ListedJob Listed[] = {
    {"default", "llama3_debugmodel", 4, "tc"},
    {"1d_compile", "llama3_debugmodel", 4, "compile"},
    {"2d_eager", "llama3_debugmodel", 4, "tp2 tc"},
    {"2d_eager, plain loss", "llama3_debugmodel", 4, "tp2 tc --loss.num_chunks=0"},
    {"2d_eager_no_sp", "llama3_debugmodel", 4, "tp2 nosp tc"},
    {"2d_compile", "llama3_debugmodel", 4, "tp2 compile"},
    {"2d_asynctp_compile", "llama3_debugmodel", 4, "tp2 compile asynctp"},
    {"pp_1f1b", "llama3_debugmodel", 2, "pp2 shard1 SCHEDULE=1F1B"},
    {"pp_dp_1f1b", "llama3_debugmodel", 4, "pp2 shard2 SCHEDULE=1F1B"},
    {"pp_dp_1f1b, layers per stage", "llama3_debugmodel", 4, "pp2 shard2 SCHEDULE=1F1B --parallelism.pipeline_parallel_layers_per_stage=4"},
    {"pp_tp_gpipe", "llama3_debugmodel", 4, "pp2 tp2 SCHEDULE=GPipe"},
    {"pp_dp_tp", "llama3_debugmodel", 8, "pp2 shard2 tp2 SCHEDULE=Interleaved1F1B"},
    {"3d_compile", "llama3_debugmodel", 8, "pp2 shard2 tp2 SCHEDULE=Interleaved1F1B compile"},
    {"pp_looped_1f1b", "llama3_debugmodel", 4, "pp4 SCHEDULE=Interleaved1F1B"},
    {"pp_looped_1f1b, layers per stage", "llama3_debugmodel", 4,
     "pp4 SCHEDULE=Interleaved1F1B --parallelism.pipeline_parallel_layers_per_stage=1"},
    {"pp_looped_zero_bubble", "llama3_debugmodel", 4, "pp4 SCHEDULE=InterleavedZeroBubble"},
    {"pp_zbv", "llama3_debugmodel", 2, "pp2 shard1 SCHEDULE=ZBVZeroBubble"},
    {"ddp", "llama3_debugmodel", 4, "replicate4 shard1 tc"},
    {"hsdp", "llama3_debugmodel", 4, "replicate2 shard2 tc"},
    {"cp", "llama3_debugmodel", 4, "cp4 tc"},
    {"hsdp+tp", "llama3_debugmodel", 8, "replicate2 shard2 tp2 tc"},
    {"fsdp+cp", "llama3_debugmodel", 4, "shard2 cp2 tc"},
    {"hsdp+cp_without_dp_shard", "llama3_debugmodel", 4, "replicate2 shard1 cp2 tc"},
    {"hsdp+cp_with_dp_shard", "llama3_debugmodel", 8, "replicate2 shard2 cp2 tc"},
    {"fsdp+tp+cp", "llama3_debugmodel", 8, "shard2 tp2 cp2 tc"},
    {"fsdp_reshard_always", "llama3_debugmodel", 2, "tc always"},
    {"optional_checkpoint", "llama3_debugmodel", 4, "shard2 tp2 tc"},
    {"gradient_accumulation", "llama3_debugmodel", 2, "tc accumulate"},
    {"validation_tp_cp_pp", "llama3_debugmodel", 8, "tp2 cp2 pp2"},
    {"override_fused_swiglu", "llama3_debugmodel", 4, "tp2 tc"},
    {"override_fused_grouped_experts", "deepseek_v3_debugmodel", 4, "tp2 ep4 tc"},
    {"fsdp+varlen_attn+sac", "llama3_debugmodel_varlen_attn", 4, "shard4"},
    {"float8_emulate_lora", "llama3_debugmodel", 8, "tp2 pp2"},
    {"torchcomms cp2 pp2", "llama3_debugmodel", 8, "cp2 pp2 --comm.mode=torchcomms"},
    {"torchcomms tp2 pp2", "llama3_debugmodel", 8, "tp2 pp2 --comm.mode=torchcomms"},
    {"deepseek_v3_mtp_fsdp+ep+compile", "deepseek_v3_debugmodel_mtp", 4, "shard4 ep2 compile"},
    {"deepseek_v3_pp+fsdp+tp+ep", "deepseek_v3_debugmodel", 8, "pp2 shard2 tp2 ep4 SCHEDULE=Interleaved1F1B"},
    {"deepseek_v3_hsdp+ep", "deepseek_v3_debugmodel", 4, "replicate2 shard2 ep2 tc"},
    {"deepseek_v3_fused_mla_swiglu", "deepseek_v3_debugmodel", 4, "shard4 ep2 tc"},
    {"qwen3_moe_fsdp+tp+ep_param_groups", "qwen3_debugmodel_moe_param_groups", 4, "shard2 tp2 ep4 tc"},
    {"qwen3_fsdp+tp+cp", "qwen3_debugmodel", 8, "shard2 tp2 cp2 tc"},
    {"qwen3_fsdp+tp+cp_no_sp", "qwen3_debugmodel", 8, "shard2 tp2 cp2 nosp tc"},
    {"qwen3_fsdp+tp+cp, separate projections", "qwen3_debugmodel_non_fused_qkv", 8, "shard2 tp2 cp2 tc"},
    {"qwen3_fsdp+tp+cp, compile", "qwen3_debugmodel", 8, "shard2 tp2 cp2 compile"},
    {"fsdp_symm_mem", "llama3_debugmodel", 2, "--parallelism.enable_fsdp_symm_mem"},
    {"float8 async tp", "llama3_debugmodel", 8, "shard2 tp2 pp2 compile asynctp"},
    {"float8 hsdp+cp", "llama3_debugmodel", 8, "replicate2 shard2 cp2"},
    {"deepseek_v3 HybridEP", "deepseek_v3_debugmodel_hybridep", 4, "shard4 ep2"},
    {"deepseek_v3 MinimalAsyncEP", "deepseek_v3_debugmodel_minimal_async_ep", 8, "shard2 cp2 tp2 ep8 full"},
    {"bitwise, replicated", "llama3_debugmodel", 4, "replicate4 shard1"},
    {"bitwise, experts", "qwen3_moe_debug", 8, "tp2 ep4"},
    {"graph trainer dp4 tp2", "llama3_debugmodel", 8, "shard4 tp2"},
    {"graph trainer hsdp tp", "llama3_debugmodel", 8, "replicate2 shard2 tp2"},
    {"graph trainer dsv3 dp8 ep2", "deepseek_v3_debugmodel", 8, "shard8 ep2"},
    {"graph trainer dsv3 dp4 cp2", "deepseek_v3_debugmodel", 8, "shard4 cp2"},
    {"graph trainer dsv3 ep8", "deepseek_v3_debugmodel", 8, "ep8"},
    {"graph trainer dsv3 dp2 tp2 cp2 ep4", "deepseek_v3_debugmodel", 8, "shard2 tp2 cp2 ep4"},
    {"graph trainer dsv3 dp4 tp2 ep4", "deepseek_v3_debugmodel", 8, "shard4 tp2 ep4"},
    {"graph trainer dsv3 interleaved", "deepseek_v3_debugmodel", 4, "pp2 SCHEDULE=Interleaved1F1B"},
    {"graph trainer dsv3 ZBV", "deepseek_v3_debugmodel", 4, "pp2 SCHEDULE=ZBVZeroBubble"},
    {"graph trainer dsv3 DualPipeV", "deepseek_v3_debugmodel", 4, "pp2 ep2 SCHEDULE=DualPipeV"},
    {"graph trainer qwen3 dp4 tp2 ep4", "qwen3_moe_debug", 8, "shard4 tp2 ep4"},
    {"llama3_8b", "llama3_8b", 8, ""},
    {"llama3_70b", "llama3_70b", 256, ""},
    {"llama3_405b", "llama3_405b", 512, ""},
    {"deepseek_v3_16b", "deepseek_v3_16b", 8, ""},
    {"deepseek_v3_671b", "deepseek_v3_671b", 256, ""},
    {"qwen3_0_6b", "qwen3_0_6b", 8, ""},
    {"qwen3_1_7b", "qwen3_1_7b", 8, ""},
    {"qwen3_14b", "qwen3_14b", 8, ""},
    {"qwen3_32b", "qwen3_32b", 8, ""},
    {"qwen3_30b_a3b", "qwen3_30b_a3b", 8, ""},
    {"qwen3_moe_deepep", "qwen3_moe_deepep", 4, ""},
};

inline std::string degreeKey(llvm::StringRef word) {
  for (auto [name, key] : {std::pair<llvm::StringRef, const char *>{"replicate", "data_parallel_replicate_degree"},
                           {"shard", "data_parallel_shard_degree"},
                           {"tp", "tensor_parallel_degree"},
                           {"cp", "context_parallel_degree"},
                           {"pp", "pipeline_parallel_degree"},
                           {"ep", "expert_parallel_degree"}}) {
    if (word.starts_with(name) && word.drop_front(name.size()).find_first_not_of("0123456789") == llvm::StringRef::npos) {
      return std::string("--parallelism.") + key + "=" + word.drop_front(name.size()).str();
    }
  }
  return "";
}

inline std::string flagsOf(const ListedJob &job, llvm::StringRef version) {
  const bool folded = version == "2026-08-20";
  std::vector<std::string> flags = {std::string("--module ") + llvm::StringRef(job.config).split('_').first.str(),
                                    std::string("--config ") + job.config};
  if (llvm::StringRef(job.config).starts_with("deepseek")) {
    flags[0] = "--module deepseek_v3";
  }
  std::string last;
  bool graphsOff = false, piped = false, spmd = false;
  llvm::SmallVector<llvm::StringRef, 8> words;
  llvm::StringRef(job.words).split(words, ' ', -1, false);
  for (llvm::StringRef word : words) {
    const std::string degree = degreeKey(word);
    piped |= word.starts_with("pp");
    graphsOff |= word.starts_with("pp") || word.starts_with("ep");
    spmd |= word == "tc" || word.starts_with("cp");
    if (!degree.empty()) {
      flags.push_back(degree);
    } else if (word == "tc") {
      flags.push_back("--debug.spmd_typechecking");
      last = "activation-checkpoint:none";
    } else if (word == "full") {
      last = "activation-checkpoint:full";
    } else if (word == "nosp") {
      flags.push_back("--parallelism.no-enable-sequence-parallel");
    } else if (word == "compile") {
      flags.push_back("--compile.enable");
    } else if (word == "always") {
      flags.push_back("--parallelism.fsdp_reshard_after_forward=always");
    } else if (word == "asynctp") {
      flags.push_back(folded ? "--compile.enable_async_tensor_parallel" : "--parallelism.enable_async_tensor_parallel");
    } else if (word == "accumulate") {
      flags.push_back(folded ? "--training.num_tokens_per_train_step=65536" : "--training.global_batch_size=32");
    } else if (word.consume_front("SCHEDULE=")) {
      flags.push_back("--parallelism.pipeline_parallel_schedule=" + word.str());
    } else {
      flags.push_back(word.str());
    }
  }
  if (folded && piped) {
    flags.push_back("--parallelism.num_pp_microbatches=8 --training.num_tokens_per_microbatch_per_dp_rank=2048");
  }
  if (folded && graphsOff) {
    flags.push_back("--training.disable_cuda_graphs");
  }
  if (spmd) {
    flags.push_back("--parallelism.spmd_backend=spmd_types");
  }
  flags.push_back(last);
  return llvm::join(flags, " ");
}

inline constexpr const char *TorchtitanVersions[] = {"2026-08-05", "2026-08-10", "2026-08-20"};

} // namespace shardc
