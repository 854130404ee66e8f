// Config: one located tree for YAML, JSON and TOML files, and a reader that leaves no key unread.
//
// Nothing is interpreted here: scalars stay text until a reader asks for a kind. Every node knows where it was written. The
// range of a quoted scalar is what stands between its quotes, so that a part of the text (without escapes) is the same part
// of the range; a mapping or list in brackets includes them, an indented one reaches from its first key or item to the end
// of its last; nothing at all is the empty range behind the colon.
#pragma once

#include "shardc/Support/Diagnostics.h"
#include <optional>

namespace shardc {

struct ConfigNode {
  enum class Kind : uint8_t { Null, Scalar, Sequence, Mapping };
  Kind kind = Kind::Null;
  SourceRange range;
  std::string scalar;
  bool quoted = false;                                              // a string even if it looks like a number
  std::vector<ConfigNode> items;                                    // Sequence
  std::vector<std::pair<Located<std::string>, ConfigNode>> entries; // Mapping, in order; keys are unique

  ConfigNode(); // defined below: clang would need the whole pair in `entries` here
  const ConfigNode *find(llvm::StringRef key) const;
};
inline ConfigNode::ConfigNode() = default;

// What stands there, for a message: "`yes`", "the text `8`", "a list", "a mapping", "nothing".
std::string describe(const ConfigNode &node);

// Hjson: JSON with comments and with quotes and commas left out, which some frameworks read from files called *.json.
enum class ConfigFormat : uint8_t { Auto, Yaml, Json, Toml, Hjson };

// Reads a file into `diags.sources()` and parses it; by extension, or by content for Auto. Emits and returns nothing for a
// missing or unreadable file, a directory, a text that is not UTF-8, a syntax error, a duplicate key, an alias, nesting
// deeper than 256 and the like. `-` is not special. `from` is the place that named the path, if a file did. An empty YAML
// file is Null.
std::optional<ConfigNode> readConfig(llvm::StringRef path, DiagnosticEngine &diags, ConfigFormat format = ConfigFormat::Auto,
                                     SourceRange from = {});
std::optional<ConfigNode> parseConfig(FileId file, DiagnosticEngine &diags, ConfigFormat format);
// The bytes of a file as a source, without any check of what they say.
std::optional<FileId> readSource(llvm::StringRef path, DiagnosticEngine &diags, SourceRange from = {});

// Reads the entries of one mapping. Each accessor marks its key as known; `finish` reports every key that nobody asked
// for, with the nearest known one. A value of a wrong kind is reported and read as absent.
class DictReader {
public:
  // `what` names the mapping in messages: "`parallelism`". Null reads as a mapping without entries; any other kind is
  // reported and reads as one too.
  DictReader(const ConfigNode &node, std::string what, DiagnosticEngine &diags);

  std::optional<Located<std::string>> string(llvm::StringRef key); // any scalar, as it stands
  std::optional<Located<int64_t>> integer(llvm::StringRef key, int64_t min = INT64_MIN, int64_t max = INT64_MAX);
  std::optional<Located<double>> number(llvm::StringRef key); // finite
  std::optional<Located<bool>> boolean(llvm::StringRef key);
  const ConfigNode *mapping(llvm::StringRef key);
  const ConfigNode *sequence(llvm::StringRef key);
  const ConfigNode *any(llvm::StringRef key);                     // whatever stands there, also null
  std::vector<Located<std::string>> strings(llvm::StringRef key); // a list of scalars, or one scalar
  // Emits `missing-key` and returns false if the key is absent.
  bool require(llvm::StringRef key);
  void finish();

private:
  const ConfigNode *take(llvm::StringRef key);
  const ConfigNode *takeScalar(llvm::StringRef key, llvm::StringRef wanted, bool mayBeQuoted);
  DiagnosticBuilder wrongKind(llvm::StringRef key, llvm::StringRef wanted, const ConfigNode &seen);

  const ConfigNode &node;
  std::string what;
  DiagnosticEngine &diags;
  std::vector<std::string> known;
};

// "12", "-3", "+3", "1_000", "0x10", "0o17", "0b11": the whole text is one integer that fits, else nothing. Leading zeros
// are refused: some readers take "010" for 8 and some for 10.
std::optional<int64_t> parseInteger(llvm::StringRef text);

} // namespace shardc
