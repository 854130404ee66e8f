// torchtitan's strategy: what stands at the boundaries of the modules, per quadrant and version.
#include "CatalogJob.h"

using namespace shardc;

namespace {

using Found = std::map<std::string, std::string>;

// Every boundary change below `function`, by module and value: "moe.router.gate x" -> "I@tp -> L@tp".
void collect(const Module &m, FunctionId id, const std::string &path, Found &found) {
  const Function &f = m.function(id);
  for (const Op &op : f.ops) {
    if (op.kind == OpKind::Call) {
      std::string below = m.names.str(op.instance).str();
      collect(m, op.callee, path.empty() ? below : path + "." + below, found);
    } else if (op.boundary) {
      std::string value = m.names.str(f.values[f.operandsOf(op)[0].index].name).str();
      found[path + " " + value] = print(m.attrs[op.attrs.index].change, m);
    }
  }
}

Found boundaries(const char *model, Job job, llvm::StringRef below) {
  SourceManager sources;
  DiagnosticEngine diags(sources);
  REQUIRE(loadModel({model, {}}, job, diags));
  std::optional<Module> module = buildModule(job, diags);
  INFO(said(diags));
  REQUIRE(module);
  Found all, some;
  collect(*module, module->root, "", all);
  for (const auto &[name, change] : all) {
    if (llvm::StringRef(name).starts_with((below + ".").str()) || llvm::StringRef(name).starts_with((below + " ").str())) {
      some[name.substr(below.rsplit('.').first.size() + 1)] = change;
    }
  }
  return some;
}

// Types of the parameters of one module.
std::map<std::string, std::string> params(const char *model, Job job, llvm::StringRef kind) {
  SourceManager sources;
  DiagnosticEngine diags(sources);
  REQUIRE(loadModel({model, {}}, job, diags));
  std::optional<Module> module = buildModule(job, diags);
  REQUIRE(module);
  std::map<std::string, std::string> types;
  for (const Function &f : module->functions) {
    if (module->names.str(f.name) == kind) {
      for (ValueId p : f.params) {
        const Value &value = f.values[p.index];
        types[module->names.str(value.name).str()] = print(module->types[value.declared], *module);
      }
    }
  }
  return types;
}

} // namespace

TEST_CASE("the MoE contract per quadrant and version", "[catalog]") {
  const Found slots = {{"moe.experts slots", "c@ep -> E@ep"}, {"moe.experts made", "E@ep -> c@ep"}};
  struct Row {
    const char *version;
    bool ep, sp;
    Found expected; // besides the slots where ep is on
  };
  const Found local = {{"moe.router.gate x", "I@tp -> L@tp"},
                       {"moe.dispatch x", "I@tp -> L@tp"},
                       {"moe.combine y", "L@tp -> P@tp"},
                       {"moe.shared_experts x", "I@tp -> R@tp"},
                       {"moe y", "P@tp -> I@tp"}};
  const Found whole = {{"moe x", "I@tp -> R@tp"}, {"moe y", "P@tp -> I@tp"}};
  const Row rows[] = {
      // Both parts are partial and reduced once, at the boundary of the block.
      {"2026-08-05", true, true, {{"moe.combine y", "L@tp -> P@tp"}, {"moe.shared_experts x", "L@tp -> R@tp"}, {"moe y", "P@tp -> L@tp"}}},
      {"2026-08-05", true, false, local},
      {"2026-08-05", false, true, {{"moe x", "L@tp -> R@tp"}, {"moe y", "P@tp -> L@tp"}}},
      {"2026-08-05", false, false, whole},
      // With sequence parallelism each part is a shard before the addition.
      {"2026-08-10", true, true, {{"moe.shared_experts x", "L@tp -> R@tp"}, {"moe.shared_experts.w2 y", "P@tp -> L@tp"}}},
      {"2026-08-10", true, false, local},
      {"2026-08-10",
       false,
       true,
       {{"moe x", "L@tp -> R@tp"}, {"moe.combine y", "P@tp -> L@tp"}, {"moe.shared_experts.w2 y", "P@tp -> L@tp"}}},
      {"2026-08-10", false, false, whole},
      {"2026-08-20", true, true, {{"moe.shared_experts x", "L@tp -> R@tp"}, {"moe.shared_experts.w2 y", "P@tp -> L@tp"}}},
      {"2026-08-20", true, false, local},
      {"2026-08-20",
       false,
       true,
       {{"moe x", "L@tp -> R@tp"}, {"moe.combine y", "P@tp -> L@tp"}, {"moe.shared_experts.w2 y", "P@tp -> L@tp"}}},
      {"2026-08-20", false, false, whole},
  };
  for (const Row &row : rows) {
    INFO(row.version << " ep " << row.ep << " sp " << row.sp);
    Found expected = row.expected;
    if (row.ep) {
      expected.insert(slots.begin(), slots.end());
    }
    // ep 4 covers cp and tp here; the axis is printed in the words of the dense mesh.
    for (auto &[name, change] : expected) {
      change = llvm::StringRef(change).contains("@ep") ? (change[0] == 'c' ? "c@(cp,tp) -> E@(cp,tp)" : "E@(cp,tp) -> c@(cp,tp)") : change;
    }
    CHECK(boundaries("deepseek_v3/debugmodel", catalogJob(row.version, row.sp, row.ep), "layers.1.moe") == expected);
  }
}

TEST_CASE("a dense layer's boundaries", "[catalog]") {
  const Found on = {{"attention x", "L@tp -> R@tp"},
                    {"attention.inner_attention k", "L@cp -> R@cp"},
                    {"attention.inner_attention v", "L@cp -> R@cp"},
                    {"attention.wo y", "P@tp -> L@tp"}};
  const Found off = {{"attention x", "I@tp -> R@tp"},
                     {"attention.inner_attention k", "L@cp -> R@cp"},
                     {"attention.inner_attention v", "L@cp -> R@cp"},
                     {"attention.wo y", "P@tp -> I@tp"}};
  for (const char *version : {"2026-08-05", "2026-08-10", "2026-08-20"}) {
    for (const char *model : {"llama3/debugmodel", "qwen3/debugmodel", "deepseek_v3/debugmodel"}) {
      CHECK(boundaries(model, catalogJob(version, true), "layers.0.attention") == on);
      CHECK(boundaries(model, catalogJob(version, false), "layers.0.attention") == off);
      CHECK(boundaries(model, catalogJob(version, true), "layers.0.feed_forward") ==
            Found{{"feed_forward x", "L@tp -> R@tp"}, {"feed_forward.w2 y", "P@tp -> L@tp"}});
      CHECK(boundaries(model, catalogJob(version, false), "layers.0.feed_forward") ==
            Found{{"feed_forward x", "I@tp -> R@tp"}, {"feed_forward.w2 y", "P@tp -> I@tp"}});
    }
  }
}

TEST_CASE("layouts of expert weights", "[catalog]") {
  using Types = std::map<std::string, std::string>;
  CHECK(params("deepseek_v3/debugmodel", catalogJob("2026-08-10", true, true), "experts") ==
        Types{{"w1", "bf16[E@(cp,tp), Fm, D]"}, {"w2", "bf16[E@(cp,tp), D, Fm]"}, {"w3", "bf16[E@(cp,tp), Fm, D]"}});
  CHECK(params("deepseek_v3/debugmodel", catalogJob("2026-08-10", true, false), "experts") ==
        Types{{"w1", "bf16[E, Fm@tp, D]"}, {"w2", "bf16[E, D, Fm@tp]"}, {"w3", "bf16[E, Fm@tp, D]"}});
}

TEST_CASE("inputs as the trainer gives them", "[catalog]") {
  SourceManager sources;
  for (const char *version : {"2026-08-10", "2026-08-20"}) {
    bool folded = std::string(version) == "2026-08-20";
    DiagnosticEngine diags(sources);
    Job job = catalogJob(version);
    REQUIRE(loadModel({"llama3/debugmodel", {}}, job, diags));
    std::optional<Module> module = buildModule(job, diags);
    REQUIRE(module);
    const Function &root = module->function(module->root);
    std::map<std::string, std::string> types;
    for (ValueId input : root.inputs) {
      const Value &value = root.values[input.index];
      types[module->names.str(value.name).str()] = print(module->types[value.declared], *module);
    }
    std::string tokens = folded ? "i64[T@(dp,cp)]" : "i64[B@dp, L@cp]";
    CHECK(types["tokens"] == tokens);
    CHECK(types["positions"] == tokens);
    CHECK(types["labels"] == tokens + " I@tp");
    CHECK(types["key_positions"] == (folded ? "i64[T@dp]" : "i64[B@dp, L]"));
  }
}
