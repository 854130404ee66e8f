// JSON: RFC 8259 and nothing else, with the place of everything.
#include "Catch.h"
#include "ConfigRun.h"

using namespace shardc;

namespace {
std::string read(llvm::StringRef text) { return ConfigRun(text, ConfigFormat::Json).shape(); }
std::string findings(llvm::StringRef text) { return ConfigRun(text, ConfigFormat::Json).findings(); }
} // namespace

TEST_CASE("JSON: values") {
  CHECK(read(R"({"a": [1, -0.5e+3, true, null], "b": {}, "c": "x"})") == "{a: [1, -0.5e+3, true, null], b: {}, c: 'x'}");
  CHECK(read(" [ ] ") == "[]");
  CHECK(read("\"x\"") == "'x'");
  CHECK(read(R"(["\"\\\/\b\f\n\r\t", "\u00e9\ud83d\ude00"])") == "['\"\\/\b\f/\r\t', '\xc3\xa9\xf0\x9f\x98\x80']");
}

TEST_CASE("JSON: places") {
  const ConfigRun run("{\"a\": [1,\n  \"xy\"], \"b\": null}\n", ConfigFormat::Json);
  CHECK(run.places() == "@1:1-2:20 a@1:3-4 @1:7-2:8 @1:8-9 @2:4-6 b@2:11-12 @2:15-19");
}

TEST_CASE("JSON: what only looks like it, all in one reading") {
  CHECK(findings("{a: 'x', // c\n \"b\": NaN, \"c\": -Infinity, \"d\": True,\n \"e\": [1,], \"f\": 01, \"g\": yes,}\n") ==
        "1:2-3 a key of JSON must stand in double quotes [syntax-error]\n"
        "1:5-8 JSON has texts in double quotes only [syntax-error]\n"
        "1:10-14 JSON has no comments [syntax-error]\n"
        "2:7-10 JSON has no `NaN`: its numbers are finite [syntax-error]\n"
        "2:17-26 JSON has no `-Infinity`: its numbers are finite [syntax-error]\n"
        "2:33-37 JSON has no `True` [syntax-error]\n"
        "3:9-10 JSON has no comma behind the last element [syntax-error]\n"
        "3:18-20 `01` is not a number of JSON [syntax-error]\n"
        "3:27-30 `yes` must stand in double quotes [syntax-error]\n"
        "3:30-31 JSON has no comma behind the last element [syntax-error]");
}

TEST_CASE("JSON: what leaves the structure unclear") {
  CHECK(findings("") == "1:1-1 this file is empty: JSON needs a value [syntax-error]");
  CHECK(findings("{\"a\": 1") == "1:8-8 the file ends where `,` or `}` should stand [syntax-error]");
  CHECK(findings("[1 2]") == "1:4-5 here `,` or `]` should stand [syntax-error]");
  CHECK(findings("{\"a\" 1}") == "1:6-7 `:` should stand between a key and its value [syntax-error]");
  CHECK(findings("{\"a\": }") == "1:7-8 a value should stand here [syntax-error]");
  CHECK(findings("{\"a\": \"x\n\"}") == "1:7-9 this text has no closing quote [syntax-error]");
  CHECK(findings("[1] 2") == "1:5-6 nothing may follow the value of a JSON file [syntax-error]");
  CHECK(findings("[\"\\q\"]") == "1:3-5 `\\q` is no escape of JSON [syntax-error]");
  CHECK(findings("[\"\\ud83d\"]") == "1:3-9 this is half of a surrogate pair [syntax-error]");
}

TEST_CASE("JSON: a key that is given twice") {
  CHECK(findings("{\"a\": 1, \"b\": {\"c\": 1, \"c\": 2}, \"a\": 2}") ==
        "1:25-26 `c` is given twice [duplicate-key]\n1:34-35 `a` is given twice [duplicate-key]");
}

TEST_CASE("JSON: depth is limited and quickly known") {
  CHECK(findings(std::string(10'000'000, '[')) == "1:258-259 this is nested more than 256 deep [too-deep]");
}
