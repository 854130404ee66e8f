// YAML: what is read, where it stands, and what is refused. Readings are those of YAML 1.2 (chapters 6 to 8).
#include "Catch.h"
#include "ConfigRun.h"

using namespace shardc;

namespace {
std::string read(llvm::StringRef text) { return ConfigRun(text, ConfigFormat::Yaml).shape(); }
std::string places(llvm::StringRef text) { return ConfigRun(text, ConfigFormat::Yaml).places(); }
std::string findings(llvm::StringRef text) { return ConfigRun(text, ConfigFormat::Yaml).findings(); }
} // namespace

TEST_CASE("YAML: blocks by indentation") {
  CHECK(read("a: 1\nb:\n  c: x y\n  d:\n    - 1\n    - 2\n") == "{a: 1, b: {c: x y, d: [1, 2]}}");
  CHECK(read("- a\n- - b\n  - c\n- d: 1\n  e: 2\n") == "[a, [b, c], {d: 1, e: 2}]");
  CHECK(read("a:\n- 1\n- 2\nb: 3\n") == "{a: [1, 2], b: 3}"); // a list may stand in the column of its key
  CHECK(read("- y = add(a, b)   # why\n# more\n- z\n") == "[y = add(a, b), z]");
  CHECK(read("--- # head\na: 1\n...\n# end\n") == "{a: 1}");
  CHECK(read("%YAML 1.2\n---\na: 1\n") == "{a: 1}");
}

TEST_CASE("YAML: brackets, also over lines") {
  CHECK(read("m: {dense: {dp: 4, tp: 2}, e: [a, [b], {}], }\n") == "{m: {dense: {dp: 4, tp: 2}, e: [a, [b], {}]}}");
  CHECK(read("a: [\n  1, # one\n  2,\n]\nb: 3\n") == "{a: [1, 2], b: 3}");
  CHECK(read("{a, b: , \"c\":1, d:e}\n") == "{a: null, b: null, c: 1, d:e: null}");
  CHECK(read("[a: 1, b]\n") == "[{a: 1}, b]");
}

TEST_CASE("YAML: plain texts hold what is no indicator") {
  CHECK(read("w: bf16[E@ep, F, D]\nx: a#b:c\ny: -1\nz: ?x\n") == "{w: bf16[E@ep, F, D], x: a#b:c, y: -1, z: ?x}");
  CHECK(read("k: one\n  two\n\n  three\n") == "{k: one two/three}");
  CHECK(read("a:\nb: ~\nc: null\nd: 'null'\n") == "{a: null, b: null, c: null, d: 'null'}");
}

TEST_CASE("YAML: quoted texts") {
  CHECK(read(R"(a: "x\ty\"\\\u00e9\x41")") == "{a: 'x\ty\"\\\xc3\xa9"
                                              "A'}");
  CHECK(read("a: 'it''s: #1'\n'b c': \"\"\n") == "{a: 'it's: #1', b c: ''}");
  CHECK(read("a: \"x  \n   y\n\n  z\\\n  w\"\n") == "{a: 'x y/zw'}");
}

TEST_CASE("YAML: literal and folded texts") {
  CHECK(read("a: |\n  x\n    y\n\n  z\nb: 1\n") == "{a: 'x/  y//z/', b: 1}");
  CHECK(read("a: >\n  x\n  y\n\n  z\n") == "{a: 'x y/z/'}");
  CHECK(read("a: >\n  x\n   y\n  z\n") == "{a: 'x/ y/z/'}"); // deeper lines do not fold
  CHECK(read("a: |-\n  x\n\nb: |+\n  y\n\nc: 1\n") == "{a: 'x', b: 'y//', c: 1}");
  CHECK(read("a: |2\n    x\n") == "{a: '  x/'}");
  CHECK(read("a: |\n  # text\nb: 1\n") == "{a: '# text/', b: 1}");
  CHECK(read("a: |\nb: 1\n") == "{a: '', b: 1}");
}

TEST_CASE("YAML: nothing at all is null") {
  CHECK(read("") == "null");
  CHECK(read("# only a comment\n\n") == "null");
  CHECK(places("") == "@1:1-1");
}

TEST_CASE("YAML: line breaks of two bytes") {
  CHECK(read("a: 1\r\nb:\r\n  - x\r\n  - 'y\r\n    z'\r\n") == "{a: 1, b: [x, 'y z']}");
  CHECK(places("a: 1\r\nb: 2\r\n") == "@1:1-2:5 a@1:1-2 @1:4-5 b@2:1-2 @2:4-5");
}

TEST_CASE("YAML: places of blocks") {
  CHECK(places("a: 1\nbc:\n  - x y  # z\n  -\n") == "@1:1-4:4 a@1:1-2 @1:4-5 bc@2:1-3 @3:3-4:4 @3:5-8 @4:4-4");
  CHECK(places("a:\nb: ~\n") == "@1:1-2:5 a@1:1-2 @1:3-3 b@2:1-2 @2:4-5");
  CHECK(places("k: one\n  two\n") == "@1:1-2:6 k@1:1-2 @1:4-2:6");
  CHECK(places("\xc3\xa9: \xc3\xa9 1\n") == "@1:1-9 \xc3\xa9@1:1-3 @1:5-9"); // columns count bytes
}

TEST_CASE("YAML: places of quoted texts are between the quotes") {
  CHECK(places("a: \"x y\"\n'b': ''\n") == "@1:1-2:8 a@1:1-2 @1:5-8 b@2:2-3 @2:7-7");
  CHECK(places("a: |\n  x\n  y\n\nb: 1\n") == "@1:1-5:5 a@1:1-2 @2:3-3:4 b@5:1-2 @5:4-5");
}

TEST_CASE("YAML: places of brackets include them") {
  CHECK(places("m: {a: 1, b: [x, y] }\n") == "@1:1-22 m@1:1-2 @1:4-22 a@1:5-6 @1:8-9 b@1:11-12 @1:14-20 @1:15-16 @1:18-19");
  CHECK(places("{a, b: }\n") == "@1:1-9 a@1:2-3 @1:3-3 b@1:5-6 @1:7-7");
}

TEST_CASE("YAML: a key that is given twice, all of them") {
  const ConfigRun run("a: 1\nb: {c: 1, c: 2}\na: 2\n", ConfigFormat::Yaml);
  CHECK(run.findings() == "2:11-12 `c` is given twice [duplicate-key]\n3:1-2 `a` is given twice [duplicate-key]");
  CHECK(run.place(run.diags.all()[1].labels.front().first) == "1:1-2");
  CHECK(run.shape() == "nothing");
  // Also beyond the size at which keys go into a table.
  std::string many;
  for (int i = 0; i != 40; ++i) {
    many += "k" + std::to_string(i) + ": 1\n";
  }
  CHECK(findings(many).empty());
  CHECK(findings(many + "k3: 1\n") == "41:1-3 `k3` is given twice [duplicate-key]");
}

TEST_CASE("YAML: what is never closed is shown where it opens") {
  CHECK(findings("a: [1, 2\nb: 3\n") == "1:4-5 this bracket is never closed [syntax-error]");
  CHECK(findings("a: {x: [1\n") == "1:8-9 this bracket is never closed [syntax-error]");
  CHECK(findings("a: 'x\nb: 3\n") == "1:4-5 this text has no closing quote [syntax-error]");
  CHECK(findings("a: \"x\\") == "1:6-7 `\\` is no escape in double quotes [syntax-error]");
}

TEST_CASE("YAML: reading goes on after an error") {
  CHECK(findings("a: [1\nb: c: d\ne: @x\nf: 1\nf: 2\n") ==
        "1:4-5 this bracket is never closed [syntax-error]\n"
        "2:5-6 a colon cannot stand here: check the indentation, or quote the text [syntax-error]\n"
        "3:4-5 a text cannot begin with `@`: quote it [syntax-error]\n"
        "5:1-2 `f` is given twice [duplicate-key]");
}

TEST_CASE("YAML: indentation that fits nothing") {
  CHECK(findings("a:\n  - 1\n - 2\n") == "3:2-5 this is indented deeper than what it should belong to [syntax-error]");
  CHECK(findings("- a\nb: 1\n") == "2:1-5 this belongs to nothing above it [syntax-error]");
  CHECK(findings("a: 1\n  b: 2\n") == "2:4-5 a colon cannot stand here: check the indentation, or quote the text [syntax-error]");
  CHECK(findings("a:\n\t- b\n") == "2:1-2 a tab cannot indent: use spaces [syntax-error]");
  CHECK(findings("a: 1\n- b\n") == "2:1-4 a list item cannot stand among the entries of a mapping [syntax-error]");
}

TEST_CASE("YAML: traps are refused") {
  CHECK(findings("a: 1\nb\n") == "2:1-2 a colon is missing behind this key [syntax-error]");
  CHECK(findings("a: x\n  - y\n") == "2:3-6 a list item cannot continue the text above it [syntax-error]");
  CHECK(findings("{a: 1, b\n c: 2}\n") == "1:8-9 a key must stand on one line with its colon: is a comma missing? [syntax-error]");
  CHECK(findings("a: [1, 2]]\n") == "1:10-11 this bracket closes nothing [syntax-error]");
  CHECK(findings("a: [1, , 2]\n") == "1:8-9 an element is missing here [syntax-error]");
  CHECK(findings("a: \"x\" y\n") == "1:8-9 this cannot follow what is complete before it [syntax-error]");
  CHECK(findings("a: - b\n") == "1:4-5 a list item cannot stand behind a key: put it on a line of its own [syntax-error]");
  CHECK(findings("[a]: 1\n") == "1:1-4 a key must be a word, not a list [syntax-error]");
  CHECK(findings(": 1\n") == "1:1-2 a key is missing before this colon [syntax-error]");
}

TEST_CASE("YAML: what one place says about another is refused") {
  CHECK(findings("a: &x 1\nb: *x\nc: !!str 5\n<<: {q: 1}\n") ==
        "1:4-6 the anchor `&x` is not supported: leave it out [syntax-error]\n"
        "2:4-6 the alias `*x` is not supported: write what it stands for [syntax-error]\n"
        "3:4-9 the tag `!!str` is not supported: leave it out [syntax-error]\n"
        "4:1-3 the merge key `<<` is not supported: write the entries out [syntax-error]");
  CHECK(findings("a: 1\n---\nb: 2\n") == "2:1-4 a second document begins here; a file holds one [syntax-error]");
}

TEST_CASE("YAML: depth is limited and quickly known") {
  const std::string deep(10'000'000, '[');
  CHECK(findings(deep) == "1:257-258 this is nested more than 256 deep [too-deep]");
  CHECK(findings(std::string(256, '[') + std::string(256, ']')).empty());
  std::string dashes;
  for (int i = 0; i != 300; ++i) {
    dashes += "- ";
  }
  CHECK(findings(dashes) == "1:513-514 this is nested more than 256 deep [too-deep]");
}

TEST_CASE("YAML: a file of errors is not an endless list") {
  std::string text;
  for (int i = 0; i != 1000; ++i) {
    text += "k" + std::to_string(i) + ": @\n";
  }
  CHECK(ConfigRun(text, ConfigFormat::Yaml).diags.all().size() == 100);
}
