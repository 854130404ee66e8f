// Config: gets the bytes, refuses what is no text, and hands the text to the reader of its format.
//
// Exists so that the three readers may assume well-formed UTF-8 without control characters other than tabs and line breaks,
// and that offsets fit. It reads from pipes too, therefore limits what it reads and not what the file system says.
#include "shardc/Frontend/Config.h"
#include "ConfigReaders.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/Errc.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace shardc {

namespace {
constexpr size_t MaxFileBytes = size_t(64) << 20;

// Waits for the next bytes of a pipe. False if nobody has it open for writing: one would wait for ever.
bool waitForBytes(int file, bool hasWriter) {
  constexpr int Patience = 1000; // milliseconds in which a writer may still come
  pollfd events{file, POLLIN, 0};
  return poll(&events, 1, hasWriter ? -1 : Patience) != 0;
}

// All bytes of a file, or what is wrong with it. A pipe is read without blocking, so that one without a writer shows: it is
// at its end at once, one with a writer that is slow is not.
llvm::Expected<std::string> readBytes(llvm::StringRef path) {
  auto lastError = [] { return llvm::errorCodeToError(std::error_code(errno, std::generic_category())); };
  llvm::sys::fs::file_status status;
  if (const std::error_code error = llvm::sys::fs::status(path, status)) {
    return llvm::errorCodeToError(error);
  }
  if (status.type() == llvm::sys::fs::file_type::directory_file) {
    return llvm::createStringError(llvm::errc::is_a_directory, "it is a directory");
  }
  const int file = open(path.str().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) {
    return lastError();
  }
  const auto close = llvm::make_scope_exit([file] { ::close(file); });
  std::string bytes;
  while (true) {
    const size_t had = bytes.size();
    bytes.resize(had + std::max<size_t>(size_t(1) << 16, had));
    const ssize_t got = read(file, bytes.data() + had, bytes.size() - had);
    bytes.resize(had + (got > 0 ? static_cast<size_t>(got) : 0));
    const bool noWriterYet = got == 0 && had == 0 && status.type() == llvm::sys::fs::file_type::fifo_file;
    if (noWriterYet && !waitForBytes(file, false)) {
      return llvm::createStringError(llvm::errc::no_such_file_or_directory, "nobody writes to this pipe");
    }
    if (got < 0 && errno == EAGAIN) {
      waitForBytes(file, true);
    } else if (got < 0 && errno != EINTR) {
      return lastError();
    } else if (got == 0 && !noWriterYet) {
      break;
    } else if (bytes.size() > MaxFileBytes) {
      return llvm::createStringError(llvm::errc::file_too_large, "it is larger than 64 MiB");
    }
  }
  bytes.shrink_to_fit();
  return bytes;
}

// Reports the first byte that is not part of a text. Tabs and line breaks (\n, \r\n) are the only control
// characters that one holds.
bool isText(ConfigText &source, llvm::StringRef name) {
  const auto *begin = reinterpret_cast<const llvm::UTF8 *>(source.text.bytes_begin());
  const auto *end = reinterpret_cast<const llvm::UTF8 *>(source.text.bytes_end());
  const llvm::UTF8 *at = begin;
  const bool wellFormed = llvm::isLegalUTF8String(&at, end);
  // Control characters up to the first ill-formed byte come first.
  for (const llvm::UTF8 *c = begin; c != at; ++c) {
    if ((*c < 0x20 && *c != '\t' && *c != '\n' && !(*c == '\r' && c + 1 != end && c[1] == '\n')) || *c == 0x7f) {
      const size_t offset = static_cast<size_t>(c - begin);
      source.report<Diag::NotText>(source.range(offset, offset + 1), llvm::formatv("{0:x2}", *c).str());
      return false;
    }
  }
  if (!wellFormed) {
    const size_t offset = static_cast<size_t>(at - begin);
    source.report<Diag::NotUtf8>(source.range(offset, offset + 1), name, llvm::formatv("{0:x2}", *at).str());
    return false;
  }
  return true;
}

// The first line that is neither empty nor a comment, without leading blanks.
llvm::StringRef firstLine(llvm::StringRef text) {
  while (!text.empty()) {
    const auto [line, rest] = text.split('\n');
    const llvm::StringRef content = line.trim();
    if (!content.empty() && !content.starts_with("#")) {
      return content;
    }
    text = rest;
  }
  return {};
}

// What a text without a telling name is. JSON only if it cannot be meant otherwise: YAML reads most of JSON as well.
ConfigFormat formatOf(llvm::StringRef name, llvm::StringRef text) {
  const std::string extension = llvm::sys::path::extension(name).lower();
  if (extension == ".json") {
    return ConfigFormat::Json;
  }
  if (extension == ".hjson") {
    return ConfigFormat::Hjson;
  }
  if (extension == ".toml") {
    return ConfigFormat::Toml;
  }
  if (extension == ".yaml" || extension == ".yml") {
    return ConfigFormat::Yaml;
  }
  const llvm::StringRef line = firstLine(text);
  if (line.starts_with("{") && (text.ltrim().drop_front().ltrim().starts_with("\"") || line == "{}")) {
    return ConfigFormat::Json;
  }
  if (line.starts_with("[") && line.ends_with("]") && !line.contains(',')) {
    return ConfigFormat::Toml;
  }
  const llvm::StringRef key = line.take_while([](char c) { return llvm::isAlnum(c) || c == '_' || c == '-' || c == '.'; });
  if (!key.empty() && line.drop_front(key.size()).ltrim().starts_with("=")) {
    return ConfigFormat::Toml;
  }
  return ConfigFormat::Yaml;
}
} // namespace

const ConfigNode *ConfigNode::find(llvm::StringRef key) const {
  for (const auto &[name, value] : entries) {
    if (name.value == key) {
      return &value;
    }
  }
  return nullptr;
}

std::optional<FileId> readSource(llvm::StringRef path, DiagnosticEngine &diags, SourceRange from) {
  llvm::Expected<std::string> bytes = readBytes(path);
  if (!bytes) {
    std::string reason = llvm::toString(bytes.takeError());
    reason.front() = llvm::toLower(reason.front());
    diags.emit<Diag::CannotRead>(from, path, reason);
    return std::nullopt;
  }
  return diags.sources().add(path.str(), std::move(*bytes));
}

std::optional<ConfigNode> readConfig(llvm::StringRef path, DiagnosticEngine &diags, ConfigFormat format, SourceRange from) {
  const std::optional<FileId> file = readSource(path, diags, from);
  return file ? parseConfig(*file, diags, format) : std::nullopt;
}

std::optional<ConfigNode> parseConfig(FileId file, DiagnosticEngine &diags, ConfigFormat format) {
  ConfigText source(file, diags);
  if (!isText(source, diags.sources().name(file))) {
    return std::nullopt;
  }
  switch (format == ConfigFormat::Auto ? formatOf(diags.sources().name(file), source.text) : format) {
  case ConfigFormat::Json:
    return parseJson(source);
  case ConfigFormat::Toml:
    return parseToml(source);
  case ConfigFormat::Hjson:
    return parseHjson(source);
  case ConfigFormat::Auto:
  case ConfigFormat::Yaml:
    return parseYaml(source);
  }
  return std::nullopt;
}

} // namespace shardc
