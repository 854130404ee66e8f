// No job that torchtitan's own tests run, and no base job of its registry, breaks a rule of the config.

#include "TorchtitanLists.h"
#include "Catch.h"

using namespace shardc;

TEST_CASE("torchtitan: no listed job is refused") {
  for (const ListedJob &job : Listed) {
    for (const char *version : TorchtitanVersions) {
      const std::string flags = flagsOf(job, version);
      TorchtitanRun run(version, "", job.world, flags);
      INFO(job.name << " " << version << ": " << flags);
      CHECK(run.found() == "");
      CHECK(run.job.has_value());
    }
  }
}
