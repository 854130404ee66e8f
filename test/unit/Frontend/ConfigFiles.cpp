// Files: what cannot be read, what is no text, and how the format is told.
#include "Catch.h"
#include "ConfigRun.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace shardc;

namespace {
// A file that is gone after the test.
struct File {
  llvm::SmallString<128> path;
  explicit File(llvm::StringRef text) {
    int handle = 0;
    REQUIRE_FALSE(llvm::sys::fs::createTemporaryFile("shardc", "yaml", handle, path));
    llvm::raw_fd_ostream(handle, /*shouldClose=*/true) << text;
  }
  ~File() { llvm::sys::fs::remove(path); }
};

struct Reading {
  SourceManager sources;
  DiagnosticEngine diags{sources};
  std::optional<ConfigNode> root;
  explicit Reading(llvm::StringRef path) { root = readConfig(path, diags); }
  std::string said() const { return diags.all().empty() ? "" : diags.all().front().message; }
};

std::string findings(llvm::StringRef text) { return ConfigRun(text, ConfigFormat::Yaml).findings(); }
} // namespace

TEST_CASE("files: read, missing, a directory") {
  const File file("a: 1\n");
  CHECK(Reading(file.path).root->entries.front().second.scalar == "1");
  CHECK(Reading("/no/such/file.yaml").said() == "cannot read /no/such/file.yaml: no such file or directory");
  CHECK(Reading("/").said() == "cannot read /: it is a directory");
}

TEST_CASE("files: more than 64 MiB are not read, also where the size is not known before") {
  CHECK(Reading("/dev/zero").said() == "cannot read /dev/zero: it is larger than 64 MiB");
}

TEST_CASE("files: the place that named a file is the place of the finding") {
  SourceManager sources;
  DiagnosticEngine diags(sources);
  const FileId job = sources.add("job.yaml", "config: x.toml\n");
  CHECK_FALSE(readConfig("/no/such/x.toml", diags, ConfigFormat::Auto, SourceRange{job, 8, 14}));
  CHECK(sources.text(diags.all().front().range) == "x.toml");
}

TEST_CASE("texts: not UTF-8, control characters") {
  CHECK(findings("a: 1\nb: \xff\n") == "2:4-5 a.file is not UTF-8 text: here is byte 0xff [not-utf8]");
  CHECK(findings("a: \xc3") == "1:4-5 a.file is not UTF-8 text: here is byte 0xc3 [not-utf8]");
  CHECK(findings("\xff\xfe"
                 "a") == "1:1-2 a.file is not UTF-8 text: here is byte 0xff [not-utf8]"); // UTF-16
  CHECK(findings(llvm::StringRef("a:\n\0b", 5)) == "2:1-2 this is not a text: here is the control character 0x00 [not-text]");
  CHECK(findings("a: \x04\nb: 1\n") == "1:4-5 this is not a text: here is the control character 0x04 [not-text]");
  CHECK(findings("a: 1\rb: 2\n") == "1:5-6 this is not a text: here is the control character 0x0d [not-text]");
}

TEST_CASE("files: not more values than fit into memory, told once") {
  std::string list;
  for (int i = 0; i != 4'000'001; ++i) {
    list += "1,";
  }
  list.back() = ']';
  const std::string said = "this file holds more than 4000000 values [too-much]";
  CHECK(ConfigRun("[" + list, ConfigFormat::Json).findings() == "1:8000000-8000000 " + said);
  CHECK(ConfigRun("[" + list, ConfigFormat::Yaml).diags.all().size() == 1);
  CHECK(ConfigRun("a = [" + list, ConfigFormat::Toml).diags.all().front().message == "this file holds more than 4 MiB of TOML");
}

TEST_CASE("formats: by extension, else by content") {
  const auto format = [](llvm::StringRef name, llvm::StringRef text) { return ConfigRun(text, ConfigFormat::Auto, name).shape(); };
  CHECK(format("a.json", "{a: 1}") == "nothing"); // strict
  CHECK(format("a.yaml", "{a: 1}") == "{a: 1}");
  CHECK(format("a.TOML", "a = 1") == "{a: 1}");
  CHECK(format("a", "{\"a\": 1}") == "{a: 1}");
  CHECK(format("a", "{\"a\": 1,}") == "nothing"); // JSON
  CHECK(format("a", "{a: 1,}") == "{a: 1}");      // YAML
  CHECK(format("a", "# c\n[t]\na = 1\n") == "{t: {a: 1}}");
  CHECK(format("a", "a.b = 'x'\n") == "{a: {b: 'x'}}");
  CHECK(format("a", "- y = add(a, b)\n") == "[y = add(a, b)]");
}
