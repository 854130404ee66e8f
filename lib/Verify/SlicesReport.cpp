// SlicesReport: what is said about slices that do not tile a parameter, or of which a loader takes others.
//
// Not here: two jobs, one that saves and one that loads (Resume.cpp).
#include "shardc/Verify/Slices.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace shardc {

std::string cutsText(llvm::ArrayRef<Cut> cuts) {
  constexpr size_t Most = 6, Front = 3;
  std::string text;
  for (size_t i = 0; i < cuts.size(); ++i) {
    if (cuts.size() > Most && i == Front) {
      text += ", ...";
      i = cuts.size() - 1;
    }
    text += (text.empty() ? "" : ", ") + std::to_string(cuts[i].elements.size());
    text += cuts[i].pad == 0 ? "" : "+" + std::to_string(cuts[i].pad);
  }
  return text;
}

// "15 and 15", pads counted in.
static std::string sizesText(llvm::ArrayRef<Cut> cuts) {
  const auto size = [&](size_t i) { return std::to_string(cuts[i].elements.size() + cuts[i].pad); };
  if (cuts.size() == 1) {
    return size(0);
  }
  if (cuts.size() == 2) {
    return size(0) + " and " + size(1);
  }
  return size(0) + ", " + size(1) + (cuts.size() > 3 ? ", ..., " : " and ") + size(cuts.size() - 1);
}

static std::string rangeText(const Range &r) {
  return r.size() == 0 ? "nothing" : llvm::formatv("elements {0} to {1}", r.begin, r.end - 1).str();
}

static SourceRange placeOf(const StoredParam &param) {
  return param.rule.decided.valid() ? param.rule.decided : param.rule.range.valid() ? param.rule.range : param.place;
}

// Parameters of one rule whose state is kept and taken in the same wrong way are one finding.
namespace {

struct Mismatch {
  const StoredParam *param;
  std::string kept, taken;
  std::vector<std::string> others;
  int64_t count;
};

void report(const TypedModule &typed, const Mismatch &m, DiagnosticEngine &diags) {
  const StoredParam &param = *m.param;
  const std::vector<Cut> kept = cutsOf(typed, param), taken = cutsOf(typed, param, true);
  size_t first = 0;
  while (first + 1 < std::min(kept.size(), taken.size()) && kept[first].elements == taken[first].elements) {
    ++first;
  }
  const StorageShare &store = param.rule.share, &load = *param.rule.load;
  DiagnosticBuilder b = diags.emit<Diag::SlicesNotLoaded>(placeOf(param), param.path, m.kept, m.taken);
  b.note(llvm::formatv("the store pads {0} elements to a multiple of {1} (`{2}`), the loader to one of {3} (`{4}`)",
                       kept.back().elements.end, store.multiple, store.padText, load.multiple, load.padText)
             .str());
  b.note(llvm::formatv("rank {0} of its group keeps {1} and would get {2}{3}", first, rangeText(kept[first].elements),
                       rangeText(taken[first].elements),
                       taken[first].pad > 0 ? llvm::formatv(" and a pad of {0}", taken[first].pad).str() : std::string())
             .str());
  if (!m.others.empty()) {
    b.note("the same of `" + llvm::join(m.others, "`, `") + "`");
  }
  b.help("pad for the ranks that share the state: `" + store.overText + "`");
  if (m.count > 1) {
    b.count(m.count, "parameters");
  }
}

} // namespace

void reportSlices(const TypedModule &typed, const std::vector<StoredParam> &params, DiagnosticEngine &diags) {
  std::vector<Mismatch> mismatches;
  for (const StoredParam &param : params) {
    if (const std::optional<Untiled> hole = findUntiled(typed, param)) {
      DiagnosticBuilder b = diags.emit<Diag::SlicesDoNotTile>(placeOf(param), param.path, rangeText(hole->elements),
                                                              hole->twice ? "two ranks" : "no rank", param.rule.share.overText);
      b.help("cut only over ranks that hold the same part of the parameter");
      if (param.count > 1) {
        b.count(param.count, "parameters");
      }
      continue;
    }
    if (!param.rule.load || cutsOf(typed, param) == cutsOf(typed, param, true)) {
      continue;
    }
    Mismatch one{&param, sizesText(cutsOf(typed, param)), sizesText(cutsOf(typed, param, true)), {}, param.count};
    const auto known = llvm::find_if(mismatches, [&](const Mismatch &m) {
      return m.param->rule.range == param.rule.range && m.kept == one.kept && m.taken == one.taken;
    });
    if (known == mismatches.end()) {
      mismatches.push_back(std::move(one));
    } else {
      known->others.push_back(param.path);
      known->count += param.count;
    }
  }
  for (const Mismatch &m : mismatches) {
    report(typed, m, diags);
  }
}

} // namespace shardc
