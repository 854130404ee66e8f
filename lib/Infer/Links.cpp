// Links of a function, and the look ahead for new dimensions: the value is followed forward through operations that pass the
// dimension on, until one has another operand that is typed. At most 64 values are looked at.
#include "Links.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc {
namespace {

// Place of a factor in a pattern, counted from the end; 0 if absent. `star` counts on beyond the pattern.
uint32_t placeFromEnd(llvm::ArrayRef<RuleDim> pattern, uint8_t factor) {
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (llvm::is_contained(pattern[i].factors, factor) && !pattern[i].isStar()) {
      return uint32_t(pattern.size() - i);
    }
  }
  return 0;
}

// Where the dimension `fromEnd` of operand `self` stands in operand `other` (or the first result), 0 if nowhere.
uint32_t samePlace(const Op &op, size_t self, size_t other, uint32_t fromEnd) {
  const OpInfo &info = opInfo(op.kind);
  if (op.kind == OpKind::Concat) {
    return fromEnd;
  }
  if (info.typing != Typing::Row || self >= opRule(op.kind).operands.size()) {
    return 0;
  }
  const Rule &rule = opRule(op.kind);
  llvm::ArrayRef<RuleDim> from = rule.operands[self];
  llvm::ArrayRef<RuleDim> to(other == ~size_t(0) ? rule.results[0] : rule.operands[other]);
  if (fromEnd <= from.size() && !from[from.size() - fromEnd].isStar()) {
    return placeFromEnd(to, from[from.size() - fromEnd].factors.back());
  }
  bool bothStars = !from.empty() && from[0].isStar() && !to.empty() && to[0].isStar();
  return bothStars ? uint32_t(fromEnd - (from.size() - 1) + (to.size() - 1)) : 0;
}

} // namespace

Links linkFunction(const Function &f) {
  Links l;
  l.definers.assign(f.values.size(), NoOp);
  l.users.resize(f.values.size());
  for (uint32_t i = 0; i < f.ops.size(); ++i) {
    for (uint32_t r = 0; r < f.ops[i].numResults; ++r) {
      l.definers[f.ops[i].firstResult + r] = i;
    }
    for (ValueId v : f.operandsOf(f.ops[i])) {
      l.users[v.index].push_back(i);
    }
  }
  return l;
}

llvm::SmallVector<AtomId, 4> wantedSharding(const Module &module, const Function &f, const Links &links, llvm::ArrayRef<TypeId> types,
                                            ValueId value, uint32_t fromEnd) {
  constexpr size_t MostAhead = 64; // values; the dimension's first users decide, far ones hardly ever do
  llvm::SmallVector<std::pair<ValueId, uint32_t>, 8> ahead = {{value, fromEnd}};
  for (size_t next = 0; next < ahead.size() && next < MostAhead; ++next) {
    auto [v, place] = ahead[next];
    for (uint32_t user : links.users[v.index]) {
      const Op &op = f.ops[user];
      llvm::ArrayRef<ValueId> operands = f.operandsOf(op);
      size_t self = size_t(llvm::find(operands, v) - operands.begin());
      for (size_t j = 0; j < operands.size(); ++j) {
        uint32_t there = j == self ? 0 : samePlace(op, self, j, place);
        TypeId t = types[operands[j].index];
        if (!there || !t.valid() || module.types[t].dims.size() < there) {
          continue;
        }
        const auto &dims = module.types[t].dims;
        llvm::SmallVector<AtomId, 4> atoms;
        for (const Factor &factor : dims[dims.size() - there].factors) {
          atoms.append(factor.atoms.begin(), factor.atoms.end());
        }
        if (!atoms.empty()) {
          return atoms;
        }
      }
      uint32_t there = op.numResults ? samePlace(op, self, ~size_t(0), place) : 0;
      std::pair<ValueId, uint32_t> further(f.result(op), there);
      if (there && !llvm::is_contained(ahead, further)) {
        ahead.push_back(further);
      }
    }
  }
  return {};
}

} // namespace shardc
