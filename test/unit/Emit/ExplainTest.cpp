// Every name can be explained, every written explanation belongs to a row, and a name is found as people write it.
#include "shardc/Emit/Explain.h"
#include "Catch.h"
#include "shardc/Emit/Models.h"
#include "shardc/IR/Changes.h"
#include <set>

using namespace shardc;

namespace {

std::vector<std::string> namesFor(llvm::StringRef asked) {
  SourceManager sources;
  DiagnosticEngine diags(sources);
  std::vector<std::string> names;
  for (const Explanation &e : explain(asked, diags)) {
    names.push_back(e.name);
  }
  return names;
}

} // namespace

TEST_CASE("every diagnostic, operation and change has an explanation") {
  SourceManager sources;
  DiagnosticEngine diags(sources);
  for (const auto &[topic, name] : explainable()) {
    CAPTURE(name);
    bool found = false;
    for (const Explanation &e : explain(name, diags)) {
      found = found || (e.topic == topic && e.name == name && !e.what.empty());
    }
    CHECK(found);
  }
  CHECK(diags.all().empty());
}

TEST_CASE("every written explanation is of a row that exists, and has known parts only") {
  SourceManager sources;
  DiagnosticEngine diags(sources);
  for (Topic topic : {Topic::Diagnostic, Topic::Operation, Topic::Change}) {
    std::set<std::string> rows;
    for (const auto &[t, name] : explainable()) {
      if (t == topic) {
        rows.insert(name);
      }
    }
    const CatalogFile *file = catalogFile(("explain/" + topicName(topic) + "s.yaml").str());
    REQUIRE(file);
    const std::optional<ConfigNode> root = parseConfig(sources.add(file->path.str(), file->text.str()), diags, ConfigFormat::Yaml);
    REQUIRE(root);
    for (const auto &[key, entry] : root->entries) {
      CAPTURE(key.value);
      CHECK(rows.count(key.value) == 1);
      for (const auto &[part, text] : entry.entries) {
        CHECK(std::set<std::string>{"what", "why", "example", "mend"}.count(part.value) == 1);
        CHECK(text.kind == ConfigNode::Kind::Scalar);
      }
    }
  }
  CHECK(diags.all().empty());
}

TEST_CASE("a change is found in every way of writing it") {
  for (const char *text : {"P->S", "P:S", "p->s", "P@tp -> S(0)@tp", "P -> S(T)", "[P->S]"}) {
    CAPTURE(text);
    CHECK(namesFor(text) == std::vector<std::string>{"P->S"});
  }
  CHECK(namesFor("P(avg)->R") == std::vector<std::string>{"P(avg)->R"});
}

TEST_CASE("a collective's name means the changes that it makes") {
  CHECK(namesFor("reduce-scatter") == std::vector<std::string>{"P->S"});
  CHECK(namesFor("all-to-all") == std::vector<std::string>{"S->S"});
  CHECK(namesFor("all-gather") == std::vector<std::string>{"S->R", "S->I"});
}

TEST_CASE("a diagnostic is found as it is printed") {
  CHECK(namesFor("[add-mixes-layouts]") == std::vector<std::string>{"add-mixes-layouts"});
  CHECK(namesFor("AddMixesLayouts") == std::vector<std::string>{"add-mixes-layouts"});
}

TEST_CASE("what has no explanation has none, and the nearest name is told") {
  CHECK(namesFor("").empty());
  CHECK(namesFor("nothing of that name").empty());
  CHECK(nearestExplainable("add-mixes-layout") == "add-mixes-layouts");
}

TEST_CASE("a shipped model is found by family and by flavour") {
  SourceManager sources;
  DiagnosticEngine diags(sources);
  for (const char *name : {"llama3", "llama3/8B", "deepseek_v3/671B", "torchtitan"}) {
    CAPTURE(name);
    CHECK(findShipped(name, diags));
  }
  CHECK(findShipped("llama3/8B", diags) == findShipped("llama3", diags));
  CHECK(findShipped("llama3/9B", diags) == nullptr);
  CHECK(findShipped("../../etc/passwd", diags) == nullptr);
}
