// Catalog: finding shipped files, and the sizes and switches of a named model.
#include "shardc/Frontend/Catalog.h"
#include "CatalogModel.h"
#include "shardc/Frontend/Derived.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

namespace shardc {

const CatalogFile *catalogFile(llvm::StringRef path) {
  for (const CatalogFile &file : catalogFiles()) {
    if (file.path == path) {
      return &file;
    }
  }
  return nullptr;
}

bool isModelFile(llvm::StringRef path) { return path.consume_front("models/") && path.consume_back(".yaml") && !path.contains('/'); }

std::string familyPath(llvm::StringRef family) {
  std::string shipped = ("models/" + family + ".yaml").str();
  return catalogFile(shipped) ? shipped : family.str();
}

std::vector<Flavour> allFlavours(DiagnosticEngine &diags) {
  std::vector<Flavour> all;
  for (const CatalogFile &file : catalogFiles()) {
    if (!isModelFile(file.path)) {
      continue;
    }
    std::optional<ConfigNode> root = readCatalogNode(file.path, {}, diags);
    std::optional<ModelHead> head = root ? readModelHead(std::move(*root), diags) : std::nullopt;
    if (head) {
      for (const auto &entry : head->flavours) {
        all.push_back({head->family.value, entry.first.value});
      }
    }
  }
  return all;
}

bool addDefaults(const ModelHead &head, Job &job, DiagnosticEngine &diags) {
  bool good = true;
  for (const auto &[name, value] : head.switches) {
    job.switches.try_emplace(name.value, value);
  }
  NumberOf number = [&](llvm::StringRef name) -> std::optional<int64_t> {
    auto it = job.sizes.find(name.str());
    return it == job.sizes.end() ? std::nullopt : std::optional(it->second.value);
  };
  for (const auto &[name, term] : head.sizes) {
    if (job.sizes.count(name.value)) {
      continue;
    }
    std::optional<int64_t> value = evaluate(term.value, term.range, number, diags);
    good &= value.has_value();
    job.sizes[name.value] = {value.value_or(0), term.range};
  }
  return good;
}

namespace {

// Entries of a flavour: the names that the file lists as switches are switches, all others are sizes.
bool addFlavour(const ModelHead &head, const ConfigNode &flavour, Job &job, DiagnosticEngine &diags) {
  bool good = true;
  for (const auto &[name, value] : flavour.entries) {
    bool scalar = value.kind == ConfigNode::Kind::Scalar;
    if (scalar && isSwitch(head, name.value)) {
      job.switches[name.value] = value.scalar;
      continue;
    }
    std::optional<int64_t> number = scalar ? parseInteger(value.scalar) : std::nullopt;
    if (!number || *number < 0) {
      diags.emit<Diag::WrongKind>(value.range, name.value, "a whole number, or named under `switches`", describe(value));
      good = false;
      continue;
    }
    job.sizes[name.value] = {*number, value.range};
  }
  return good & addDefaults(head, job, diags);
}

// The names of what there is, and the nearest of them.
template <class Names> void suggest(DiagnosticBuilder d, llvm::StringRef written, const Names &names, llvm::StringRef what) {
  std::vector<llvm::StringRef> all(names.begin(), names.end());
  llvm::StringRef near = nearest(written, all);
  d.help(near.empty() ? what.str() + " are " + llvm::join(all, ", ") : "did you mean `" + near.str() + "`?");
}

bool loadFlavour(const Located<std::string> &model, Job &job, DiagnosticEngine &diags) {
  auto [family, flavour] = llvm::StringRef(model.value).rsplit('/');
  std::string path = familyPath(family);
  if (!catalogFile(path) && !(family.ends_with(".yaml") && llvm::sys::fs::exists(family))) {
    std::vector<std::string> families;
    for (const CatalogFile &file : catalogFiles()) {
      if (isModelFile(file.path)) {
        families.push_back(file.path.drop_front(7).drop_back(5).str());
      }
    }
    suggest(diags.emit<Diag::UnknownModel>(model.range, model.value), family, families, "shipped families");
    return false;
  }
  std::optional<ConfigNode> root = readCatalogNode(path, model.range, diags);
  std::optional<ModelHead> head = root ? readModelHead(std::move(*root), diags) : std::nullopt;
  if (!head) {
    return false;
  }
  for (const auto &[name, node] : head->flavours) {
    if (name.value == flavour) {
      job.family = family.str();
      job.flavour = flavour.str();
      return addFlavour(*head, *node, job, diags);
    }
  }
  std::vector<std::string> names;
  for (const auto &entry : head->flavours) {
    names.push_back(entry.first.value);
  }
  suggest(diags.emit<Diag::UnknownModel>(model.range, model.value), flavour, names, "flavours of `" + family.str() + "`");
  return false;
}

} // namespace

std::optional<int64_t> valueOf(const DerivedSize &size, const Job &job) {
  SourceManager sources;
  DiagnosticEngine ignored(sources);
  NumberOf number = [&](llvm::StringRef name) -> std::optional<int64_t> {
    auto it = job.sizes.find(name.str());
    return it == job.sizes.end() ? std::nullopt : std::optional(it->second.value);
  };
  return evaluate(size.term.value, size.term.range, number, ignored);
}

std::vector<DerivedSize> derivedSizes(const Job &job, DiagnosticEngine &diags) {
  std::optional<ConfigNode> root = readCatalogNode(familyPath(job.family), {}, diags);
  std::optional<ModelHead> head = root ? readModelHead(std::move(*root), diags) : std::nullopt;
  std::vector<DerivedSize> out;
  for (const auto &[name, term] : head ? head->sizes : decltype(head->sizes)()) {
    DerivedSize size{name.value, term, namesIn(term.value)};
    auto it = job.sizes.find(name.value);
    if (!size.from.empty() && it != job.sizes.end() && valueOf(size, job) == it->second.value) {
      out.push_back(std::move(size));
    }
  }
  return out;
}

bool loadModel(const Located<std::string> &model, Job &job, DiagnosticEngine &diags) {
  llvm::StringRef text = model.value;
  if (text.ends_with(".json")) {
    return readHuggingFace(model, job, diags);
  }
  return loadFlavour(model, job, diags);
}

} // namespace shardc
