// AxesBuilder: checks meshes as a person wrote them, and gives atoms their names.
//
// Every fault is reported where it was written and the rest is still read, so that one run shows all of them. The
// refinement itself is in Axes.cpp.
#include "AxesBuilder.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

namespace shardc {

namespace {

bool isName(llvm::StringRef text) {
  return !text.empty() && !llvm::isDigit(text.front()) && llvm::all_of(text, [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

std::string digitText(int64_t size, int64_t stride) {
  return std::to_string(size) + (size == 1 ? " rank" : " ranks") + " with stride " + std::to_string(stride);
}

} // namespace

bool Axes::Builder::readViews(Located<int64_t> world, llvm::ArrayRef<ViewSpec> views) {
  bool ok = true;
  if (world.value < 1) {
    diags.emit<Diag::OutOfRange>(world.range, "world", "at least 1", world.value);
    ok = false;
  }
  axes.worldSize = world.value;
  for (const ViewSpec &view : views) {
    axes.viewList.push_back(view);
    std::vector<Digit> read;
    const bool good = readSizes(view, read);
    // Sizes that are wrong themselves make any statement about the world noise.
    ok &= good && world.value >= 1 && covers(view, read);
    digits.push_back(std::move(read));
  }
  variantOf.resize(digits.size());
  return ok && agree();
}

bool Axes::Builder::readSizes(const ViewSpec &view, std::vector<Digit> &out) {
  bool ok = true;
  auto bad = [&](const AxisSpec &axis, const llvm::Twine &what) {
    diags.emit<Diag::BadAxis>(axis.range.valid() ? axis.range : view.range, axis.name, what.str());
    ok = false;
  };
  llvm::SmallVector<llvm::StringRef, 8> seen;
  for (const AxisSpec &axis : view.axes) {
    if (!isName(axis.name)) {
      bad(axis, "needs a name of letters, digits and `_` that does not begin with a digit");
    } else if (llvm::is_contained(seen, axis.name)) {
      bad(axis, "stands twice in `" + view.name + "`");
    }
    seen.push_back(axis.name);
    if (axis.size < 1) {
      bad(axis, "must have at least 1 rank, not " + llvm::Twine(axis.size));
    }
    if (axis.stride && *axis.stride < 1) {
      bad(axis, "must have a stride of at least 1, not " + llvm::Twine(*axis.stride));
    }
  }
  if (!ok) {
    return false;
  }
  // Row-major unless written: the stride of an axis is the product of the axes after it.
  out.resize(view.axes.size());
  int64_t stride = 1;
  for (size_t i = view.axes.size(); i-- > 0;) {
    const AxisSpec &axis = view.axes[i];
    out[i] = {axis.size, axis.stride.value_or(stride)};
    if (llvm::MulOverflow(stride, axis.size, stride)) {
      bad(axis, "makes more ranks than can be counted");
      return false;
    }
  }
  return true;
}

// The digits must name each rank exactly once: sorted by stride, each begins where the one before ends.
bool Axes::Builder::covers(const ViewSpec &view, llvm::ArrayRef<Digit> read) {
  int64_t ranks = 1;
  for (const Digit &d : read) {
    ranks *= d.size; // readSizes has counted them
  }
  if (ranks != axes.worldSize) {
    diags.emit<Diag::WorldMismatch>(view.range, view.name, ranks, axes.worldSize);
    return false;
  }
  llvm::SmallVector<uint32_t, 8> order;
  for (uint32_t i = 0; i < read.size(); ++i) {
    if (read[i].size > 1) {
      order.push_back(i);
    }
  }
  llvm::stable_sort(order, [&](uint32_t a, uint32_t b) { return read[a].stride < read[b].stride; });
  int64_t end = 1;
  for (uint32_t i : order) {
    if (read[i].stride != end) {
      const AxisSpec &axis = view.axes[i];
      diags.emit<Diag::BadAxis>(axis.range.valid() ? axis.range : view.range, axis.name,
                                "has stride " + std::to_string(read[i].stride) + " where `" + view.name + "` needs " + std::to_string(end) +
                                    " to name every rank once");
      return false;
    }
    end *= read[i].size;
  }
  return true;
}

// One name, one meaning: an axis of two views must be the same digit of the ranks.
bool Axes::Builder::agree() {
  bool ok = true;
  struct Seen {
    size_t view;
    size_t axis;
  };
  std::vector<Seen> seen;
  for (size_t v = 0; v < digits.size(); ++v) {
    for (size_t a = 0; a < digits[v].size(); ++a) {
      const AxisSpec &axis = axes.viewList[v].axes[a];
      auto same = [&](const Seen &s) { return axes.viewList[s.view].axes[s.axis].name == axis.name; };
      auto it = llvm::find_if(seen, same);
      if (it == seen.end()) {
        seen.push_back({v, a});
        continue;
      }
      const Digit &first = digits[it->view][it->axis];
      const Digit &now = digits[v][a];
      if (first.size != now.size || (now.size > 1 && first.stride != now.stride)) {
        const ViewSpec &before = axes.viewList[it->view];
        diags
            .emit<Diag::AxisConflict>(axis.range.valid() ? axis.range : axes.viewList[v].range, axis.name, digitText(now.size, now.stride),
                                      axes.viewList[v].name, digitText(first.size, first.stride), before.name)
            .label(before.axes[it->axis].range, "the other meaning");
        ok = false;
      }
    }
  }
  return ok;
}

void Axes::Builder::nameAxes() {
  for (size_t v = 0; v < digits.size(); ++v) {
    for (size_t a = 0; a < digits[v].size(); ++a) {
      const AxisSpec &spec = axes.viewList[v].axes[a];
      if (!axes.find(spec.name)) {
        axes.axisList.push_back({spec.name, spec.size, atomsOf(v, digits[v][a]), false, spec.name == "pp", axes.viewList[v].name});
      }
    }
  }
}

bool Axes::Builder::nameFlats(llvm::ArrayRef<FlatSpec> flats) {
  bool ok = true;
  for (const FlatSpec &flat : flats) {
    ok &= nameFlat(flat);
  }
  return ok;
}

bool Axes::Builder::nameFlat(const FlatSpec &flat) {
  if (!isName(flat.name)) {
    diags.emit<Diag::BadAxis>(flat.range, flat.name, "needs a name of letters, digits and `_` that does not begin with a digit");
    return false;
  }
  bool ok = true;
  Axis axis{flat.name, 1, {}, true, false, {}};
  for (const std::string &name : flat.axes) {
    const Axis *member = axes.find(name);
    if (!member) {
      DiagnosticBuilder builder = diags.emit<Diag::UnknownName>(flat.range, name, "an axis");
      if (llvm::StringRef near = nearest(name, axes.axisNames()); !near.empty()) {
        builder.help("did you mean `" + near.str() + "`?");
      }
      ok = false;
      continue;
    }
    ok &= appendMember(flat, *member, axis);
  }
  if (!ok) {
    return false;
  }
  if (const Axis *taken = axes.find(flat.name)) {
    // A view may name the product itself (fsdp in one view, dp_shard and cp in another); the name must then mean the same.
    if (taken->atoms != axis.atoms) {
      diags.emit<Diag::BadAxis>(flat.range, flat.name, "is named already and means other ranks there");
      return false;
    }
    return true;
  }
  axes.axisList.push_back(std::move(axis));
  return true;
}

bool Axes::Builder::appendMember(const FlatSpec &flat, const Axis &member, Axis &axis) {
  for (AtomId id : member.atoms) {
    const Atom &atom = axes.atom(id);
    for (AtomId before : axis.atoms) {
      const Atom &other = axes.atom(before);
      const char *fault = nullptr;
      if (before == id) {
        fault = "overlaps";
      } else if (other.block == atom.block && other.variant != atom.variant) {
        fault = "cuts the same ranks differently than";
      } else if (other.stride < atom.stride) {
        fault = "stands outside of";
      }
      if (fault) {
        diags.emit<Diag::BadAxis>(flat.range, flat.name,
                                  "cannot be a product: `" + member.name + "` " + fault + " what is named before it (outermost first)");
        return false;
      }
    }
  }
  axis.atoms.append(member.atoms.begin(), member.atoms.end());
  axis.size *= member.size;
  return true;
}

} // namespace shardc
