// Scale: products of numbers and group sizes. See the header.
#include "shardc/IR/Scale.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>

namespace shardc {

void Scale::addPower(AtomId atom, int32_t power) {
  auto *at = llvm::lower_bound(powers, atom, [](const auto &entry, AtomId a) { return entry.first < a; });
  if (at == powers.end() || at->first != atom) {
    powers.insert(at, {atom, power});
    return;
  }
  at->second += power;
  if (at->second == 0) {
    powers.erase(at);
  }
}

void Scale::multiply(const Scale &o) {
  value = value.times(o.value);
  for (const auto &[atom, power] : o.powers) {
    addPower(atom, power);
  }
}

void Scale::multiplyRanks(const Axes &axes, AtomId atom, int32_t power) {
  const int64_t n = axes.atom(atom).size;
  for (int32_t i = 0; i < std::abs(power); ++i) {
    value = power > 0 ? value.times(n, 1) : value.times(1, n);
  }
  addPower(atom, power);
}

// The atoms that stand `sign` times at least k times, as names; for each k that occurs.
static std::vector<std::string> factorNames(const Scale &scale, const Axes &axes, llvm::StringRef view, int32_t sign) {
  std::vector<std::string> names;
  for (int32_t k = 1; k <= 64; ++k) {
    llvm::SmallVector<AtomId, 6> atoms;
    for (const auto &[atom, power] : scale.powers) {
      if (power * sign >= k) {
        atoms.push_back(atom);
      }
    }
    if (atoms.empty()) {
      break;
    }
    std::string text = axes.describe(atoms, view);
    for (llvm::StringRef name : llvm::split(text, ',')) {
      names.push_back(name.trim().str());
    }
  }
  return names;
}

static std::string product(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names) {
    text += (text.empty() ? "" : " * ") + name;
  }
  return text;
}

std::string Scale::formula(const Axes &axes, llvm::StringRef view) const {
  if (powers.empty()) {
    return "";
  }
  Rational rest = value;
  for (const auto &[atom, power] : powers) {
    const int64_t n = axes.atom(atom).size;
    for (int32_t i = 0; i < std::abs(power); ++i) {
      rest = power > 0 ? rest.times(1, n) : rest.times(n, 1);
    }
  }
  std::vector<std::string> over = factorNames(*this, axes, view, 1), under = factorNames(*this, axes, view, -1);
  if (!rest.valid) {
    return "";
  }
  if (rest.num != 1) {
    over.insert(over.begin(), std::to_string(rest.num));
  }
  if (rest.den != 1) {
    under.insert(under.begin(), std::to_string(rest.den));
  }
  std::string text = over.empty() ? "1" : product(over);
  if (!under.empty()) {
    text += over.empty() && under.size() == 1 ? "/" + under[0] : under.size() == 1 ? " / " + under[0] : " / (" + product(under) + ")";
  }
  return text;
}

std::string Scale::describe(const Axes &axes, llvm::StringRef view) const {
  const std::string made = formula(axes, view);
  return made.empty() ? text() : text() + " (" + made + ")";
}

} // namespace shardc
