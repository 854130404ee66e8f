// The list of findings: names, order, repetitions; and the nearest of several names.
#include "shardc/Support/Diagnostics.h"
#include "Catch.h"
#include <set>

using namespace shardc;

TEST_CASE("names are the enumerators in kebab case, and unique") {
  CHECK(diagName(Diag::DuplicateKey) == "duplicate-key");
  CHECK(diagName(Diag::NotUtf8) == "not-utf8");
  CHECK(kebabCase("AddMixesLayouts") == "add-mixes-layouts");
  std::set<std::string> names;
  for (size_t i = 0; i != allDiags().size(); ++i) {
    CHECK(names.insert(diagName(Diag(i))).second);
  }
}

TEST_CASE("findings keep their order, their words and what is chained onto them") {
  SourceManager s;
  DiagnosticEngine d(s);
  const FileId f = s.add("a", "key: 1\nkey: 2\n");
  d.emit<Diag::DuplicateKey>(SourceRange{f, 7, 10}, "key").label({f, 0, 3}, "first").note("n").help("h");
  d.emit<Diag::UnknownKey>(SourceRange{f, 0, 3}, "key", "`a`").count(3, "layers");
  REQUIRE(d.all().size() == 2);
  CHECK(d.all()[0].message == "`key` is given twice");
  CHECK(d.all()[0].labels.front().second == "first");
  CHECK(d.all()[0].notes.front() == "n");
  CHECK(d.all()[0].helps.front() == "h");
  CHECK(d.all()[1].message == "unknown key `key` in `a`");
  CHECK(d.all()[1].count == 3);
  CHECK(d.errorCount() == 2);
  CHECK(d.atLeast(Severity::Warning));
}

TEST_CASE("the same finding at the same place is counted, not repeated") {
  SourceManager s;
  DiagnosticEngine d(s);
  const FileId f = s.add("a", "key: 1\n");
  d.emit<Diag::DuplicateKey>(SourceRange{f, 0, 3}, "key").note("said once");
  d.emit<Diag::DuplicateKey>(SourceRange{f, 0, 3}, "key").note("said once");
  d.emit<Diag::DuplicateKey>(SourceRange{f, 0, 3}, "other");
  d.emit<Diag::DuplicateKey>(SourceRange{f, 0, 2}, "key");
  REQUIRE(d.all().size() == 3);
  CHECK(d.all()[0].count == 2);
  CHECK(d.all()[0].notes.size() == 1);
  CHECK(d.all()[1].count == 1);
  CHECK(d.errorCount() == 3);
}

TEST_CASE("nothing found is no error") {
  SourceManager s;
  const DiagnosticEngine d(s);
  CHECK_FALSE(d.hasErrors());
  CHECK_FALSE(d.atLeast(Severity::Note));
}

TEST_CASE("the nearest name is at most a third of the letters away") {
  CHECK(nearest("tensor_paralel_degree", {"pipeline_parallel_degree", "tensor_parallel_degree"}) == "tensor_parallel_degree");
  CHECK(nearest("wrold", {"world"}).empty());     // two letters of five
  CHECK(nearest("worlds", {"world"}) == "world"); // one of six
  CHECK(nearest("tp", {"dp", "cp"}) == "dp");     // the first of equals
  CHECK(nearest("x", {"y"}).empty());             // nothing in common
  CHECK(nearest("mesh", {"ops", "sizes"}).empty());
  CHECK(nearest("", {"a"}).empty());
  CHECK(nearest("a", {}).empty());
}
