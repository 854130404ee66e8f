// ConfigJson: a strict reader of JSON (RFC 8259) with the place of everything.
//
// Exists because the parsers at hand either know no places or take more than JSON, and a file that another program refuses
// must be refused here. What can be mistaken for JSON (comments, trailing commas, single quotes, bare words, NaN) is
// reported and read on, so that one run shows all of it; what leaves the structure unclear ends the reading.
#include "ConfigReaders.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"

namespace shardc {

// -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?
bool isJsonNumber(llvm::StringRef w) {
  const auto digits = [&w] {
    const size_t n = w.take_while(llvm::isDigit).size();
    w = w.drop_front(n);
    return n != 0;
  };
  w.consume_front("-");
  if (!w.consume_front("0") && !digits()) {
    return false;
  }
  if (w.consume_front(".") && !digits()) {
    return false;
  }
  if ((w.consume_front("e") || w.consume_front("E"))) {
    if (!w.consume_front("+")) {
      w.consume_front("-");
    }
    return digits() && w.empty();
  }
  return w.empty();
}

namespace {
class JsonReader {
public:
  explicit JsonReader(ConfigText &s) : source(s), text(s.text) {}

  std::optional<ConfigNode> file() {
    ConfigNode root;
    skipSpace();
    if (at == text.size()) {
      error(0, 0, "this file is empty: JSON needs a value");
      return std::nullopt;
    }
    if (!value(root, 0)) {
      return std::nullopt;
    }
    skipSpace();
    if (at != text.size()) {
      error(at, at + 1, "nothing may follow the value of a JSON file");
    }
    return source.errors() ? std::nullopt : std::optional(std::move(root));
  }

private:
  DiagnosticBuilder error(size_t begin, size_t end, const std::string &message) { return source.syntax(begin, end, message); }

  bool atEnd() const { return at == text.size(); }
  char peek() const { return atEnd() ? '\0' : text[at]; }

  void skipSpace() {
    while (true) {
      at = std::min(text.find_first_not_of(" \t\r\n", at), text.size());
      const llvm::StringRef rest = text.drop_front(at);
      size_t end = text.size(); // of the comment
      if (rest.starts_with("//") || rest.starts_with("#")) {
        end = std::min(text.find('\n', at), end);
      } else if (rest.starts_with("/*")) {
        const size_t close = text.find("*/", at + 2);
        end = close == llvm::StringRef::npos ? end : close + 2;
      } else {
        return;
      }
      error(at, end, "JSON has no comments");
      at = end;
    }
  }

  // False if reading cannot go on; a diagnostic says why.
  bool value(ConfigNode &node, size_t depth) {
    const size_t begin = at;
    if (depth > MaxConfigDepth) {
      source.report<Diag::TooDeep>(source.range(at, at + 1), MaxConfigDepth);
      return false;
    }
    if (!source.countValue(at)) {
      return false;
    }
    switch (peek()) {
    case '{':
      return object(node, depth);
    case '[':
      return array(node, depth);
    case '"':
    case '\'':
      node.kind = ConfigNode::Kind::Scalar;
      node.quoted = true;
      return string(node.scalar, node.range);
    default:
      break;
    }
    at = std::min(text.find_first_of(" \t\r\n,:[]{}\"'/#", at), text.size());
    if (at == begin) {
      error(begin, std::min(begin + 1, text.size()), atEnd() ? "the file ends where a value should stand" : "a value should stand here");
      return false;
    }
    node.range = source.range(begin, at);
    return word(node, text.slice(begin, at));
  }

  bool word(ConfigNode &node, llvm::StringRef w) {
    const size_t begin = at - w.size();
    node.kind = w == "null" ? ConfigNode::Kind::Null : ConfigNode::Kind::Scalar;
    node.scalar = w == "null" ? "" : w.str();
    if (w == "null" || w == "true" || w == "false" || isJsonNumber(w)) {
      return true;
    }
    const std::string name = shown(w);
    const std::string lower = w.lower();
    const llvm::StringRef number = llvm::StringRef(lower).ltrim("+-.0");
    if (number.starts_with("nan") || number.starts_with("inf")) {
      error(begin, at, "JSON has no `" + name + "`: its numbers are finite");
    } else if (lower == "true" || lower == "false" || lower == "null" || lower == "none") {
      error(begin, at, "JSON has no `" + name + "`").help("write `" + (lower == "none" ? "null" : lower) + "`");
    } else if (llvm::isDigit(w.front()) || llvm::StringRef("+-.").contains(w.front())) {
      error(begin, at, "`" + name + "` is not a number of JSON");
    } else {
      error(begin, at, "`" + name + "` must stand in double quotes");
    }
    return true;
  }

  // Reads the quoted text at `at`; the range is what stands between the quotes.
  bool string(std::string &out, SourceRange &range) {
    const size_t open = at;
    const char quote = text[at++];
    while (peek() != quote) {
      if (atEnd() || peek() == '\n') {
        error(open, at, "this text has no closing quote");
        return false;
      }
      if (peek() == '\\') {
        if (!escape(out)) {
          return false;
        }
      } else {
        if (peek() == '\t') {
          error(at, at + 1, "a tab in a text of JSON is written `\\t`");
        }
        out += text[at++];
      }
    }
    range = source.range(open + 1, at);
    ++at;
    if (quote == '\'') {
      error(open, at, "JSON has texts in double quotes only");
    }
    return true;
  }

  bool escape(std::string &out) {
    static constexpr llvm::StringLiteral From = "\"\\/bfnrt";
    static constexpr llvm::StringLiteral To = "\"\\/\b\f\n\r\t";
    const size_t begin = at++;
    const size_t index = atEnd() ? llvm::StringRef::npos : From.find(peek());
    if (index != llvm::StringRef::npos) {
      out += To[index];
      ++at;
      return true;
    }
    at = begin;
    uint32_t code = 0;
    if (!unit(code)) {
      const size_t end = std::min(begin + 2, text.size());
      error(begin, end, ("`" + text.slice(begin, end) + "` is no escape of JSON").str());
      return false;
    }
    uint32_t low = 0;
    if (code >= 0xd800 && code < 0xdc00 && unit(low) && low >= 0xdc00 && low < 0xe000) {
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    char buffer[UNI_MAX_UTF8_BYTES_PER_CODE_POINT];
    char *end = buffer;
    if (!llvm::ConvertCodePointToUTF8(code, end)) {
      error(begin, at, "this is half of a surrogate pair");
      return true;
    }
    out.append(buffer, end);
    return true;
  }

  // Reads `\uXXXX`; stays where it is if there is none.
  bool unit(uint32_t &code) {
    const llvm::StringRef rest = text.substr(at, 6);
    if (rest.size() != 6 || !rest.starts_with("\\u") || rest.drop_front(2).getAsInteger(16, code)) {
      return false;
    }
    at += 6;
    return true;
  }

  // After an element: true if another follows. `more` is false at the end of the list.
  bool separator(char close, size_t open, bool &more) {
    skipSpace();
    if (peek() == close) {
      ++at;
      more = false;
      return true;
    }
    if (peek() != ',' || atEnd()) {
      const std::string wanted = std::string("`,` or `") + close + "`";
      error(at, std::min(at + 1, text.size()), (atEnd() ? "the file ends where " : "here ") + wanted + " should stand")
          .label(source.range(open, open + 1), "opened here");
      return false;
    }
    const size_t comma = at++;
    skipSpace();
    if (peek() == close) {
      error(comma, comma + 1, "JSON has no comma behind the last element");
      ++at;
      more = false;
    }
    return true;
  }

  bool array(ConfigNode &node, size_t depth) {
    const size_t open = at++;
    node.kind = ConfigNode::Kind::Sequence;
    skipSpace();
    bool more = peek() != ']';
    at += !more;
    while (more) {
      if (!value(node.items.emplace_back(), depth + 1) || !separator(']', open, more)) {
        return false;
      }
    }
    node.range = source.range(open, at);
    return true;
  }

  bool object(ConfigNode &node, size_t depth) {
    const size_t open = at++;
    node.kind = ConfigNode::Kind::Mapping;
    EntryList entries(node);
    skipSpace();
    bool more = peek() != '}';
    at += !more;
    while (more) {
      Located<std::string> key;
      ConfigNode entry;
      if (!objectKey(key, open) || !value(entry, depth + 1)) {
        return false;
      }
      entries.add(std::move(key), std::move(entry), source);
      if (!separator('}', open, more)) {
        return false;
      }
    }
    node.range = source.range(open, at);
    return true;
  }

  // Reads a key and the colon behind it.
  bool objectKey(Located<std::string> &key, size_t open) {
    const size_t begin = at;
    if (peek() == '"' || peek() == '\'') {
      if (!string(key.value, key.range)) {
        return false;
      }
    } else {
      at = std::min(text.find_first_of(" \t\r\n,:[]{}\"'/#", at), text.size());
      if (at == begin) {
        error(begin, std::min(begin + 1, text.size()), atEnd() ? "the file ends where a key should stand" : "a key should stand here")
            .label(source.range(open, open + 1), "opened here");
        return false;
      }
      key = {text.slice(begin, at).str(), source.range(begin, at)};
      error(begin, at, "a key of JSON must stand in double quotes");
    }
    skipSpace();
    if (peek() != ':') {
      error(at, std::min(at + 1, text.size()), "`:` should stand between a key and its value");
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

std::optional<ConfigNode> parseJson(ConfigText &source) { return JsonReader(source).file(); }

} // namespace shardc
