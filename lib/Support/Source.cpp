// Source: keeps the texts and turns offsets into lines and columns.
//
// Exists so that offsets are the only thing the rest of the program carries. It reads no files: whoever adds a text has
// read it. A line ends at "\n"; the "\r" of a "\r\n" belongs to the break and is not part of the line.
#include "shardc/Support/Source.h"
#include <algorithm>
#include <cassert>

namespace shardc {

FileId SourceManager::add(std::string name, std::string text) {
  assert(text.size() < FileId::None && "offsets are 32 bits; readers limit what they read");
  auto file = std::make_unique<File>();
  file->name = std::move(name);
  file->text = std::move(text);
  if (llvm::StringRef(file->text).starts_with("\xef\xbb\xbf")) {
    file->text.erase(0, 3);
  }
  file->lineStarts.push_back(0);
  const llvm::StringRef whole = file->text;
  for (size_t at = whole.find('\n'); at != llvm::StringRef::npos; at = whole.find('\n', at + 1)) {
    file->lineStarts.push_back(static_cast<uint32_t>(at + 1));
  }
  files.push_back(std::move(file));
  return FileId(files.size() - 1);
}

llvm::StringRef SourceManager::name(FileId file) const {
  return file.valid() ? llvm::StringRef(files[file.index]->name) : llvm::StringRef();
}

llvm::StringRef SourceManager::text(FileId file) const {
  return file.valid() ? llvm::StringRef(files[file.index]->text) : llvm::StringRef();
}

llvm::StringRef SourceManager::text(SourceRange range) const { return text(range.file).slice(range.begin, range.end); }

LineColumn SourceManager::lineColumn(FileId file, uint32_t offset) const {
  if (!file.valid()) {
    return {};
  }
  const std::vector<uint32_t> &starts = files[file.index]->lineStarts;
  const auto next = std::upper_bound(starts.begin(), starts.end(), offset);
  return {static_cast<uint32_t>(next - starts.begin()), offset - *(next - 1) + 1};
}

llvm::StringRef SourceManager::line(FileId file, uint32_t line) const {
  if (!file.valid() || line == 0 || line > files[file.index]->lineStarts.size()) {
    return {};
  }
  llvm::StringRef rest = text(file).drop_front(files[file.index]->lineStarts[line - 1]);
  rest = rest.take_until([](char c) { return c == '\n'; });
  return rest.ends_with("\r") ? rest.drop_back() : rest;
}

} // namespace shardc
