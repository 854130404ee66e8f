// ConfigYamlText: the part of the YAML reader that reads texts: plain, quoted, literal (`|`) and folded (`>`).
//
// A text over several lines is folded as YAML 1.2 says: one line break becomes a blank, n + 1 of them become n.
#include "ConfigYaml.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"

namespace shardc {

// Where a plain text that begins at `begin` stops on its line: a colon, a comment, a bracket in brackets, or the line's end.
size_t YamlReader::plainEnd(size_t begin, bool flow) const {
  size_t end = begin;
  for (; end < text.size() && text[end] != '\n'; ++end) {
    const char c = text[end];
    if (c == ':' && (blankAt(end + 1) || (flow && isBracket(text[end + 1])))) {
      break;
    }
    if ((c == '#' && end != begin && isBlank(text[end - 1])) || (flow && isBracket(c))) {
      break;
    }
  }
  return end;
}

// Reports what no plain text can begin with.
bool YamlReader::plainStart(bool flow) {
  const char c = text[at];
  const bool alone = blankAt(at + 1) || (flow && isBracket(text[at + 1]));
  if (c == '&' || c == '*' || c == '!') {
    const size_t end = std::min(text.find_first_of(" \t\r\n,[]{}", at), text.size());
    const std::string what = c == '&' ? "anchor" : c == '*' ? "alias" : "tag";
    const std::string mend = c == '*' ? ": write what it stands for" : ": leave it out";
    fail(at, end, "the " + what + " `" + shown(text.slice(at, end)) + "` is not supported" + mend);
  } else if (c == ']' || c == '}') {
    fail(at, at + 1, "this bracket closes nothing");
  } else if (c == ':' && alone) {
    fail(at, at + 1, "a key is missing before this colon");
  } else if (c == '-' && alone) {
    fail(at, at + 1, "a list item cannot stand here: put it on a line of its own");
  } else if (c == '?' && alone) {
    fail(at, at + 1, "a key must be a word");
  } else if (llvm::StringRef(",[{#|>@`\"'%").contains(c)) {
    fail(at, at + 1, std::string("a text cannot begin with `") + c + "`: quote it");
  }
  return !broken;
}

void YamlReader::plain(int64_t parent, bool flow, ConfigNode &node) {
  const size_t begin = at;
  if (!plainStart(flow)) {
    return;
  }
  at = plainEnd(begin, flow);
  node.kind = ConfigNode::Kind::Scalar;
  node.scalar = text.slice(begin, at).rtrim().str();
  lastEnd = begin + node.scalar.size();
  while (!broken && nextPlainLine(parent, flow, node.scalar)) {
  }
  node.range = source.range(begin, lastEnd);
  const llvm::StringRef value = node.scalar;
  if (value == "~" || value == "null" || value == "Null" || value == "NULL") {
    node.kind = ConfigNode::Kind::Null;
    node.scalar.clear();
  }
}

// Adds the next line to a plain text if it continues it.
bool YamlReader::nextPlainLine(int64_t parent, bool flow, std::string &out) {
  if (at == text.size() || text[at] != '\n') {
    return false;
  }
  const size_t lineBefore = lineStart;
  const size_t end = at;
  size_t breaks = 0;
  while (at < text.size() && isBlank(text[at])) {
    if (text[at++] == '\n') {
      lineStart = at;
      ++breaks;
    }
  }
  const bool deeper = flow || column() > parent;
  const bool ends = stopped() || text[at] == '#' || !deeper || (flow && (isBracket(text[at]) || plainEnd(at, flow) == at));
  if (ends) {
    at = end;
    lineStart = lineBefore;
    return false;
  }
  if (!flow && isDash()) {
    fail(at, writtenEnd(at), "a list item cannot continue the text above it");
    return false;
  }
  if (flow && column() <= flowIndent && !outdented) {
    outdented = lineStart;
  }
  const size_t begin = at;
  at = plainEnd(begin, flow);
  const llvm::StringRef line = text.slice(begin, at).rtrim();
  out += breaks == 1 ? std::string(" ") : std::string(breaks - 1, '\n');
  out += line;
  lastEnd = begin + line.size();
  return true;
}

void YamlReader::quoted(ConfigNode &node) {
  const size_t open = at;
  const char quote = text[at++];
  node.kind = ConfigNode::Kind::Scalar;
  node.quoted = true;
  size_t keep = 0; // blanks before a line break are dropped, but not those that were escaped
  while (true) {
    if (stopped()) {
      fail(open, open + 1, "this text has no closing quote");
      return;
    }
    const char c = text[at];
    if (c == quote && !(quote == '\'' && text.substr(at + 1).starts_with("'"))) {
      break;
    }
    if (c == '\n') {
      foldQuoted(node.scalar, keep);
    } else if (c == '\\' && quote == '"') {
      if (!escape(node.scalar)) {
        return;
      }
      keep = node.scalar.size();
    } else {
      node.scalar += c;
      at += c == quote ? 2 : 1;
    }
  }
  node.range = source.range(open + 1, at);
  lastEnd = ++at;
}

// Passes the line breaks at `at` and the blanks around them.
void YamlReader::foldQuoted(std::string &out, size_t keep) {
  while (out.size() > keep && isBlank(out.back()) && out.back() != '\n') {
    out.pop_back();
  }
  size_t breaks = 0;
  while (at < text.size() && isBlank(text[at])) {
    if (text[at++] == '\n') {
      lineStart = at;
      ++breaks;
      if (stopped()) {
        break;
      }
    }
  }
  out += breaks == 1 ? std::string(" ") : std::string(breaks - 1, '\n');
}

bool YamlReader::escape(std::string &out) {
  static constexpr llvm::StringLiteral From = "\"\\/abefnrtv \t";
  static constexpr llvm::StringLiteral To = "\"\\/\a\b\x1b\f\n\r\t\v \t";
  const size_t begin = at++;
  const char c = at == text.size() ? '\0' : text[at];
  const size_t index = From.find(c);
  if (c == '\n' || (c == '\r' && text.substr(at + 1).starts_with("\n"))) {
    // The line goes on without a blank.
    at = lineEnd(at) + 1;
    lineStart = at;
    at = std::min(text.find_first_not_of(" \t", at), text.size());
    return true;
  }
  if (c != '\0' && index != llvm::StringRef::npos) {
    out += To[index];
    ++at;
    return true;
  }
  const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  uint32_t code = 0;
  const llvm::StringRef number = text.substr(at + 1, digits);
  char buffer[UNI_MAX_UTF8_BYTES_PER_CODE_POINT];
  char *end = buffer;
  const bool isNumber = digits != 0 && number.size() == digits && llvm::all_of(number, llvm::isHexDigit);
  if (!isNumber || number.getAsInteger(16, code) || code == 0 || !llvm::ConvertCodePointToUTF8(code, end)) {
    const size_t last = std::min(begin + 2 + digits, text.size());
    fail(begin, last, "`" + text.slice(begin, std::min(last, writtenEnd(begin))).str() + "` is no escape in double quotes");
    return false;
  }
  out.append(buffer, end);
  at += 1 + digits;
  return true;
}

// `|` or `>` with `+`, `-` and a number, in any order.
bool YamlReader::blockHeader(BlockHeader &header) {
  header.style = text[at++];
  for (; at < text.size() && !isBlank(text[at]); ++at) {
    const char c = text[at];
    if ((c == '+' || c == '-') && header.chomp == ' ') {
      header.chomp = c;
    } else if (c >= '1' && c <= '9' && header.indent == 0) {
      header.indent = c - '0';
    } else {
      break;
    }
  }
  const size_t end = at;
  skipBlanks();
  if (at == text.size() || text[at] == '\n' || (text[at] == '#' && at != end)) {
    at = lineEnd(at);
    return true;
  }
  fail(at, writtenEnd(at), std::string("the text of `") + header.style + "` begins on the next line");
  return false;
}

void YamlReader::blockText(int64_t parent, ConfigNode &node) {
  BlockHeader header;
  lastEnd = at + 1;
  if (!blockHeader(header)) {
    return;
  }
  node.kind = ConfigNode::Kind::Scalar;
  node.quoted = true;
  node.range = source.range(lastEnd, lastEnd);
  int64_t indent = header.indent == 0 ? 0 : std::max<int64_t>(parent, 0) + header.indent;
  bool known = header.indent != 0;
  std::vector<llvm::StringRef> lines;
  bool any = false;
  while (at + 1 < text.size()) {
    const size_t begin = at + 1;
    const llvm::StringRef line = text.slice(begin, lineEnd(begin)).rtrim('\r');
    const auto blanks = static_cast<int64_t>(line.take_while([](char c) { return c == ' '; }).size());
    const bool isEmpty = static_cast<size_t>(blanks) == line.size();
    if (!isEmpty && !known) {
      indent = blanks;
      known = true;
      if (indent <= parent) {
        break;
      }
    }
    const bool isMarker = (line.starts_with("---") || line.starts_with("...")) && blankAt(begin + 3);
    if (!isEmpty && (blanks < indent || isMarker)) {
      break;
    }
    // An empty line deeper than the text is part of it.
    lines.push_back(isEmpty && (!known || blanks <= indent) ? llvm::StringRef() : line.drop_front(static_cast<size_t>(indent)));
    if (!isEmpty) {
      const size_t first = begin + static_cast<size_t>(indent);
      node.range = source.range(any ? node.range.begin : first, std::max(first, begin + line.rtrim().size()));
      lastEnd = node.range.end;
      any = true;
    }
    lineStart = begin;
    at = lineEnd(begin);
  }
  node.scalar = foldLines(lines, header);
}

std::string YamlReader::foldLines(llvm::ArrayRef<llvm::StringRef> lines, const BlockHeader &header) const {
  size_t count = lines.size();
  while (count != 0 && lines[count - 1].empty()) {
    --count;
  }
  const auto isDeep = [](llvm::StringRef line) { return line.starts_with(" ") || line.starts_with("\t"); };
  std::string out;
  size_t breaks = 0; // since the last line that is not empty
  bool deep = false; // was it indented deeper than the text?
  bool first = true;
  for (const llvm::StringRef line : lines.take_front(count)) {
    if (line.empty()) {
      ++breaks;
      continue;
    }
    if (!first) {
      ++breaks;
    }
    const bool folds = header.style == '>' && !first && !deep && !isDeep(line);
    out += !folds ? std::string(breaks, '\n') : breaks == 1 ? std::string(" ") : std::string(breaks - 1, '\n');
    out += line;
    deep = isDeep(line);
    breaks = 0;
    first = false;
  }
  if (header.chomp == '+') {
    out += std::string(lines.size() - count + (count != 0), '\n');
  } else if (header.chomp == ' ' && count != 0) {
    out += '\n';
  }
  return out;
}

} // namespace shardc
