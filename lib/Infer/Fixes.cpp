// Fixes: mends of a fault, found by trial (design: architecture, "Errors").
//
// The problem. An operation refuses its operands' types. Which single change of one operand makes it pass, keeps the
// meaning, and costs least?
//
// The alternatives. A hand-written hint per fault (wrong for the case nobody thought of); a search over sequences (the
// planner's work, not a hint's).
//
// What we do. For every operand that the fault concerns, every row of Changes.def out of its present state is applied, and
// the same pure rule is asked again. What passes is kept. First come those that finish a partial value or bring an operand
// to the layout of the other, then the cheaper ones.
//
// Why it ends and what it costs. Operands times rows times factors, about a hundred calls of the rule; only on errors.
#include "Typing.h"
#include "llvm/ADT/STLExtras.h"
#include <climits>

namespace shardc {
namespace {

bool mendable(FaultKind kind) {
  switch (kind) {
  case FaultKind::MixedInvariant:
  case FaultKind::PartialIntoNonlinear:
  case FaultKind::PartialIndex:
  case FaultKind::PartialTimesPartial:
  case FaultKind::ReplicatedIntoPartial:
  case FaultKind::MixedPartials:
  case FaultKind::PartialMeetsShard:
  case FaultKind::PartialTimesShard:
  case FaultKind::ShardedWhole:
  case FaultKind::ShardMeetsReplicated:
  case FaultKind::ShardConflict:
  case FaultKind::ShardOrder:
  case FaultKind::ShardBoundaries:
  case FaultKind::UnevenMean:
  case FaultKind::NewNeedsReplicated:
  case FaultKind::UnevenView:
    return true;
  case FaultKind::Rank:
  case FaultKind::Shape:
  case FaultKind::NotContiguous:
  case FaultKind::OtherSlots:
  case FaultKind::VaryingMeets:
  case FaultKind::VaryingExtents:
  case FaultKind::UnknownPad:
  case FaultKind::Recut:
  case FaultKind::BadAttribute:
  case FaultKind::WrongSource:
  case FaultKind::NoSuchChange:
  case FaultKind::NotInnermost:
  case FaultKind::NoSuchDim:
  case FaultKind::UnevenExchange:
  case FaultKind::NotUniform:
    return false;
  }
  return false;
}

// All ends that a value could be brought to: R, I, and a shard of any of its factors.
std::vector<Endpoint> endpoints(const Type &t) {
  std::vector<Endpoint> out = {{State::R, {}, 0, {}}, {State::I, {}, 0, {}}, {State::P, {}, 0, {}}};
  for (size_t d = 0; d < t.dims.size(); ++d) {
    for (const Factor &f : t.dims[d].factors) {
      if (f.name.valid()) {
        out.push_back({State::S, f.name, 0, {}});
      }
    }
    if (t.dims[d].factors.size() == 1) {
      out.push_back({State::S, {}, int32_t(d), {}});
    }
  }
  return out;
}

// 0: finishes a partial value in the state that another operand has; 1: brings an operand to another's state; 2: the rest.
int rank(const Fix &fix, Operands operands, const Fault &fault) {
  uint32_t other = fix.operand == fault.a ? fault.b : fault.a;
  State before = stateOf(*operands[fix.operand], fault.atoms[0]);
  State after = stateOf(fix.changed, fault.atoms[0]);
  bool alike = other < operands.size() && other != fix.operand && stateOf(*operands[other], fault.atoms[0]) == after;
  if (isPartial(before) && !isPartial(after)) {
    return alike || other == fix.operand ? 0 : 1;
  }
  if (!isPartial(before) && isPartial(after)) {
    return 3; // spreads an unfinished sum further
  }
  return alike ? 1 : 2;
}

} // namespace

std::vector<Fix> findFixes(TypingContext &context, Operands operands, const Fault &fault) {
  std::vector<Fix> fixes;
  if (!mendable(fault.kind) || fault.atoms.empty()) {
    return fixes;
  }
  llvm::SmallVector<uint32_t, 2> tried = {fault.a};
  if (fault.b != fault.a && fault.b < operands.size()) {
    tried.push_back(fault.b);
  }
  for (uint32_t i : tried) {
    for (const Endpoint &to : endpoints(*operands[i])) {
      Fix fix;
      fix.operand = i;
      fix.change = {fault.atoms, std::nullopt, to};
      fix.changed = *operands[i];
      std::vector<Move> moves;
      if (applyChange(fix.changed, fix.change, false, context.module, &moves) || moves.empty()) {
        continue;
      }
      llvm::SmallVector<const Type *, 4> changed(operands);
      changed[i] = &fix.changed;
      fix.outcome = typeOp(context, changed);
      bool known = llvm::any_of(fixes, [&](const Fix &f) { return f.operand == i && f.changed == fix.changed; });
      if (fix.outcome.fault || known) {
        continue;
      }
      fix.move = moves[0];
      if (fix.move.localBytes) {
        fix.bytes = fix.move.forwardCost.bytes + fix.move.gradientCost.bytes;
      }
      fixes.push_back(std::move(fix));
    }
  }
  llvm::stable_sort(fixes, [&](const Fix &x, const Fix &y) {
    return std::pair(rank(x, operands, fault), x.bytes.value_or(INT64_MAX)) <
           std::pair(rank(y, operands, fault), y.bytes.value_or(INT64_MAX));
  });
  return fixes;
}

} // namespace shardc
