// StorageFile: reads storage files into a StoragePlan.
//
//   storage: NAME        versions, defaults, if, version: as in other catalogue files
//   form: whole|files    what a checkpoint is, or the name of a switch that says it
//   metadata: {ep: ep}   sizes and switches that must be the same when it is read
//   rules: the first that fits a parameter holds
//     - {family, params, cut: whole|dim|flat|buffer, over, pad, align, dim, each, at, load: {over, pad}}
//
// A row of elements is padded to a multiple of the ranks of `pad` (those of `over` if not given) times `align`. `at` names the
// size that the user wrote and that decides the rule.
#include "CatalogModel.h"
#include "RuleGate.h"
#include "shardc/Frontend/Storage.h"
#include "llvm/ADT/StringExtras.h"

namespace shardc {
namespace {

using Kind = ConfigNode::Kind;

class StorageReader {
public:
  StorageReader(const Job &j, const Module &m, DiagnosticEngine &d) : job(j), module(m), diags(d), gate(j, d) {}

  std::optional<StoragePlan> read(const ConfigNode &root) {
    const size_t before = diags.errorCount();
    DictReader reader(root, "a storage file", diags);
    plan.name = reader.string("storage").value_or(Located<std::string>()).value;
    gate.read(reader, "the storage rules of " + plan.name);
    plan.name += gate.version().empty() ? "" : " " + gate.version();
    plan.form = form(reader.string("form").value_or(Located<std::string>()));
    for (const auto &[name, term] : entriesOf(reader.mapping("metadata"))) {
      plan.metadata.emplace_back(name.value, gate.scope().text(term.scalar).value_or("none"));
    }
    if (const ConfigNode *rules = reader.sequence("rules")) {
      for (const ConfigNode &node : rules->items) {
        rule(node);
      }
    }
    reader.finish();
    return diags.errorCount() == before ? std::optional(std::move(plan)) : std::nullopt;
  }

private:
  StorageForm form(Located<std::string> text) {
    if (auto said = job.switches.find(text.value); said != job.switches.end()) {
      text.value = said->second;
    }
    return word("form", text, {"whole", "files"}) == 1 ? StorageForm::Files : StorageForm::Whole;
  }

  size_t word(llvm::StringRef key, const std::optional<Located<std::string>> &text, llvm::ArrayRef<llvm::StringRef> words) {
    for (size_t i = 0; text && i < words.size(); ++i) {
      if (text->value == words[i]) {
        return i;
      }
    }
    if (text && !text->value.empty()) {
      diags.emit<Diag::OutOfRange>(text->range, key, "one of " + llvm::join(words, ", "), "`" + text->value + "`");
    }
    return 0;
  }

  void rule(const ConfigNode &node) {
    DictReader reader(node, "a rule of storage", diags);
    if (!reader.require("params")) {
      return;
    }
    on = gate.applies(reader).value_or(false);
    StorageRule r;
    r.range = node.range;
    r.family = reader.string("family").value_or(Located<std::string>()).value;
    for (const Located<std::string> &pattern : reader.strings("params")) {
      r.patterns.push_back(pattern.value);
    }
    static constexpr StorageCut Cuts[] = {StorageCut::Whole, StorageCut::Dim, StorageCut::Flat, StorageCut::Buffer};
    r.cut = Cuts[word("cut", reader.string("cut"), {"whole", "dim", "flat", "buffer"})];
    r.share = share(reader);
    r.dim = static_cast<int32_t>(reader.integer("dim", 0, 16).value_or(Located<int64_t>()).value);
    r.each = reader.boolean("each").value_or(Located<bool>()).value;
    if (const std::optional<Located<std::string>> at = reader.string("at")) {
      const auto size = job.sizes.find(at->value);
      r.decided = size == job.sizes.end() ? SourceRange() : size->second.range;
    }
    if (const ConfigNode *load = reader.mapping("load")) {
      DictReader inner(*load, "`load`", diags);
      r.load = share(inner);
      inner.finish();
    }
    reader.finish();
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

  llvm::SmallVector<AtomId, 6> axes(llvm::ArrayRef<Located<std::string>> names, std::string *text) {
    llvm::SmallVector<AtomId, 6> atoms;
    for (const Located<std::string> &name : names) {
      *text += (text->empty() ? "" : ", ") + name.value;
      if (const auto found = module.axes.findAtoms(name.value)) {
        atoms.append(found->begin(), found->end());
      } else if (on) {
        diags.emit<Diag::UnknownName>(name.range, name.value, "an axis of this job");
      }
    }
    return atoms;
  }

  const Job &job;
  const Module &module;
  DiagnosticEngine &diags;
  RuleGate gate;
  StoragePlan plan;
  bool on = false; // the rule that is being read applies
};

} // namespace

bool addStorage(const Job &job, Module &module, DiagnosticEngine &diags) {
  const std::string path = "storage/" + job.framework + ".yaml";
  if (job.inference || !catalogFile(path)) {
    return true;
  }
  const std::optional<ConfigNode> root = readCatalogNode(path, {}, diags);
  if (!root) {
    return false;
  }
  module.storage = StorageReader(job, module, diags).read(*root);
  return module.storage.has_value();
}

} // namespace shardc
