// Source: the texts that a person wrote, and places in them.
//
// Config files, graph files, shipped catalogue files and the command line are all sources, so that every message can
// point at what was written. A range is a pair of byte offsets; line and column are computed when one is printed.
#pragma once

#include "shardc/Support/Ids.h"
#include <memory>
#include <string>
#include <vector>

namespace shardc {

// A half-open range of bytes in one source. An invalid file means "no place".
struct SourceRange {
  FileId file;
  uint32_t begin = 0;
  uint32_t end = 0;

  bool valid() const { return file.valid(); }
  // The part [from, to) of this range, in bytes from its beginning.
  SourceRange slice(size_t from, size_t to) const { return {file, static_cast<uint32_t>(begin + from), static_cast<uint32_t>(begin + to)}; }
  auto operator<=>(const SourceRange &) const = default;
};

// A value together with where it was written.
template <class T> struct Located {
  T value{};
  SourceRange range;
};

// 1-based; columns count bytes.
struct LineColumn {
  uint32_t line = 0;
  uint32_t column = 0;
};

class SourceManager {
public:
  // Adds a text under the name that messages show. The text is kept for the life of the manager, without a
  // byte order mark at its front.
  FileId add(std::string name, std::string text);
  llvm::StringRef name(FileId file) const;
  llvm::StringRef text(FileId file) const;
  llvm::StringRef text(SourceRange range) const;
  // `offset` may be the length of the text (one past the end).
  LineColumn lineColumn(FileId file, uint32_t offset) const;
  // The text of a 1-based line without its line break.
  llvm::StringRef line(FileId file, uint32_t line) const;

private:
  struct File {
    std::string name;
    std::string text;
    std::vector<uint32_t> lineStarts;
  };
  std::vector<std::unique_ptr<File>> files;
};

} // namespace shardc
