// The operations' table in memory, and the parser of its rules. Nothing here knows what a rule is used for.
#include "shardc/IR/Rule.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include <cassert>

namespace shardc {
namespace {

constexpr Linear none{};
template <class... I> constexpr Linear alone(I... i) { return {Linearity::Alone, ((1u << i) | ...)}; }
template <class... I> constexpr Linear together(I... i) { return {Linearity::Together, ((1u << i) | ...)}; }
template <class... I> constexpr Linear increasing(I... i) { return {Linearity::Increasing, ((1u << i) | ...)}; }

// The parser: one pass over the text, factors numbered in order of appearance.
class RuleParser {
public:
  RuleParser(llvm::StringRef t, std::string &e) : text(t), error(e) {}

  std::optional<Rule> parse() {
    auto [left, right] = text.split("->");
    if (!text.contains("->")) {
      error = "there is no `->`";
      return std::nullopt;
    }
    if (!side(left, rule.operands, true) || !side(right, rule.results, false)) {
      return std::nullopt;
    }
    kinds();
    return std::move(rule);
  }

private:
  bool side(llvm::StringRef part, std::vector<std::vector<RuleDim>> &out, bool isOperand) {
    if (part.trim().empty()) {
      if (!isOperand) {
        out.emplace_back(); // a scalar result
      }
      return true;
    }
    llvm::SmallVector<llvm::StringRef, 6> tensors;
    part.split(tensors, ',');
    for (llvm::StringRef tensor : tensors) {
      std::vector<RuleDim> dims;
      if (!tensorDims(tensor.trim(), dims, isOperand)) {
        return false;
      }
      out.push_back(std::move(dims));
    }
    return true;
  }

  bool tensorDims(llvm::StringRef tensor, std::vector<RuleDim> &dims, bool isOperand) {
    bool inProduct = false;
    while (!tensor.empty()) {
      if (tensor.consume_front("(")) {
        if (inProduct) {
          error = "a product inside a product";
          return false;
        }
        inProduct = true;
        dims.emplace_back();
      } else if (tensor.consume_front(")")) {
        if (!inProduct || dims.back().factors.empty()) {
          error = "`)` without a product";
          return false;
        }
        inProduct = false;
      } else {
        std::optional<uint8_t> factor = nextFactor(tensor, isOperand);
        if (!factor) {
          return false;
        }
        if (!inProduct) {
          dims.emplace_back();
        }
        dims.back().factors.push_back(*factor);
      }
      tensor = tensor.ltrim();
    }
    if (inProduct) {
      error = "`(` is not closed";
    }
    return !inProduct;
  }

  std::optional<uint8_t> nextFactor(llvm::StringRef &tensor, bool isOperand) {
    bool whole = tensor.consume_front("[");
    if (tensor.consume_front("*")) {
      starInOperands |= isOperand;
      starInResults |= !isOperand;
      starWhole |= whole;
      return closed(tensor, whole) ? std::optional<uint8_t>(StarFactor) : std::nullopt;
    }
    llvm::StringRef name = tensor.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    if (name.empty()) {
      error = ("`" + tensor.take_front(1) + "` is no factor").str();
      return std::nullopt;
    }
    tensor = tensor.drop_front(name.size());
    size_t index = 0;
    while (index < rule.factors.size() && rule.factors[index] != name) {
      ++index;
    }
    if (index == rule.factors.size()) {
      if (index >= StarFactor - 1) {
        error = "too many factors";
        return std::nullopt;
      }
      rule.factors.push_back(name.str());
      wholes.push_back(false);
      inOperands.push_back(false);
      inResults.push_back(false);
    }
    wholes[index] = wholes[index] || whole;
    (isOperand ? inOperands : inResults)[index] = true;
    return closed(tensor, whole) ? std::optional<uint8_t>(uint8_t(index)) : std::nullopt;
  }

  bool closed(llvm::StringRef &tensor, bool whole) {
    if (whole && !tensor.consume_front("]")) {
      error = "`[` is not closed";
      return false;
    }
    return true;
  }

  static FactorKind kindOf(bool whole, bool operand, bool result) {
    if (whole) {
      return FactorKind::Whole;
    }
    return !result ? FactorKind::Reduce : operand ? FactorKind::Pass : FactorKind::New;
  }

  void kinds() {
    for (size_t i = 0; i < rule.factors.size(); ++i) {
      rule.kinds.push_back(kindOf(wholes[i], inOperands[i], inResults[i]));
    }
    rule.starKind = kindOf(starWhole, starInOperands, starInResults || !starInOperands);
  }

  llvm::StringRef text;
  std::string &error;
  Rule rule;
  std::vector<bool> wholes, inOperands, inResults;
  bool starInOperands = false, starInResults = false, starWhole = false;
};

struct OpTable {
  std::vector<OpInfo> rows;
  std::vector<Rule> rules;
  llvm::StringMap<OpKind> byName;
};

// Tensor operands of the rows that have no rule.
std::pair<uint32_t, uint32_t> operandsWithoutRule(OpKind kind) {
  switch (kind) {
  case OpKind::Zeros:
  case OpKind::Ones:
  case OpKind::Arange:
  case OpKind::RankIndex:
    return {0, 0};
  case OpKind::Einsum:
    return {1, 4};
  case OpKind::Concat:
    return {1, 8};
  case OpKind::Call:
    return {0, ~0u};
  default:
    return {1, 1};
  }
}

OpTable makeTable() {
  OpTable table;
  table.rows = {
#define OP(Name, name, rule, linear, reducer, kernel, takes, options, typing, noGrad, brief)                                               \
  OpInfo{#Name, name, rule, linear, Reducer::reducer, #kernel, Takes::takes, options, Typing::typing, 0, 0, 1, noGrad, brief},
#include "shardc/IR/Ops.def"
  };
  table.rules.resize(table.rows.size());
  for (size_t i = 0; i < table.rows.size(); ++i) {
    OpInfo &row = table.rows[i];
    table.byName[row.name] = OpKind(i);
    if (row.rule.empty()) {
      std::tie(row.minOperands, row.maxOperands) = operandsWithoutRule(OpKind(i));
      continue;
    }
    std::string error;
    std::optional<Rule> rule = parseRule(row.rule, error);
    assert(rule && "a row of Ops.def has a rule that does not parse");
    row.minOperands = row.maxOperands = uint32_t(rule->operands.size());
    row.results = uint32_t(rule->results.size());
    table.rules[i] = std::move(*rule);
  }
  return table;
}

const OpTable &table() {
  static const OpTable t = makeTable();
  return t;
}

} // namespace

std::optional<Rule> parseRule(llvm::StringRef text, std::string &error) { return RuleParser(text, error).parse(); }

const OpInfo &opInfo(OpKind kind) { return table().rows[size_t(kind)]; }
llvm::ArrayRef<OpInfo> allOps() { return table().rows; }
const Rule &opRule(OpKind kind) { return table().rules[size_t(kind)]; }

std::optional<OpKind> findOp(llvm::StringRef name) {
  auto it = table().byName.find(name);
  return it == table().byName.end() ? std::nullopt : std::optional<OpKind>(it->second);
}

} // namespace shardc
