// Models: lists what is shipped. See the header. Not here: reading a model (Frontend, Catalog).
#include "shardc/Emit/Models.h"
#include "shardc/Emit/Json.h"
#include "shardc/Frontend/Dialect.h"

namespace shardc {

namespace {

// "strategies/torchtitan.yaml" -> "torchtitan".
std::vector<llvm::StringRef> filesUnder(llvm::StringRef folder) {
  std::vector<llvm::StringRef> names;
  for (const CatalogFile &file : catalogFiles()) {
    llvm::StringRef path = file.path;
    if (path.consume_front(folder) && path.consume_front("/") && path.consume_back(".yaml")) {
      names.push_back(path);
    }
  }
  return names;
}

// The family that a model file describes: its key `family`, which need not be the file's name.
std::string familyOf(const CatalogFile &file) {
  llvm::StringRef rest = file.text;
  while (!rest.empty()) {
    auto [line, tail] = rest.split('\n');
    if (line.consume_front("family:")) {
      return line.split('#').first.trim(" \"'").str();
    }
    rest = tail;
  }
  return "";
}

// Flavours of one family stand together.
std::vector<std::pair<std::string, std::vector<std::string>>> byFamily(DiagnosticEngine &diags) {
  std::vector<std::pair<std::string, std::vector<std::string>>> families;
  for (const Flavour &flavour : allFlavours(diags)) {
    if (families.empty() || families.back().first != flavour.family) {
      families.emplace_back(flavour.family, std::vector<std::string>());
    }
    families.back().second.push_back(flavour.flavour);
  }
  return families;
}

} // namespace

const CatalogFile *findShipped(llvm::StringRef name, DiagnosticEngine &diags) {
  const llvm::StringRef family = name.split('/').first;
  if (family.empty()) {
    return nullptr;
  }
  const llvm::StringRef flavour = name.split('/').second;
  if (!flavour.empty()) {
    const std::vector<Flavour> flavours = allFlavours(diags);
    const bool known = llvm::any_of(flavours, [&](const Flavour &f) { return f.family == family && f.flavour == flavour; });
    if (!known) {
      return nullptr;
    }
  }
  for (const CatalogFile &file : catalogFiles()) {
    if (file.path.starts_with("models/") && familyOf(file) == family) {
      return &file;
    }
  }
  for (llvm::StringRef folder : {"models", "strategies"}) {
    if (const CatalogFile *file = flavour.empty() ? catalogFile((folder + "/" + family + ".yaml").str()) : nullptr) {
      return file;
    }
  }
  return nullptr;
}

std::vector<std::string> shippedNames(DiagnosticEngine &diags) {
  std::vector<std::string> names;
  for (const auto &[family, flavours] : byFamily(diags)) {
    names.push_back(family);
    for (const std::string &flavour : flavours) {
      names.push_back(family + "/" + flavour);
    }
  }
  for (llvm::StringRef strategy : filesUnder("strategies")) {
    names.push_back(strategy.str());
  }
  return names;
}

void writeModelsText(llvm::raw_ostream &out, DiagnosticEngine &diags) {
  out << "models (--model FAMILY/FLAVOUR):\n";
  for (const auto &[family, flavours] : byFamily(diags)) {
    for (const std::string &flavour : flavours) {
      out << "  " << family << '/' << flavour << '\n';
    }
  }
  out << "frameworks (--framework NAME@VERSION):\n";
  for (const Dialect &dialect : allDialects()) {
    for (llvm::StringRef version : dialect.versions) {
      out << "  " << dialect.name << '@' << version << '\n';
    }
  }
  out << "strategies (--strategy NAME):\n";
  for (llvm::StringRef strategy : filesUnder("strategies")) {
    out << "  " << strategy << '\n';
  }
  out << "`shardc models show NAME` prints the file of a family or strategy, to copy and change.\n";
}

void writeModelsJson(llvm::raw_ostream &out, DiagnosticEngine &diags) {
  llvm::json::OStream json(out, 2);
  json.object([&] {
    writeJsonHead(json);
    json.attributeArray("models", [&] {
      for (const auto &[family, flavours] : byFamily(diags)) {
        json.object([&, &familyName = family, &flavourNames = flavours] {
          json.attribute("family", familyName);
          json.attributeArray("flavours", [&] {
            for (const std::string &flavour : flavourNames) {
              json.value(flavour);
            }
          });
        });
      }
    });
    json.attributeArray("frameworks", [&] {
      for (const Dialect &dialect : allDialects()) {
        json.object([&] {
          json.attribute("name", dialect.name);
          json.attributeArray("versions", [&] {
            for (llvm::StringRef version : dialect.versions) {
              json.value(version);
            }
          });
        });
      }
    });
    json.attributeArray("strategies", [&] {
      for (llvm::StringRef strategy : filesUnder("strategies")) {
        json.value(strategy);
      }
    });
  });
  out << '\n';
}

} // namespace shardc
