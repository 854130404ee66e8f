// Values that a run starts from: random elements of the whole, and each rank's part of them by the declared type.
//
// Addends of partial values are random and sum to the whole, so that no rank holds anything that could pass for it. Integers
// that are used as an index stay below what they index.
#include "Execution.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc {

bool isVarying(const Type &t) {
  return llvm::any_of(t.states, [](const auto &s) { return s.second == State::V; });
}

uint64_t Execution::keyOf(llvm::StringRef path) const {
  uint64_t key = mix(options.seed);
  for (char c : path) {
    key = keyedWord(key, static_cast<uint64_t>(c));
  }
  return key;
}

std::optional<Tensor> Execution::randomWhole(const Type &t, uint64_t key, int64_t bound) {
  Tensor whole;
  whole.dims = localDims(t, -1, module.axes);
  int64_t n = 1;
  for (const Extents &d : whole.dims) {
    for (int64_t e : d) {
      if (e < 0 || __builtin_mul_overflow(n, e, &n) || n > (int64_t(1) << 32)) {
        return std::nullopt;
      }
    }
  }
  whole.data.resize(static_cast<size_t>(n));
  for (size_t i = 0; i < whole.data.size(); ++i) {
    const Element e = keyed(key, i);
    whole.data[i] = t.dtype == DType::Bool ? e & 1
                    : !isFloat(t.dtype)    ? e % static_cast<Element>(bound)
                    : options.integers     ? subtract(e % 7, 3)
                                           : e;
  }
  // A pad that the type says is zero is zero.
  for (size_t d = 0; d < t.dims.size(); ++d) {
    if (llvm::none_of(t.dims[d].factors, [](const Factor &f) { return f.pad == Pad::Zero; })) {
      continue;
    }
    int64_t plain = 1;
    for (const Factor &f : t.dims[d].factors) {
      plain *= f.extent;
    }
    const std::optional<std::vector<int64_t>> kept = dimPart(t.dims[d], -1, module.axes, plain);
    std::vector<int64_t> positions(static_cast<size_t>(whole.extent(d)));
    for (size_t i = 0; i < positions.size(); ++i) {
      positions[i] = kept && (*kept)[i] >= 0 ? static_cast<int64_t>(i) : -1;
    }
    const Extents dims = whole.dims[d];
    whole = pick(whole, d, positions);
    whole.dims[d] = dims;
  }
  return whole;
}

// What a rank has in the place of a maximum (minimum) that another rank holds: nothing larger (smaller). An index stays one.
static Element beside(Element e, Element apart, State kind, const Type &t, bool integers) {
  const bool near = integers || !isFloat(t.dtype);
  if (kind == State::PMin) {
    return add(e, apart % (near ? 4 : Prime - placeInOrder(e)));
  }
  return !isFloat(t.dtype) ? apart % (e + 1) : near ? subtract(e, apart % 4) : elementAt(apart % (placeInOrder(e) + 1));
}

bool Execution::spreadOut(const Tensor &whole, const Type &t, uint64_t key, Spread &out) {
  llvm::SmallVector<AtomId, 4> partial;
  State kind = State::P;
  for (AtomId a : activeAtoms(t)) {
    if (isPartial(stateOf(t, a))) {
      if (!partial.empty() && stateOf(t, a) != kind) {
        return false;
      }
      kind = stateOf(t, a);
      partial.push_back(a);
    }
  }
  const int64_t n = module.axes.product(partial);
  for (int64_t rank : ranks.list) {
    const int64_t own = module.axes.coordinate(rank, partial);
    Tensor addend = whole;
    for (size_t i = 0; n > 1 && i < addend.data.size(); ++i) {
      Element &e = addend.data[i];
      const Element apart = keyed(key, i, static_cast<uint64_t>(own));
      switch (kind) {
      case State::PMax:
      case State::PMin: // one rank has it
        e = own == static_cast<int64_t>(keyed(key, i) % static_cast<Element>(n)) ? e : beside(e, apart, kind, t, options.integers);
        break;
      case State::R:
      case State::I:
      case State::V:
      case State::S:
      case State::P:
      case State::PAvg:
        e = kind == State::PAvg ? multiply(e, fromInteger(n)) : e;
        for (int64_t c = 1; c < n && own == 0; ++c) {
          e = subtract(e, keyed(key, i, static_cast<uint64_t>(c)));
        }
        e = own == 0 ? e : apart;
        break;
      }
    }
    // On axes where it varies each rank has something of its own.
    for (const auto &[atom, state] : t.states) {
      for (size_t i = 0; state == State::V && i < addend.data.size(); ++i) {
        const uint64_t at = static_cast<uint64_t>(module.axes.coordinate(rank, atom)) + 2;
        addend.data[i] = isFloat(t.dtype) ? keyed(keyedWord(key, addend.data[i]), atom.index, at) : addend.data[i];
      }
    }
    std::optional<Tensor> part = cut(addend, t, rank, module.axes);
    if (!part) {
      return false;
    }
    out.ranks.push_back(std::move(*part));
  }
  out.failed = false;
  return true;
}

// The least extent that the integer indexes, wherever it is used; 0 if it never is.
int64_t Execution::indexBound(uint32_t instance, ValueId value, int depth) const {
  const Instance &here = typed.instances[instance];
  const Function &f = module.function(here.function);
  int64_t bound = 0;
  const auto limit = [&](int64_t n) { bound = n > 0 && (bound == 0 || n < bound) ? n : bound; };
  const auto extentOf = [&](ValueId v, int64_t fromEnd) -> int64_t {
    const TypeId t = here.values[v.index];
    const auto dims = t.valid() ? llvm::ArrayRef<Dim>(module.types[t].dims) : llvm::ArrayRef<Dim>();
    const auto n = static_cast<int64_t>(dims.size());
    return fromEnd > n || n == 0 ? 0 : product(localExtents(dims[static_cast<size_t>(n - fromEnd)], -1, module.axes));
  };
  for (uint32_t i = 0; i < f.ops.size() && depth < 64; ++i) {
    const Op &op = f.ops[i];
    const llvm::ArrayRef<ValueId> operands = f.operandsOf(op);
    for (uint32_t k = 0; k < operands.size(); ++k) {
      if (operands[k] != value) {
        continue;
      }
      const llvm::StringRef kernel = opInfo(op.kind).kernel;
      const Attrs *attrs = op.attrs.valid() ? &module.attrs[op.attrs.index] : nullptr;
      if (kernel == "lookup" && k == 0) {
        limit(extentOf(operands[1], 2));
      } else if ((kernel == "gather" || kernel == "crossEntropy") && k == 1) {
        limit(extentOf(operands[0], 1));
      } else if ((kernel == "count" || kernel == "route" || op.kind == OpKind::OneHot) && attrs && !attrs->dims.empty()) {
        limit(product(localExtents(attrs->dims[0], -1, module.axes)));
      } else if (op.kind == OpKind::Call) {
        limit(indexBound(here.callees[i], module.function(op.callee).inputs[k], depth + 1));
      } else if (kernel == "move" || kernel == "view" || kernel == "copy" || kernel == "relabel") {
        for (uint32_t r = 0; r < op.numResults; ++r) {
          limit(indexBound(instance, f.result(op, r), depth + 1));
        }
      }
    }
  }
  return bound;
}

static std::string whyNoValue(const std::string &name, bool hasWhole) {
  return "`" + name + "` " +
         (hasWhole ? "is partial in two ways at once, which can be read in two orders"
                   : "has an extent that is not a number, or that is too large");
}

bool Execution::makeRoots(Frame &frame) {
  const Function &f = functionOf(frame);
  for (ValueId v : f.inputs) {
    const Type *t = typeOf(frame, v);
    const std::string name = module.names.str(f.values[v.index].name).str();
    const int64_t bound = indexBound(frame.instance, v, 0);
    std::optional<Tensor> whole = t ? randomWhole(*t, keyOf("input " + name), bound ? bound : 8) : std::nullopt;
    if (!whole || !spreadOut(*whole, *t, keyOf("addends " + name), frame.values[v.index])) {
      return unable(f.values[v.index].range, whyNoValue(name, whole.has_value()));
    }
    if (!isVarying(*t)) {
      frame.whole[v.index] = std::move(whole);
    }
  }
  return true;
}

bool Execution::makeParams(Frame &frame) {
  const Function &f = functionOf(frame);
  for (ValueId v : f.params) {
    const Type *t = typeOf(frame, v);
    const std::string name = nameOf(frame, v);
    std::optional<Tensor> whole = t ? randomWhole(*t, keyOf("param " + name), 8) : std::nullopt;
    if (!whole || !spreadOut(*whole, *t, keyOf("addends " + name), frame.values[v.index])) {
      return unable(f.values[v.index].range, whyNoValue(name, whole.has_value()));
    }
    if (!isVarying(*t)) {
      frame.whole[v.index] = std::move(whole);
    }
  }
  return true;
}

// The whole from what all ranks hold: each rank's part at its place, addends added up.
std::optional<Tensor> Execution::assemble(const Spread &value, const Type &t) const {
  Tensor whole;
  whole.dims = localDims(t, -1, module.axes);
  if (value.ranks.empty() || value.ranks[0].slots || isVarying(t) ||
      llvm::any_of(whole.dims, [](const Extents &d) { return llvm::any_of(d, [](int64_t e) { return e < 0; }); })) {
    return std::nullopt;
  }
  whole = makeTensor(whole.dims);
  llvm::SmallVector<AtomId, 8> moving;
  for (AtomId a : activeAtoms(t)) {
    if (stateOf(t, a) == State::PMax || stateOf(t, a) == State::PMin || stateOf(t, a) == State::PAvg) {
      return std::nullopt;
    }
    if (stateOf(t, a) != State::I) {
      moving.push_back(a);
    }
  }
  const auto groups = ranks.groups(moving);
  for (size_t i : groups[0]) { // one rank per part and addend
    Tensor part = value.ranks[i];
    for (size_t d = t.dims.size(); d-- > 0;) {
      const std::optional<std::vector<int64_t>> at = dimPart(t.dims[d], ranks.list[i], module.axes, whole.extent(d));
      if (!at || static_cast<int64_t>(at->size()) != part.extent(d)) {
        return std::nullopt;
      }
      part = place({&part}, d, {*at}, whole.extent(d));
    }
    for (size_t e = 0; e < whole.data.size(); ++e) {
      whole.data[e] = add(whole.data[e], part.data[e]);
    }
  }
  return whole;
}

} // namespace shardc
