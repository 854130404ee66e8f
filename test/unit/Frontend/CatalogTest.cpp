// The catalogue: parameter counts of every shipped flavour against published numbers, and programs under torchtitan's strategy.
#include "Catch.h"
#include "shardc/Frontend/Catalog.h"

using namespace shardc;

namespace {

std::string said(const DiagnosticEngine &diags) {
  std::string all;
  for (const Diagnostic &d : diags.all()) {
    LineColumn at = d.range.valid() ? diags.sources().lineColumn(d.range.file, d.range.begin) : LineColumn();
    all += (d.range.valid() ? diags.sources().name(d.range.file).str() : std::string("?")) + ":" + std::to_string(at.line) + ":" +
           std::to_string(at.column) + ": " + d.message + "\n";
  }
  return all;
}

// A job of eight ranks, dp 4 and tp 2, experts on ep 4.
Job makeJob(std::string version = "2026-08-20", std::string sp = "true", std::string ep = "true") {
  Job job;
  job.name = "test";
  job.framework = job.strategy = "torchtitan";
  job.version = std::move(version);
  job.world.value = 8;
  auto axis = [](const char *name, int64_t size) {
    AxisSpec spec;
    spec.name = name;
    spec.size = size;
    return spec;
  };
  job.views = {{"dense", {axis("pp", 1), axis("dp", 4), axis("cp", 1), axis("tp", 2)}, {}},
               {"sparse", {axis("pp", 1), axis("efsdp", 2), axis("ep", 4)}, {}}};
  job.switches = {{"sp", std::move(sp)}, {"ep", std::move(ep)}, {"folded", job.version == "2026-08-20" ? "true" : "false"}};
  for (auto [name, size] : {std::pair("B", 4), {"L", 2048}, {"dp", 4}, {"cp", 1}, {"tp", 2}, {"ep", 4}}) {
    job.sizes[name] = {size, {}};
  }
  return job;
}

struct Count {
  const char *model;
  int64_t parameters;
};

} // namespace

TEST_CASE("parameters of the shipped flavours") {
  // Reference tables of torchtitan's registry; mixtral from its published checkpoints.
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
    for (const char *ep : {"true", "false"}) {
      DiagnosticEngine diags(sources);
      Job job = makeJob("2026-08-20", "true", ep);
      REQUIRE(loadModel({c.model, {}}, job, diags));
      std::optional<Module> module = buildModule(job, diags);
      INFO(c.model << " ep " << ep << "\n" << said(diags));
      CHECK(diags.all().empty());
      REQUIRE(module);
      CHECK(countParameters(*module) == c.parameters);
    }
  }
}
