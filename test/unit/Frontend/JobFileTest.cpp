// Job files: a request from a file, with places, and nothing passed over.
#include "Written.h"

using namespace shardc;

namespace {

struct JobText {
  SourceManager sources;
  DiagnosticEngine diags{sources};
  std::optional<JobRequest> request;

  explicit JobText(const std::string &text) {
    FileId file = sources.add("jobs/a.yaml", text);
    if (std::optional<ConfigNode> root = parseConfig(file, diags, ConfigFormat::Yaml)) {
      CHECK_FALSE(isGraph(*root));
      request = readJobFile(*root, "jobs/a.yaml", diags);
    }
  }
  std::vector<std::string> flags() const {
    std::vector<std::string> texts;
    for (const Located<std::string> &f : request->flags) {
      texts.push_back(f.value);
    }
    return texts;
  }
  std::vector<std::string> findings() const {
    std::vector<std::string> texts;
    for (const Diagnostic &d : diags.all()) {
      LineColumn at = sources.lineColumn(d.range.file, d.range.begin);
      texts.push_back(std::to_string(at.line) + ":" + std::to_string(at.column) + " " + diagName(d.id));
    }
    return texts;
  }
};

} // namespace

TEST_CASE("a job file describes a job", "[job]") {
  JobText j("model: deepseek_v3/debugmodel\nworld: 8\nframework: torchtitan@2026-08-10\n"
            "flags: --parallelism.tensor_parallel_degree 2 'a b'  \"c \\\"d\" e\\ f activation-checkpoint:none\nphase: inference\n");
  REQUIRE(j.request);
  CHECK(j.request->model->value == "deepseek_v3/debugmodel");
  CHECK(j.request->world->value == 8);
  CHECK(j.request->framework->value == "torchtitan@2026-08-10");
  CHECK(j.request->inference);
  CHECK(j.flags() ==
        std::vector<std::string>{"--parallelism.tensor_parallel_degree", "2", "a b", "c \"d", "e f", "activation-checkpoint:none"});
  CHECK(j.sources.text(j.request->flags[1].range) == "2");
  CHECK(j.sources.text(j.request->flags[2].range) == "'a b'");
  CHECK(j.sources.text(j.request->flags[5].range) == "activation-checkpoint:none");
}

TEST_CASE("a list of flags is not cut", "[job]") {
  JobText j("model: llama3/8B\nworld: 8\nflags: [--a.b, \"x y\", 2]\n");
  REQUIRE(j.request);
  CHECK(j.flags() == std::vector<std::string>{"--a.b", "x y", "2"});
}

TEST_CASE("flags over several lines have places too", "[job]") {
  for (const char *text : {"world: 8\nflags: --a.b 1\n  --c.d 2\n", "world: 8\nflags: >-\n  --a.b 1\n  --c.d 2\n",
                           "world: 8\nflags: \"--a.b 1\n  --c.d 2\"\n"}) {
    INFO(text);
    JobText j(text);
    REQUIRE(j.request);
    REQUIRE(j.flags() == std::vector<std::string>{"--a.b", "1", "--c.d", "2"});
    CHECK(j.sources.text(j.request->flags[2].range) == "--c.d");
  }
}

TEST_CASE("paths are relative to the job file", "[job]") {
  JobText j("model: models/config.json\nworld: 8\nconfig: train.toml\nstrategy: ../mine.yaml\n");
  REQUIRE(j.request);
  CHECK(j.request->model->value == "jobs/models/config.json");
  CHECK(j.request->config->value == "jobs/train.toml");
  CHECK(j.request->strategy->value == "jobs/../mine.yaml");
  JobText absolute("world: 8\nconfig: /train.toml\nstrategy: torchtitan\n");
  REQUIRE(absolute.request);
  CHECK(absolute.request->config->value == "/train.toml");
  CHECK(absolute.request->strategy->value == "torchtitan");
}

TEST_CASE("what a job file cannot say is reported", "[job]") {
  CHECK(JobText("world: 0\n").findings() == std::vector<std::string>{"1:8 out-of-range"});
  CHECK(JobText("world: 8\nmodell: a\n").findings() == std::vector<std::string>{"2:1 unknown-key"});
  CHECK(JobText("world: 8\nphase: serving\n").findings() == std::vector<std::string>{"2:8 out-of-range"});
  CHECK(JobText("world: 8\nflags: {a: b}\n").findings() == std::vector<std::string>{"2:8 wrong-kind"});
  CHECK(JobText("world: 8\nflags: [a, [b]]\n").findings() == std::vector<std::string>{"2:12 wrong-kind"});
  CHECK(JobText("world: 8\nflags: --a 'b\n").findings() == std::vector<std::string>{"2:12 syntax-error"});
}

TEST_CASE("keys that have no effect yet are named", "[job]") {
  JobText j("world: 8\nsync: {a: b}\nallow: []\nbudget: {memory: 80 GiB}\n");
  REQUIRE(j.request);
  CHECK(j.request->sync != nullptr);
  CHECK(j.findings() == std::vector<std::string>{"3:8 not-supported", "4:9 not-supported"});
}
