// Sources: lines and columns of offsets, and what a line is.
#include "shardc/Support/Source.h"
#include "Catch.h"

using namespace shardc;

namespace {
std::string at(const SourceManager &s, FileId f, uint32_t offset) {
  const LineColumn place = s.lineColumn(f, offset);
  return std::to_string(place.line) + ":" + std::to_string(place.column);
}
} // namespace

TEST_CASE("an offset is a line and a column of bytes, also one past the end") {
  SourceManager s;
  const FileId f = s.add("a", "ab\n\n\xc3\xa9x");
  CHECK(at(s, f, 0) == "1:1");
  CHECK(at(s, f, 2) == "1:3"); // the line break
  CHECK(at(s, f, 3) == "2:1");
  CHECK(at(s, f, 4) == "3:1");
  CHECK(at(s, f, 6) == "3:3"); // behind the two bytes of é
  CHECK(at(s, f, 7) == "3:4"); // the end
}

TEST_CASE("a line is what stands before its break") {
  SourceManager s;
  const FileId f = s.add("a", "one\r\ntwo\n");
  CHECK(s.line(f, 1) == "one");
  CHECK(s.line(f, 2) == "two");
  CHECK(s.line(f, 3).empty()); // behind the last break
  CHECK(s.line(f, 0).empty());
  CHECK(s.line(f, 4).empty());
  CHECK(at(s, f, 9) == "3:1");
}

TEST_CASE("an empty text has one empty line") {
  SourceManager s;
  const FileId f = s.add("a", "");
  CHECK(at(s, f, 0) == "1:1");
  CHECK(s.line(f, 1).empty());
}

TEST_CASE("texts stay where they are while others are added") {
  SourceManager s;
  const FileId first = s.add("first", "x");
  const llvm::StringRef text = s.text(first);
  for (int i = 0; i != 100; ++i) {
    s.add("more", "y");
  }
  CHECK(s.text(first).data() == text.data());
  CHECK(s.name(first) == "first");
}

TEST_CASE("a byte order mark is no part of the text") {
  SourceManager s;
  CHECK(s.text(s.add("a", "\xef\xbb\xbf"
                          "k: 1")) == "k: 1");
}

TEST_CASE("a part of a range is a range") {
  SourceManager s;
  const FileId f = s.add("a", "0123456789");
  const SourceRange r{f, 2, 8};
  CHECK(s.text(r) == "234567");
  CHECK(s.text(r.slice(1, 3)) == "34");
  CHECK_FALSE(SourceRange().valid());
  CHECK(s.text(SourceRange()).empty());
}
