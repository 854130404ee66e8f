// DictReader: kinds, limits, unknown and missing keys.
#include "Catch.h"
#include "ConfigRun.h"

using namespace shardc;

namespace {
struct Reader : ConfigRun {
  DictReader dict;
  explicit Reader(llvm::StringRef text, std::string what = "`job`")
      : ConfigRun(text, ConfigFormat::Yaml), dict(*root, std::move(what), diags) {}
};
} // namespace

TEST_CASE("integers: the whole text is one integer that fits") {
  CHECK(parseInteger("12") == 12);
  CHECK(parseInteger("-3") == -3);
  CHECK(parseInteger("+3") == 3);
  CHECK(parseInteger("1_000") == 1000);
  CHECK(parseInteger("0x10") == 16);
  CHECK(parseInteger("0o17") == 15);
  CHECK(parseInteger("0b11") == 3);
  CHECK(parseInteger("0") == 0);
  CHECK(parseInteger("9223372036854775807") == INT64_MAX);
  CHECK(parseInteger("-9223372036854775808") == INT64_MIN);
  for (const char *text : {"", "-", "+", "1.0", "1e3", "9223372036854775808", "-9223372036854775809", "010", "1_", "_1", "1__0", "0x", " 1",
                           "1 ", "--1", "abc", "0xg", "0b2"}) {
    INFO(text);
    CHECK_FALSE(parseInteger(text));
  }
}

TEST_CASE("an integer with its place, within limits") {
  Reader r("a: 8\nb: 0\nc: 99\nd: -1\n");
  CHECK(r.dict.integer("a", 1, 8)->value == 8);
  CHECK(r.place(r.dict.integer("a")->range) == "1:4-5");
  CHECK_FALSE(r.dict.integer("b", 1));
  CHECK_FALSE(r.dict.integer("c", 1, 8));
  CHECK_FALSE(r.dict.integer("d", 0));
  CHECK_FALSE(r.dict.integer("absent"));
  CHECK(r.findings() == "2:4-5 `b` must be at least 1, not `0` [out-of-range]\n"
                        "3:4-6 `c` must be between 1 and 8, not `99` [out-of-range]\n"
                        "4:4-6 `d` must be at least 0, not `-1` [out-of-range]");
}

TEST_CASE("what is no integer says what it is") {
  Reader r("a: 8.0\nb: 1e3\nc: '8'\nd: NaN\ne: [8]\nf:\ng: 010\nh: 99999999999999999999\ni: yes\n");
  for (const char *key : {"a", "b", "c", "d", "e", "f", "g", "h", "i"}) {
    CHECK_FALSE(r.dict.integer(key));
  }
  CHECK(r.findings() == "1:4-7 `a` must be an integer, not `8.0` [wrong-kind]\n"
                        "2:4-7 `b` must be an integer, not `1e3` [wrong-kind]\n"
                        "3:5-6 `c` must be an integer, not the text `8` [wrong-kind]\n"
                        "4:4-7 `d` must be an integer, not `NaN` [wrong-kind]\n"
                        "5:4-7 `e` must be an integer, not a list [wrong-kind]\n"
                        "6:3-3 `f` must be an integer, not nothing [wrong-kind]\n"
                        "7:4-7 `g` must be an integer, not `010` [wrong-kind]\n"
                        "8:4-24 `h` must be at most 9223372036854775807, not `99999999999999999999` [out-of-range]\n"
                        "9:4-7 `i` must be an integer, not `yes` [wrong-kind]");
  CHECK(r.diags.all()[0].helps.front() == "write `8`");
  CHECK(r.diags.all()[1].helps.front() == "write `1000`");
}

TEST_CASE("numbers are finite") {
  Reader r("a: 1.5e3\nb: 2\nc: .inf\nd: nan\ne: 1e999\nf: 0x10\n");
  CHECK(r.dict.number("a")->value == 1500.0);
  CHECK(r.dict.number("b")->value == 2.0);
  CHECK(r.dict.number("f")->value == 16.0);
  CHECK_FALSE(r.dict.number("c"));
  CHECK_FALSE(r.dict.number("d"));
  CHECK_FALSE(r.dict.number("e"));
  CHECK(r.findings() == "3:4-8 `c` must be a finite number, not `.inf` [wrong-kind]\n"
                        "4:4-7 `d` must be a finite number, not `nan` [wrong-kind]\n"
                        "5:4-9 `e` must be a finite number, not `1e999` [wrong-kind]");
}

TEST_CASE("booleans are true and false") {
  Reader r("a: true\nb: False\nc: yes\nd: 'true'\ne: 0\n");
  CHECK(r.dict.boolean("a")->value);
  CHECK_FALSE(r.dict.boolean("b")->value);
  CHECK_FALSE(r.dict.boolean("c"));
  CHECK_FALSE(r.dict.boolean("d"));
  CHECK_FALSE(r.dict.boolean("e"));
  CHECK(r.findings() == "3:4-7 `c` must be `true` or `false`, not `yes` [wrong-kind]\n"
                        "4:5-9 `d` must be `true` or `false`, not the text `true` [wrong-kind]\n"
                        "5:4-5 `e` must be `true` or `false`, not `0` [wrong-kind]");
  CHECK(r.diags.all()[0].helps.front() == "write `true`");
}

TEST_CASE("texts, lists and mappings") {
  Reader r("a: x y\nb: [p, 'q']\nc: r\nd: {k: 1}\ne: [[1]]\n");
  CHECK(r.dict.string("a")->value == "x y");
  CHECK(r.dict.strings("b").size() == 2);
  CHECK(r.dict.strings("c").front().value == "r");
  CHECK(r.dict.strings("absent").empty());
  CHECK(r.dict.mapping("d")->entries.size() == 1);
  CHECK(r.dict.sequence("b")->items.size() == 2);
  CHECK(r.diags.all().empty());
  CHECK_FALSE(r.dict.mapping("b"));
  CHECK_FALSE(r.dict.sequence("d"));
  CHECK_FALSE(r.dict.string("d"));
  CHECK(r.dict.strings("e").empty());
  CHECK(r.findings() == "2:4-12 `b` must be a mapping of keys to values, not a list [wrong-kind]\n"
                        "4:4-10 `d` must be a list, not a mapping [wrong-kind]\n"
                        "4:4-10 `d` must be a text, not a mapping [wrong-kind]\n"
                        "5:5-8 `e` must be a list of texts, not a list that holds a list [wrong-kind]");
}

TEST_CASE("keys that nobody asked for, with the nearest known one") {
  Reader r("world: 8\nmodle: x\nbogus: 1\n");
  r.dict.integer("world");
  r.dict.string("model");
  r.dict.finish();
  CHECK(r.findings() == "2:1-6 unknown key `modle` in `job` [unknown-key]\n3:1-6 unknown key `bogus` in `job` [unknown-key]");
  CHECK(r.diags.all()[0].helps.empty()); // two letters of five
  CHECK(r.diags.all()[1].notes.front() == "known here: model, world");
  Reader near("modell: x\n");
  near.dict.string("model");
  near.dict.finish();
  CHECK(near.diags.all()[0].helps.front() == "did you mean `model`?");
}

TEST_CASE("keys that are needed") {
  Reader r("a: 1\n");
  CHECK(r.dict.require("a"));
  CHECK_FALSE(r.dict.require("world"));
  CHECK(r.findings() == "1:1-5 `job` needs `world` [missing-key]");
}

TEST_CASE("a mapping that is none") {
  Reader list("[1]\n", "the job file");
  CHECK(list.findings() == "1:1-4 the job file must be a mapping of keys to values, not a list [not-a-mapping]");
  CHECK_FALSE(list.dict.any("a"));
  Reader empty("", "the job file");
  CHECK(empty.findings().empty());
}
