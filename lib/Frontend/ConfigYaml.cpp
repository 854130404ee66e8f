// ConfigYaml: YAML through the events of yaml-cpp, with the place of everything.
//
// Exists because yaml-cpp gives only where a node begins, keeps duplicate keys silently and words its errors for its own
// authors. Ends are found again in the text. What makes one place of a file change the meaning of another (anchors with
// aliases, merge keys, tags, several documents) is refused: a layout must be readable where it stands.
//
// The tree is built from events and not from YAML::Node, which takes ten times the memory and follows aliases without
// limit. yaml-cpp itself stops at a depth of 500 by an exception; ours is the lower limit.
#include "ConfigReaders.h"
#include "llvm/ADT/StringExtras.h"
#include <array>
#include <istream>
#include <streambuf>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

namespace shardc {

namespace {
constexpr size_t MaxErrors = 100; // of one file; the rest would only repeat them

// Lets yaml-cpp read the text where it is.
struct TextBuffer : std::streambuf {
  explicit TextBuffer(llvm::StringRef text) {
    char *begin = const_cast<char *>(text.data());
    setg(begin, begin, begin + text.size());
  }
};

bool isBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// The end of a quoted text, behind its closing quote; nothing if there is none, which yaml-cpp accepts.
std::optional<size_t> quotedEnd(llvm::StringRef text, size_t open) {
  const char quote = text[open];
  for (size_t at = open + 1; at < text.size(); ++at) {
    if (quote == '"' && text[at] == '\\') {
      ++at;
    } else if (text[at] == quote) {
      if (quote == '"' || text.substr(at + 1, 1) != "'") {
        return at + 1;
      }
      ++at;
    }
  }
  return std::nullopt;
}

// The end of a text that is written over several lines, found by its characters other than blanks, which folding keeps.
size_t foldedEnd(llvm::StringRef text, size_t begin, llvm::StringRef value) {
  size_t at = begin;
  for (const char c : value) {
    if (isBlank(c)) {
      continue;
    }
    while (at < text.size() && isBlank(text[at])) {
      ++at;
    }
    if (at == text.size() || text[at] != c) {
      return at;
    }
    ++at;
  }
  return at;
}

class TreeBuilder : public YAML::EventHandler {
public:
  explicit TreeBuilder(const ConfigText &s) : source(s), text(s.text) {}

  ConfigNode root;
  size_t errors = 0;
  size_t cursor = 0; // the end of what was read last

  // The innermost list or mapping in brackets that is still open.
  std::optional<size_t> openBracket() const {
    for (const Frame &f : llvm::reverse(frames)) {
      if (f.flow) {
        return f.begin;
      }
    }
    return std::nullopt;
  }

  template <Diag id, class... Args> void report(size_t begin, size_t end, Args &&...args) {
    if (++errors <= MaxErrors) {
      source.diags.emit<id>(source.range(begin, end), std::forward<Args>(args)...);
    }
  }

  // What yaml-cpp left unread: it ends a document silently before a line that fits nothing.
  void checkRest() {
    const size_t at = contentAt(cursor);
    const llvm::StringRef rest = text.drop_front(at);
    if (rest.starts_with("---")) {
      report<Diag::SyntaxError>(at, at + 3, "a second document begins here; a file holds one");
    } else if (!rest.empty() && !(rest.starts_with("...") && contentAt(at + 3) == text.size())) {
      report<Diag::SyntaxError>(at, lineEnd(at), "this belongs to nothing above it: check its indentation and its colon");
    }
  }

  void OnDocumentStart(const YAML::Mark &) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark &mark, YAML::anchor_t) override {
    const size_t at = position(mark);
    const llvm::StringRef word = text.substr(at).take_while([](char c) { return llvm::isAlpha(c) || c == '~'; });
    const std::array<llvm::StringRef, 4> words = {"~", "null", "Null", "NULL"};
    const bool written = llvm::is_contained(words, word) && (!isKeyAt(at + word.size()) || wantsKey());
    ConfigNode node;
    if (wantsKey()) {
      node.range = source.range(at, at + (written ? word.size() : 0));
    } else if (written) {
      node.range = source.range(at, at + word.size());
    } else {
      // Nothing was written: the place is behind the colon or dash, before the blanks that follow it.
      const size_t behind = text.take_front(at).find_last_not_of(" \t\r\n") + 1;
      node.range = source.range(std::max(behind, cursor), std::max(behind, cursor));
    }
    if (!frames.empty() && frames.back().lacksColon(text, at)) {
      report<Diag::SyntaxError>(frames.back().key.range.begin, frames.back().key.range.end, "a colon is missing behind this key");
    }
    node.scalar = wantsKey() && written ? word.str() : "";
    place(std::move(node));
  }

  void OnAlias(const YAML::Mark &mark, YAML::anchor_t) override {
    const size_t at = position(mark);
    const size_t end = wordEnd(at);
    report<Diag::SyntaxError>(at, end, ("the alias `" + text.slice(at, end) + "` is not supported: write what it stands for").str());
    ConfigNode node;
    node.kind = ConfigNode::Kind::Scalar;
    node.range = source.range(at, end);
    place(std::move(node));
  }

  void OnScalar(const YAML::Mark &mark, const std::string &tag, YAML::anchor_t, const std::string &value) override {
    const size_t at = skipProperties(position(mark), tag);
    ConfigNode node;
    node.kind = ConfigNode::Kind::Scalar;
    node.range = scalarRange(at, value, node.quoted);
    node.scalar = value;
    place(std::move(node));
  }

  void OnSequenceStart(const YAML::Mark &mark, const std::string &tag, YAML::anchor_t, YAML::EmitterStyle::value style) override {
    start(ConfigNode::Kind::Sequence, mark, tag, style);
  }
  void OnMapStart(const YAML::Mark &mark, const std::string &tag, YAML::anchor_t, YAML::EmitterStyle::value style) override {
    start(ConfigNode::Kind::Mapping, mark, tag, style);
  }
  void OnSequenceEnd() override { finish(']'); }
  void OnMapEnd() override { finish('}'); }

private:
  struct Frame {
    ConfigNode node;
    size_t begin = 0;
    bool flow = false;
    bool isKey = false;    // a list or mapping in the place of a key
    bool wantsKey = false; // a mapping whose next node is a key
    bool keep = false;     // the key before the next value is new
    Located<std::string> key;
    KeySet keys;

    // Without a value, is this a key that stands alone on its line? In brackets that is a way to write a key.
    bool lacksColon(llvm::StringRef text, size_t valueAt) const {
      const bool isValue = node.kind == ConfigNode::Kind::Mapping && !flow && !wantsKey && key.range.valid();
      return isValue && !text.slice(key.range.end, valueAt).contains(':');
    }
  };

  size_t position(const YAML::Mark &mark) const { return std::min(static_cast<size_t>(std::max(mark.pos, 0)), text.size()); }
  size_t lineEnd(size_t at) const { return std::min(text.find_first_of("\r\n", at), text.size()); }
  size_t wordEnd(size_t at) const { return std::min(text.find_first_of(" \t\r\n,[]{}", at), text.size()); }
  bool wantsKey() const { return !frames.empty() && frames.back().wantsKey; }
  bool isKeyAt(size_t end) const { return text.drop_front(std::min(end, text.size())).ltrim(" \t").starts_with(":"); }

  // The next character that is neither blank nor in a comment.
  size_t contentAt(size_t at) const {
    while (at < text.size() && (isBlank(text[at]) || text[at] == '#')) {
      at = text[at] == '#' ? lineEnd(at) : at + 1;
    }
    return at;
  }

  // Passes over `!tag` and `&anchor`; reports the tag.
  size_t skipProperties(size_t at, llvm::StringRef tag) {
    while (at < text.size() && (text[at] == '!' || text[at] == '&') && !(tag == "!" && text[at] != '&')) {
      const size_t end = wordEnd(at);
      if (text[at] == '!') {
        report<Diag::SyntaxError>(at, end, ("the tag `" + text.slice(at, end) + "` is not supported").str());
      }
      at = contentAt(end);
    }
    return at;
  }

  SourceRange scalarRange(size_t at, llvm::StringRef value, bool &quoted) {
    const char first = at < text.size() ? text[at] : '\0';
    quoted = first == '"' || first == '\'' || first == '|' || first == '>';
    if (first == '"' || first == '\'') {
      const std::optional<size_t> end = quotedEnd(text, at);
      if (!end) {
        report<Diag::SyntaxError>(at, at + 1, "this text has no closing quote");
      }
      cursor = end.value_or(text.size());
      return source.range(at + 1, end ? cursor - 1 : cursor);
    }
    size_t begin = at;
    if (quoted) {
      const size_t body = text.find_first_not_of(" \t\r\n", lineEnd(at));
      begin = value.trim().empty() || body == llvm::StringRef::npos ? lineEnd(at) : body;
    }
    const bool asWritten = text.substr(begin, value.size()) == value;
    cursor = asWritten ? begin + value.size() : foldedEnd(text, begin, value);
    return source.range(begin, cursor);
  }

  void start(ConfigNode::Kind kind, const YAML::Mark &mark, llvm::StringRef tag, YAML::EmitterStyle::value style) {
    const size_t at = skipProperties(position(mark), tag);
    if (frames.size() == MaxConfigDepth) {
      report<Diag::TooDeep>(at, at + 1, MaxConfigDepth);
    }
    Frame &f = frames.emplace_back();
    f.node.kind = kind;
    f.begin = at;
    // `a: 1` as an item of a list in brackets has flow style, but no brackets of its own.
    f.flow = style == YAML::EmitterStyle::Flow && (text.substr(at, 1) == "[" || text.substr(at, 1) == "{");
    f.wantsKey = kind == ConfigNode::Kind::Mapping;
    f.isKey = frames.size() > 1 && frames[frames.size() - 2].wantsKey;
    cursor = at;
  }

  void finish(char close) {
    Frame f = std::move(frames.back());
    frames.pop_back();
    if (f.flow) {
      size_t at = contentAt(std::max(cursor, f.begin + 1));
      while (at < text.size() && text[at] != close) {
        at = contentAt(at + 1);
      }
      cursor = std::min(at + 1, text.size());
    }
    f.node.range = source.range(f.begin, std::max(cursor, f.begin));
    if (f.isKey) {
      report<Diag::SyntaxError>(f.begin, cursor, "a key must be a word, not " + describe(f.node));
      f.node = ConfigNode();
    }
    place(std::move(f.node));
  }

  // Puts a finished node where it belongs.
  void place(ConfigNode node) {
    cursor = std::max<size_t>(cursor, node.range.end);
    if (frames.empty()) {
      root = std::move(node);
      return;
    }
    Frame &f = frames.back();
    if (f.node.kind == ConfigNode::Kind::Sequence) {
      f.node.items.push_back(std::move(node));
    } else if (f.wantsKey) {
      takeKey(f, std::move(node));
    } else {
      if (f.keep) {
        f.node.entries.emplace_back(std::move(f.key), std::move(node));
      }
      f.wantsKey = true;
    }
  }

  void takeKey(Frame &f, ConfigNode node) {
    f.wantsKey = false;
    f.keep = false;
    const SourceRange range = node.range;
    if (!range.valid()) {
      return; // reported as no word
    }
    if (node.kind == ConfigNode::Kind::Null && node.scalar.empty()) {
      report<Diag::SyntaxError>(range.begin, range.end, "a key is missing here");
      return;
    }
    if (node.scalar == "<<" && !node.quoted) {
      report<Diag::SyntaxError>(range.begin, range.end, "the merge key `<<` is not supported: write the entries out");
      return;
    }
    f.key = {std::move(node.scalar), range};
    f.keep = f.keys.add(f.key, source.diags);
    errors += !f.keep;
  }

  const ConfigText &source;
  llvm::StringRef text;
  std::vector<Frame> frames;
};

// yaml-cpp's wording and ours.
struct Wording {
  const char *theirs;
  const char *ours;
};
const Wording Wordings[] = {
    {YAML::ErrorMsg::END_OF_MAP_FLOW, "`,` or `}` should stand here"},
    {YAML::ErrorMsg::END_OF_SEQ_FLOW, "`,` or `]` should stand here"},
    {YAML::ErrorMsg::END_OF_MAP, "this is no entry of the mapping above: check its indentation and its colon"},
    {YAML::ErrorMsg::END_OF_SEQ, "this is no item of the list above: check its indentation and its dash"},
    {YAML::ErrorMsg::EOF_IN_SCALAR, "the file ends within a quoted text"},
    {YAML::ErrorMsg::DOC_IN_SCALAR, "a quoted text reaches over the end of the document"},
    {YAML::ErrorMsg::TAB_IN_INDENTATION, "a tab cannot indent: use spaces"},
    {YAML::ErrorMsg::FLOW_END, "this bracket closes nothing"},
    {YAML::ErrorMsg::BLOCK_ENTRY, "a list item cannot stand here: put it on a line of its own"},
    {YAML::ErrorMsg::MAP_KEY, "a key cannot stand here"},
    {YAML::ErrorMsg::MAP_VALUE, "a colon cannot stand here: check the indentation, or quote the text"},
    {YAML::ErrorMsg::UNKNOWN_TOKEN, "a text cannot begin with this character: quote it"},
    {YAML::ErrorMsg::UNKNOWN_ANCHOR, "this alias stands for nothing"},
};

void explainFailure(const ConfigText &source, TreeBuilder &tree, const YAML::Mark &mark, llvm::StringRef theirs) {
  std::string message = theirs.str();
  for (const Wording &w : Wordings) {
    if (theirs == w.theirs) {
      message = w.ours;
    }
  }
  const llvm::StringRef text = source.text;
  size_t at = mark.is_null() ? text.size() : std::min(static_cast<size_t>(std::max(mark.pos, 0)), text.size());
  const std::optional<size_t> bracket = tree.openBracket();
  if (theirs == YAML::ErrorMsg::EOF_IN_SCALAR || theirs == YAML::ErrorMsg::DOC_IN_SCALAR) {
    // yaml-cpp gives the end of the file. The quote that opens is the first one behind what was read.
    const size_t quote = text.find_first_of("\"'", tree.cursor);
    at = quote == llvm::StringRef::npos ? at : quote;
    message = "this text has no closing quote";
  } else if (bracket && text.drop_front(at).trim().empty()) {
    at = *bracket;
    message = "this bracket is never closed";
  }
  if (theirs.starts_with(YAML::ErrorMsg::INVALID_ESCAPE)) {
    at = std::min(text.take_front(at).rfind('\\'), at);
    message = ("`" + text.substr(at, 2) + "` is no escape in double quotes").str();
  }
  const llvm::StringRef before = text.take_front(at).substr(text.take_front(at).rfind('\n') + 1);
  if (before.contains('\t') && before.trim(" \t").empty()) {
    message = "a tab cannot indent: use spaces";
  }
  ++tree.errors;
  DiagnosticBuilder report = source.diags.emit<Diag::SyntaxError>(source.range(at, std::min(at + 1, text.size())), message);
  if (bracket && *bracket != at) {
    report.label(source.range(*bracket, *bracket + 1), "within this bracket");
  }
}
} // namespace

std::optional<ConfigNode> parseYaml(const ConfigText &source) {
  TextBuffer buffer(source.text);
  std::istream stream(&buffer);
  TreeBuilder tree(source);
  try {
    YAML::Parser parser(stream);
    parser.HandleNextDocument(tree);
    if (tree.errors == 0) {
      tree.checkRest();
    }
  } catch (const YAML::DeepRecursion &) {
    // Reported when our own limit was reached, unless it is the depth of something that opens no list or mapping.
    if (tree.errors == 0) {
      tree.report<Diag::TooDeep>(tree.cursor, tree.cursor + 1, MaxConfigDepth);
    }
  } catch (const YAML::Exception &e) {
    explainFailure(source, tree, e.mark, e.msg);
  }
  if (tree.errors != 0) {
    return std::nullopt;
  }
  if (!tree.root.range.valid()) {
    tree.root.range = source.range(0, 0);
  }
  return std::move(tree.root);
}

} // namespace shardc
