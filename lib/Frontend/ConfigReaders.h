// ConfigReaders: what Config.cpp and the three readers of one format each share. Not for anybody else.
#pragma once

#include "shardc/Frontend/Config.h"

namespace shardc {

constexpr size_t MaxConfigDepth = 256;
constexpr size_t MaxConfigErrors = 100;       // of one file; the rest would only repeat them
constexpr size_t MaxConfigValues = 4'000'000; // of one file; a node takes a hundred bytes where the file has two

// A part of a text as a message shows it: not longer than 40 bytes.
inline std::string shown(llvm::StringRef text) { return text.size() <= 40 ? text.str() : text.take_front(37).str() + "..."; }

// One text being read, and how many errors it has.
class ConfigText {
public:
  ConfigText(FileId f, DiagnosticEngine &d) : file(f), text(d.sources().text(f)), diags(d) {}

  const FileId file;
  const llvm::StringRef text;

  SourceRange range(size_t begin, size_t end) const { return {file, static_cast<uint32_t>(begin), static_cast<uint32_t>(end)}; }

  // Records an error; beyond the limit it is counted only.
  template <Diag id, class... Args> DiagnosticBuilder report(SourceRange place, Args &&...args) {
    if (++errorCount > MaxConfigErrors) {
      return DiagnosticBuilder(&unsaid);
    }
    return diags.emit<id>(place, std::forward<Args>(args)...);
  }
  DiagnosticBuilder syntax(size_t begin, size_t end, const std::string &message) {
    return report<Diag::SyntaxError>(range(begin, std::min(end, text.size())), message);
  }
  // Counts one more value; false, and reported once, if the file holds too many.
  bool countValue(size_t at) {
    if (++valueCount == MaxConfigValues + 1) {
      report<Diag::TooMuch>(range(at, at), std::to_string(MaxConfigValues) + " values");
    }
    return valueCount <= MaxConfigValues;
  }
  size_t errors() const { return errorCount; }

private:
  DiagnosticEngine &diags;
  size_t errorCount = 0;
  size_t valueCount = 0;
  Diagnostic unsaid;
};

bool isJsonNumber(llvm::StringRef text);

// Each reports and returns nothing for what it cannot read.
std::optional<ConfigNode> parseYaml(ConfigText &source);
std::optional<ConfigNode> parseJson(ConfigText &source);
std::optional<ConfigNode> parseToml(ConfigText &source);
std::optional<ConfigNode> parseHjson(ConfigText &source);

// The entries of one mapping while it is read. Most mappings are small and need no table.
class EntryList {
public:
  explicit EntryList(ConfigNode &m) : mapping(m) {}

  // Adds an entry, or reports that its key was given before.
  void add(Located<std::string> key, ConfigNode value, ConfigText &source) {
    if (const std::optional<SourceRange> earlier = find(key.value)) {
      source.report<Diag::DuplicateKey>(key.range, shown(key.value)).label(*earlier, "first given here");
      return;
    }
    mapping.entries.emplace_back(std::move(key), std::move(value));
  }

private:
  static constexpr size_t Small = 16;

  std::optional<SourceRange> find(llvm::StringRef key) {
    if (mapping.entries.size() < Small) {
      for (const auto &[name, value] : mapping.entries) {
        if (name.value == key) {
          return name.range;
        }
      }
      return std::nullopt;
    }
    for (; inTable != mapping.entries.size(); ++inTable) {
      table.try_emplace(mapping.entries[inTable].first.value, mapping.entries[inTable].first.range);
    }
    const auto it = table.find(key);
    return it == table.end() ? std::nullopt : std::optional(it->second);
  }

  ConfigNode &mapping;
  llvm::StringMap<SourceRange> table;
  size_t inTable = 0; // entries that are in the table
};

} // namespace shardc
