// StorageFile: reads storage files into a StoragePlan.
//
//   storage: NAME        versions, defaults, if, version: as in other catalogue files
//   dtype: bfloat16      of what is saved; that of the parameters if not given. The name of a switch stands for its value
//   files: where ranks read files as ranks wrote them; what no entry matches is put together by name
//     - {params, over: [pp, tp]}   one file per coordinate on these axes
//   same: what must be the same when files are read
//     - {name, value}              a size, a switch or a word
//   rules: the first that fits a parameter holds
//     - {family, params, cut: whole|dim|flat|buffer, over, pad, align, dim, even, each, at, load: {over, pad}}
//
// A row of elements is padded to a multiple of the ranks of `pad` (those of `over` if not given) times `align`. `at` names the
// size that the user wrote and that decides the rule. What a user writes comes before what the framework's file says.
#include "CatalogModel.h"
#include "RuleGate.h"
#include "shardc/Frontend/Storage.h"
#include "shardc/Frontend/Sync.h"
#include "llvm/ADT/StringExtras.h"

namespace shardc {
namespace {

using Kind = ConfigNode::Kind;

class StorageReader {
public:
  StorageReader(const Job &j, const Module &m, DiagnosticEngine &d) : job(j), module(m), diags(d) {}

  void read(const ConfigNode &root, llvm::StringRef what) {
    gate.emplace(job, diags);
    DictReader reader(root, what.str(), diags);
    if (const std::optional<Located<std::string>> name = reader.string("storage")) {
      plan.framework = name->value;
    }
    if (!gate->read(reader, what)) {
      return;
    }
    plan.name = plan.framework + (gate->version().empty() ? "" : " " + gate->version());
    if (const std::optional<Located<std::string>> text = reader.string("dtype"); text && !plan.dtype) {
      readDType(*text);
    }
    list(reader, "files", "a rule of files", {"params", "over"}, [&](DictReader &r, const ConfigNode &) { files(r); });
    if (root.find("same")) {
      reader.require("files");
    }
    list(reader, "same", "what must be the same", {"name", "value"}, [&](DictReader &r, const ConfigNode &) { mark(r); });
    list(reader, "rules", "a rule of storage", {"params"}, [&](DictReader &r, const ConfigNode &node) { rule(r, node); });
    reader.finish();
  }

  StoragePlan plan;

private:
  // Each mapping of a list, with its `if:` and `version:` read into `on`.
  template <class Read>
  void list(DictReader &reader, llvm::StringRef key, llvm::StringRef what, llvm::ArrayRef<llvm::StringRef> needed, Read read) {
    const ConfigNode *nodes = reader.sequence(key);
    for (const ConfigNode &node : nodes ? llvm::ArrayRef(nodes->items) : llvm::ArrayRef<ConfigNode>()) {
      DictReader entry(node, what.str(), diags);
      if (llvm::all_of(needed, [&](llvm::StringRef k) { return entry.require(k); })) {
        on = gate->applies(entry).value_or(false);
        read(entry, node);
        entry.finish();
      }
    }
  }

  // A size or a switch by name, else the word itself. Of a degree and the switch that says whether there is one the degree counts.
  std::string valueOf(const Located<std::string> &term) const {
    const auto size = job.sizes.find(term.value);
    return size != job.sizes.end() ? std::to_string(size->second.value) : gate->scope().text(term.value).value_or(term.value);
  }

  void readDType(const Located<std::string> &text) {
    plan.dtype = parseDType(valueOf(text));
    if (!plan.dtype) {
      diags.emit<Diag::OutOfRange>(text.range, "dtype", "a dtype", "`" + text.value + "`");
    }
  }

  void files(DictReader &reader) {
    StorageFiles f;
    f.patterns = patterns(reader);
    f.axes = reader.strings("over");
    for (const Located<std::string> &axis : f.axes) { // each by itself: tensor and expert parallelism may share ranks
      std::string text;
      axes({axis}, &text);
    }
    for (Located<std::string> &axis : f.axes) {
      axis.range = placeOf(axis.value).valid() ? placeOf(axis.value) : axis.range;
    }
    if (on) {
      plan.files.push_back(std::move(f));
    }
  }

  void mark(DictReader &reader) {
    const Located<std::string> name = reader.string("name").value_or(Located<std::string>());
    const Located<std::string> value = reader.string("value").value_or(Located<std::string>());
    if (on) {
      plan.marks.push_back({name.value, valueOf(value), placeOf(value.value).valid() ? placeOf(value.value) : value.range});
    }
  }

  void rule(DictReader &reader, const ConfigNode &node) {
    StorageRule r;
    r.range = node.range;
    r.family = reader.string("family").value_or(Located<std::string>()).value;
    r.patterns = patterns(reader);
    static constexpr StorageCut Cuts[] = {StorageCut::Whole, StorageCut::Dim, StorageCut::Flat, StorageCut::Buffer};
    r.cut = Cuts[word(reader, "cut", {"whole", "dim", "flat", "buffer"})];
    r.share = share(reader);
    r.dim = static_cast<int32_t>(reader.integer("dim", 0, 16).value_or(Located<int64_t>()).value);
    r.even = reader.boolean("even").value_or(Located<bool>()).value;
    r.each = reader.boolean("each").value_or(Located<bool>()).value;
    if (const std::optional<Located<std::string>> at = reader.string("at")) {
      r.decided = placeOf(at->value);
    }
    if (const ConfigNode *load = reader.mapping("load")) {
      DictReader inner(*load, "`load`", diags);
      r.load = share(inner);
      inner.finish();
    }
    if (on) {
      plan.rules.push_back(std::move(r));
    }
  }

  StorageShare share(DictReader &reader) {
    StorageShare s;
    s.over = axes(reader.strings("over"), &s.overText);
    llvm::SmallVector<AtomId, 6> pad = axes(reader.strings("pad"), &s.padText);
    if (s.padText.empty()) {
      pad = s.over;
      s.padText = s.overText;
    }
    const int64_t align = reader.integer("align", 1, 1 << 20).value_or(Located<int64_t>{1, {}}).value;
    if (__builtin_mul_overflow(module.axes.product(pad), align, &s.multiple)) {
      s.multiple = INT64_MAX;
    }
    return s;
  }

  std::vector<std::string> patterns(DictReader &reader) {
    std::vector<std::string> texts;
    for (const Located<std::string> &pattern : reader.strings("params")) {
      texts.push_back(pattern.value);
    }
    return texts;
  }

  size_t word(DictReader &reader, llvm::StringRef key, llvm::ArrayRef<llvm::StringRef> words) {
    const std::optional<Located<std::string>> text = reader.string(key);
    for (size_t i = 0; text && i < words.size(); ++i) {
      if (text->value == words[i]) {
        return i;
      }
    }
    if (text) {
      diags.emit<Diag::OutOfRange>(text->range, key, "one of " + llvm::join(words, ", "), "`" + text->value + "`");
    }
    return 0;
  }

  // Each rank stands in one of the axes only. Another job need not have those of a rule that does not apply.
  llvm::SmallVector<AtomId, 6> axes(llvm::ArrayRef<Located<std::string>> names, std::string *text) {
    llvm::SmallVector<AtomId, 6> atoms;
    for (const Located<std::string> &name : names) {
      *text += (text->empty() ? "" : ", ") + name.value;
      const auto found = module.axes.findAtoms(name.value);
      if (!found && on) {
        diags.emit<Diag::UnknownName>(name.range, name.value, "an axis of this job")
            .help("its axes are " + llvm::join(module.axes.axisNames(), ", "));
      }
      for (AtomId a : found ? llvm::ArrayRef<AtomId>(*found) : llvm::ArrayRef<AtomId>()) {
        if (on && llvm::is_contained(atoms, a)) {
          diags.emit<Diag::OutOfRange>(name.range, name.value, "an axis that shares no ranks with those before it", "one that does");
          break;
        }
        atoms.push_back(a);
      }
    }
    return atoms;
  }

  // Where the user wrote a size; nothing if nobody did.
  SourceRange placeOf(llvm::StringRef size) const {
    const auto found = job.sizes.find(size.str());
    return found == job.sizes.end() ? SourceRange() : found->second.range;
  }

  const Job &job;
  const Module &module;
  DiagnosticEngine &diags;
  std::optional<RuleGate> gate; // of the file that is being read
  bool on = false;              // the entry that is being read applies
};

} // namespace

bool addStorage(const Job &job, const ConfigNode *written, Module &module, DiagnosticEngine &diags) {
  const size_t errors = diags.errorCount();
  const std::string path = "storage/" + job.framework + ".yaml";
  const bool shipped = catalogFile(path) != nullptr;
  if (job.inference || (!written && !shipped)) {
    return true;
  }
  StorageReader reader(job, module, diags);
  if (written) {
    reader.read(*written, "`storage`");
  }
  if (shipped) {
    if (const std::optional<ConfigNode> root = readCatalogNode(path, {}, diags)) {
      reader.read(*root, "the storage rules of " + job.framework);
    }
  }
  if (diags.errorCount() == errors) {
    module.storage = std::move(reader.plan);
  }
  return diags.errorCount() == errors;
}

bool addStorage(const ConfigNode &written, Module &module, DiagnosticEngine &diags) {
  return addStorage(namedSizes(module), &written, module, diags);
}

} // namespace shardc
