// ConfigYaml: a reader of the YAML that a config needs, with the place of everything. Here: structure by indentation.
//
// The problem. A layout file must be understood exactly as its author meant it, every mistake must be shown at its place, and
// the shipped catalogue must be read at every start within milliseconds. Libraries give only where a node begins, keep
// duplicate keys, accept a quote that is never closed, stop at the first error and read some four megabytes a second.
//
// What is read: block and bracket mappings and lists; plain, quoted, literal and folded texts with YAML 1.2's rules of
// folding and chomping; comments; one document. What makes one place of a file change the meaning of another, or cannot be
// meant in a config, is refused with its name: anchors, aliases, merge keys, tags, keys that are not words, several documents.
// Two traps of YAML are refused as well: a key alone on its line, and a list item that continues the text above it.
//
// How. Recursive descent. A node knows the column of the list or mapping around it and ends before the first line that is not
// indented deeper. After an error the innermost block skips to the next line of its own column or further out and goes on.
//
// Why it ends and what it costs. Every step moves forward, also after errors; depth is limited. Each character is looked at
// a few times: 10^6 lines take under a second.
#include "ConfigYaml.h"

namespace shardc {

void YamlReader::skipToContent() {
  while (at < text.size()) {
    const char c = text[at];
    if (c == '\n') {
      lineStart = ++at;
    } else if (isBlank(c)) {
      ++at;
    } else if (c == '#' && (at == lineStart || isBlank(text[at - 1]))) {
      at = lineEnd(at);
    } else {
      return;
    }
  }
}

bool YamlReader::marks(llvm::StringRef marker) const { return at == lineStart && text.substr(at).starts_with(marker) && blankAt(at + 3); }

// Goes on at the next line that is not deeper than `indent`.
void YamlReader::recover(int64_t indent) {
  broken = false;
  do {
    at = lineEnd(at);
    skipToContent();
  } while (!stopped() && column() > indent);
}

// True at the next entry or item of a block in column `indent`.
bool YamlReader::another(int64_t indent) {
  if (broken && !givenUp) {
    recover(indent);
  }
  while (!givenUp) {
    skipToContent();
    if (stopped()) {
      return false;
    }
    if (text.slice(lineStart, at).contains('\t')) {
      fail(lineStart, at, "a tab cannot indent: use spaces");
    } else if (column() <= indent) {
      return column() == indent;
    } else {
      fail(at, writtenEnd(at), "this is indented deeper than what it should belong to");
    }
    recover(indent);
  }
  return false;
}

// Counts a value, and gives up where the file holds too many.
bool YamlReader::countValue() {
  if (!source.countValue(at)) {
    broken = givenUp = true;
  }
  return !broken;
}

// Reports nesting beyond the limit and gives up.
bool YamlReader::enter(size_t depth) {
  if (depth <= MaxConfigDepth) {
    return true;
  }
  source.report<Diag::TooDeep>(source.range(at, at + 1), MaxConfigDepth);
  broken = givenUp = true;
  return false;
}

std::optional<ConfigNode> YamlReader::file() {
  ConfigNode root;
  document(root);
  if (source.errors() != 0) {
    return std::nullopt;
  }
  if (!root.range.valid()) {
    root.range = source.range(0, 0);
  }
  return root;
}

void YamlReader::document(ConfigNode &root) {
  skipToContent();
  while (at < text.size() && at == lineStart && text[at] == '%' && !givenUp) {
    at = lineEnd(at); // directives
    skipToContent();
  }
  if (marks("---")) {
    at += 3;
    skipToContent();
  }
  if (!stopped()) {
    blockNode(-1, root, 1);
  }
  if (broken || givenUp) {
    return;
  }
  skipToContent();
  if (marks("...")) {
    at += 3;
    skipToContent();
  }
  if (at != text.size()) {
    fail(at, writtenEnd(at), marks("---") ? "a second document begins here; a file holds one" : "this belongs to nothing above it");
  }
}

// At the first character of a node.
void YamlReader::blockNode(int64_t parent, ConfigNode &node, size_t depth) {
  if (text.slice(lineStart, at).trim(" ").starts_with("\t")) {
    fail(lineStart, at, "a tab cannot indent: use spaces");
  } else if (isDash()) {
    blockSequence(column(), node, depth);
  } else if (text[at] == '|' || text[at] == '>') {
    blockText(parent, node);
  } else if (keyAhead()) {
    blockMapping(column(), node, depth);
  } else {
    lineValue(parent, node, depth);
  }
}

// Is there `word:` or `"text":` on this line?
bool YamlReader::keyAhead() const {
  size_t end = at;
  if (text[at] == '"' || text[at] == '\'') {
    const char quote = text[at];
    for (++end; end < text.size() && text[end] != quote && text[end] != '\n'; ++end) {
      end += quote == '"' && text[end] == '\\';
    }
    // A doubled single quote ends one text here and begins another, which changes nothing.
    while (quote == '\'' && text.substr(end).starts_with("''")) {
      end = std::min(text.find_first_of("'\n", end + 2), text.size());
    }
    end = std::min(text.find_first_not_of(" \t", std::min(end + 1, text.size())), text.size());
  } else if (!isBracket(text[at])) {
    end = plainEnd(at, /*flow=*/false);
  }
  return end > at && end < text.size() && text[end] == ':' && blankAt(end + 1);
}

void YamlReader::blockMapping(int64_t indent, ConfigNode &node, size_t depth) {
  if (!enter(depth)) {
    return;
  }
  const size_t begin = at;
  node.kind = ConfigNode::Kind::Mapping;
  EntryList entries(node);
  do {
    blockEntry(indent, entries, depth);
  } while (another(indent));
  node.range = source.range(begin, lastEnd);
}

void YamlReader::blockEntry(int64_t indent, EntryList &entries, size_t depth) {
  Located<std::string> key;
  blockKey(key);
  if (broken || !countValue()) {
    return;
  }
  ConfigNode value;
  blockValue(indent, value, depth);
  if (!broken) {
    entries.add(std::move(key), std::move(value), source);
  }
}

// Reads a key and the colon behind it.
void YamlReader::blockKey(Located<std::string> &key) {
  if (isDash()) {
    fail(at, writtenEnd(at), "a list item cannot stand among the entries of a mapping");
    return;
  }
  if (text[at] == '[' || text[at] == '{' || (text[at] == '?' && blankAt(at + 1))) {
    fail(at, at + 1, "a key must be a word");
    return;
  }
  if (text[at] == '"' || text[at] == '\'') {
    ConfigNode node;
    const bool isKey = keyAhead();
    quoted(node);
    if (!broken && !isKey) {
      fail(node.range.begin, node.range.end, "a colon is missing behind this key");
    }
    key = {std::move(node.scalar), node.range};
    skipBlanks();
  } else {
    const size_t begin = at;
    if (!plainStart(/*flow=*/false)) {
      return;
    }
    at = plainEnd(begin, /*flow=*/false);
    key = {text.slice(begin, at).rtrim().str(), source.range(begin, begin + text.slice(begin, at).rtrim().size())};
    if (at == text.size() || text[at] != ':') {
      fail(begin, key.range.end, "a colon is missing behind this key");
    } else if (key.value == "<<") {
      fail(begin, key.range.end, "the merge key `<<` is not supported: write the entries out");
    }
  }
  if (!broken) {
    lastEnd = ++at;
  }
}

// What stands behind the colon of an entry whose key is in column `indent`.
void YamlReader::blockValue(int64_t indent, ConfigNode &node, size_t depth) {
  const size_t colonEnd = at;
  skipBlanks();
  if (!atLineEnd()) {
    if (isDash()) {
      fail(at, at + 1, "a list item cannot stand behind a key: put it on a line of its own");
    } else if (text[at] == '|' || text[at] == '>') {
      blockText(indent, node);
    } else {
      lineValue(indent, node, depth + 1);
    }
    return;
  }
  skipToContent();
  if (!stopped() && column() > indent) {
    blockNode(indent, node, depth + 1);
  } else if (!stopped() && column() == indent && isDash()) {
    blockSequence(indent, node, depth + 1);
  } else {
    node.range = source.range(colonEnd, colonEnd);
  }
}

void YamlReader::blockSequence(int64_t indent, ConfigNode &node, size_t depth) {
  if (!enter(depth)) {
    return;
  }
  const size_t begin = at;
  node.kind = ConfigNode::Kind::Sequence;
  do {
    lastEnd = ++at;
    const size_t dashEnd = at;
    ConfigNode item;
    skipBlanks();
    if (atLineEnd()) {
      skipToContent();
    }
    if (stopped() || column() <= indent) {
      item.range = source.range(dashEnd, dashEnd);
    } else {
      blockNode(indent, item, depth + 1);
    }
    node.items.push_back(std::move(item));
  } while (countValue() && another(indent) && isDash());
  node.range = source.range(begin, lastEnd);
}

// A value of which only the first line matters for the structure: a text, or something in brackets.
void YamlReader::lineValue(int64_t parent, ConfigNode &node, size_t depth) {
  if (text[at] == '[' || text[at] == '{') {
    flowIndent = parent;
    outdented.reset();
    flowNode(node, depth);
  } else if (text[at] == '"' || text[at] == '\'') {
    quoted(node);
  } else {
    plain(parent, /*flow=*/false, node);
  }
  if (!broken) {
    expectLineEnd(node);
  }
}

void YamlReader::expectLineEnd(const ConfigNode &node) {
  skipBlanks();
  if (at == text.size() || text[at] == '\n' || (text[at] == '#' && isBlank(text[at - 1]))) {
    return;
  }
  if (text[at] != ':') {
    const bool closes = text[at] == ']' || text[at] == '}';
    fail(at, closes ? at + 1 : writtenEnd(at), closes ? "this bracket closes nothing" : "this cannot follow what is complete before it");
  } else if (node.kind == ConfigNode::Kind::Mapping || node.kind == ConfigNode::Kind::Sequence) {
    fail(node.range.begin, node.range.end, "a key must be a word, not " + describe(node));
  } else {
    fail(at, at + 1, "a colon cannot stand here: check the indentation, or quote the text");
  }
}

std::optional<ConfigNode> parseYaml(ConfigText &source) { return YamlReader(source).file(); }

} // namespace shardc
