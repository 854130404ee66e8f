// ConfigToml: TOML through toml++, with the place of everything.
//
// Exists to turn toml++'s tables, which are sorted by name, back into the order of the file, and its lines and columns of
// characters into bytes. Numbers and dates stay as they are written.
//
// toml++ builds one table per part of a dotted key and frees them recursively, so a key of a million parts would end the
// stack. Depth is therefore counted first, over brackets and dots outside of texts and comments.
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include "ConfigReaders.h"
#include <algorithm>
#include <toml++/toml.h>

namespace shardc {

namespace {
// The end of the text or comment that begins at `at`.
size_t skipOpaque(llvm::StringRef text, size_t at) {
  const auto behind = [&](size_t found, size_t length) { return found == llvm::StringRef::npos ? text.size() : found + length; };
  if (text[at] == '#') {
    return behind(text.find('\n', at), 0);
  }
  const llvm::StringRef quote = text.substr(at, 1);
  const std::string triple = quote.str() + quote.str() + quote.str();
  const bool isLong = text.substr(at, 3) == triple;
  size_t end = at + (isLong ? 3 : 1);
  while (end < text.size()) {
    if (quote == "\"" && text[end] == '\\') {
      end += 2;
    } else if (!isLong && text[end] == '\n') {
      return end;
    } else if (text.substr(end).starts_with(isLong ? llvm::StringRef(triple) : quote)) {
      return end + (isLong ? 3 : 1);
    } else {
      ++end;
    }
  }
  return text.size();
}

// The first place where brackets and dotted keys nest too deep.
std::optional<size_t> tooDeep(llvm::StringRef text) {
  std::vector<size_t> open; // the depth at each bracket that is open
  size_t depth = 0;         // with the dots of the current key
  size_t base = 0;          // of the current header
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\'' || c == '#') {
      at = skipOpaque(text, at);
      continue;
    }
    if (c == '[' || c == '{') {
      open.push_back(depth++);
    } else if (c == '.') {
      ++depth;
    } else if ((c == ']' || c == '}') && !open.empty()) {
      // The dots of a header count for all that follows, those of an element only up to its end.
      base = open.size() == 1 && c == ']' ? std::max(base, depth) : base;
      depth = open.back();
      open.pop_back();
    } else if (c == ',') {
      depth = open.empty() ? 0 : open.back() + 1;
    } else if (c == '\n' && open.empty()) {
      depth = 0;
    }
    if (depth > MaxConfigDepth || (open.empty() && base > MaxConfigDepth)) {
      return at;
    }
    ++at;
  }
  return std::nullopt;
}

class TomlTree {
public:
  explicit TomlTree(const ConfigText &s) : source(s) {
    lines.push_back(0);
    for (size_t at = s.text.find('\n'); at != llvm::StringRef::npos; at = s.text.find('\n', at + 1)) {
      lines.push_back(at + 1);
    }
  }

  // toml++ counts characters from 1, we count bytes.
  size_t offset(toml::source_position p) const {
    if (!p || p.line > lines.size()) {
      return source.text.size();
    }
    size_t at = lines[p.line - 1];
    for (size_t i = 1; i < p.column && at < source.text.size(); ++i) {
      do {
        ++at;
      } while (at < source.text.size() && (source.text[at] & 0xc0) == 0x80);
    }
    return at;
  }

  SourceRange range(const toml::source_region &r) const {
    const size_t begin = offset(r.begin);
    return source.range(begin, std::max(begin, offset(r.end)));
  }

  ConfigNode node(const toml::node &from) const {
    ConfigNode to;
    to.range = range(from.source());
    if (const toml::table *table = from.as_table()) {
      to.kind = ConfigNode::Kind::Mapping;
      for (const auto &[key, value] : *table) {
        Located<std::string> name{std::string(key.str()), range(key.source())};
        trimQuotes(name.range, name.value);
        to.entries.emplace_back(std::move(name), node(value));
      }
      std::stable_sort(to.entries.begin(), to.entries.end(),
                       [](const auto &a, const auto &b) { return a.first.range.begin < b.first.range.begin; });
    } else if (const toml::array *array = from.as_array()) {
      to.kind = ConfigNode::Kind::Sequence;
      for (const toml::node &item : *array) {
        to.items.push_back(node(item));
      }
    } else {
      to.kind = ConfigNode::Kind::Scalar;
      to.scalar = source.diags.sources().text(to.range).str();
      if (const toml::value<std::string> *text = from.as_string()) {
        to.scalar = text->get();
        to.quoted = true;
        trimQuotes(to.range, to.scalar);
      }
    }
    return to;
  }

private:
  // Leaves what stands between the quotes, if there are any.
  void trimQuotes(SourceRange &r, llvm::StringRef) const {
    const llvm::StringRef written = source.diags.sources().text(r);
    for (const llvm::StringRef quote : {"\"\"\"", "'''", "\"", "'"}) {
      if (written.size() >= 2 * quote.size() && written.starts_with(quote) && written.ends_with(quote)) {
        r = r.slice(quote.size(), written.size() - quote.size());
        return;
      }
    }
  }

  const ConfigText &source;
  std::vector<size_t> lines;
};
} // namespace

std::optional<ConfigNode> parseToml(const ConfigText &source) {
  if (const std::optional<size_t> place = tooDeep(source.text)) {
    source.diags.emit<Diag::TooDeep>(source.range(*place, *place + 1), MaxConfigDepth);
    return std::nullopt;
  }
  const toml::parse_result result = toml::parse(std::string_view(source.text.data(), source.text.size()));
  const TomlTree tree(source);
  if (!result) {
    const toml::parse_error &error = result.error();
    const size_t at = tree.offset(error.source().begin);
    source.diags.emit<Diag::SyntaxError>(source.range(at, std::min(at + 1, source.text.size())), std::string(error.description()));
    return std::nullopt;
  }
  ConfigNode root = tree.node(result.table());
  root.range = source.range(0, source.text.size());
  return root;
}

} // namespace shardc
