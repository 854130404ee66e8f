// ConfigReaders: what Config.cpp and the three readers of one format each share. Not for anybody else.
#pragma once

#include "shardc/Frontend/Config.h"

namespace shardc {

constexpr size_t MaxConfigDepth = 256;

// One text being read.
struct ConfigText {
  FileId file;
  llvm::StringRef text;
  DiagnosticEngine &diags;

  SourceRange range(size_t begin, size_t end) const {
    return {file, static_cast<uint32_t>(begin), static_cast<uint32_t>(end)};
  }
};

// Each emits and returns nothing for what it cannot read.
std::optional<ConfigNode> parseYaml(const ConfigText &source);
std::optional<ConfigNode> parseJson(const ConfigText &source);
std::optional<ConfigNode> parseToml(const ConfigText &source);

// The keys of one mapping while it is read: reports a key that was given before.
class KeySet {
public:
  // False, with a diagnostic, if the key is there already.
  bool add(const Located<std::string> &key, DiagnosticEngine &diags) {
    const auto [it, isNew] = places.try_emplace(key.value, key.range);
    if (!isNew) {
      diags.emit<Diag::DuplicateKey>(key.range, key.value).label(it->second, "first given here");
    }
    return isNew;
  }

private:
  llvm::StringMap<SourceRange> places;
};

} // namespace shardc
