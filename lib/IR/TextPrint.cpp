// TextPrint: types and changes as people write them.
//
// What is printed parses back to the same thing (TextParse.cpp reads it); programs are printed elsewhere.
#include "shardc/IR/Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

namespace shardc {

void giveAtoms(llvm::MutableArrayRef<Factor> factors, llvm::ArrayRef<AtomId> atoms, const Axes &axes) {
  size_t current = 0;
  int64_t given = 1;
  for (AtomId atom : atoms) {
    const int64_t size = axes.atom(atom).size;
    for (; current + 1 < factors.size(); ++current, given = 1) {
      const int64_t extent = globalExtent(factors[current]);
      const int64_t divisor = extent < 0 ? factors[current].divisor : extent;
      if (given < divisor && divisor % (given * size) == 0) {
        break;
      }
    }
    given *= size;
    factors[current].atoms.push_back(atom);
  }
}

namespace {

class Printer {
public:
  Printer(const Module &module, llvm::StringRef wanted) : m(module), view(wanted.empty() ? llvm::StringRef(module.view) : wanted) {}

  std::string type(const Type &t) {
    std::string text = dtypeName(t.dtype).str() + "[";
    for (const Dim &d : t.dims) {
      text += (&d == t.dims.begin() ? "" : ", ") + dim(d);
    }
    text += "]";
    for (State s : {State::P, State::PAvg, State::PMax, State::PMin, State::I, State::V}) {
      llvm::SmallVector<AtomId, 8> atoms;
      for (const auto &[atom, state] : t.states) {
        if (state == s) {
          atoms.push_back(atom);
        }
      }
      if (!atoms.empty()) {
        text += " " + stateName(s).str() + at(atoms);
      }
    }
    return text + (isFloat(t.dtype) && !t.grad ? " detached" : "");
  }

  std::string dim(const Dim &d) {
    if (std::optional<std::string> named = asProduct(d)) {
      return *named;
    }
    if (d.factors.size() == 1 && !d.concat) {
      return factor(d.factors.front());
    }
    std::string text;
    for (const Factor &f : d.factors) {
      text += (text.empty() ? "(" : d.concat ? " + " : " ") + factor(f);
    }
    return text + ")";
  }

  std::string change(const Change &c) {
    std::string text;
    for (const AxisChange &part : c.parts) {
      text += text.empty() ? "" : "; ";
      text += part.from ? endpoint(*part.from, part.atoms) + " -> " : "";
      text += endpoint(part.to, part.atoms);
    }
    if (!c.gradientScale.isOne()) {
      const std::string formula = c.gradientScale.formula(m.axes, view);
      text += (text.empty() ? "gradient * " : "; gradient * ") + (formula.empty() ? c.gradientScale.text() : formula);
    }
    return text;
  }

private:
  std::string at(llvm::ArrayRef<AtomId> atoms) {
    if (atoms.empty()) {
      return "";
    }
    const std::string names = m.axes.describe(atoms, view);
    return llvm::StringRef(names).contains(',') ? "@(" + names + ")" : "@" + names;
  }

  std::optional<int64_t> declaredExtent(NameId name) const {
    const auto it = llvm::find_if(m.sizes, [&](const auto &entry) { return entry.first == name; });
    return it == m.sizes.end() ? std::nullopt : std::optional(it->second);
  }

  bool isProductName(NameId name) const {
    return llvm::any_of(m.products, [&](const auto &entry) { return entry.first == name; });
  }

  // What the name alone says of the extent: its declaration, or that of the parts of `b.l`.
  std::optional<int64_t> saidByName(NameId name) const {
    if (!isProductName(name)) {
      if (std::optional<int64_t> declared = declaredExtent(name)) {
        return declared;
      }
    }
    if (!m.names.str(name).contains('.')) {
      return std::nullopt;
    }
    int64_t extent = 1;
    for (llvm::StringRef part : llvm::split(m.names.str(name), '.')) {
      int64_t number = 0;
      std::optional<int64_t> known = !part.getAsInteger(10, number) ? std::optional(number) : declaredExtent(m.names.find(part));
      if (!known || *known < 0 || llvm::MulOverflow(extent, *known, extent)) {
        return std::nullopt;
      }
    }
    return extent;
  }

  std::string base(const Factor &f) {
    if (!f.name.valid()) {
      return std::to_string(f.extent);
    }
    std::string text = m.names.str(f.name).str() + (f.permuted ? "'" : "");
    const std::optional<int64_t> said = saidByName(f.name);
    if (f.extent == Ragged && (said.has_value() || isProductName(f.name) || !f.origin.valid())) {
      text += "~";
    }
    if (f.extent >= 0 && said != f.extent) {
      text += "=" + std::to_string(f.extent);
    }
    return text + (f.extent < 0 && f.divisor != 1 ? "%" + std::to_string(f.divisor) : "");
  }

  std::string factor(const Factor &f) {
    std::string text = base(f) + at(f.atoms);
    switch (f.split) {
    case Split::Nested:
      break;
    case Split::Flat:
      text += "!flat";
      break;
    case Split::Balanced:
      text += "!balanced";
      break;
    }
    if (f.padTo != 0) {
      text += " pad " + std::to_string(f.padTo) + (f.pad == Pad::Unknown ? "?" : "");
    }
    return text + (f.origin.valid() ? ":" + origin(m.types.origin(f.origin), f.atoms) : "");
  }

  // Axes that are those of the slots go without saying.
  std::string origin(const Origin &o, llvm::ArrayRef<AtomId> slots) {
    std::string text = o.fromSlice ? "slice" : "";
    if (!o.tokens.factors.empty()) {
      text += o.fromSlice ? " " : "";
      Dim bare = o.tokens;
      llvm::SmallVector<AtomId, 8> atoms;
      for (Factor &f : bare.factors) {
        llvm::append_range(atoms, f.atoms);
        f.atoms.clear();
      }
      Dim given = bare;
      giveAtoms(given.factors, slots, m.axes);
      const std::string name = dim(bare);
      const bool plain = name.front() != '(';
      if (plain && given == o.tokens) {
        text += name;
      } else if (plain && atoms.empty()) {
        text += name + "@()";
      } else {
        text += dim(o.tokens);
      }
    }
    return text + (o.site != 0 || o.tokens.factors.empty() ? "#" + std::to_string(o.site) : "");
  }

  void flatten(NameId name, llvm::SmallVectorImpl<NameId> &parts, unsigned depth = 0) const {
    const auto it = llvm::find_if(m.products, [&](const auto &entry) { return entry.first == name; });
    if (it == m.products.end() || depth > 16) {
      parts.push_back(name);
      return;
    }
    for (NameId part : it->second) {
      flatten(part, parts, depth + 1);
    }
  }

  // `T@(dp,cp,tp)` for `(b@dp l@(cp,tp))` where T is (b l) and the axes fall to the factors like this by themselves.
  std::optional<std::string> asProduct(const Dim &d) {
    if (d.concat || d.factors.size() < 2) {
      return std::nullopt;
    }
    for (const auto &entry : m.products) {
      llvm::SmallVector<NameId, 4> parts;
      flatten(entry.first, parts);
      if (parts.size() != d.factors.size() || !plainParts(d, parts)) {
        continue;
      }
      llvm::SmallVector<AtomId, 8> atoms;
      Dim given = d;
      for (Factor &f : given.factors) {
        llvm::append_range(atoms, f.atoms);
        f.atoms.clear();
      }
      giveAtoms(given.factors, atoms, m.axes);
      if (given == d) {
        return m.names.str(entry.first).str() + (d.factors.back().permuted ? "'" : "") + at(atoms);
      }
    }
    return std::nullopt;
  }

  // Factors of which their names say everything but the atoms; only the last may be permuted.
  bool plainParts(const Dim &d, llvm::ArrayRef<NameId> parts) const {
    for (size_t i = 0; i < parts.size(); ++i) {
      Factor plain;
      plain.name = parts[i];
      plain.extent = declaredExtent(parts[i]).value_or(-3); // -3: no extent at all
      plain.atoms = d.factors[i].atoms;
      plain.permuted = i + 1 == parts.size() && d.factors[i].permuted;
      if (!(plain == d.factors[i])) {
        return false;
      }
    }
    return true;
  }

  std::string endpoint(const Endpoint &e, llvm::ArrayRef<AtomId> atoms) {
    std::string text = stateName(e.state).str();
    if (e.state == State::S) {
      text = e.dim.valid() ? m.names.str(e.dim).str() : "S(" + std::to_string(e.index) + ")";
    }
    text += at(atoms);
    text += e.origin.valid() ? ":" + m.names.str(e.origin).str() : "";
    return text + (e.pad ? " pad" : "");
  }

  const Module &m;
  llvm::StringRef view;
};

} // namespace

std::string print(const Type &t, const Module &m, llvm::StringRef view) { return Printer(m, view).type(t); }
std::string print(const Dim &d, const Module &m, llvm::StringRef view) { return Printer(m, view).dim(d); }
std::string print(const Change &c, const Module &m, llvm::StringRef view) { return Printer(m, view).change(c); }

} // namespace shardc
