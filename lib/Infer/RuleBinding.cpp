// How operands are laid against a rule; see RuleBinding.h.
#include "RuleBinding.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc {

llvm::SmallVector<AtomId, 8> atomsOf(const Dim &d) {
  llvm::SmallVector<AtomId, 8> out;
  for (const Factor &f : d.factors) {
    out.append(f.atoms.begin(), f.atoms.end());
  }
  return out;
}

namespace {
static bool sameExtents(const Dim &a, const Dim &b) {
  return a.concat == b.concat && a.factors.size() == b.factors.size() && llvm::all_of(llvm::zip(a.factors, b.factors), [](const auto &p) {
           const auto &[x, y] = p;
           // Names stand for extents that are not numbers.
           return x.extent == y.extent && x.permuted == y.permuted && (x.extent >= 0 || x.name == y.name) &&
                  (!x.permuted || x.name == y.name);
         });
}
} // namespace

RuleBinding::RuleBinding(TypingContext &c, const Rule &r, Operands operands) : context(c), axes(c.module.axes), rule(r) {
  for (const Type *t : operands) {
    types.push_back(*t);
  }
}

bool RuleBinding::unify() {
  if ((fault = recutOperands(types, axes))) {
    return false;
  }
  return forgetWhereVarying();
}

// Rule 4: where one operand varies, a shard of another is its local part and no more.
bool RuleBinding::forgetWhereVarying() {
  for (size_t i = 0; i < types.size(); ++i) {
    for (auto [atom, state] : llvm::SmallVector<std::pair<AtomId, State>, 4>(types[i].states)) {
      if (state != State::V) {
        continue;
      }
      for (size_t j = 0; j < types.size(); ++j) {
        if (!shardPlace(types[j], atom)) {
          continue;
        }
        AxisChange forget{{atom}, std::nullopt, {State::V, {}, 0, {}}};
        if (auto f = applyChange(types[j], forget, false, context.module, nullptr)) {
          f->a = uint32_t(j);
          fault = std::move(f);
          return false;
        }
      }
    }
  }
  return true;
}

size_t RuleBinding::starCount(size_t operand) const {
  const auto &pattern = rule.operands[operand];
  if (pattern.empty() || !pattern[0].startsWithStar()) {
    return 0;
  }
  size_t dims = types[operand].dims.size();
  if (pattern[0].isStar()) {
    return dims - (pattern.size() - 1);
  }
  size_t lead = dims - pattern.size();
  return lead + types[operand].dims[lead].factors.size() - 1;
}

bool RuleBinding::bind() {
  size_t count = types.size();
  for (size_t i = 0; i < count; ++i) {
    const auto &pattern = rule.operands[i];
    bool star = !pattern.empty() && pattern[0].startsWithStar();
    size_t least = star && pattern[0].isStar() ? pattern.size() - 1 : pattern.size();
    size_t dims = types[i].dims.size();
    if (dims < least || (!star && dims != least)) {
      return fail(FaultKind::Rank, uint32_t(i), 0, {}, {}, std::to_string(least) + (star ? " or more" : ""));
    }
    stars = std::max(stars, starCount(i));
  }
  slots.resize(stars + rule.factors.size());
  for (size_t s = 0; s < slots.size(); ++s) {
    slots[s].kind = s < stars ? rule.starKind : rule.kinds[s - stars];
    slots[s].entries.resize(count);
  }
  places.resize(count);
  for (size_t i = 0; i < count; ++i) {
    if (!bindOperand(i)) {
      return false;
    }
  }
  return true;
}

bool RuleBinding::enter(size_t operand, uint32_t dim, uint32_t first, uint32_t n, uint32_t slot) {
  const Dim &d = types[operand].dims[dim];
  Dim part;
  part.concat = d.concat;
  part.factors.append(d.factors.begin() + first, d.factors.begin() + first + n);
  places[operand].push_back({dim, first, n, slot});
  if (slots[slot].entries[operand]) { // a factor twice in one operand: a diagonal, which no row has
    return fail(FaultKind::Rank, uint32_t(operand), 0, {}, {}, "another number of");
  }
  slots[slot].entries[operand] = std::move(part);
  if (slots[slot].ref < 0) {
    slots[slot].ref = int(operand);
  }
  return true;
}

bool RuleBinding::bindOperand(size_t i) {
  const auto &pattern = rule.operands[i];
  const Type &type = types[i];
  size_t own = starCount(i);
  uint32_t slot = uint32_t(stars - own); // aligned at the right
  uint32_t dim = 0;
  for (const RuleDim &p : pattern) {
    if (p.startsWithStar()) {
      size_t lead = p.isStar() ? own : type.dims.size() - pattern.size();
      for (size_t k = 0; k < lead; ++k, ++dim) {
        if (!enter(i, dim, 0, uint32_t(type.dims[dim].factors.size()), slot++)) {
          return false;
        }
      }
      if (p.isStar()) {
        continue;
      }
      if (i == 0) {
        starInProduct = own - lead;
      }
      uint32_t inner = uint32_t(type.dims[dim].factors.size()) - 1;
      for (uint32_t k = 0; k < inner; ++k) {
        if (!enter(i, dim, k, 1, slot++)) {
          return false;
        }
      }
      if (!enter(i, dim++, inner, 1, uint32_t(stars + p.factors[1]))) {
        return false;
      }
      continue;
    }
    if (!bindDim(i, dim++, p)) {
      return false;
    }
  }
  return true;
}

bool RuleBinding::bindDim(size_t i, uint32_t dim, const RuleDim &p) {
  uint32_t have = uint32_t(types[i].dims[dim].factors.size());
  if (p.factors.size() == 1) {
    return enter(i, dim, 0, have, uint32_t(stars + p.factors[0]));
  }
  if (have != p.factors.size()) {
    return fail(FaultKind::NotContiguous, uint32_t(i), 0, {}, dimName(types[i].dims[dim], context.module));
  }
  for (uint32_t k = 0; k < have; ++k) {
    if (!enter(i, dim, k, 1, uint32_t(stars + p.factors[k]))) {
      return false;
    }
  }
  return true;
}

// The entries of a slot must have the same factors, or read as one dimension of the same extent.
bool RuleBinding::align() {
  for (Slot &slot : slots) {
    if (slot.ref < 0) {
      continue;
    }
    for (size_t i = size_t(slot.ref) + 1; i < types.size(); ++i) {
      if (!slot.entries[i] || sameExtents(*slot.entries[size_t(slot.ref)], *slot.entries[i])) {
        continue;
      }
      if (!alignAsOne(slot, i)) {
        return false;
      }
    }
  }
  return true;
}

bool RuleBinding::alignAsOne(Slot &slot, size_t i) {
  Dim &ref = *slot.entries[size_t(slot.ref)];
  Dim &other = *slot.entries[i];
  auto shape = [&] {
    return fail(FaultKind::Shape, uint32_t(slot.ref), uint32_t(i), {}, dimName(ref, context.module), dimName(other, context.module));
  };
  auto total = [](const Dim &d) {
    int64_t n = d.concat ? 0 : 1;
    for (const Factor &f : d.factors) {
      if (f.extent < 0 || __builtin_mul_overflow(d.concat ? 1 : n, f.extent, &n)) {
        return int64_t(-1);
      }
    }
    return n;
  };
  if (ref.concat || other.concat || total(ref) < 0 || total(ref) != total(other)) {
    return shape();
  }
  std::optional<Factor> one = contiguous(ref, axes, context.module.names);
  std::optional<Factor> two = contiguous(other, axes, context.module.names);
  if (!one || !two) {
    return fail(FaultKind::NotContiguous, uint32_t(one ? i : size_t(slot.ref)), 0, {}, dimName(one ? other : ref, context.module));
  }
  if (one->permuted != two->permuted) {
    return shape();
  }
  Dim flat;
  flat.factors.push_back(*two);
  other = flat;
  // The reference keeps its factors for the result; comparisons use this flat form.
  if (!slot.entries.empty() && ref.factors.size() > 1) {
    flatRefs.push_back({uint32_t(&slot - slots.data()), *one});
  }
  return true;
}

// The slot that an atom shards in an operand, or none.
std::optional<uint32_t> RuleBinding::slotOf(size_t operand, AtomId atom) const {
  std::optional<ShardPlace> at = shardPlace(types[operand], atom);
  if (!at) {
    return std::nullopt;
  }
  for (const Place &p : places[operand]) {
    if (p.dim == at->dim && at->factor >= p.first && at->factor < p.first + p.count) {
      return p.slot;
    }
  }
  return std::nullopt;
}

std::string RuleBinding::slotName(uint32_t slot) const { return dimName(*slots[slot].entries[size_t(slots[slot].ref)], context.module); }

// Same atoms on the same factors, in the same order, with the same boundaries.
bool RuleBinding::orders() {
  for (size_t s = 0; s < slots.size(); ++s) {
    Slot &slot = slots[s];
    for (size_t i = 0; i < types.size() && slot.ref >= 0; ++i) {
      if (int(i) == slot.ref || !slot.entries[i]) {
        continue;
      }
      Dim ref = *slot.entries[size_t(slot.ref)];
      if (ref.factors.size() != slot.entries[i]->factors.size()) {
        for (const auto &[index, flat] : flatRefs) {
          if (index == s) {
            ref.factors.assign(1, flat);
          }
        }
      }
      if (!compare(uint32_t(s), uint32_t(slot.ref), ref, uint32_t(i), *slot.entries[i])) {
        return false;
      }
    }
  }
  return true;
}

bool RuleBinding::compare(uint32_t slot, uint32_t a, const Dim &one, uint32_t b, const Dim &two) {
  for (const auto &[x, y] : llvm::zip(one.factors, two.factors)) {
    if (x.atoms != y.atoms) {
      llvm::SmallVector<AtomId, 8> all = atomsOf(one);
      bool sameFactor = std::is_permutation(x.atoms.begin(), x.atoms.end(), y.atoms.begin(), y.atoms.end());
      return fail(sameFactor ? FaultKind::ShardOrder : FaultKind::ShardBoundaries, a, b, all, slotName(slot));
    }
    if (x.origin != y.origin && x.origin.valid() && y.origin.valid()) {
      return fail(FaultKind::OtherSlots, a, b, x.atoms, slotName(slot));
    }
    if (!sameLayout(x, y, axes)) {
      return fail(FaultKind::ShardBoundaries, a, b, x.atoms, slotName(slot));
    }
  }
  return true;
}

} // namespace shardc
