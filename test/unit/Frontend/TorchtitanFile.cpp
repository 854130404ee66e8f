// The resolved config that torchtitan writes, read from a JSON file: values, places, what flags override.

#include "Catch.h"
#include "TorchtitanRun.h"
#include <filesystem>
#include <fstream>

using namespace shardc;

namespace {

struct FileRun {
  SourceManager sources;
  DiagnosticEngine diags{sources};
  std::optional<Job> job;

  explicit FileRun(const char *text, std::vector<std::string> flags = {}, const char *framework = nullptr,
                   const char *extension = ".json") {
    const std::filesystem::path path = std::filesystem::temp_directory_path() / (std::string("shardc-torchtitan-file") + extension);
    std::ofstream(path) << text;
    JobRequest request;
    request.world = Located<int64_t>{8, {}};
    request.config = Located<std::string>{path.string(), {}};
    if (framework) {
      request.framework = Located<std::string>{framework, {}};
    }
    for (std::string &flag : flags) {
      request.flags.push_back({std::move(flag), {}});
    }
    job = buildJob(request, diags);
    std::filesystem::remove(path);
  }
  std::string found() const {
    std::vector<std::string> parts;
    for (const Diagnostic &d : diags.all()) {
      parts.push_back(diagName(d.id) + (d.range.valid() ? " `" + sources.text(d.range).str() + "`" : ""));
    }
    return llvm::join(parts, ", ");
  }
};

const char *const Resolved = R"({
  "hf_assets_path": "./tests/assets/tokenizer", "dump_folder": "./outputs",
  "model_spec": {"name": "llama3", "flavor": "8B", "model": {"dim": 4096}},
  "profiler": {"enable_profiling": false}, "optimizer": {"lr": 0.0008}, "validator": null,
  "training": {"num_tokens_per_microbatch_per_dp_rank": 8192, "num_tokens_per_train_step": -1, "max_context_length": 8192, "max_norm": 1.0,
               "dtype": "float32"},
  "parallelism": {"tensor_parallel_degree": 2, "enable_sequence_parallel": false, "module_fqns_per_model_part": null,
                  "context_parallel_load_balancer": "headtail", "spmd_backend": "spmd_types"},
  "activation_checkpoint": {"preserve_rng_state": true, "determinism_check": "default", "debug": false},
  "compile": {"enable": false, "components": ["model", "loss"], "backend": "inductor"},
  "loss": {"num_chunks": 8, "loss_fn": {"global_vocab_size": 128256}},
  "comm": {"mode": "default"}, "debug": {"seed": null, "spmd_typechecking": false}
})";

} // namespace

TEST_CASE("torchtitan file: a resolved config is recognised and read") {
  FileRun run(Resolved);
  CHECK(run.found() == "");
  REQUIRE(run.job);
  CHECK(run.job->version == "2026-08-20");
  CHECK(run.job->family == "llama3");
  CHECK(run.job->flavour == "8B");
  CHECK(run.job->sizes.at("tp").value == 2);
  CHECK(run.sources.text(run.job->sizes.at("tp").range) == "2");
  CHECK(run.job->sizes.at("T").value == 4 * 8192);
  CHECK(run.job->switches.at("sp") == "false");
  CHECK(run.job->switches.at("checkpoint") == "full");
}

TEST_CASE("torchtitan file: flags win over the file") {
  FileRun run(Resolved, {"--parallelism.tensor_parallel_degree", "4", "activation-checkpoint:none"});
  CHECK(run.found() == "");
  REQUIRE(run.job);
  CHECK(run.job->sizes.at("tp").value == 4);
  CHECK(run.job->switches.at("checkpoint") == "none");
}

TEST_CASE("torchtitan file: the checkpointing policy follows from its keys") {
  for (auto [text, policy] : {std::pair{"null", "none"},
                              {R"({"debug": false})", "full"},
                              {R"({"force_recompute_mm_shapes_by_fqns": ["moe.router.gate"]})", "selective"},
                              {R"({"memory_budget": 0.5})", "memory-budget"}}) {
    FileRun run(
        (std::string(R"({"parallelism": {}, "training": {}, "compile": {"enable": true}, "model_spec": {"name": "llama3", "flavor": "8B"},
                                 "activation_checkpoint": )") +
         text + "}")
            .c_str());
    INFO(text);
    CHECK(run.found() == "");
    REQUIRE(run.job);
    CHECK(run.job->switches.at("checkpoint") == policy);
  }
}

TEST_CASE("torchtitan file: mistakes are placed, all of them") {
  const std::string model = R"("model_spec": {"name": "llama3", "flavor": "8B"})";
  auto found = [&](const char *rest) { return FileRun(("{" + model + ", " + rest + "}").c_str()).found(); };
  CHECK(found(R"("parallelism": {"tensor_degree": 2}, "training": {})") == "unknown-key `tensor_degree`");
  CHECK(found(R"("parallelism": {"tensor_parallel_degree": "2"}, "training": {})") == "wrong-kind `2`");
  CHECK(found(R"("parallelism": {"tensor_parallel_degree": 2.5}, "training": {})") == "wrong-kind `2.5`");
  CHECK(found(R"("parallelism": {"tensor_parallel_degree": null}, "training": {})") == "wrong-kind `null`");
  CHECK(found(R"("parallelism": {"enable_sequence_parallel": 1}, "training": {})") == "wrong-kind `1`");
  CHECK(found(R"("parallelism": {"module_fqns_per_model_part": ["a"]}, "training": {})") == "wrong-kind `[\"a\"]`");
  CHECK(found(R"("parallelism": {}, "training": {"seq_len": 4096}, "compile": 3, "traning": {}, "loss": {"num_chunks": 3})") ==
        "key-of-other-version `seq_len`, not-a-mapping `3`, unknown-key `traning`, chunks-not-whole `3`");
}

TEST_CASE("torchtitan file: what is no resolved config") {
  CHECK(FileRun(R"({"train_batch_size": 8})").found() == "missing-key");
  CHECK(FileRun("[1]", {}, "torchtitan").found() == "not-a-mapping `[1]`, missing-key");
  CHECK(FileRun("[job]\ndump_folder = \"./outputs\"\n[parallelism]\ntensor_parallel_degree = 8\n", {}, "torchtitan", ".toml").found() ==
        "old-config-style");
  CHECK(FileRun(Resolved, {}, "deepspeeed").found() == "unknown-name");
}
