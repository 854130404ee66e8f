// Resume: what one job has saved against what another reads.
//
// A checkpoint that is put together before it is read (a whole) fits any degrees as long as names and shapes agree; how a loader
// cuts it again is the loading job's own matter (reportSlices). Where each rank reads the file that it wrote itself, boxes and
// slices must be the same rank by rank. A checkpoint is no better than the copy it was taken from.
#include "shardc/Verify/Slices.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

namespace shardc {
namespace {

// One parameter's name with the numbers of layers left out, and how often it occurs.
struct Kind {
  std::string shape; // global: "[8, 14336, 4096]"
  int64_t count = 0;
  SourceRange place;
};

std::string shapeText(const Type &type) {
  std::string text;
  for (const Dim &dim : type.dims) {
    int64_t extent = dim.concat ? 0 : 1;
    bool known = true;
    for (const Factor &f : dim.factors) {
      known &= f.extent >= 0 &&
               !(dim.concat ? __builtin_add_overflow(extent, f.extent, &extent) : __builtin_mul_overflow(extent, f.extent, &extent));
    }
    text += (text.empty() ? "" : ", ") + (known ? std::to_string(extent) : std::string("?"));
  }
  return "[" + text + "]";
}

// Numbers of layers become `*`; the k-th layer of one kind is the k-th of the other.
std::map<std::string, Kind> kindsOf(const TypedModule &typed) {
  std::map<std::string, Kind> kinds;
  walk(typed, [&](llvm::StringRef path, const Instance &instance) {
    const Function &f = typed.module.function(instance.function);
    for (ValueId p : f.params) {
      const Value &value = f.values[p.index];
      if (!value.declared.valid()) {
        continue;
      }
      std::string name;
      for (llvm::StringRef part : llvm::split((path + (path.empty() ? "" : ".") + typed.module.names.str(value.name)).str(), '.')) {
        const bool number = !part.empty() && llvm::all_of(part, llvm::isDigit);
        name += (name.empty() ? "" : ".") + (number ? std::string("*") : part.str());
      }
      Kind &kind = kinds[name];
      kind.shape = shapeText(typed.module.types[value.declared]);
      kind.place = value.range;
      ++kind.count;
    }
    return true;
  });
  return kinds;
}

class Comparison {
public:
  Comparison(const TypedModule &s, const TypedModule &l, DiagnosticEngine &d) : saved(s), loaded(l), diags(d) {}

  void run() {
    compareNames();
    const std::optional<StoragePlan> &from = saved.module.storage, &to = loaded.module.storage;
    if (from && to) {
      if (from->form == StorageForm::Files && to->form == StorageForm::Files) {
        compareMetadata(*from, *to);
        compareFiles();
      } else if (from->form != to->form && to->form == StorageForm::Files) { // files can be put together, a whole is no rank's file
        diags.emit<Diag::CheckpointForm>(SourceRange(), from->name, to->name);
      }
    }
    reportDrift();
  }

private:
  void compareNames() {
    const std::map<std::string, Kind> there = kindsOf(saved), here = kindsOf(loaded);
    for (const auto &[name, kind] : here) {
      const auto other = there.find(name);
      if (other == there.end() || other->second.count < kind.count) {
        const int64_t missing = kind.count - (other == there.end() ? 0 : other->second.count);
        diags.emit<Diag::CheckpointLacks>(kind.place, name).count(missing, "parameters");
      } else if (other->second.shape != kind.shape) {
        diags.emit<Diag::CheckpointShape>(kind.place, name, kind.shape, other->second.shape).count(kind.count, "parameters");
      }
      if (other != there.end() && other->second.count > kind.count) {
        diags.emit<Diag::CheckpointUnread>(kind.place, name).count(other->second.count - kind.count, "parameters");
      }
    }
    for (const auto &[name, kind] : there) {
      if (!here.count(name)) {
        diags.emit<Diag::CheckpointUnread>(SourceRange(), name).count(kind.count, "parameters");
      }
    }
  }

  void compareMetadata(const StoragePlan &from, const StoragePlan &to) {
    for (const auto &[name, value] : to.metadata) {
      const auto other = llvm::find_if(from.metadata, [&, n = llvm::StringRef(name)](const auto &entry) { return entry.first == n; });
      if (other != from.metadata.end() && other->second != value) {
        diags.emit<Diag::CheckpointMetadata>(SourceRange(), name, other->second, value).help("resume with " + name + " " + other->second);
      }
    }
  }

  // Every rank must find its own elements under its own name.
  void compareFiles() {
    const Axes &a = saved.module.axes, &b = loaded.module.axes;
    if (a.world() != b.world()) {
      diags.emit<Diag::CheckpointWorld>(SourceRange(), b.world(), a.world()).help(llvm::formatv("resume with world {0}", a.world()).str());
      return;
    }
    std::map<std::string, const StoredParam *> there;
    const std::vector<StoredParam> from = storedParams(saved, {}), to = storedParams(loaded, {});
    for (const StoredParam &param : from) {
      there.try_emplace(param.path, &param);
    }
    std::vector<SourceRange> told; // one finding per rule of storage
    for (const StoredParam &param : to) {
      const auto other = there.find(param.path);
      if (other == there.end() || llvm::is_contained(told, param.rule.range)) {
        continue;
      }
      if (const std::optional<int64_t> rank = firstDifference(*other->second, param)) {
        const Slice was = sliceOf(saved, *other->second, *rank), is = sliceOf(loaded, param, *rank);
        diags
            .emit<Diag::CheckpointSlices>(param.rule.decided.valid() ? param.rule.decided : param.place, *rank, param.path, sliceText(was),
                                          sliceText(is))
            .note("each rank reads the file that it wrote itself");
        told.push_back(param.rule.range);
      }
    }
  }

  std::optional<int64_t> firstDifference(const StoredParam &was, const StoredParam &is) const {
    for (int64_t rank = 0; rank < loaded.module.axes.world(); ++rank) {
      const Slice a = sliceOf(saved, was, rank), b = sliceOf(loaded, is, rank);
      if (a.box != b.box || !(a.cut == b.cut)) {
        return rank;
      }
    }
    return std::nullopt;
  }

  static std::string sliceText(const Slice &slice) {
    std::string box;
    for (const Range &r : slice.box) {
      box += (box.empty() ? "" : ", ") + llvm::formatv("{0}:{1}", r.begin, r.end).str();
    }
    const std::string pad = slice.cut.pad > 0 ? llvm::formatv(" and a pad of {0}", slice.cut.pad).str() : "";
    return llvm::formatv("elements {0}:{1} of [{2}]{3}", slice.cut.elements.begin, slice.cut.elements.end, box, pad).str();
  }

  // Copies that no reduction kept equal: one of them was saved, and nothing brings the others' share back.
  void reportDrift() {
    if (!saved.module.sync || llvm::any_of(saved.instances, [](const Instance &i) { return i.failed; })) {
      return;
    }
    SourceManager nowhere;
    DiagnosticEngine ignored(nowhere); // said where the saving job is checked
    const Axes &axes = saved.module.axes;
    for (const SyncRow &row : synchronise(saved, inferGradients(saved, ignored), &*saved.module.sync)) {
      if (row.verdict == SyncVerdict::Missing) {
        diags
            .emit<Diag::CheckpointDrifted>(SourceRange(), row.parameters, axes.product(row.atoms),
                                           axes.describe(row.atoms, saved.module.view))
            .count(row.count, "parameters");
      }
    }
  }

  const TypedModule &saved, &loaded;
  DiagnosticEngine &diags;
};

} // namespace

void compareCheckpoints(const TypedModule &saved, const TypedModule &loaded, DiagnosticEngine &diags) {
  Comparison(saved, loaded, diags).run();
}

} // namespace shardc
