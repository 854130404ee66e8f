// Worlds for tests of texts: a module with a mesh and sizes, and a place for what is written.
#pragma once

#include "Meshes.h"
#include "shardc/IR/Text.h"

namespace shardc {

// A module with a mesh and sizes, and a place for texts.
struct World {
  SourceManager sources;
  DiagnosticEngine diags{sources};
  Module module;
  SizeTable sizes;

  explicit World(Axes axes) {
    module.axes = std::move(axes);
    module.view = "dense";
  }
  World(const World &) = delete; // the diagnostics refer to the sources
  void declareSizes() {
    size("b", 4);
    size("l", 32);
    product("T", {"b", "l"});
    size("D", 16);
    size("F", 24);
    size("E", 8);
    size("N", Symbolic, 8);
  }
  NameId size(llvm::StringRef name, int64_t extent, int64_t divisor = 1) {
    const NameId id = module.names.intern(name);
    sizes[id] = {extent, divisor, {}, false};
    module.sizes.emplace_back(id, extent);
    return id;
  }
  void product(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> parts) {
    const NameId id = module.names.intern(name);
    SizeEntry entry;
    for (llvm::StringRef part : parts) {
      entry.product.push_back(module.names.intern(part));
    }
    module.products.emplace_back(id, entry.product);
    sizes[id] = entry;
  }
  std::optional<Type> type(const std::string &text) {
    ParseEnv env{module, sizes, diags};
    const FileId file = sources.add("text", text);
    return parseType(text, {file, 0, static_cast<uint32_t>(text.size())}, env);
  }
  std::optional<Dim> dim(const std::string &text) {
    ParseEnv env{module, sizes, diags};
    const FileId file = sources.add("text", text);
    return parseDim(text, {file, 0, static_cast<uint32_t>(text.size())}, env);
  }
  llvm::SmallVector<AtomId, 4> atoms(std::vector<std::string> names) {
    const auto found = atomsOf(module.axes, names);
    return {found.begin(), found.end()};
  }
  Factor factor(llvm::StringRef name, int64_t extent, std::vector<std::string> axes = {}) {
    Factor f;
    f.name = module.names.intern(name);
    f.extent = extent;
    f.atoms = atoms(axes);
    return f;
  }
};

// dp 4, cp 2, tp 2, and experts over tp and cp; b l = 4 sequences of 32 tokens.
struct Usual : World {
  Usual()
      : World(mesh(32,
                   {view("dense", {{"pp", 2}, {"dp", 4}, {"cp", 2}, {"tp", 2}}), view("sparse", {{"pp", 2}, {"efsdp", 4}, {"ep", 4}}),
                    view("storage", {{"pp", 2}, {"dp_replicate", 2}, {"dp_shard", 2}, {"cp", 2}, {"tp", 2}, {"one", 1}})},
                   {{"fsdp", {"dp_shard", "cp"}, {}}, {"loss", {"dp", "cp"}, {}}})) {
    declareSizes();
  }
};

} // namespace shardc
