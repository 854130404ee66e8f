// CatalogHuggingFace: sizes and switches from a Hugging Face config.json, as the `reads` of a model file say.
//
// What a config says and nobody reads is never dropped in silence: it is known to change no layout (huggingface.yaml), or
// the job remembers it as unchecked.
#include "CatalogModel.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

namespace shardc {
namespace {

using Kind = ConfigNode::Kind;

bool isAbsent(const ConfigNode *node) { return !node || node->kind == Kind::Null; }

class Reader {
public:
  Reader(const ConfigNode &c, const ModelHead &h, Job &j, DiagnosticEngine &d) : config(c), head(h), job(j), diags(d) {}

  bool read(const ConfigNode &architecture) {
    DictReader reader(architecture, "an architecture", diags);
    for (const auto &[name, term] : entriesOf(reader.mapping("sizes"))) {
      size(name, term);
    }
    for (const auto &[name, value] : entriesOf(reader.mapping("switches"))) {
      setSwitch(name, value);
    }
    for (const auto &[key, wanted] : entriesOf(reader.mapping("expect"))) {
      expect(key, wanted);
    }
    reader.finish();
    return good & addDefaults(head, job, diags);
  }

  // Keys that nothing above asked for.
  void rest(const ConfigNode &common) {
    DictReader reader(common, "the list of keys", diags);
    for (const Located<std::string> &key : reader.strings("ignored")) {
      used.insert(key.value);
    }
    const ConfigNode *reasons = reader.mapping("unchecked");
    for (const auto &[key, value] : config.entries) {
      const ConfigNode *reason = reasons ? reasons->find(key.value) : nullptr;
      if (used.contains(key.value) || isAbsent(&value) || value.scalar == "false" || isEmpty(value)) {
        continue;
      }
      if (!reason) {
        job.unchecked.push_back({"`" + key.value + "` of the config", "no shipped model reads this key"});
        continue;
      }
      const ConfigNode *unless = reason->find("unless");
      bool plain = unless && llvm::all_of(value.items, [&](const ConfigNode &i) { return i.scalar == unless->scalar; });
      if (!plain) {
        const ConfigNode *why = reason->find("why");
        job.unchecked.push_back({"`" + key.value + "` of the config", why ? why->scalar : ""});
      }
    }
  }

private:
  static bool isEmpty(const ConfigNode &node) {
    return (node.kind == Kind::Sequence && node.items.empty()) || (node.kind == Kind::Mapping && node.entries.empty());
  }

  // Can every name of the term be had from the sizes read so far or from the config?
  bool available(const ConfigNode &term) {
    return llvm::all_of(namesIn(term.scalar),
                        [&](const std::string &name) { return job.sizes.count(name) || !isAbsent(config.find(name)); });
  }

  void size(const Located<std::string> &name, const ConfigNode &entry) {
    llvm::ArrayRef<ConfigNode> terms = entry.kind == Kind::Sequence ? llvm::ArrayRef(entry.items) : llvm::ArrayRef(entry);
    for (const ConfigNode &term : terms) {
      for (const std::string &key : namesIn(term.scalar)) {
        used.insert(key);
      }
    }
    const ConfigNode *term = llvm::find_if(terms, [&](const ConfigNode &t) { return available(t); });
    if (term == terms.end()) {
      for (const std::string &key : namesIn(terms.front().scalar)) {
        if (!job.sizes.count(key) && isAbsent(config.find(key))) {
          diags.emit<Diag::MissingKey>(config.range.slice(0, 1), "this config", key);
        }
      }
      good = false;
      job.sizes[name.value] = {1, entry.range}; // so that terms that use it are not reported as well
      return;
    }
    SourceRange place = term->range;
    bool wrong = false;
    NumberOf number = [&](llvm::StringRef word) -> std::optional<int64_t> {
      auto it = job.sizes.find(word.str());
      if (it != job.sizes.end()) {
        return it->second.value;
      }
      const ConfigNode *value = config.find(word);
      if (!value) {
        return std::nullopt;
      }
      std::optional<int64_t> n = value->kind == Kind::Scalar && !value->quoted ? parseInteger(value->scalar) : std::nullopt;
      place = value->range;
      if (!n || *n < 0 || *n > MaxSize) {
        diags.emit<Diag::WrongKind>(value->range, word, "a whole number from 0 to 2^40", describe(*value));
        wrong = true;
      }
      return wrong ? 1 : *n;
    };
    std::optional<int64_t> value = evaluate(term->scalar, place, number, diags);
    good &= value.has_value() && !wrong;
    job.sizes[name.value] = {value.value_or(1), place};
  }

  void setSwitch(const Located<std::string> &name, const ConfigNode &entry) {
    if (entry.kind != Kind::Sequence || entry.items.size() != 2) { // the same for every config
      job.switches[name.value] = entry.scalar;
      return;
    }
    const std::string &key = entry.items[0].scalar;
    used.insert(key);
    const ConfigNode *value = config.find(key);
    if (!isAbsent(value) && value->kind != Kind::Scalar) {
      diags.emit<Diag::WrongKind>(value->range, key, "one value", describe(*value));
      good = false;
    }
    job.switches[name.value] = isAbsent(value) ? entry.items[1].scalar : value->scalar;
  }

  void expect(const Located<std::string> &key, const ConfigNode &wanted) {
    used.insert(key.value);
    const ConfigNode *value = config.find(key.value);
    if (isAbsent(value) || (isEmpty(*value) && isEmpty(wanted))) {
      return;
    }
    double a = 0, b = 0;
    bool numbers = !llvm::StringRef(value->scalar).getAsDouble(a) && !llvm::StringRef(wanted.scalar).getAsDouble(b);
    bool same = value->kind == Kind::Scalar && wanted.kind == Kind::Scalar && (numbers ? a == b : value->scalar == wanted.scalar);
    if (!same) {
      job.unchecked.push_back({"`" + key.value + "` of the config is " + describe(*value),
                               "the shipped family `" + head.family.value + "` is the model with " + describe(wanted)});
    }
  }

  static constexpr int64_t MaxSize = int64_t(1) << 40;

  const ConfigNode &config;
  const ModelHead &head;
  Job &job;
  DiagnosticEngine &diags;
  llvm::StringSet<> used;
  bool good = true;
};

// The file that reads the architecture, with the entry for it; `known` collects what all of them read.
const ConfigNode *findArchitecture(llvm::StringRef name, std::optional<ModelHead> &head, std::vector<std::string> &known,
                                   DiagnosticEngine &diags) {
  for (bool all : {false, true}) { // only a file that has the name in its text is worth parsing
    for (const CatalogFile &file : catalogFiles()) {
      if (!isModelFile(file.path) || !(all || file.text.contains(name))) {
        continue;
      }
      std::optional<ConfigNode> root = readCatalogNode(file.path, {}, diags);
      head = root ? readModelHead(std::move(*root), diags) : std::nullopt;
      for (const auto &[architecture, node] :
           head ? llvm::ArrayRef(head->architectures) : decltype(llvm::ArrayRef(head->architectures))()) {
        if (architecture.value == name) {
          return node;
        }
        known.push_back(architecture.value);
      }
    }
  }
  return nullptr;
}

} // namespace

bool readHuggingFace(const Located<std::string> &path, Job &job, DiagnosticEngine &diags) {
  std::optional<ConfigNode> config = readConfig(path.value, diags, ConfigFormat::Json, path.range);
  if (!config) {
    return false;
  }
  DictReader reader(*config, "a Hugging Face config", diags);
  if (!reader.require("architectures")) {
    return false;
  }
  std::vector<Located<std::string>> names = reader.strings("architectures");
  if (names.empty()) {
    diags.emit<Diag::MissingKey>(config->range.slice(0, 1), "this config", "architectures");
    return false;
  }
  std::optional<ModelHead> head;
  std::vector<std::string> known;
  const ConfigNode *architecture = findArchitecture(names.front().value, head, known, diags);
  if (!architecture) {
    llvm::sort(known);
    known.erase(std::unique(known.begin(), known.end()), known.end());
    auto d = diags.emit<Diag::UnknownArchitecture>(names.front().range, names.front().value);
    d.note("shipped models read " + llvm::join(known, ", "));
    d.help(
        "describe the model in a file of your own and name it as FILE.yaml/FLAVOUR; `shardc models show llama3` prints one to start from");
    return false;
  }
  job.family = head->family.value;
  job.flavour = path.value;
  Reader read(*config, *head, job, diags);
  bool good = read.read(*architecture);
  std::optional<ConfigNode> common = readCatalogNode("huggingface.yaml", {}, diags);
  if (common) {
    read.rest(*common);
  }
  return good && common.has_value();
}

} // namespace shardc
