// ConfigYaml: the state of the YAML reader, whose structure is in ConfigYaml.cpp, its brackets in ConfigYamlFlow.cpp and its
// texts in ConfigYamlText.cpp.
#pragma once

#include "ConfigReaders.h"

namespace shardc {

class YamlReader {
public:
  explicit YamlReader(ConfigText &s) : source(s), text(s.text) {}
  std::optional<ConfigNode> file();

private:
  // Structure by indentation. `parent` is the column of the list or mapping around, -1 for none.
  void blockNode(int64_t parent, ConfigNode &node, size_t depth);
  void blockMapping(int64_t indent, ConfigNode &node, size_t depth);
  void blockEntry(int64_t indent, EntryList &entries, size_t depth);
  void blockKey(Located<std::string> &key);
  void blockValue(int64_t indent, ConfigNode &node, size_t depth);
  void blockSequence(int64_t indent, ConfigNode &node, size_t depth);
  void lineValue(int64_t parent, ConfigNode &node, size_t depth);
  void expectLineEnd(const ConfigNode &node);
  bool another(int64_t indent);
  void recover(int64_t indent);
  bool keyAhead() const;
  bool enter(size_t depth);
  bool countValue();
  void document(ConfigNode &root);

  // Structure by brackets.
  void flowNode(ConfigNode &node, size_t depth);
  void flowSequence(ConfigNode &node, size_t depth);
  void flowMapping(ConfigNode &node, size_t depth);
  void flowEntry(size_t open, const ConfigNode &key, EntryList &entries, size_t depth);
  bool flowSeparator(size_t open, char close, bool &more);
  void flowFail(size_t open, llvm::StringRef message);
  void skipFlowSpace();

  // Texts.
  void plain(int64_t parent, bool flow, ConfigNode &node);
  bool plainStart(bool flow);
  size_t plainEnd(size_t begin, bool flow) const;
  bool nextPlainLine(int64_t parent, bool flow, std::string &out);
  void quoted(ConfigNode &node);
  void foldQuoted(std::string &out, size_t keep);
  bool escape(std::string &out);
  void blockText(int64_t parent, ConfigNode &node);
  struct BlockHeader {
    char style = '|';
    char chomp = ' ';   // '+' keeps the line breaks at the end, '-' drops them, ' ' keeps one
    int64_t indent = 0; // as written, 0 for none
  };
  bool blockHeader(BlockHeader &header);
  std::string foldLines(llvm::ArrayRef<llvm::StringRef> lines, const BlockHeader &header) const;

  // Moving on.
  void skipToContent(); // passes blanks, line breaks and comments
  void skipBlanks() { at = std::min(text.find_first_not_of(" \t\r", at), text.size()); }
  bool marks(llvm::StringRef marker) const; // `---` or `...` at the beginning of a line
  bool stopped() const { return at == text.size() || marks("---") || marks("..."); }
  bool atLineEnd() const { return at == text.size() || text[at] == '\n' || text[at] == '#'; }
  bool isDash() const { return text[at] == '-' && blankAt(at + 1); }
  bool blankAt(size_t i) const { return i >= text.size() || isBlank(text[i]); }
  static bool isBlank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
  static bool isBracket(char c) { return c == '[' || c == ']' || c == '{' || c == '}' || c == ','; }
  size_t lineEnd(size_t i) const { return std::min(text.find('\n', i), text.size()); }
  // The end of what is written on the line of `i`.
  size_t writtenEnd(size_t i) const { return i + text.slice(i, lineEnd(i)).rtrim().size(); }
  int64_t column() const { return static_cast<int64_t>(at - lineStart); }

  // Reports an error; what is being read is given up until someone recovers.
  DiagnosticBuilder fail(size_t begin, size_t end, const std::string &message) {
    broken = true;
    return source.syntax(begin, end, message);
  }

  ConfigText &source;
  llvm::StringRef text;
  size_t at = 0;
  size_t lineStart = 0;
  size_t lastEnd = 0; // behind what was read last
  bool broken = false;
  bool givenUp = false; // nothing more is read
  // Brackets: the column of what is around, and the first line within them that should not be within them.
  int64_t flowIndent = -1;
  std::optional<size_t> outdented;
};

} // namespace shardc
