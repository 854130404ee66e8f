// SyncFile: finds the rules of a job's gradients: shipped, in a file, or written where they are used.
//
// What a user writes comes first and so wins over what it extends. Not here: what the rules do to a gradient (Verify).
#include "CatalogModel.h"
#include "SyncReader.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace shardc {
namespace {

constexpr llvm::StringLiteral Nothing = "none";
constexpr unsigned MostFiles = 8; // one over another

std::string shippedPath(llvm::StringRef name) { return ("sync/" + name + ".yaml").str(); }

std::vector<std::string> shippedRules() {
  std::vector<std::string> names;
  for (const CatalogFile &file : catalogFiles()) {
    llvm::StringRef name = file.path;
    if (name.consume_front("sync/") && name.consume_back(".yaml")) {
      names.push_back(name.str());
    }
  }
  return names;
}

class SyncFinder {
public:
  SyncFinder(Job j, Module &m, DiagnosticEngine &d) : job(std::move(j)), module(m), diags(d), reader(job, m, d) {}

  // Reads what stands at a `sync:` key, or (null) the rules of the framework, and gives the module its plan.
  void run(const ConfigNode *written, const std::string &framework) {
    if (written) {
      range = written->range;
      userWrote(*written, framework);
    } else {
      named({framework, {}});
    }
    if (failed) {
      return;
    }
    module.sync = reader.plan();
    module.sync->range = range;
    module.sync->name = name;
  }

private:
  void userWrote(const ConfigNode &node, const std::string &framework) {
    if (node.kind == ConfigNode::Kind::Scalar) {
      named(scalarOf(node));
      return;
    }
    if (node.kind != ConfigNode::Kind::Mapping) {
      diags.emit<Diag::WrongKind>(node.range, "sync", "rules, or the name or path of a file of rules", describe(node));
      failed = true;
      return;
    }
    mapping(node, "`sync`", framework);
  }

  // A mapping that the user wrote, and what it extends: what it says, else the framework's.
  void mapping(const ConfigNode &node, llvm::StringRef what, const std::string &framework) {
    reader.read(node, what, true);
    if (std::optional<Located<std::string>> base = reader.extended()) {
      named(*base);
    } else if (!framework.empty()) {
      named({framework, {}});
    }
  }

  // A shipped name, with `@version` if it is not the job's, or a file.
  void named(const Located<std::string> &text) {
    if (text.value == Nothing) {
      reader.read(ConfigNode(), "`sync`", true);
      return;
    }
    if (++files > MostFiles) {
      diags.emit<Diag::BadExpression>(text.range, "more than " + std::to_string(MostFiles) + " files extend one another");
      failed = true;
      return;
    }
    const auto [shipped, version] = llvm::StringRef(text.value).split('@');
    if (catalogFile(shippedPath(shipped))) {
      ship(shipped, version, text.range);
    } else {
      onDisk(text);
    }
  }

  void ship(llvm::StringRef shipped, llvm::StringRef version, SourceRange from) {
    std::optional<ConfigNode> root = readCatalogNode(shippedPath(shipped), from, diags);
    failed |= !root;
    if (!root) {
      return;
    }
    if (!version.empty() || shipped != job.framework) { // another framework's: the newest, if it does not say
      job.version = version.str();
    }
    if (!knowsVersion(*root, version, from)) {
      failed = true;
      return;
    }
    reader.read(*root, "the sync rules of " + shipped.str(), false);
    name = shipped.str() + (reader.version().empty() ? "" : " " + reader.version());
  }

  bool knowsVersion(const ConfigNode &root, llvm::StringRef version, SourceRange text) {
    std::vector<llvm::StringRef> known;
    if (const ConfigNode *versions = root.find("versions")) {
      for (const ConfigNode &item : versions->items) {
        known.emplace_back(item.scalar);
      }
    }
    if (version.empty() || llvm::is_contained(known, version)) {
      return true;
    }
    const bool ends = text.valid() && diags.sources().text(text).ends_with(version);
    const SourceRange place = ends ? text.slice(text.end - text.begin - version.size(), text.end - text.begin) : text;
    diags.emit<Diag::UnknownVersion>(place, version, "these rules").help("known versions: " + llvm::join(known, ", "));
    return false;
  }

  void onDisk(const Located<std::string> &text) {
    llvm::SmallString<128> path(text.value);
    if (!llvm::sys::path::is_absolute(path) && text.range.valid()) { // beside the file that names it
      path = llvm::sys::path::parent_path(diags.sources().name(text.range.file));
      llvm::sys::path::append(path, text.value);
    }
    if (!llvm::sys::fs::exists(path)) {
      std::vector<std::string> names = shippedRules();
      std::vector<llvm::StringRef> known(names.begin(), names.end());
      auto d = diags.emit<Diag::UnknownName>(text.range, text.value, "the name or file of rules of synchronisation");
      llvm::StringRef near = nearest(text.value, known);
      d.help(near.empty() ? "shipped: " + llvm::join(names, ", ") : "did you mean `" + near.str() + "`?");
      failed = true;
      return;
    }
    std::optional<ConfigNode> root = readConfig(path, diags, ConfigFormat::Auto, text.range);
    failed |= !root;
    if (root) {
      mapping(*root, "the sync file", "");
    }
  }

  Job job; // its version may be another one for a named file
  Module &module;
  DiagnosticEngine &diags;
  SyncReader reader;
  SourceRange range;
  std::string name;
  unsigned files = 0;
  bool failed = false;
};

} // namespace

bool addSync(const Job &job, const ConfigNode *written, Module &module, DiagnosticEngine &diags) {
  const size_t errors = diags.errorCount();
  const std::string framework = catalogFile(shippedPath(job.framework)) ? job.framework : "";
  if (!job.inference && (written || !framework.empty())) {
    SyncFinder(job, module, diags).run(written, framework);
  }
  return diags.errorCount() == errors;
}

Job namedSizes(const Module &module) {
  Job job;
  for (const auto &[name, extent] : module.sizes) {
    if (extent >= 0) {
      job.sizes[module.names.str(name).str()] = {extent, {}};
    }
  }
  for (const Axis &axis : module.axes.axes()) {
    job.sizes[axis.name] = {axis.size, {}};
  }
  for (const ViewSpec &view : module.axes.views()) {
    for (const AxisSpec &axis : view.axes) {
      job.sizes[axis.name].range = axis.range;
    }
  }
  return job;
}

bool addSync(const ConfigNode &written, Module &module, DiagnosticEngine &diags) {
  const size_t errors = diags.errorCount();
  SyncFinder(namedSizes(module), module, diags).run(&written, "");
  return diags.errorCount() == errors;
}

} // namespace shardc
