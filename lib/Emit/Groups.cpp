// Groups: axes as lists of ranks. See the header. Only here do digits become ranks for a whole job.
#include "shardc/Emit/Groups.h"
#include "shardc/Emit/Json.h"

namespace shardc {
namespace {

constexpr size_t ShownGroups = 16; // of one axis in the text
constexpr int64_t ShownRanks = 64; // of one group

void writeGroup(llvm::raw_ostream &out, llvm::ArrayRef<int64_t> ranks, size_t most) {
  for (size_t i = 0; i < ranks.size() && i < most; ++i) {
    out << (i ? "," : "") << ranks[i];
  }
}

void writeAxis(llvm::raw_ostream &out, const Axes &axes, const Axis &axis) {
  const int64_t count = axes.world() / axis.size;
  out << "  " << axis.name << ": " << count << (count == 1 ? " group" : " groups") << " of " << axis.size << '\n';
  if (axis.size == 1) {
    return; // each rank by itself
  }
  const std::vector<std::vector<int64_t>> groups = axes.groups(axis.atoms);
  const size_t most = axis.size > ShownRanks ? 2 : ShownGroups;
  for (size_t g = 0; g < groups.size() && g < most; ++g) {
    out << (g % 4 == 0 ? "   " : "") << " {";
    writeGroup(out, groups[g], size_t(ShownRanks));
    out << (axis.size > ShownRanks ? ",...}" : "}") << (g % 4 == 3 || g + 1 == std::min(groups.size(), most) ? "\n" : "");
  }
  if (groups.size() > most) {
    out << "    and " << groups.size() - most << " more: `--format json` lists all\n";
  }
}

} // namespace

void writeGroupsText(llvm::raw_ostream &out, const Axes &axes) {
  for (const ViewSpec &view : axes.views()) {
    out << "mesh " << view.name << ':';
    for (const AxisSpec &axis : view.axes) {
      out << ' ' << axis.name << ' ' << axis.size;
    }
    out << '\n';
    for (const Axis &axis : axes.axes()) {
      if (!axis.flattened && axis.view == view.name) {
        writeAxis(out, axes, axis);
      }
    }
  }
  bool first = true;
  for (const Axis &axis : axes.axes()) {
    if (axis.flattened) {
      out << (first ? "flattened\n" : "");
      first = false;
      writeAxis(out, axes, axis);
    }
  }
}

void writeGroupsJson(llvm::raw_ostream &out, const JobReport &job) {
  llvm::json::OStream json(out, 2);
  json.object([&] {
    writeJsonHead(json);
    json.attribute("job", jsonText(job.job));
    json.attribute("verdict", verdictName(job.report.verdict));
    writeJsonFindings(json, job.diags);
    json.attributeObject("groups", [&] {
      if (!job.typed) {
        return;
      }
      const Axes &axes = job.typed->module.axes;
      for (const Axis &axis : axes.axes()) {
        json.attributeArray(axis.name, [&] {
          for (const std::vector<int64_t> &group : axes.groups(axis.atoms)) {
            json.rawValue([&](llvm::raw_ostream &raw) { // one line for each group
              raw << '[';
              writeGroup(raw, group, group.size());
              raw << ']';
            });
          }
        });
      }
    });
  });
  out << '\n';
}

} // namespace shardc
