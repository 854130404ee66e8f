// Config: one located tree for YAML, JSON and TOML files, and a reader that leaves no key unread.
//
// Nothing is interpreted here: scalars stay text until a reader asks for a kind. Every node knows where it was written.
#pragma once

#include "shardc/Support/Diagnostics.h"
#include <optional>

namespace shardc {

struct ConfigNode {
  enum class Kind : uint8_t { Null, Scalar, Sequence, Mapping };
  Kind kind = Kind::Null;
  SourceRange range;
  std::string scalar;
  bool quoted = false; // a string even if it looks like a number
  std::vector<ConfigNode> items;                                // Sequence
  std::vector<std::pair<Located<std::string>, ConfigNode>> entries; // Mapping, in order; keys are unique

  const ConfigNode *find(llvm::StringRef key) const;
};

enum class ConfigFormat : uint8_t { Auto, Yaml, Json, Toml };

// Reads a file into `diags.sources()` and parses it; by extension, or by content for Auto. Emits and returns nothing for a
// missing or unreadable file, a directory, a text that is not UTF-8, a syntax error, a duplicate key, an alias, nesting
// deeper than 256 and the like. `-` is not special.
std::optional<ConfigNode> readConfig(llvm::StringRef path, DiagnosticEngine &diags, ConfigFormat format = ConfigFormat::Auto);
std::optional<ConfigNode> parseConfig(FileId file, DiagnosticEngine &diags, ConfigFormat format);

// Reads the entries of one mapping. Each accessor marks its key as known; `finish` reports every key that nobody asked
// for, with the nearest known one. A value of a wrong kind is reported and read as absent.
class DictReader {
public:
  // `what` names the mapping in messages: "`parallelism`".
  DictReader(const ConfigNode &node, std::string what, DiagnosticEngine &diags);

  std::optional<Located<std::string>> string(llvm::StringRef key);
  std::optional<Located<int64_t>> integer(llvm::StringRef key, int64_t min = INT64_MIN, int64_t max = INT64_MAX);
  std::optional<Located<double>> number(llvm::StringRef key); // finite
  std::optional<Located<bool>> boolean(llvm::StringRef key);
  const ConfigNode *mapping(llvm::StringRef key);
  const ConfigNode *sequence(llvm::StringRef key);
  const ConfigNode *any(llvm::StringRef key); // whatever stands there, also null
  std::vector<Located<std::string>> strings(llvm::StringRef key);
  // Emits `missing-key` and returns false if the key is absent.
  bool require(llvm::StringRef key);
  void finish();

private:
  const ConfigNode *take(llvm::StringRef key);

  const ConfigNode &node;
  std::string what;
  DiagnosticEngine &diags;
  std::vector<std::string> known;
};

// "12", "-3", "1_000", "0x10": the whole text is one integer that fits, else nothing.
std::optional<int64_t> parseInteger(llvm::StringRef text);

} // namespace shardc
