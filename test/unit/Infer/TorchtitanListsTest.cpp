// Every job that torchtitan's own tests run has a layout for every value: the strategy's contracts fit the models' operations.

#include "TorchtitanLists.h"
#include "Catch.h"
#include "shardc/Infer/Infer.h"

using namespace shardc;

TEST_CASE("torchtitan: every value of a listed job has a type") {
  for (const ListedJob &job : Listed) {
    for (const char *version : TorchtitanVersions) {
      TorchtitanRun run(version, "", job.world, flagsOf(job, version));
      INFO(job.name << " " << version << ": " << flagsOf(job, version));
      REQUIRE(run.job);
      std::optional<Module> module = buildModule(*run.job, run.diags);
      CHECK(run.found() == "");
      REQUIRE(module);
      infer(std::move(*module), InferOptions(), run.diags);
      CHECK(run.found() == "");
    }
  }
}
