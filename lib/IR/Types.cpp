// Types: states, duals and recutting of layout types, and the table that interns them.
//
// What ranks hold of a value (ranges, shapes, evenness) is in Layout.cpp; how types are written is in Text.
#include "shardc/IR/Types.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

namespace shardc {

// -- Names --------------------------------------------------------------------------------------------------------------

namespace {

struct DTypeInfo {
  llvm::StringLiteral name;
  int64_t bytes;
  DType type;
  bool isFloat;
};
constexpr DTypeInfo DTypes[] = {
    {"f64", 8, DType::F64, true},       {"f32", 4, DType::F32, true},       {"bf16", 2, DType::BF16, true}, {"f16", 2, DType::F16, true},
    {"f8e4m3", 1, DType::F8E4M3, true}, {"f8e5m2", 1, DType::F8E5M2, true}, {"i64", 8, DType::I64, false},  {"i32", 4, DType::I32, false},
    {"i16", 2, DType::I16, false},      {"i8", 1, DType::I8, false},        {"u8", 1, DType::U8, false},    {"bool", 1, DType::Bool, false},
};
const DTypeInfo &info(DType t) { return DTypes[static_cast<size_t>(t)]; }

} // namespace

llvm::StringRef dtypeName(DType t) { return info(t).name; }
int64_t dtypeBytes(DType t) { return info(t).bytes; }
bool isFloat(DType t) { return info(t).isFloat; }

std::optional<DType> parseDType(llvm::StringRef text) {
  for (const DTypeInfo &row : DTypes) {
    if (row.name == text) {
      return row.type;
    }
  }
  return std::nullopt;
}

llvm::StringRef stateName(State s) {
  switch (s) {
  case State::R:
    return "R";
  case State::I:
    return "I";
  case State::V:
    return "V";
  case State::P:
    return "P";
  case State::PAvg:
    return "P(avg)";
  case State::PMax:
    return "P(max)";
  case State::PMin:
    return "P(min)";
  case State::S:
    return "S";
  }
  return "";
}

bool isPartial(State s) { return s == State::P || s == State::PAvg || s == State::PMax || s == State::PMin; }

// -- Interning ----------------------------------------------------------------------------------------------------------

namespace {

// Mixes words into one number; types are hashed for every operation, so each word costs a multiplication and no more.
class Hash {
public:
  template <class... T> void add(T... words) { (addWord(static_cast<uint64_t>(words)), ...); }
  uint64_t value() const { return (state ^ (state >> 32)) >> 1; } // the map keeps the two largest keys for itself

private:
  void addWord(uint64_t word) { state = ((state ^ word) * 0x9E3779B97F4A7C15u) ^ (state >> 29); }

  uint64_t state = 0;
};

uint64_t hashOf(const Type &t) {
  Hash hash;
  hash.add(t.dtype, t.grad, t.dims.size());
  for (const Dim &dim : t.dims) {
    hash.add(dim.concat, dim.factors.size());
    for (const Factor &f : dim.factors) {
      hash.add(f.name.index, f.extent, f.divisor, f.padTo, f.pad, f.split, f.permuted, f.origin.index);
      for (AtomId atom : f.atoms) {
        hash.add(atom.index);
      }
    }
  }
  for (const auto &[atom, state] : t.states) {
    hash.add(atom.index, state);
  }
  return hash.value();
}

} // namespace

TypeId TypeTable::intern(const Type &t) {
  llvm::SmallVector<TypeId, 1> &bucket = byHash[hashOf(t)];
  for (TypeId id : bucket) {
    if (*types[id.index] == t) {
      return id;
    }
  }
  const TypeId id(types.size());
  types.push_back(std::make_unique<Type>(t));
  bucket.push_back(id);
  return id;
}

OriginId TypeTable::internOrigin(const Origin &o) {
  // A job has few dispatches; a search through them is cheaper than a second map.
  auto it = llvm::find(origins, o);
  if (it == origins.end()) {
    origins.push_back(o);
    return OriginId(origins.size() - 1);
  }
  return OriginId(static_cast<size_t>(it - origins.begin()));
}

// -- States -------------------------------------------------------------------------------------------------------------

std::optional<ShardPlace> shardPlace(const Type &t, AtomId atom) {
  for (uint32_t d = 0; d < t.dims.size(); ++d) {
    for (uint32_t f = 0; f < t.dims[d].factors.size(); ++f) {
      const auto &atoms = t.dims[d].factors[f].atoms;
      const auto *it = llvm::find(atoms, atom);
      if (it != atoms.end()) {
        return ShardPlace{d, f, static_cast<uint32_t>(it - atoms.begin())};
      }
    }
  }
  return std::nullopt;
}

State stateOf(const Type &t, AtomId atom) {
  for (const auto &[id, state] : t.states) {
    if (id == atom) {
      return state;
    }
  }
  return shardPlace(t, atom) ? State::S : State::R;
}

void setState(Type &t, AtomId atom, State s) {
  assert(s != State::S && !shardPlace(t, atom) && "a factor says what is sharded");
  auto *it = llvm::lower_bound(t.states, atom, [](const auto &entry, AtomId id) { return entry.first < id; });
  const bool found = it != t.states.end() && it->first == atom;
  if (s == State::R) {
    if (found) {
      t.states.erase(it);
    }
  } else if (found) {
    it->second = s;
  } else {
    t.states.insert(it, {atom, s});
  }
}

llvm::SmallVector<AtomId, 8> activeAtoms(const Type &t) {
  llvm::SmallVector<AtomId, 8> atoms;
  for (const Dim &dim : t.dims) {
    for (const Factor &factor : dim.factors) {
      llvm::append_range(atoms, factor.atoms);
    }
  }
  for (const auto &entry : t.states) {
    atoms.push_back(entry.first);
  }
  llvm::sort(atoms);
  atoms.erase(std::unique(atoms.begin(), atoms.end()), atoms.end()); // each part of (q + k) may stand on the same ones
  return atoms;
}

// -- Duals --------------------------------------------------------------------------------------------------------------

std::optional<Type> dual(const Type &t, const Axes &axes) {
  if (!t.grad) {
    return std::nullopt;
  }
  Type result = t;
  result.states.clear();
  for (uint32_t block = 0; block < axes.blockCount(); ++block) {
    for (AtomId atom : axes.blockAtoms(block, usedVariant(t, block, axes).value_or(0))) {
      switch (stateOf(t, atom)) {
      case State::R:
        if (!axes.isStage(atom)) {
          setState(result, atom, State::P);
        }
        break;
      case State::I:
        setState(result, atom, State::I);
        break;
      case State::V:
        setState(result, atom, State::V);
        break;
      case State::PMax:
      case State::PMin:
        return std::nullopt;
      case State::P:
      case State::PAvg: // R, which has no entry
      case State::S:    // said by the factor
        break;
      }
    }
  }
  return result;
}

// -- Blocks that views cut differently ----------------------------------------------------------------------------------

std::optional<uint32_t> usedVariant(const Type &t, uint32_t block, const Axes &axes) {
  for (AtomId id : activeAtoms(t)) {
    if (axes.atom(id).block == block) {
      return axes.atom(id).variant;
    }
  }
  return std::nullopt;
}

namespace {

// The state that all atoms of a variant have in common, if they have one and it is not S.
std::optional<State> commonState(const Type &t, llvm::ArrayRef<AtomId> atoms) {
  const State first = stateOf(t, atoms.front());
  const bool uniform = llvm::all_of(atoms, [&](AtomId id) { return stateOf(t, id) == first; });
  return uniform && first != State::S ? std::optional(first) : std::nullopt;
}

} // namespace

std::optional<Type> recut(const Type &t, uint32_t block, uint32_t variant, const Axes &axes) {
  const std::optional<uint32_t> used = usedVariant(t, block, axes);
  if (!used || *used == variant) {
    return t;
  }
  llvm::ArrayRef<AtomId> before = axes.blockAtoms(block, *used);
  Type result = t;
  if (std::optional<State> state = commonState(t, before)) {
    for (AtomId id : before) {
      setState(result, id, State::R);
    }
    for (AtomId id : axes.blockAtoms(block, variant)) {
      setState(result, id, *state);
    }
    return result;
  }
  for (Dim &dim : result.dims) {
    for (Factor &factor : dim.factors) {
      if (llvm::none_of(factor.atoms, [&](AtomId id) { return axes.atom(id).block == block; })) {
        continue;
      }
      // Chunks of chunks depend on the sizes of the digits; the other splits and even ones only on their product.
      auto atoms = axes.recut(factor.atoms, block, variant);
      if (!atoms || (factor.split == Split::Nested && !isEven(factor, axes))) {
        return std::nullopt;
      }
      factor.atoms = *atoms;
    }
  }
  // What stands in no factor would keep its old atoms.
  const bool left = llvm::any_of(before, [&](AtomId id) { return stateOf(result, id) != State::R; });
  return left ? std::nullopt : std::optional(result);
}

bool equalTypes(const Type &a, const Type &b, const Axes &axes) {
  if (a == b) {
    return true;
  }
  Type other = b;
  for (uint32_t block = 0; block < axes.blockCount(); ++block) {
    const std::optional<uint32_t> wanted = axes.variantCount(block) > 1 ? usedVariant(a, block, axes) : std::nullopt;
    if (!wanted) {
      continue;
    }
    std::optional<Type> cut = recut(other, block, *wanted, axes);
    if (!cut) {
      return false;
    }
    other = std::move(*cut);
  }
  return a == other;
}

} // namespace shardc
