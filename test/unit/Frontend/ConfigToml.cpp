// TOML: the order of the file, places in bytes, numbers as they are written.
#include "Catch.h"
#include "ConfigRun.h"

using namespace shardc;

namespace {
std::string findings(llvm::StringRef text) { return ConfigRun(text, ConfigFormat::Toml).findings(); }
} // namespace

TEST_CASE("TOML: tables, in the order of the file") {
  const ConfigRun run("[z]\nb = 1_000\na = [1, \"x\"]\n[[m]]\nk = true\n[[m]]\nk = 1.5e3\n[y.x]\nd = {p = 0x10}\n", ConfigFormat::Toml);
  CHECK(run.shape() == "{z: {b: 1_000, a: [1, 'x']}, m: [{k: true}, {k: 1.5e3}], y: {x: {d: {p: 0x10}}}}");
}

TEST_CASE("TOML: places count bytes, texts are between their quotes") {
  const ConfigRun run("\"\xc3\xa9\" = \"\xc3\xa9\" # c\nbc = [10,\n 'x']\n", ConfigFormat::Toml);
  CHECK(run.places() == "@1:1-4:1 \xc3\xa9@1:2-4 @1:9-11 bc@2:1-3 @2:6-3:6 @2:7-9 @3:3-4");
}

TEST_CASE("TOML: the first error") {
  CHECK(findings("a = 1\n b.c = 1\n b.c = 2\n") == "3:2-5 `b.c` is given twice [duplicate-key]");
  CHECK(findings("[t]\n[u]\n[t] # again\n") == "3:2-3 `t` is given twice [duplicate-key]");
  CHECK(findings("a = \n").substr(0, 4) == "1:5-");
  CHECK(ConfigRun("a = [1\n", ConfigFormat::Toml).shape() == "nothing");
}

TEST_CASE("TOML: depth counts brackets and dots, not what is in texts") {
  std::string dots;
  for (int i = 0; i != 1'000'000; ++i) {
    dots += "a.";
  }
  CHECK(findings(dots + "b = 1\n") == "1:514-515 this is nested more than 256 deep [too-deep]");
  CHECK(findings("[" + dots + "b]\n").find("[too-deep]") != std::string::npos);
  CHECK(findings("a = " + std::string(10'000'000, '[')).find("[too-deep]") != std::string::npos);
  CHECK(findings("a = \"" + dots + "\" # " + dots + "\n").empty());
}
