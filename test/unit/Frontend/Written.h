// Written: texts, a mesh and sizes for the tests of what people write: bodies, changes, graph files.
#pragma once

#include "Catch.h"
#include "shardc/Frontend/Dialect.h"

namespace shardc {

// A module over dense (dp 2, cp 2, tp 2) and expert (efsdp 4, ep 2), with one function and the sizes T = (b l), D, F, E, K, V.
struct Written {
  SourceManager sources;
  DiagnosticEngine diags{sources};
  Module module;
  SizeTable sizes;
  FunctionId function{size_t(0)};

  explicit Written(std::vector<std::string> sizeNames = {"b", "l", "D", "F", "E", "K", "N"}) {
    std::vector<ViewSpec> views = {{"dense", {{"dp", 2, {}, {}}, {"cp", 2, {}, {}}, {"tp", 2, {}, {}}, {"one", 1, {}, {}}}, {}},
                                   {"expert", {{"efsdp", 4, {}, {}}, {"ep", 2, {}, {}}}, {}}};
    module.axes = *Axes::build({8, {}}, views, {}, diags);
    module.view = "dense";
    for (const std::string &name : sizeNames) {
      NameId id = module.names.intern(name);
      sizes[id].extent = 8;
      module.sizes.emplace_back(id, 8);
    }
    NameId tokens = module.names.intern("T");
    sizes[tokens].product = {module.names.intern("b"), module.names.intern("l")};
    module.products.emplace_back(tokens, sizes[tokens].product);
    module.functions.emplace_back();
  }

  SourceRange place(llvm::StringRef text) {
    FileId file = sources.add("text", text.str());
    return {file, 0, uint32_t(text.size())};
  }
  std::optional<Change> change(llvm::StringRef text) {
    SourceRange range = place(text);
    ParseEnv env{module, sizes, diags};
    return parseChange(sources.text(range), range, env);
  }
  BodyBuilder builder(BodyBuilder::Resolve resolve = nullptr) {
    BodyBuilder b(module, function, sizes, diags, std::move(resolve));
    for (llvm::StringRef name : {"x", "w", "w1", "w2", "bias", "ids"}) {
      b.define(name, addValue(body(), module.names.intern(name), ValueKind::Input, {}, {}), {});
    }
    return b;
  }
  bool line(BodyBuilder &b, llvm::StringRef text) {
    SourceRange range = place(text);
    return b.line(sources.text(range), range);
  }
  Function &body() { return module.function(function); }

  // "linear(x, w) -> h": what an operation reads and makes.
  std::string show(size_t i) {
    const Op &op = body().ops[i];
    std::string text = (op.kind == OpKind::Call ? module.names.str(op.instance) : opInfo(op.kind).name).str() + "(";
    for (ValueId id : body().operandsOf(op)) {
      text += (text.back() == '(' ? "" : ", ") + module.names.str(body().values[id.index].name).str();
    }
    text += ") ->";
    for (uint32_t r = 0; r < op.numResults; ++r) {
      text += " " + module.names.str(body().values[body().result(op, r).index].name).str();
    }
    return text;
  }

  // The finding `i` as "name: the text that it points at".
  std::string finding(size_t i) const {
    const Diagnostic &d = diags.all()[i];
    return diagName(d.id) + ": " + (d.range.valid() ? sources.text(d.range).str() : "nowhere");
  }
};

} // namespace shardc
