// ConfigYamlFlow: the part of the YAML reader that reads what stands in brackets.
//
// Indentation has no meaning there, so that a bracket which is never closed swallows what follows. The reader remembers the
// first line that is indented no deeper than what is around the brackets; if reading fails behind it, the bracket is what is
// wrong, and reading goes on with that line.
#include "ConfigYaml.h"

namespace shardc {

void YamlReader::skipFlowSpace() {
  const size_t line = lineStart;
  skipToContent();
  const bool closes = at != text.size() && (text[at] == ']' || text[at] == '}');
  if (line != lineStart && column() <= flowIndent && !closes && !outdented) {
    outdented = lineStart;
  }
}

void YamlReader::flowFail(size_t open, llvm::StringRef message) {
  if (!outdented && !stopped()) {
    fail(at, at + 1, message.str()).label(source.range(open, open + 1), "within this bracket");
    return;
  }
  fail(open, open + 1, "this bracket is never closed");
  if (outdented) {
    lineStart = *outdented;
    at = lineStart - 1;
  }
}

void YamlReader::flowNode(ConfigNode &node, size_t depth) {
  switch (text[at]) {
  case '[':
    flowSequence(node, depth);
    break;
  case '{':
    flowMapping(node, depth);
    break;
  case '"':
  case '\'':
    quoted(node);
    break;
  default:
    plain(flowIndent, /*flow=*/true, node);
    break;
  }
}

// Behind an element: passes the comma or the bracket that closes. False if neither is there.
bool YamlReader::flowSeparator(size_t open, char close, bool &more) {
  skipFlowSpace();
  if (!stopped() && text[at] == ',') {
    ++at;
    skipFlowSpace();
  } else if (stopped() || text[at] != close) {
    flowFail(open, std::string("`,` or `") + close + "` should stand here");
    return false;
  }
  if (!stopped() && text[at] == close) {
    lastEnd = ++at;
    more = false;
  } else if (stopped() || text[at] == ',') {
    flowFail(open, "an element is missing here");
    return false;
  }
  return true;
}

void YamlReader::flowSequence(ConfigNode &node, size_t depth) {
  const size_t open = at;
  if (!enter(depth)) {
    return;
  }
  node.kind = ConfigNode::Kind::Sequence;
  ++at;
  skipFlowSpace();
  bool more = at == text.size() || text[at] != ']';
  lastEnd = at += !more;
  while (more) {
    if (stopped() || text[at] == ',') {
      flowFail(open, "an element is missing here");
      return;
    }
    ConfigNode item;
    const size_t begin = at;
    flowNode(item, depth + 1);
    if (broken) {
      return;
    }
    const size_t end = at;
    skipFlowSpace();
    if (!stopped() && text[at] == ':') {
      // `[a: 1]`: a mapping of one entry.
      ConfigNode pair;
      pair.kind = ConfigNode::Kind::Mapping;
      EntryList entries(pair);
      flowEntry(open, item, entries, depth + 1);
      pair.range = source.range(begin, lastEnd);
      item = std::move(pair);
    } else {
      lastEnd = std::max(lastEnd, end);
    }
    node.items.push_back(std::move(item));
    if (broken || !countValue() || !flowSeparator(open, ']', more)) {
      return;
    }
  }
  node.range = source.range(open, at);
}

void YamlReader::flowMapping(ConfigNode &node, size_t depth) {
  const size_t open = at;
  if (!enter(depth)) {
    return;
  }
  node.kind = ConfigNode::Kind::Mapping;
  EntryList entries(node);
  ++at;
  skipFlowSpace();
  bool more = at == text.size() || text[at] != '}';
  lastEnd = at += !more;
  while (more) {
    if (stopped() || text[at] == ',') {
      flowFail(open, "an element is missing here");
      return;
    }
    ConfigNode key;
    flowNode(key, depth + 1);
    if (!broken) {
      flowEntry(open, key, entries, depth);
    }
    if (broken || !countValue() || !flowSeparator(open, '}', more)) {
      return;
    }
  }
  node.range = source.range(open, at);
}

// Behind a key: the colon and the value, if there are any. `{a, b}` has keys with nothing.
void YamlReader::flowEntry(size_t open, const ConfigNode &key, EntryList &entries, size_t depth) {
  Located<std::string> name{key.kind == ConfigNode::Kind::Null ? text.slice(key.range.begin, key.range.end).str() : key.scalar, key.range};
  if (key.kind == ConfigNode::Kind::Mapping || key.kind == ConfigNode::Kind::Sequence) {
    fail(key.range.begin, key.range.end, "a key must be a word, not " + describe(key));
    return;
  }
  if (name.value == "<<" && !key.quoted) {
    fail(key.range.begin, key.range.end, "the merge key `<<` is not supported: write the entries out");
    return;
  }
  ConfigNode value;
  const size_t keyEnd = lastEnd;
  value.range = source.range(keyEnd, keyEnd);
  skipFlowSpace();
  if (!stopped() && text[at] == ':') {
    if (text.slice(key.range.begin, at).contains('\n')) {
      if (outdented) {
        flowFail(open, "");
      } else {
        fail(key.range.begin, writtenEnd(key.range.begin), "a key must stand on one line with its colon: is a comma missing?");
      }
      return;
    }
    lastEnd = ++at;
    value.range = source.range(at, at);
    skipFlowSpace();
    if (!stopped() && text[at] != ',' && text[at] != '}' && text[at] != ']') {
      flowNode(value, depth + 1);
    }
  }
  if (!broken) {
    entries.add(std::move(name), std::move(value), source);
  }
}

} // namespace shardc
