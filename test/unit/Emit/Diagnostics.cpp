// How a finding is drawn.
#include "shardc/Emit/Diagnostics.h"
#include "Catch.h"
#include "llvm/Support/FileSystem.h"

using namespace shardc;

namespace {
struct Drawing {
  SourceManager sources;
  DiagnosticEngine diags{sources};

  FileId add(std::string name, std::string text) { return sources.add(std::move(name), std::move(text)); }
  // Behind a line break, so that a raw text can open on a line of its own.
  std::string drawn(bool colour = false) const {
    std::string out = "\n";
    llvm::raw_string_ostream stream(out);
    renderText(stream, diags, colour);
    return out;
  }
};
} // namespace

TEST_CASE("a finding: place, message and name in one line, then the line of the file") {
  Drawing d;
  const FileId f = d.add("moe.yaml", "ops:\n  - shared = linear(h, w2)\n  - y = add(routed, shared)\n");
  d.diags.emit<Diag::SyntaxError>(SourceRange{f, 40, 59}, "they differ")
      .label({f, 18, 31}, "partial since here")
      .note("replicas drift apart")
      .help("reduce before the add\nforward 2.0 MiB")
      .count(32, "layers");
  CHECK(d.drawn() == R"(
moe.yaml:3:9: error: they differ [syntax-error]
   |
 3 |   - y = add(routed, shared)
   |         ^^^^^^^^^^^^^^^^^^^
 2 |   - shared = linear(h, w2)
   |              ------------- partial since here
   = replicas drift apart
   = help: reduce before the add
           forward 2.0 MiB
   = 32 layers alike
)");
}

TEST_CASE("a label at the very place stands behind the carets, one on the same line under them") {
  Drawing d;
  const FileId f = d.add("a.yaml", "ep_size: 2\n");
  d.diags.emit<Diag::SyntaxError>(SourceRange{f, 9, 10}, "m").label({f, 9, 10}, "only here").label({f, 0, 7}, "this key");
  CHECK(d.drawn() == R"(
a.yaml:1:10: error: m [syntax-error]
   |
 1 | ep_size: 2
   |          ^ only here
   | ------- this key
)");
}

TEST_CASE("a label in another file names it") {
  Drawing d;
  const FileId f = d.add("a.yaml", "x: 1\n");
  const FileId g = d.add("b.yaml", std::string(119, '\n') + "  y: 2\n");
  d.diags.emit<Diag::SyntaxError>(SourceRange{f, 0, 1}, "m").label({g, 121, 122}, "from here").label({}, "and nowhere");
  CHECK(d.drawn() == R"(
a.yaml:1:1: error: m [syntax-error]
    |
  1 | x: 1
    | ^
   --> b.yaml:120:3
    |
120 |   y: 2
    |   - from here
    = and nowhere
)");
}

TEST_CASE("a finding without a place, and a blank line between two") {
  Drawing d;
  d.diags.emit<Diag::CannotRead>(SourceRange(), "x.yaml", "no such file");
  d.diags.emit<Diag::CannotRead>(SourceRange(), "y.yaml", "no such file").note("n");
  CHECK(d.drawn() == R"(
error: cannot read x.yaml: no such file [cannot-read]

error: cannot read y.yaml: no such file [cannot-read]
   = n
)");
}

TEST_CASE("of several lines the first is drawn, of nothing one caret") {
  Drawing d;
  const FileId f = d.add("a", "m:  \n  x: 1\n");
  d.diags.emit<Diag::SyntaxError>(SourceRange{f, 0, 11}, "lines");
  d.diags.emit<Diag::SyntaxError>(SourceRange{f, 2, 2}, "nothing");
  d.diags.emit<Diag::SyntaxError>(SourceRange{f, 12, 12}, "end");
  CHECK(d.drawn() == "\na:1:1: error: lines [syntax-error]\n   |\n 1 | m:\n   | ^^\n"
                     "\na:1:3: error: nothing [syntax-error]\n   |\n 1 | m:\n   |   ^\n"
                     "\na:3:1: error: end [syntax-error]\n   |\n 3 |\n   | ^\n");
}

TEST_CASE("tabs are stops, wide letters are wide, and nothing reaches the terminal that moves it") {
  Drawing d;
  // Tab to column 4; é is one column of two bytes, the ideograph two columns of three bytes.
  const FileId f = d.add("a", "\t\xc3\xa9\xe4\xb8\xadx\n\x1b[31m\xe2\x80\xae!\xff?\n");
  d.diags.emit<Diag::SyntaxError>(SourceRange{f, 6, 7}, "a\x1b"
                                                        "b");
  d.diags.emit<Diag::SyntaxError>(SourceRange{f, 16, 17}, "c");
  CHECK(d.drawn() == "\na:1:7: error: a\\x1bb [syntax-error]\n   |\n 1 |     \xc3\xa9\xe4\xb8\xadx\n   |        ^\n"
                     "\na:2:9: error: c [syntax-error]\n   |\n 2 | \\x1b[31m<U+202E>!\\xff?\n   |                 ^\n");
}

TEST_CASE("a long line is cut around the place") {
  Drawing d;
  const FileId f = d.add("a", std::string(5000, 'a') + "XY" + std::string(5000, 'b') + "\n");
  d.diags.emit<Diag::SyntaxError>(SourceRange{f, 5000, 5002}, "m");
  // 115 columns beside the gutter: a third of them (38) before the place, 3 for the dots on either side.
  CHECK(d.drawn() == "\na:1:5001: error: m [syntax-error]\n   |\n 1 | ..." + std::string(38, 'a') + "XY" + std::string(69, 'b') +
                         "...\n   | " + std::string(41, ' ') + "^^\n");
}

TEST_CASE("colour") {
  Drawing d;
  const FileId f = d.add("a", "x\n");
  d.diags.emit<Diag::SyntaxError>(SourceRange{f, 0, 1}, "m");
  CHECK(d.drawn(true).find("\x1b[1;31merror\x1b[0m") != std::string::npos);
  CHECK(d.drawn(false).find('\x1b') == std::string::npos);
}

TEST_CASE("paths below the current directory are relative") {
  llvm::SmallString<256> here;
  REQUIRE_FALSE(llvm::sys::fs::current_path(here));
  CHECK(shownPath((here + "/jobs/a.yaml").str()) == "jobs/a.yaml");
  CHECK(shownPath((here + "x/a.yaml").str()) == (here + "x/a.yaml").str());
  CHECK(shownPath("/somewhere/a.yaml") == "/somewhere/a.yaml");
  CHECK(shownPath("a.yaml") == "a.yaml");
}
