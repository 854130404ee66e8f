// The catalogue's models: parameter counts against published numbers, layers that share a function, tied weights, terms.
#include "../../../lib/Frontend/CatalogTerms.h"
#include "CatalogJob.h"
#include "llvm/Support/FileSystem.h"
#include <cstdlib>

using namespace shardc;

namespace {

struct Count {
  const char *model;
  int64_t parameters;
};

std::optional<Module> built(const std::string &model, Job &job, DiagnosticEngine &diags) {
  return loadModel({model, {}}, job, diags) ? buildModule(job, diags) : std::nullopt;
}

size_t functionsNamed(const Module &module, llvm::StringRef name) {
  return llvm::count_if(module.functions, [&](const Function &f) { return module.names.str(f.name) == name; });
}

} // namespace

TEST_CASE("parameters of the shipped flavours", "[catalog]") {
  // The registry's tables for llama3, qwen3 and deepseek_v3; mixtral from its published checkpoints.
  const Count counts[] = {
      {"llama3/debugmodel", 6163712},
      {"llama3/1B", 1235814400},
      {"llama3/3B", 3212749824},
      {"llama3/8B", 8030261248},
      {"llama3/70B", 70553706496},
      {"llama3/405B", 405853388800},
      {"qwen3/debugmodel", 31987968},
      {"qwen3/0.6B", 596049920},
      {"qwen3/1.7B", 1720574976},
      {"qwen3/4B", 4022468096},
      {"qwen3/8B", 8190735360},
      {"qwen3/14B", 14768307200},
      {"qwen3/32B", 32762123264},
      {"qwen3/debugmodel_moe", 315758848},
      {"qwen3/30B-A3B", 30532122624},
      {"qwen3/235B-A22B", 235093634560},
      {"deepseek_v3/debugmodel", 33014016},
      {"deepseek_v3/16B", 15706484224},
      {"deepseek_v3/236B", 235741434880},
      {"deepseek_v3/671B", 671026404352},
      {"mixtral/8x7B", 46702792704},
      {"mixtral/8x22B", 140630071296},
  };
  SourceManager sources;
  DiagnosticEngine all(sources);
  CHECK(allFlavours(all).size() == std::size(counts));
  for (const Count &c : counts) {
    for (bool ep : {true, false}) {
      DiagnosticEngine diags(sources);
      Job job = catalogJob("2026-08-20", true, ep);
      std::optional<Module> module = built(c.model, job, diags);
      INFO(c.model << " ep " << ep << "\n" << said(diags));
      CHECK(diags.all().empty());
      REQUIRE(module);
      CHECK(countParameters(*module) == c.parameters);
    }
  }
}

TEST_CASE("parameters of models described by a Hugging Face config", "[catalog]") {
  // Data that is not part of the repository: beside the checkout, or nothing to test.
  std::string folder = std::string(__FILE__).substr(0, std::string(__FILE__).rfind("test/unit")) + "../shared/cases/hf/";
  const Count counts[] = {
      {"llama3-8b", 8030261248},         {"llama3-70b", 70553706496},    {"llama31-405b", 405853388800},    {"llama32-1b", 1235814400},
      {"qwen3-8b", 8190735360},          {"qwen3-30b-a3b", 30532122624}, {"qwen3-235b-a22b", 235093634560}, {"deepseek-v3", 671026404352},
      {"deepseek-v2-lite", 15706484224}, {"mixtral-8x7b", 46702792704},  {"mixtral-8x22b", 140630071296},
  };
  SourceManager sources;
  for (const Count &c : counts) {
    std::string path = folder + c.model + ".json";
    if (!llvm::sys::fs::exists(path)) {
      continue;
    }
    DiagnosticEngine diags(sources);
    Job job = catalogJob();
    std::optional<Module> module = built(path, job, diags);
    INFO(c.model << "\n" << said(diags));
    CHECK(diags.all().empty());
    REQUIRE(module);
    CHECK(countParameters(*module) == c.parameters);
    CHECK(job.unchecked.size() == (llvm::StringRef(c.model) == "deepseek-v3" ? 1 : 0)); // its further-token layer
  }
}

TEST_CASE("layers that nothing tells apart are one function", "[catalog]") {
  SourceManager sources;
  DiagnosticEngine diags(sources);
  Job job = catalogJob();
  std::optional<Module> module = built("deepseek_v3/671B", job, diags);
  REQUIRE(module);
  CHECK(functionsNamed(*module, "dense_layer") == 1);
  CHECK(functionsNamed(*module, "moe_layer") == 1);
  CHECK(functionsNamed(*module, "attention") == 1);
  const Function &root = module->function(module->root);
  CHECK(llvm::count_if(root.ops, [](const Op &op) { return op.kind == OpKind::Call; }) == 61 + 3);
}

TEST_CASE("a tied weight is one parameter of the model with the embedding's name", "[catalog]") {
  SourceManager sources;
  DiagnosticEngine diags(sources);
  Job job = catalogJob();
  std::optional<Module> module = built("qwen3/0.6B", job, diags);
  REQUIRE(module);
  const Function &root = module->function(module->root);
  REQUIRE(root.params.size() == 1);
  const Value &weight = root.values[root.params[0].index];
  CHECK(module->names.str(weight.name) == "tok_embeddings.weight");
  CHECK(print(module->types[weight.declared], *module) == "bf16[V@tp, D]");
}

TEST_CASE("terms of catalogue files", "[catalog]") {
  SourceManager sources;
  NumberOf number = [](llvm::StringRef name) -> std::optional<int64_t> { return name == "D" ? std::optional<int64_t>(10) : std::nullopt; };
  auto value = [&](const char *text) {
    DiagnosticEngine diags(sources);
    std::optional<int64_t> result = evaluate(text, {}, number, diags);
    CHECK(result.has_value() == diags.all().empty());
    return result;
  };
  CHECK(value("2 * (D + 5)") == 30);
  CHECK(value("D - 2 - 3") == 5);
  CHECK(value("3 / 6 * D") == 5); // only the end must be whole
  CHECK(value("ceil(D / 4) * 4") == 12);
  CHECK(value("ceil(D / 5)") == 2);
  CHECK_FALSE(value("D / 4"));
  CHECK_FALSE(value("D / 0"));
  CHECK_FALSE(value("D / (D - 10)"));
  CHECK_FALSE(value("F"));
  CHECK_FALSE(value("(D"));
  CHECK_FALSE(value("D +"));
  CHECK_FALSE(value(""));
  CHECK_FALSE(value("9223372036854775807 * D"));
  CHECK_FALSE(value((std::string(1000, '(') + "D").c_str()));
}
