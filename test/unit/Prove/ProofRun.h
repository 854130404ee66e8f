// ProofRun: a graph text through reader, checker and proof, for tests.
#pragma once

#include "shardc/Frontend/Dialect.h"
#include "shardc/Prove/Prove.h"
#include <string>

struct ProofRun {
  shardc::SourceManager sources;
  shardc::DiagnosticEngine diags{sources};
  std::optional<shardc::TypedModule> typed;

  explicit ProofRun(const std::string &graph) {
    const auto root = shardc::parseConfig(sources.add("graph.yaml", graph), diags, shardc::ConfigFormat::Yaml);
    std::optional<shardc::Module> module = root ? shardc::readGraph(*root, diags) : std::nullopt;
    if (module) {
      typed = shardc::infer(std::move(*module), {}, diags);
    }
  }

  bool accepted() const { return typed && !diags.hasErrors(); }
  shardc::Proof prove(uint64_t seed = 1) const { return shardc::prove(*typed, {seed, true}); }
  // The value of that name in the root.
  shardc::ValueId value(llvm::StringRef name) const {
    const shardc::Function &f = typed->module.function(typed->module.root);
    for (uint32_t v = 0; v < f.values.size(); ++v) {
      if (typed->module.names.str(f.values[v].name) == name) {
        return shardc::ValueId(v);
      }
    }
    return {};
  }
  shardc::TypeId &typeOf(llvm::StringRef name) { return typed->instances[typed->root].values[value(name).index]; }
  shardc::Type copyOfType(llvm::StringRef name) { return typed->module.types[typeOf(name)]; }
};
