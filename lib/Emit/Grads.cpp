// Grads: the gradient table as text and JSON. See the header. Nothing is judged here: Verify made the rows.
#include "shardc/Emit/Grads.h"
#include "Table.h"
#include "shardc/Emit/Json.h"
#include "shardc/IR/Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace shardc {
namespace {

// Families whose squares are added over the same ranks.
struct NormGroup {
  std::vector<std::string> families;
  SyncNorm norm;
};

std::vector<NormGroup> normGroups(const TypedModule &typed, llvm::ArrayRef<SyncRow> rows) {
  std::vector<NormGroup> groups;
  for (const SyncRow &row : rows) {
    const SyncFamily *family = row.familyIndex && typed.module.sync ? &typed.module.sync->families[*row.familyIndex] : nullptr;
    if (!family || !family->norm) {
      continue;
    }
    auto *it = groups.data() + groups.size();
    for (NormGroup &g : groups) {
      it = g.norm.over == family->norm->over && g.norm.once == family->norm->once ? &g : it;
    }
    if (it == groups.data() + groups.size()) {
      groups.push_back({{}, *family->norm});
      it = &groups.back();
    }
    if (!llvm::is_contained(it->families, family->name)) {
      it->families.push_back(family->name);
    }
  }
  return groups;
}

std::string namesOf(const Axes &axes, llvm::ArrayRef<AtomId> atoms, llvm::StringRef view) { return axes.describe(atoms, view); }

// The text of one row, column by column.
std::vector<std::string> columns(const SyncRow &row, const Module &module, llvm::StringRef view) {
  std::string verdict = verdictName(row.verdict).str();
  if (!row.atoms.empty()) {
    verdict += " over " + namesOf(module.axes, row.atoms, view);
  }
  if (row.verdict == SyncVerdict::Right && !row.condition.empty()) {
    verdict += ", only if " + row.condition;
  }
  return {row.family,
          row.parameters,
          std::to_string(row.count),
          row.gradient ? print(row.gradient->type, module, view) : "none",
          row.sync,
          row.gradient ? row.scale.describe(module.axes, view) : "-",
          verdict};
}

} // namespace

void writeTable(llvm::raw_ostream &out, const std::vector<std::vector<std::string>> &table) {
  std::vector<size_t> widths;
  for (const std::vector<std::string> &row : table) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t c = 0; c < row.size(); ++c) {
      widths[c] = std::max(widths[c], row[c].size());
    }
  }
  for (const std::vector<std::string> &row : table) {
    for (size_t c = 0; c < row.size(); ++c) {
      out << row[c];
      if (c + 1 < row.size()) {
        out.indent(static_cast<unsigned>(widths[c] - row[c].size() + 2));
      }
    }
    out << '\n';
  }
}

static void writeNorm(llvm::raw_ostream &out, const TypedModule &typed, llvm::ArrayRef<SyncRow> rows, llvm::StringRef view) {
  if (!typed.module.sync) {
    out << "\nno rules of synchronisation are known\n";
    return;
  }
  const std::vector<NormGroup> norms = normGroups(typed, rows);
  out << (norms.empty() ? "\nno clip norm is declared\n" : "\nclip norm: squares are added\n");
  for (const NormGroup &g : norms) {
    const int64_t ranks = typed.module.axes.product(g.norm.over);
    out << "  over " << (g.norm.over.empty() ? "no other ranks" : namesOf(typed.module.axes, g.norm.over, view)) << " (" << ranks
        << (ranks == 1 ? " rank" : " ranks") << (g.norm.once.empty() ? "" : ", copies once") << "): " << llvm::join(g.families, ", ")
        << '\n';
  }
}

void writeGradsText(llvm::raw_ostream &out, const JobReport &job, llvm::StringRef view) {
  if (!job.typed) {
    return;
  }
  const Module &module = job.typed->module;
  const llvm::StringRef shown = view.empty() ? llvm::StringRef(module.view) : view;
  llvm::ArrayRef<SyncRow> rows = job.report.gradients;
  if (rows.empty()) {
    out << module.name << ": no gradients\n";
    return;
  }
  std::vector<std::vector<std::string>> table = {{"family", "parameters", "n", "gradient", "synchronised", "scale", "verdict"}};
  for (const SyncRow &row : rows) {
    table.push_back(columns(row, module, shown));
  }
  writeTable(out, table);
  writeNorm(out, *job.typed, rows, shown);
  writeSlicesText(out, job, shown);
}

static void writeRow(llvm::json::OStream &json, const SyncRow &row, const Module &module, llvm::StringRef view) {
  auto optional = [](const std::string &text) { return text.empty() ? llvm::json::Value(nullptr) : jsonText(text); };
  json.object([&] {
    json.attribute("family", jsonText(row.family));
    json.attribute("parameters", jsonText(row.parameters));
    json.attribute("count", row.count);
    json.attribute("gradient", row.gradient ? jsonText(print(row.gradient->type, module, view)) : llvm::json::Value(nullptr));
    json.attribute("sync", jsonText(row.sync));
    json.attribute("scale", row.gradient ? jsonText(row.scale.text()) : llvm::json::Value(nullptr));
    json.attribute("formula", optional(row.gradient ? row.scale.formula(module.axes, view) : ""));
    json.attribute("verdict", verdictName(row.verdict));
    json.attribute("over", optional(row.atoms.empty() ? "" : module.axes.describe(row.atoms, view)));
    json.attribute("only_if", optional(row.condition));
    if (row.shardedOver.empty()) {
      json.attribute("sharded", nullptr);
    } else {
      json.attributeObject("sharded", [&] {
        json.attribute("dim", row.shardDim);
        json.attribute("over", module.axes.describe(row.shardedOver, view));
      });
    }
  });
}

void writeGradsJson(llvm::raw_ostream &out, const JobReport &job, llvm::StringRef view) {
  llvm::json::OStream json(out, 2);
  json.object([&] {
    writeJsonHead(json);
    json.attribute("job", jsonText(job.job));
    json.attribute("verdict", verdictName(job.report.verdict));
    writeJsonFindings(json, job.diags);
    const Module *module = job.typed ? &job.typed->module : nullptr;
    const llvm::StringRef shown = module && view.empty() ? llvm::StringRef(module->view) : view;
    json.attributeArray("rows", [&] {
      for (const SyncRow &row : module ? llvm::ArrayRef(job.report.gradients) : llvm::ArrayRef<SyncRow>()) {
        writeRow(json, row, *module, shown);
      }
    });
    json.attributeArray("clip_norm", [&] {
      for (const NormGroup &g : module ? normGroups(*job.typed, job.report.gradients) : std::vector<NormGroup>()) {
        json.object([&] {
          json.attributeArray("families", [&] {
            for (const std::string &name : g.families) {
              json.value(jsonText(name));
            }
          });
          json.attribute("over", module->axes.describe(g.norm.over, shown));
          json.attribute("ranks", module->axes.product(g.norm.over));
          json.attribute("copies_once", module->axes.describe(g.norm.once, shown));
        });
      }
    });
    json.attributeArray("slices", [&] {
      if (job.typed) {
        writeSlicesJson(json, job, shown);
      }
    });
  });
  out << '\n';
}

} // namespace shardc
