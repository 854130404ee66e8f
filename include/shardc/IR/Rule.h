// Rule: an operation's sharding rule, parsed from its row in Ops.def (design: types, section 3).
//
// `* k, n k -> * n`: operands, arrow, results. A letter or word is a factor; `*` any leading dimensions, the same in all
// operands that have them; `[d]` must stay whole; `(a b)` one dimension that is a product, major first. A factor missing
// from the results is reduced, one missing from the operands is new.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardc {

constexpr uint8_t StarFactor = 0xff;

// One dimension of an operand: its factors (indices into `Rule::factors`), or the star, alone or first in a product.
struct RuleDim {
  llvm::SmallVector<uint8_t, 2> factors; // {StarFactor} for *, {StarFactor, q} for (* q)
  bool isStar() const { return factors.size() == 1 && factors[0] == StarFactor; }
  bool startsWithStar() const { return factors[0] == StarFactor; }
};

enum class FactorKind : uint8_t { Pass, Reduce, New, Whole };

struct Rule {
  std::vector<std::string> factors; // names in order of appearance
  std::vector<FactorKind> kinds;    // Whole wins over the others
  std::vector<std::vector<RuleDim>> operands;
  std::vector<std::vector<RuleDim>> results;
  FactorKind starKind = FactorKind::Pass;
};

// Nothing if the text is not a rule; `error` then says why.
std::optional<Rule> parseRule(llvm::StringRef text, std::string &error);

enum class Reducer : uint8_t { Sum, Mean, Max, Min };

// The operands in which an operation is linear.
enum class Linearity : uint8_t { None, Alone, Together, Increasing };
struct Linear {
  Linearity kind = Linearity::None;
  uint32_t operands = 0; // bit mask
};

// What stands after the tensor operands in a call.
enum class Takes : uint8_t { Nothing, Dims, Ints, Scalar, ChangeSpec, Text };

// How the result type is found: from the row alone, or by one named function.
enum class Typing : uint8_t { Row, Views, Slots, Loss, Move, CallFunction };

enum class OpKind : uint16_t {
#define OP(Name, ...) Name,
#include "shardc/IR/Ops.def"
};

struct OpInfo {
  const char *enumerator;
  llvm::StringRef name;
  llvm::StringRef rule; // "" where no line can say it
  Linear linear;
  Reducer reducer;
  llvm::StringRef kernel;
  Takes takes;
  llvm::StringRef options; // allowed key=value names, comma separated
  Typing typing;
  uint32_t minOperands;
  uint32_t maxOperands;
  uint32_t results;
  uint32_t noGrad;       // bit mask of results that need no gradient
  llvm::StringRef brief; // one sentence for the docs
};
const OpInfo &opInfo(OpKind kind);
llvm::ArrayRef<OpInfo> allOps();
std::optional<OpKind> findOp(llvm::StringRef name);
const Rule &opRule(OpKind kind); // parsed once; the row's rule must not be ""

} // namespace shardc
