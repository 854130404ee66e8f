// Resume: what one job has saved against what another reads.
//
// The problem. Two jobs with other degrees, frameworks' versions or models: does each rank of the second find, under a parameter's
// name, the elements that it is to have? Ranks and elements are too many to list.
//
// What we do. How a framework reads is data (StoragePlan). A checkpoint that is put together by name before it is read fits any
// degrees, as long as names and shapes agree; how a loader cuts it again is the loading job's own matter (reportSlices). Where
// ranks read files as ranks wrote them, the degrees that number the files must agree, and then slices are compared rank by rank,
// unless both sides are the same rule over the same digits. A checkpoint is no better than the copy it was taken from.
//
// Why it ends and what it costs. A step per parameter; where two sides are cut differently, a step per rank and kind of parameter
// up to the first that differs.
#include "shardc/Verify/Slices.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <map>
#include <set>

namespace shardc {
namespace {

// What is saved under one name.
struct Saved {
  std::string shape; // global: "[8, 14336, 4096]"
  DType dtype{};
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

std::map<std::string, Saved> savedOf(const TypedModule &typed) {
  std::map<std::string, Saved> all;
  const std::optional<StoragePlan> &plan = typed.module.storage;
  walk(typed, [&](llvm::StringRef path, const Instance &instance) {
    const Function &f = typed.module.function(instance.function);
    for (ValueId p : f.params) {
      const Value &value = f.values[p.index];
      if (value.declared.valid()) {
        const Type &type = typed.module.types[value.declared];
        const DType dtype = plan && plan->dtype && isFloat(type.dtype) ? *plan->dtype : type.dtype;
        all[(path + (path.empty() ? "" : ".") + typed.module.names.str(value.name)).str()] = {shapeText(type), dtype, value.range};
      }
    }
    return true;
  });
  return all;
}

// The names that one finding is about: one by itself, or the kind that they are of; of several kinds the first stands for all.
struct Names {
  std::string text;
  int64_t count = 0;
  SourceRange place;

  void add(const std::string &name, SourceRange at) {
    const bool first = count++ == 0;
    text = first ? name : kindOf(text) == kindOf(name) ? kindOf(name) : text;
    place = first ? at : place;
  }
};

class Comparison {
public:
  Comparison(const CheckpointSide &s, const CheckpointSide &l, SourceRange p, DiagnosticEngine &d)
      : saved(s.typed), loaded(l.typed), drifted(s.gradients), reading(l.gradients), place(p), diags(d) {}

  std::string run() {
    if (tooManyModules(saved) || tooManyModules(loaded)) {
      diags.emit<Diag::TooManyPaths>(place, MostModules);
      return "not looked at";
    }
    compareNames();
    const std::optional<StoragePlan> &from = saved.module.storage, &to = loaded.module.storage;
    std::string how = "put together by name, whatever the degrees";
    if (!from || !to) { // a graph file without any, or inference
      how = "compared by names and shapes alone: nobody says which ranks read what";
    } else if (from->framework != to->framework) {
      diags.emit<Diag::CheckpointForm>(place, from->name, to->name)
          .help("convert the checkpoint, and check the job that is to read it alone");
    } else if (!to->files.empty()) {
      how = readingOf(*to);
      const size_t errors = diags.errorCount();
      compareMarks(*from, *to);
      compareFiles(*to, diags.errorCount() > errors);
    }
    reportDrift();
    return how;
  }

private:
  // A place in a file of the user's; what is shipped is nobody's mistake.
  SourceRange placeOf(SourceRange range) const {
    const bool shipped = !range.valid() || diags.sources().name(range.file).starts_with("shardc:");
    return shipped ? place : range;
  }

  // One finding for what is alike but for numbers of layers.
  void compareNames() {
    using Key = std::tuple<std::string, std::string, std::string>; // kind, what it is here and there
    std::map<Key, Names> missing, unread, shapes, dtypes;
    const std::map<std::string, Saved> there = savedOf(saved), here = savedOf(loaded);
    for (const auto &[name, is] : here) {
      const auto other = there.find(name);
      if (other == there.end()) {
        missing[{kindOf(name), is.shape, ""}].add(name, is.place);
      } else if (other->second.shape != is.shape) {
        shapes[{kindOf(name), is.shape, other->second.shape}].add(name, is.place);
      } else if (other->second.dtype != is.dtype) {
        dtypes[{"", dtypeName(is.dtype).str(), dtypeName(other->second.dtype).str()}].add(name, is.place);
      }
    }
    for (const auto &[name, was] : there) {
      if (!here.count(name)) {
        unread[{kindOf(name), was.shape, ""}].add(name, was.place);
      }
    }
    for (const auto &[key, names] : missing) {
      diags.emit<Diag::CheckpointLacks>(placeOf(names.place), names.text).count(names.count, "parameters");
    }
    for (const auto &[key, names] : shapes) {
      diags.emit<Diag::CheckpointShape>(placeOf(names.place), names.text, std::get<1>(key), std::get<2>(key))
          .count(names.count, "parameters");
    }
    for (const auto &[key, names] : dtypes) {
      diags.emit<Diag::CheckpointDtype>(placeOf(names.place), names.text, std::get<1>(key), std::get<2>(key))
          .count(names.count, "parameters");
    }
    for (const auto &[key, names] : unread) {
      diags.emit<Diag::CheckpointUnread>(placeOf(names.place), names.text).count(names.count, "parameters");
    }
  }

  void compareMarks(const StoragePlan &from, const StoragePlan &to) {
    for (const StorageMark &mark : to.marks) {
      const auto other = llvm::find_if(from.marks, [&](const StorageMark &m) { return m.name == mark.name; });
      const std::string was = other == from.marks.end() ? "none" : other->value;
      if (was != mark.value) {
        reportMark(mark.name, was, mark.value, mark.decided, other == from.marks.end() ? SourceRange() : other->decided);
      }
    }
    for (const StorageMark &mark : from.marks) {
      if (llvm::none_of(to.marks, [&](const StorageMark &m) { return m.name == mark.name; })) {
        reportMark(mark.name, mark.value, "none", {}, mark.decided);
      }
    }
  }

  void reportMark(const std::string &name, const std::string &was, const std::string &is, SourceRange here, SourceRange there) {
    DiagnosticBuilder b = diags.emit<Diag::CheckpointMetadata>(placeOf(here), name, was, is);
    if (placeOf(there) != place) {
      b.label(there, "saved with " + name + " " + was);
    }
    b.help(was == "none" ? "save with the same " + name : "resume with " + name + " " + was);
  }

  static std::string readingOf(const StoragePlan &plan) {
    std::vector<std::string> how;
    for (const StorageFiles &files : plan.files) {
      const std::string axes = namesOf(files);
      how.push_back(axes.empty() ? "from one file" : "by each rank from the file of its own " + axes);
    }
    how.erase(std::unique(how.begin(), how.end()), how.end());
    return "read " + llvm::join(how, ", ");
  }

  // Every rank must find its own elements under its own name. Nothing to look for where what is kept beside them says no.
  void compareFiles(const StoragePlan &plan, bool refused) {
    const std::vector<StoredParam> from = storedParams(saved, drifted, Listing::Each), to = storedParams(loaded, reading, Listing::Each);
    std::map<std::string, const StoredParam *> there;
    for (const StoredParam &param : from) {
      there.try_emplace(param.path, &param);
    }
    std::set<std::string> unequal; // axes whose degrees differ
    std::vector<SourceRange> told; // one finding per rule of storage
    for (const StorageFiles &files : refused ? llvm::ArrayRef<StorageFiles>() : llvm::ArrayRef(plan.files)) {
      if (!sameDegrees(files, unequal)) {
        continue;
      }
      for (const StoredParam &param : to) {
        const auto other = there.find(param.path);
        if (other != there.end() && filesOf(plan, param) == &files && !llvm::is_contained(told, param.rule.range) &&
            !compareSlices(files, from, *other->second, to, param)) {
          told.push_back(param.rule.range);
        }
      }
    }
  }

  static std::string namesOf(const StorageFiles &files) {
    std::string names;
    for (const Located<std::string> &axis : files.axes) {
      names += (names.empty() ? "`" : ", `") + axis.value + "`";
    }
    return names;
  }

  static const StorageFiles *filesOf(const StoragePlan &plan, const StoredParam &param) {
    for (const StorageFiles &files : plan.files) {
      if (llvm::any_of(files.patterns, [&](const std::string &p) { return matchesPattern(param.path, p); })) {
        return &files;
      }
    }
    return nullptr;
  }

  static llvm::SmallVector<AtomId, 4> atomsOf(const Axes &axes, llvm::StringRef name) {
    return axes.findAtoms(name).value_or(llvm::SmallVector<AtomId, 4>());
  }

  // Files are numbered by coordinates: another degree, and the numbers mean something else.
  bool sameDegrees(const StorageFiles &files, std::set<std::string> &unequal) {
    const Axes &a = saved.module.axes, &b = loaded.module.axes;
    bool same = true;
    int64_t written = 1, read = 1;
    for (const Located<std::string> &axis : files.axes) {
      const int64_t was = a.product(atomsOf(a, axis.value)), is = b.product(atomsOf(b, axis.value));
      written *= was;
      read *= is;
      same &= was == is;
    }
    if (!same && written == a.world() && read == b.world() && written != read) {
      if (unequal.insert("world").second) {
        diags.emit<Diag::CheckpointWorld>(place, read, written).help(llvm::formatv("resume with world {0}", written).str());
      }
      return false;
    }
    for (const Located<std::string> &axis : files.axes) {
      const int64_t was = a.product(atomsOf(a, axis.value)), is = b.product(atomsOf(b, axis.value));
      if (was != is && unequal.insert(axis.value).second) {
        diags.emit<Diag::CheckpointMetadata>(placeOf(axis.range), axis.value, was, is)
            .note("files are numbered by " + namesOf(files))
            .help(llvm::formatv("resume with {0} {1}", axis.value, was).str());
      }
    }
    return same;
  }

  // The rank that wrote the file which `rank` reads. Axes may share digits, which are then the same.
  int64_t writerOf(const StorageFiles &files, int64_t rank) const {
    const Axes &a = saved.module.axes, &b = loaded.module.axes;
    int64_t writer = 0;
    for (const Located<std::string> &axis : files.axes) {
      int64_t index = b.coordinate(rank, atomsOf(b, axis.value));
      const llvm::SmallVector<AtomId, 4> atoms = atomsOf(a, axis.value);
      for (AtomId atom : llvm::reverse(atoms)) {
        const Atom &digit = a.atom(atom);
        writer += (index % digit.size - a.coordinate(writer, atom)) * digit.stride;
        index /= digit.size;
      }
    }
    return writer;
  }

  // Nothing to look for: the same digits of the same ranks cut the same extents.
  bool cutAlike(const StoredParam &was, const StoredParam &is) const {
    const Axes &a = saved.module.axes, &b = loaded.module.axes;
    const auto sameDigits = [&](llvm::ArrayRef<AtomId> x, llvm::ArrayRef<AtomId> y) {
      return x.size() == y.size() && llvm::all_of(llvm::zip(x, y), [&](const auto &pair) {
               const Atom &p = a.atom(std::get<0>(pair)), &q = b.atom(std::get<1>(pair));
               return p.size == q.size && p.stride == q.stride;
             });
    };
    const auto sameFactors = [&](const auto &dims) {
      const Dim &x = std::get<0>(dims), &y = std::get<1>(dims);
      return x.factors.size() == y.factors.size() && llvm::all_of(llvm::zip(x.factors, y.factors), [&](const auto &pair) {
               const Factor &p = std::get<0>(pair), &q = std::get<1>(pair);
               return p.extent == q.extent && p.padTo == q.padTo && p.split == q.split && sameDigits(p.atoms, q.atoms);
             });
    };
    const Type &x = saved.module.types[was.type], &y = loaded.module.types[is.type];
    return a.world() == b.world() && was.rule.cut == is.rule.cut && was.rule.share.multiple == is.rule.share.multiple &&
           was.rule.dim == is.rule.dim && was.before == is.before && was.buffer == is.buffer && x.dims.size() == y.dims.size() &&
           sameDigits(was.rule.share.over, is.rule.share.over) && llvm::all_of(llvm::zip(x.dims, y.dims), sameFactors);
  }

  bool compareSlices(const StorageFiles &files, llvm::ArrayRef<StoredParam> from, const StoredParam &was, llvm::ArrayRef<StoredParam> to,
                     const StoredParam &is) {
    if (cutAlike(was, is)) {
      return true;
    }
    for (int64_t rank = 0; rank < loaded.module.axes.world(); ++rank) {
      const Slice written = sliceOf(saved, from, was, writerOf(files, rank)), read = sliceOf(loaded, to, is, rank);
      if (!(written == read)) {
        diags
            .emit<Diag::CheckpointSlices>(placeOf(is.rule.decided.valid() ? is.rule.decided : is.place), rank, is.path,
                                          sliceText(written, was), sliceText(read, is))
            .note(llvm::formatv("rank {0} reads the file that rank {1} wrote", rank, writerOf(files, rank)).str());
        return false;
      }
    }
    return true;
  }

  static std::string sliceText(const Slice &slice, const StoredParam &param) {
    std::string box;
    for (const Range &r : slice.box) {
      box += (box.empty() ? "" : ", ") + llvm::formatv("{0}:{1}", r.begin, r.end).str();
    }
    const std::string pad = slice.cut.pad > 0 ? llvm::formatv(" and a pad of {0}", slice.cut.pad).str() : "";
    const char *what = param.rule.cut == StorageCut::Dim ? "rows" : "elements";
    return llvm::formatv("{0} {1}:{2} of [{3}]{4}", what, slice.cut.elements.begin, slice.cut.elements.end, box, pad).str();
  }

  // Copies that no reduction kept equal: one of them was saved, and nothing brings the others' share back.
  void reportDrift() {
    const Axes &axes = saved.module.axes;
    for (const SyncRow &row : drifted) {
      if (row.verdict == SyncVerdict::Missing) {
        diags
            .emit<Diag::CheckpointDrifted>(placeOf(row.parameter), row.parameters, axes.product(row.atoms),
                                           axes.describe(row.atoms, saved.module.view))
            .count(row.count, "parameters");
      }
    }
  }

  const TypedModule &saved, &loaded;
  llvm::ArrayRef<SyncRow> drifted, reading;
  SourceRange place;
  DiagnosticEngine &diags;
};

} // namespace

std::string compareCheckpoints(const CheckpointSide &saved, const CheckpointSide &loaded, SourceRange place, DiagnosticEngine &diags) {
  return Comparison(saved, loaded, place, diags).run();
}

} // namespace shardc
