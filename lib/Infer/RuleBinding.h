// RuleBinding: an operation's operands laid against its rule.
//
// Each dimension of each operand becomes an entry of a slot, one slot per factor of the rule; the leading dimensions of `*`
// are slots as well, aligned at the right. Entries of a slot must have the same factors; a product that reads as contiguous
// rows is compared as one dimension. What the layouts mean together is decided in RuleTyping.
#pragma once

#include "Typing.h"

namespace shardc {

// One factor of the rule (or one leading dimension of `*`) with the dimension that each operand has there.
struct Slot {
  FactorKind kind{};
  llvm::SmallVector<std::optional<Dim>, 4> entries; // per operand
  int ref = -1;                                     // the operand whose dimension the result takes
};

// Which slot a dimension's factors belong to: [first, first + count) of dimension `dim` of one operand.
struct Place {
  uint32_t dim;
  uint32_t first;
  uint32_t count;
  uint32_t slot;
};

// All atoms of a dimension, major first.
llvm::SmallVector<AtomId, 8> atomsOf(const Dim &d);

class RuleBinding {
public:
  RuleBinding(TypingContext &c, const Rule &r, Operands operands);

  // Each fills `fault` and answers false where it fails; in this order.
  bool unify();  // one way of cutting each block of ranks; shards that meet varying operands are local parts
  bool bind();   // dimensions to slots
  bool align();  // equal factors within a slot
  bool orders(); // same atoms on the same factors, in the same order, with the same boundaries

  // The slot that an atom shards in an operand, or none.
  std::optional<uint32_t> slotOf(size_t operand, AtomId atom) const;
  std::string slotName(uint32_t slot) const;

  TypingContext &context;
  const Axes &axes;
  const Rule &rule;
  llvm::SmallVector<Type, 4> types;
  std::vector<Slot> slots; // the stars' first, then the rule's factors
  size_t stars = 0;
  size_t starInProduct = 0; // how many of the stars stand in one dimension with what follows, in the first operand
  std::optional<Fault> fault;

  bool fail(FaultKind kind, uint32_t a, uint32_t b = 0, llvm::ArrayRef<AtomId> atoms = {}, std::string dim = {}, std::string text = {}) {
    fault = Fault{kind, a, b, llvm::SmallVector<AtomId, 4>(atoms), std::move(dim), std::move(text)};
    return false;
  }

private:
  bool forgetWhereVarying();
  size_t starCount(size_t operand) const;
  bool enter(size_t operand, uint32_t dim, uint32_t first, uint32_t n, uint32_t slot);
  bool bindOperand(size_t operand);
  bool bindDim(size_t operand, uint32_t dim, const RuleDim &pattern);
  bool alignAsOne(Slot &slot, size_t operand);
  bool compare(uint32_t slot, uint32_t a, const Dim &one, uint32_t b, const Dim &two);

  std::vector<llvm::SmallVector<Place, 4>> places;
  llvm::SmallVector<std::pair<uint32_t, Factor>, 2> flatRefs;
};

} // namespace shardc
