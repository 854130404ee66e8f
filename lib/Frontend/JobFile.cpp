// JobFile: the description of one job in a file of its own, so that a repository can keep its jobs.
//
// The keys are those of the command line. Paths are relative to the file that names them. What this version does not use is
// named in a warning, never passed over.
#include "Expr.h"
#include "shardc/Frontend/Dialect.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Path.h"

namespace shardc {
namespace {

// One argument of a command line, as a shell cuts it: quotes of both kinds, backslashes outside of single quotes.
class ShellSplitter {
public:
  ShellSplitter(Piece line, DiagnosticEngine &engine) : text(line), diags(engine) {}

  std::vector<Located<std::string>> split() {
    llvm::StringRef s = text.text;
    while ((pos = s.find_first_not_of(" \t\r\n", pos)) != llvm::StringRef::npos) {
      size_t from = pos;
      std::string word;
      while (pos < s.size() && !llvm::StringRef(" \t\r\n").contains(s[pos])) {
        character(word);
      }
      words.push_back({std::move(word), text.sub(from, pos).range});
    }
    return std::move(words);
  }

private:
  void character(std::string &word) {
    llvm::StringRef s = text.text;
    if (s[pos] == '\'' || s[pos] == '"') {
      quoted(word);
      return;
    }
    if (s[pos] == '\\' && pos + 1 < s.size()) {
      ++pos;
    }
    word += s[pos++];
  }

  void quoted(std::string &word) {
    llvm::StringRef s = text.text;
    const size_t open = pos;
    for (++pos; pos < s.size() && s[pos] != s[open]; ++pos) {
      if (s[open] == '"' && s[pos] == '\\' && pos + 1 < s.size() && llvm::StringRef("\"\\$`").contains(s[pos + 1])) {
        ++pos;
      }
      word += s[pos];
    }
    if (pos == s.size()) {
      diags.emit<Diag::SyntaxError>(text.sub(open, open + 1).range, "this quotation never ends");
      return;
    }
    ++pos;
  }

  Piece text;
  DiagnosticEngine &diags;
  size_t pos = 0;
  std::vector<Located<std::string>> words;
};

bool isFile(llvm::StringRef text) { return text.ends_with(".yaml") || text.ends_with(".yml") || text.ends_with(".json"); }

std::string beside(llvm::StringRef jobFile, llvm::StringRef path) {
  if (llvm::sys::path::is_absolute(path)) {
    return path.str();
  }
  llvm::SmallString<128> full(llvm::sys::path::parent_path(jobFile));
  llvm::sys::path::append(full, path);
  return full.str().str();
}

// A line that YAML has folded has no places of its own; where the text in the file is cut into the same words, theirs are right.
void placeInFile(std::vector<Located<std::string>> &flags, SourceRange range, SourceManager &sources) {
  DiagnosticEngine ignored(sources); // what is wrong with the line has been said
  std::vector<Located<std::string>> written = ShellSplitter({sources.text(range), range}, ignored).split();
  auto value = [](const Located<std::string> &flag) { return llvm::StringRef(flag.value); };
  if (llvm::equal(llvm::map_range(flags, value), llvm::map_range(written, value))) {
    flags = std::move(written);
  }
}

void readFlags(const ConfigNode *node, JobRequest &request, DiagnosticEngine &diags) {
  if (!node || node->kind == ConfigNode::Kind::Null) {
    return;
  }
  if (node->kind == ConfigNode::Kind::Scalar) { // one line, as it would stand on the command line
    request.flags = ShellSplitter({node->scalar, node->range}, diags).split();
    if (node->scalar.size() != node->range.end - node->range.begin) {
      placeInFile(request.flags, node->range, diags.sources());
    }
    return;
  }
  if (node->kind == ConfigNode::Kind::Mapping) {
    diags.emit<Diag::WrongKind>(node->range, "flags", "a line or a list of flags", describe(*node));
    return;
  }
  for (const ConfigNode &item : node->items) { // one argument each, not cut
    if (item.kind == ConfigNode::Kind::Scalar) {
      request.flags.push_back({item.scalar, item.range});
    } else {
      diags.emit<Diag::WrongKind>(item.range, "flags", "a line or a list of flags", describe(item) + " in it");
    }
  }
}

} // namespace

std::optional<JobRequest> readJobFile(const ConfigNode &root, llvm::StringRef path, DiagnosticEngine &diags) {
  const size_t errors = diags.errorCount();
  DictReader reader(root, "the job file", diags);
  JobRequest request;
  request.name = path.str();
  request.range = root.range;
  request.model = reader.string("model");
  if (request.model && isFile(request.model->value)) {
    request.model->value = beside(path, request.model->value);
  }
  request.framework = reader.string("framework");
  request.config = reader.string("config");
  if (request.config) {
    request.config->value = beside(path, request.config->value);
  }
  request.strategy = reader.string("strategy");
  if (request.strategy && isFile(request.strategy->value)) {
    request.strategy->value = beside(path, request.strategy->value);
  }
  request.world = reader.integer("world", 1); // may still come from the command line
  readFlags(reader.any("flags"), request, diags);
  if (std::optional<Located<std::string>> phase = reader.string("phase")) {
    request.inference = phase->value == "inference";
    if (!request.inference && phase->value != "training") {
      diags.emit<Diag::OutOfRange>(phase->range, "phase", "training or inference", "`" + phase->value + "`");
    }
  }
  if (const ConfigNode *sync = reader.any("sync")) {
    request.sync = std::make_shared<const ConfigNode>(*sync);
  }
  if (const ConfigNode *storage = reader.mapping("storage")) {
    request.storage = std::make_shared<const ConfigNode>(*storage);
  }
  static constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral> later[] = {
      {"allow", "this version cannot allow findings, all of them count"},
      {"budget", "this version does not compare memory or time with a budget"}};
  for (const auto &[key, why] : later) {
    if (const ConfigNode *node = reader.any(key)) {
      diags.emit<Diag::NotSupported>(node->range, key, why);
    }
  }
  reader.finish();
  return diags.errorCount() == errors ? std::optional(std::move(request)) : std::nullopt;
}

} // namespace shardc
