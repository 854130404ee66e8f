// Slices: the part of `grads` that says which elements of each parameter's optimizer state a rank keeps. Nothing is judged here.
//
// A line is a row of elements and the ranks that share it: rank i of a group has `each` elements from i x each on, the last ranks
// fewer or none. A buffer of many parameters is one line of the text; the JSON form says where in it each one lies.
#include "Table.h"
#include "shardc/Emit/Grads.h"
#include "shardc/Emit/Json.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc {
namespace {

llvm::StringRef cutName(StorageCut cut) {
  switch (cut) {
  case StorageCut::Whole:
    return "whole";
  case StorageCut::Dim:
    return "dim";
  case StorageCut::Flat:
    return "flat";
  case StorageCut::Buffer:
    return "buffer";
  }
  return "";
}

std::string shapeOf(const TypedModule &typed, const StoredParam &param) {
  std::string text;
  for (int64_t extent : localShape(typed.module.types[param.type], 0, typed.module.axes)) {
    text += (text.empty() ? "" : ", ") + std::to_string(extent);
  }
  return "[" + text + "]";
}

std::vector<std::string> lineOf(const TypedModule &typed, const StoredParam &param, llvm::StringRef view) {
  const StorageShare &share = param.rule.share;
  const CutRow row = cutRowOf(typed, param);
  const std::string over = row.ranks == 1 ? "-" : typed.module.axes.describe(share.over, view) + " (" + std::to_string(row.ranks) + ")";
  std::string cut = cutName(param.rule.cut).str();
  cut += param.rule.cut == StorageCut::Dim ? " " + std::to_string(param.rule.dim) : param.rule.each ? ", each of dim 0" : "";
  return {param.path, std::to_string(param.count), shapeOf(typed, param), cut, over, cutsText(row)};
}

} // namespace

void writeSlicesText(llvm::raw_ostream &out, const JobReport &job, llvm::StringRef view) {
  std::vector<std::vector<std::string>> table = {{"parameters", "n", "box of rank 0", "cut", "over", "elements+pad of each rank"}};
  std::vector<SourceRange> buffers;
  for (const StoredParam &param : job.report.slices) {
    std::vector<std::string> line = lineOf(*job.typed, param, view);
    if (param.rule.cut == StorageCut::Buffer) {
      if (llvm::is_contained(buffers, param.rule.range)) {
        continue;
      }
      buffers.push_back(param.rule.range);
      const auto together = llvm::count_if(job.report.slices, [&](const StoredParam &p) { return p.rule.range == param.rule.range; });
      line[0] = "all of " + param.rule.family;
      line[1] = std::to_string(together);
      line[2] = "[" + std::to_string(param.buffer) + "]";
    }
    table.push_back(std::move(line));
  }
  if (table.size() > 1) {
    out << "\noptimizer state\n";
    writeTable(out, table);
  }
}

void writeSlicesJson(llvm::json::OStream &json, const JobReport &job, llvm::StringRef view) {
  for (const StoredParam &param : job.report.slices) {
    const CutRow row = cutRowOf(*job.typed, param);
    const bool buffer = param.rule.cut == StorageCut::Buffer;
    json.object([&] {
      json.attribute("parameters", jsonText(param.path));
      json.attribute("count", param.count);
      json.attributeArray("box", [&] {
        for (int64_t extent : localShape(job.typed->module.types[param.type], 0, job.typed->module.axes)) {
          json.value(extent);
        }
      });
      json.attribute("cut", cutName(param.rule.cut));
      json.attribute("dim", param.rule.cut == StorageCut::Dim ? llvm::json::Value(param.rule.dim) : llvm::json::Value(nullptr));
      json.attribute("over", job.typed->module.axes.describe(param.rule.share.over, view));
      json.attribute("ranks", row.ranks);
      json.attribute("elements", row.elements);
      json.attribute("each", row.each);
      json.attribute("offset", buffer ? llvm::json::Value(param.before) : llvm::json::Value(nullptr));
    });
  }
}

} // namespace shardc
