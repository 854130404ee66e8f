// Meshes for tests: views in one line, and every small mesh there is.
#pragma once

#include "shardc/IR/Axes.h"

namespace shardc {

inline ViewSpec view(std::string name, std::vector<std::pair<std::string, int64_t>> axes) {
  ViewSpec spec;
  spec.name = std::move(name);
  for (auto &[axis, size] : axes) {
    spec.axes.push_back({axis, size, std::nullopt, {}});
  }
  return spec;
}

inline Axes mesh(int64_t world, std::vector<ViewSpec> views, std::vector<FlatSpec> flats = {}) {
  SourceManager sources;
  DiagnosticEngine diags(sources);
  std::optional<Axes> axes = Axes::build({world, {}}, views, flats, diags);
  return axes ? std::move(*axes) : Axes();
}

// All ways of writing `n` as an ordered product of at most `most` factors above 1.
inline std::vector<std::vector<int64_t>> factorisations(int64_t n, size_t most) {
  if (n == 1) {
    return {{}};
  }
  std::vector<std::vector<int64_t>> all;
  for (int64_t first = 2; most > 0 && first <= n; ++first) {
    if (n % first == 0) {
      for (std::vector<int64_t> rest : factorisations(n / first, most - 1)) {
        rest.insert(rest.begin(), first);
        all.push_back(std::move(rest));
      }
    }
  }
  return all;
}

inline std::vector<AtomId> atomsOf(const Axes &axes, std::vector<std::string> names) {
  std::vector<AtomId> atoms;
  for (const std::string &name : names) {
    const auto found = axes.findAtoms(name);
    atoms.insert(atoms.end(), found->begin(), found->end());
  }
  return atoms;
}

} // namespace shardc
