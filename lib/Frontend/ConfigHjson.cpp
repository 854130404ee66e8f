// ConfigHjson: a reader of Hjson, the JSON for people that DeepSpeed reads, with the place of everything.
//
// Over JSON it has comments (#, //, /* */), keys and texts without quotes, texts in single or triple quotes, commas that may be
// left out or stand behind the last element, and a file whose outer braces are left out. A text without quotes ends with its line.
// JSON is a part of it, and a key that is given twice is reported as in JSON: DeepSpeed refuses it too.
#include "ConfigReaders.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"

namespace shardc {

namespace {
class HjsonReader {
public:
  explicit HjsonReader(ConfigText &s) : source(s), text(s.text) {}

  std::optional<ConfigNode> file() {
    ConfigNode root;
    skipSpace();
    if (atEnd()) {
      error(0, 0, "this file is empty");
      return std::nullopt;
    }
    const bool bare = peek() != '{' && peek() != '[';
    if (bare ? !members(root, at, '\0', 0) : !value(root, 0)) {
      return std::nullopt;
    }
    skipSpace();
    if (!atEnd()) {
      error(at, at + 1, "nothing may follow the value of the file");
    }
    return source.errors() ? std::nullopt : std::optional(std::move(root));
  }

private:
  DiagnosticBuilder error(size_t begin, size_t end, const std::string &message) { return source.syntax(begin, end, message); }

  bool atEnd() const { return at >= text.size(); }
  char peek() const { return atEnd() ? '\0' : text[at]; }
  static bool isPunctuation(char c) { return llvm::StringRef("{}[],:").contains(c); }

  void skipSpace() {
    while (true) {
      at = std::min(text.find_first_not_of(" \t\r\n", at), text.size());
      const llvm::StringRef rest = text.drop_front(at);
      if (rest.starts_with("//") || rest.starts_with("#")) {
        at = std::min(text.find('\n', at), text.size());
      } else if (rest.starts_with("/*")) {
        const size_t close = text.find("*/", at + 2);
        at = close == llvm::StringRef::npos ? text.size() : close + 2;
      } else {
        return;
      }
    }
  }

  // False if reading cannot go on; a diagnostic says why.
  bool value(ConfigNode &node, size_t depth) {
    if (depth > MaxConfigDepth) {
      source.report<Diag::TooDeep>(source.range(at, at + 1), MaxConfigDepth);
      return false;
    }
    if (!source.countValue(at)) {
      return false;
    }
    switch (peek()) {
    case '{':
      ++at;
      return members(node, at - 1, '}', depth);
    case '[':
      return array(node, depth);
    case '"':
    case '\'':
      node.kind = ConfigNode::Kind::Scalar;
      node.quoted = true;
      return quoted(node.scalar, node.range);
    default:
      return bareValue(node);
    }
  }

  // A number, true, false or null where one stands alone up to a comma, bracket or comment; else the rest of the line.
  bool bareValue(ConfigNode &node) {
    const size_t begin = at;
    if (atEnd() || isPunctuation(peek())) {
      error(at, at + 1, atEnd() ? "the file ends where a value should stand" : "a value should stand here");
      return false;
    }
    const llvm::StringRef line = text.slice(begin, text.find('\n', begin));
    llvm::StringRef word = line.take_until([](char c) { return llvm::StringRef(",]}#").contains(c); });
    word = word.take_front(word.find("//")).take_front(word.find("/*")).rtrim();
    const bool literal = word == "true" || word == "false" || word == "null" || isJsonNumber(word);
    if (!literal) {
      word = line.rtrim();
    }
    at = begin + word.size();
    node.range = source.range(begin, at);
    node.kind = word == "null" ? ConfigNode::Kind::Null : ConfigNode::Kind::Scalar;
    node.scalar = word == "null" ? "" : word.str();
    node.quoted = !literal;
    return true;
  }

  // The range is what stands between the quotes.
  bool quoted(std::string &out, SourceRange &range) {
    const size_t open = at;
    const bool triple = text.drop_front(at).starts_with("'''");
    const llvm::StringRef quote = text.substr(at, triple ? 3 : 1);
    at += quote.size();
    const size_t begin = at;
    while (!text.drop_front(at).starts_with(quote)) {
      if (atEnd() || (peek() == '\n' && !triple)) {
        error(open, at, "this text has no closing quote");
        return false;
      }
      if (peek() == '\\' && !triple) {
        if (!escape(out)) {
          return false;
        }
      } else {
        out += text[at++];
      }
    }
    range = source.range(begin, at);
    at += quote.size();
    return true;
  }

  bool escape(std::string &out) {
    static constexpr llvm::StringLiteral From = "\"'\\/bfnrt", To = "\"'\\/\b\f\n\r\t";
    const size_t begin = at++;
    const size_t index = atEnd() ? llvm::StringRef::npos : From.find(peek());
    if (index != llvm::StringRef::npos) {
      out += To[index];
      ++at;
      return true;
    }
    uint32_t code = 0;
    const llvm::StringRef digits = text.substr(at + 1, 4);
    char buffer[UNI_MAX_UTF8_BYTES_PER_CODE_POINT];
    char *end = buffer;
    if (peek() != 'u' || digits.size() != 4 || digits.getAsInteger(16, code) || !llvm::ConvertCodePointToUTF8(code, end)) {
      error(begin, begin + 2, ("`" + text.substr(begin, 2) + "` is no escape").str());
      return false;
    }
    at += 5;
    out.append(buffer, end);
    return true;
  }

  bool array(ConfigNode &node, size_t depth) {
    const size_t open = at++;
    node.kind = ConfigNode::Kind::Sequence;
    for (skipSpace(); peek() != ']'; skipSpace()) {
      if (atEnd()) {
        error(open, open + 1, "this list has no closing bracket");
        return false;
      }
      if (!value(node.items.emplace_back(), depth + 1)) {
        return false;
      }
      skipComma();
    }
    ++at;
    node.range = source.range(open, at);
    return true;
  }

  // Commas are left out at will.
  void skipComma() {
    skipSpace();
    if (peek() == ',') {
      ++at;
    }
  }

  // The entries up to `close`, or to the end of the file where its outer braces are left out.
  bool members(ConfigNode &node, size_t open, char close, size_t depth) {
    node.kind = ConfigNode::Kind::Mapping;
    EntryList entries(node);
    for (skipSpace(); close ? peek() != close : !atEnd(); skipSpace()) {
      if (atEnd()) {
        error(open, open + 1, "this mapping has no closing brace");
        return false;
      }
      Located<std::string> name;
      ConfigNode entry;
      if (!key(name) || !value(entry, depth + 1)) {
        return false;
      }
      entries.add(std::move(name), std::move(entry), source);
      skipComma();
    }
    at += close != '\0';
    node.range = source.range(open, at);
    return true;
  }

  // Reads a key and the colon behind it.
  bool key(Located<std::string> &name) {
    const size_t begin = at;
    if (peek() == '"' || peek() == '\'') {
      if (!quoted(name.value, name.range)) {
        return false;
      }
    } else {
      at = std::min(text.find_first_of(" \t\r\n,:[]{}", at), text.size());
      if (at == begin) {
        error(begin, begin + 1, "a key should stand here");
        return false;
      }
      name = {text.slice(begin, at).str(), source.range(begin, at)};
    }
    skipSpace();
    if (peek() != ':') {
      error(at, at + 1, "`:` should stand between a key and its value");
      return false;
    }
    ++at;
    skipSpace();
    return true;
  }

  ConfigText &source;
  llvm::StringRef text;
  size_t at = 0;
};
} // namespace

std::optional<ConfigNode> parseHjson(ConfigText &source) { return HjsonReader(source).file(); }

} // namespace shardc
