// SlicesReport: what is said about slices that do not tile a parameter, or of which a loader takes others.
//
// Not here: two jobs, one that saves and one that loads (Resume.cpp).
#include "shardc/Verify/Slices.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace shardc {

std::string cutsText(const CutRow &row) {
  constexpr int64_t Most = 6, Front = 3;
  std::string text;
  for (int64_t i = 0; i < row.ranks; ++i) {
    if (row.ranks > Most && i == Front) {
      text += ", ...";
      i = row.ranks - 1;
    }
    const Cut cut = row.at(i);
    text += (text.empty() ? "" : ", ") + std::to_string(cut.elements.size());
    text += cut.pad == 0 ? "" : "+" + std::to_string(cut.pad);
  }
  return text;
}

// "15 and 15", pads counted in.
static std::string sizesText(const CutRow &row) {
  const std::string each = std::to_string(row.each);
  return row.ranks == 1 ? each : row.ranks == 2 ? each + " and " + each : std::to_string(row.ranks) + " x " + each;
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
  CutRow kept, taken;
  std::vector<std::string> others;
  int64_t count;
};

void report(const Mismatch &m, DiagnosticEngine &diags) {
  const StoredParam &param = *m.param;
  int64_t first = 0;
  while (first + 1 < std::min(m.kept.ranks, m.taken.ranks) && m.kept.at(first).elements == m.taken.at(first).elements) {
    ++first;
  }
  const Cut kept = m.kept.at(first), taken = m.taken.at(first);
  const StorageShare &store = param.rule.share, &load = *param.rule.load;
  DiagnosticBuilder b = diags.emit<Diag::SlicesNotLoaded>(placeOf(param), param.path, sizesText(m.kept), sizesText(m.taken));
  b.note(llvm::formatv("the store pads {0} elements to a multiple of {1} (`{2}`), the loader to one of {3} (`{4}`)", m.kept.elements,
                       store.multiple, store.padText, load.multiple, load.padText)
             .str());
  b.note(llvm::formatv("rank {0} of its group keeps {1} and would get {2}{3}", first, rangeText(kept.elements), rangeText(taken.elements),
                       taken.pad > 0 ? llvm::formatv(" and a pad of {0}", taken.pad).str() : std::string())
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

// A dimension behind the first that its ranks do not divide, where that is refused.
static bool isUneven(const TypedModule &typed, const StoredParam &param) {
  const CutRow row = cutRowOf(typed, param);
  return param.rule.cut == StorageCut::Dim && param.rule.even && param.rule.dim > 0 && row.elements % row.ranks != 0;
}

void reportSlices(const TypedModule &typed, llvm::ArrayRef<StoredParam> params, DiagnosticEngine &diags) {
  std::vector<Mismatch> mismatches;
  for (const StoredParam &param : params) {
    const size_t dims = typed.module.types[param.type].dims.size();
    if (param.rule.cut == StorageCut::Dim && size_t(param.rule.dim) >= dims) {
      diags.emit<Diag::BadShardDim>(param.rule.range, param.path, param.rule.dim,
                                    llvm::formatv("{0} dimension{1}", dims, dims == 1 ? "" : "s"));
      continue;
    }
    if (isUneven(typed, param)) {
      const CutRow row = cutRowOf(typed, param);
      diags
          .emit<Diag::UnevenShardDim>(placeOf(param), param.path, param.rule.dim, row.elements,
                                      llvm::formatv("`{0}` ({1} ranks)", param.rule.share.overText, row.ranks).str())
          .count(param.count, "parameters");
    }
    if (const std::optional<Untiled> hole = findUntiled(typed, param)) {
      DiagnosticBuilder b = diags.emit<Diag::SlicesDoNotTile>(placeOf(param), param.path, rangeText(hole->elements),
                                                              hole->twice ? "two ranks" : "no rank", param.rule.share.overText);
      b.help("cut only over ranks that hold the same part of the parameter");
      if (param.count > 1) {
        b.count(param.count, "parameters");
      }
      continue;
    }
    Mismatch one{&param, cutRowOf(typed, param), cutRowOf(typed, param, true), {}, param.count};
    if (one.kept == one.taken) {
      continue;
    }
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
    report(m, diags);
  }
}

} // namespace shardc
