// What `check` says around the findings, as text and as JSON, and that any bytes from outside become valid JSON.
#include "shardc/Emit/Report.h"
#include "Catch.h"
#include "Program.h"
#include "llvm/Support/JSON.h"

using namespace shardc;

namespace {

llvm::json::Object jsonOf(const JobReport &job) {
  std::string text;
  llvm::raw_string_ostream out(text);
  writeCheckJson(out, {job});
  return *llvm::cantFail(llvm::json::parse(text)).getAsObject();
}

std::string textOf(const JobReport &job) {
  std::string text;
  llvm::raw_string_ostream out(text);
  writeCheckText(out, job, false);
  return text;
}

} // namespace

TEST_CASE("sizes in bytes are told in the largest unit that they fill") {
  CHECK(bytesText(0) == "0 B");
  CHECK(bytesText(1023) == "1023 B");
  CHECK(bytesText(1024) == "1.0 KiB");
  CHECK(bytesText(3 << 19) == "1.5 MiB");
  CHECK(bytesText(int64_t(7) << 30) == "7.0 GiB");
}

TEST_CASE("json of a finding has name, place, count and help") {
  SourceManager sources;
  DiagnosticEngine diags(sources);
  const FileId file = sources.add("a.yaml", "x: 1\nx: 2\n");
  diags.emit<Diag::DuplicateKey>({file, 5, 6}, "x").help("delete one").count(2, "layers");
  diags.emit<Diag::MissingKey>({}, "the job", "world");
  Report report;
  report.verdict = Verdict::Findings;
  report.assumes = {"torchtitan 2026-08-10"};
  report.unchecked = {{"adapters", "no model of them"}};
  const llvm::json::Object answer = jsonOf({"a.yaml", report, diags});
  CHECK(answer.getInteger("schema") == 1);
  CHECK(answer.getString("shardc") == SHARDC_VERSION);
  const llvm::json::Object &job = *answer.getArray("jobs")->front().getAsObject();
  CHECK(job.getString("verdict") == "findings");
  CHECK(*job.getArray("assumes") == llvm::json::Array{"torchtitan 2026-08-10"});
  CHECK(*job.getArray("unchecked")->front().getAsObject() == llvm::json::Object{{"what", "adapters"}, {"why", "no model of them"}});
  const llvm::json::Array &findings = *job.getArray("findings");
  REQUIRE(findings.size() == 2);
  CHECK(*findings[0].getAsObject() == llvm::json::Object{{"name", "duplicate-key"},
                                                         {"severity", "error"},
                                                         {"message", "`x` is given twice"},
                                                         {"file", "a.yaml"},
                                                         {"line", 2},
                                                         {"column", 1},
                                                         {"count", 2},
                                                         {"help", "delete one"}});
  CHECK(findings[1].getAsObject()->get("file")->getAsNull().has_value());
  CHECK(findings[1].getAsObject()->get("help")->getAsNull().has_value());
}

TEST_CASE("bytes that are not UTF-8 still make valid JSON") {
  SourceManager sources;
  DiagnosticEngine diags(sources);
  diags.emit<Diag::UnknownName>({}, "\xff\xfe", "a model");
  Report report;
  const llvm::json::Object answer = jsonOf({"\xff.yaml", report, diags});
  CHECK(answer.getArray("jobs")->front().getAsObject()->getString("job") == "\xef\xbf\xbd.yaml");
}

TEST_CASE("the summary tells verdict, counts, assumptions and gaps") {
  Program program;
  Report report;
  report.verdict = Verdict::Incomplete;
  report.assumes = {"strategy torchtitan"};
  report.unchecked = {{"mamba", "state-space layers have no model"}};
  // Six operations: a linear and a redistribute in each of three layers; each redistribute is one reduce-scatter.
  CHECK(textOf({"job.yaml", report, program.diags, &program.typed}) ==
        "job.yaml: incomplete (4 ranks, 6 operations, 3 collectives forward)\n"
        "  assumed: strategy torchtitan\n"
        "  not checked: mamba (state-space layers have no model)\n");
}
