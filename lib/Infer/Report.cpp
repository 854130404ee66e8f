// Faults as messages. The message says what was seen; labels say since when, found by following the state back through the
// operations that handed it on; helps are the mends that were found by trial, with their price.
#include "Report.h"
#include "shardc/IR/Text.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc {
namespace {

using llvm::formatv;

std::string bytesText(int64_t bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = double(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? formatv("{0} B", bytes).str() : formatv("{0:F1} {1}", value, units[unit]).str();
}

class Reporter {
public:
  Reporter(const Frame &f, const Op &o, llvm::ArrayRef<ValueId> ops, const Fault &ft)
      : frame(f), module(f.module), op(o), operands(ops), fault(ft) {
    axes = module.axes.describe(fault.atoms, view());
  }

  llvm::StringRef view() const { return module.viewOf(frame.function); }

  std::string name(uint32_t operand) const {
    if (operand >= operands.size()) {
      return "value";
    }
    llvm::StringRef text = module.names.str(frame.function.values[operands[operand].index].name);
    return text.empty() ? "value" : text.str();
  }
  const Type &type(uint32_t operand) const { return module.types[frame.values[operands[operand].index]]; }
  std::string opName() const { return opInfo(op.kind).name.str(); }
  int64_t ranks() const { return module.axes.product(fault.atoms); }

  // "partial over `tp`", "sharded on `T` over `tp`", "replicated over `tp`".
  std::string describe(uint32_t operand) const {
    if (fault.atoms.empty() || operand >= operands.size()) {
      return "";
    }
    const Type &t = type(operand);
    AtomId atom = fault.atoms[0];
    switch (stateOf(t, atom)) {
    case State::R:
      return formatv("replicated over `{0}`", axes).str();
    case State::I:
      return formatv("invariant over `{0}`", axes).str();
    case State::V:
      return formatv("varying over `{0}`", axes).str();
    case State::P:
      return formatv("partial over `{0}`", axes).str();
    case State::PAvg:
      return formatv("partial (an average) over `{0}`", axes).str();
    case State::PMax:
      return formatv("partial (a maximum) over `{0}`", axes).str();
    case State::PMin:
      return formatv("partial (a minimum) over `{0}`", axes).str();
    case State::S:
      return formatv("sharded on `{0}` over `{1}`", dimName(t.dims[shardPlace(t, atom)->dim], module), axes).str();
    }
    return "";
  }

  // The value and operation where an operand's state on the fault's first atom began.
  void labelOrigin(uint32_t operand, llvm::SmallVectorImpl<std::pair<SourceRange, std::string>> &labels) const {
    if (fault.atoms.empty() || operand >= operands.size()) {
      return;
    }
    AtomId atom = fault.atoms[0];
    ValueId value = operands[operand];
    State state = stateOf(type(operand), atom);
    for (int steps = 0; steps < 64; ++steps) {
      uint32_t definer = frame.definers[value.index];
      if (definer == ~0u) {
        labels.emplace_back(
            frame.function.values[value.index].range,
            formatv("`{0}` is {1} here", module.names.str(frame.function.values[value.index].name), describe(operand)).str());
        return;
      }
      const Op &maker = frame.function.ops[definer];
      std::optional<ValueId> before;
      for (ValueId v : frame.function.operandsOf(maker)) {
        TypeId t = frame.values[v.index];
        if (t.valid() && stateOf(module.types[t], atom) == state) {
          before = v;
          break;
        }
      }
      if (!before || maker.kind == OpKind::Call) {
        labels.emplace_back(maker.range, since(maker, value, state, operand));
        return;
      }
      value = *before;
    }
  }

  // Those of the fault's axes that shard this dimension.
  std::string shardingAxes(const Type &t, uint32_t dim) const {
    llvm::SmallVector<AtomId, 4> found;
    for (AtomId a : fault.atoms) {
      std::optional<ShardPlace> at = shardPlace(t, a);
      if (at && at->dim == dim) {
        found.push_back(a);
      }
    }
    return module.axes.describe(found, view());
  }

  std::string since(const Op &maker, ValueId, State state, uint32_t operand) const {
    if (maker.kind == OpKind::Call || maker.kind == OpKind::Redistribute) {
      return describe(operand) + " since here";
    }
    if (isPartial(state)) {
      for (ValueId v : frame.function.operandsOf(maker)) {
        TypeId t = frame.values[v.index];
        std::optional<ShardPlace> at = t.valid() ? shardPlace(module.types[t], fault.atoms[0]) : std::nullopt;
        if (at) {
          return formatv("partial since this contraction over `{0}`, which `{1}` shards", dimName(module.types[t].dims[at->dim], module),
                         axes)
              .str();
        }
      }
    }
    return describe(operand) + " since here";
  }

  std::string fixText(const Fix &fix) const {
    llvm::StringRef primitive = primitiveName(fix.move.forward);
    std::string value = name(fix.operand);
    std::string target = print(fix.changed, module, view());
    std::string verb = primitive.empty() ? formatv("relabel `{0}` as `{1}`", value, target).str()
                                         : formatv("{0} `{1}` to `{2}`", primitive, value, target).str();
    std::string what = opName();
    std::string text = formatv("{0} before the {1}", verb, what).str();
    if (fault.kind == FaultKind::ReplicatedIntoPartial && fix.operand == fault.a) {
      text = formatv("add `{0}` after the {1} of `{2}`: `{2}` becomes `{3}`", name(fault.b), primitive, value, target).str();
    }
    return text + "\n" + price(fix);
  }

  std::string price(const Fix &fix) const {
    const Move &m = fix.move;
    std::string forward, backward;
    auto cost = [&](Primitive p, const Cost &c) -> std::string {
      if (!communicates(p)) {
        return "nothing";
      }
      return m.localBytes ? formatv("{0} {1} per rank", primitiveName(p), bytesText(c.bytes)).str() : primitiveName(p).str();
    };
    forward = cost(m.forward, m.forwardCost);
    bool grad = fix.changed.grad;
    backward = grad ? cost(m.gradient, m.gradientCost) : std::string("none");
    return formatv("forward {0}, gradient {1}, over {2} ({3} ranks)", forward, backward, axes, m.ranks).str();
  }

  // The range to point at: the operation as written.
  SourceRange place() const { return op.range; }

  const Frame &frame;
  const Module &module;
  const Op &op;
  llvm::ArrayRef<ValueId> operands;
  const Fault &fault;
  std::string axes;
};

// Everything a pending message needs, owned by it.
struct Message {
  std::function<DiagnosticBuilder(DiagnosticEngine &)> emit;
  llvm::SmallVector<std::pair<SourceRange, std::string>, 4> labels;
  std::vector<std::string> notes;
  std::vector<std::string> helps;
  std::string path;
};

template <Diag id, class... Args> std::function<DiagnosticBuilder(DiagnosticEngine &)> emitter(SourceRange range, Args... args) {
  return [=](DiagnosticEngine &diags) { return diags.emit<id>(range, args...); };
}

Pending pend(Message m) {
  return [m = std::move(m)](int64_t uses, DiagnosticEngine &diags) {
    DiagnosticBuilder b = m.emit(diags);
    for (const auto &[range, text] : m.labels) {
      b.label(range, text);
    }
    for (const std::string &n : m.notes) {
      b.note(n);
    }
    for (const std::string &h : m.helps) {
      b.help(h);
    }
    if (!m.path.empty()) {
      b.note("in `" + m.path + "`");
    }
    b.count(std::max<int64_t>(uses, 1), "places");
  };
}

std::string writtenEnd(const Op &op, const Module &module, llvm::StringRef view) {
  if (!op.attrs.valid()) {
    return "";
  }
  return print(module.attrs[op.attrs.index].change, module, view);
}

std::function<DiagnosticBuilder(DiagnosticEngine &)> moveMessage(const Reporter &r) {
  const Fault &f = r.fault;
  SourceRange at = r.place();
  std::string value = r.name(0), written = writtenEnd(r.op, r.module, r.view());
  switch (f.kind) {
  case FaultKind::WrongSource:
    return emitter<Diag::WrongSource>(at, value, r.describe(0), written);
  case FaultKind::NoSuchChange:
    return emitter<Diag::NoSuchChange>(at, value, f.text, r.axes);
  case FaultKind::NotInnermost:
    return emitter<Diag::NotInnermost>(at, r.axes, value, f.dim);
  case FaultKind::NoSuchDim:
    return emitter<Diag::NoSuchDim>(at, value, f.text, f.dim);
  case FaultKind::UnevenExchange:
    return emitter<Diag::UnevenExchange>(at, value, f.dim, r.axes);
  default:
    return emitter<Diag::NotUniform>(at, value, r.axes);
  }
}

std::function<DiagnosticBuilder(DiagnosticEngine &)> message(const Reporter &r) {
  const Fault &f = r.fault;
  SourceRange at = r.place();
  std::string a = r.name(f.a), b = r.name(f.b), what = r.opName();
  switch (f.kind) {
  case FaultKind::Rank:
    return emitter<Diag::WrongDims>(at, a, r.type(f.a).dims.size(), what, f.text);
  case FaultKind::Shape:
    return emitter<Diag::ShapeMismatch>(at, a, f.dim, b, f.text, what);
  case FaultKind::NotContiguous:
    return emitter<Diag::NotContiguous>(at, f.dim, a, what);
  case FaultKind::MixedInvariant:
    return emitter<Diag::InvariantMixes>(at, a, r.axes, b, f.a == f.b ? std::string("changed on each rank") : r.describe(f.b));
  case FaultKind::PartialIntoNonlinear:
    return emitter<Diag::PartialIntoNonlinear>(at, a, r.describe(f.a), what);
  case FaultKind::PartialIndex:
    return emitter<Diag::PartialIndex>(at, a, r.axes);
  case FaultKind::PartialTimesPartial:
    return emitter<Diag::PartialTimesPartial>(at, a, b, r.axes, what);
  case FaultKind::ReplicatedIntoPartial:
    return emitter<Diag::ReplicatedIntoPartial>(at, a, r.axes, b, r.ranks());
  case FaultKind::MixedPartials:
    return emitter<Diag::MixedPartials>(at, a, r.describe(f.a), b, r.describe(f.b));
  case FaultKind::PartialMeetsShard:
    return emitter<Diag::AddMixesLayouts>(at, a, r.describe(f.a), b, r.describe(f.b), "mix an unfinished sum with a finished part");
  case FaultKind::PartialTimesShard:
    return emitter<Diag::PartialTimesShard>(at, a, r.describe(f.a), b, r.describe(f.b), what);
  case FaultKind::ShardedWhole:
    return emitter<Diag::ShardedWhole>(at, a, f.dim, r.axes, what);
  case FaultKind::ShardMeetsReplicated:
    return emitter<Diag::ShardMeetsReplicated>(at, a, f.dim, r.axes, b,
                                               isPartial(stateOf(r.type(f.b), f.atoms[0])) ? r.describe(f.b) : "whole there");
  case FaultKind::ShardConflict:
    return emitter<Diag::ShardConflict>(at, a, f.dim, r.axes, b, f.text);
  case FaultKind::ShardOrder:
    return emitter<Diag::ShardOrder>(at, a, b, f.dim);
  case FaultKind::ShardBoundaries:
    return emitter<Diag::ShardBoundaries>(at, a, b, f.dim);
  case FaultKind::OtherSlots:
    return emitter<Diag::OtherSlots>(at, a, b);
  case FaultKind::VaryingMeets:
    return emitter<Diag::VaryingMeets>(at, a, r.axes, b, r.describe(f.b));
  case FaultKind::VaryingExtents:
    return emitter<Diag::VaryingExtents>(at, a, f.dim, r.axes);
  case FaultKind::UnevenMean:
    return emitter<Diag::UnevenMean>(at, a, f.dim, r.axes);
  case FaultKind::UnknownPad:
    return emitter<Diag::UnknownPad>(at, a, f.dim, what);
  case FaultKind::NewNeedsReplicated:
    return emitter<Diag::NewNeedsReplicated>(at, f.dim, r.axes, a, r.describe(f.a));
  case FaultKind::UnevenView:
    return emitter<Diag::UnevenView>(at, what, f.dim, a, r.axes.empty() ? std::string("an inner part") : "a shard over `" + r.axes + "`");
  case FaultKind::Recut:
    return emitter<Diag::ViewsCutDifferently>(at, a, f.a == f.b ? std::string("this change") : "`" + b + "`", r.axes);
  case FaultKind::BadAttribute:
    return emitter<Diag::BadAttribute>(at, what, f.text);
  case FaultKind::WrongSource:
  case FaultKind::NoSuchChange:
  case FaultKind::NotInnermost:
  case FaultKind::NoSuchDim:
  case FaultKind::UnevenExchange:
  case FaultKind::NotUniform:
    return moveMessage(r);
  }
  return moveMessage(r);
}

} // namespace

Pending reportFault(const Frame &frame, const Op &op, llvm::ArrayRef<ValueId> operands, const Fault &fault, std::vector<Fix> fixes) {
  Reporter r(frame, op, operands, fault);
  Message m;
  m.emit = message(r);
  m.path = frame.path;
  r.labelOrigin(fault.a, m.labels);
  if (fault.b != fault.a) {
    r.labelOrigin(fault.b, m.labels);
  }
  for (const Fix &fix : llvm::ArrayRef(fixes).take_front(2)) {
    m.helps.push_back((m.helps.empty() ? "" : "or ") + r.fixText(fix));
  }
  return pend(std::move(m));
}

Pending reportWritten(const Frame &frame, ValueId value, TypeId inferred) {
  const Value &v = frame.function.values[value.index];
  Message m;
  m.emit = emitter<Diag::NotAsWritten>(v.declaredRange, frame.module.names.str(v.name).str(),
                                       print(frame.module.types[v.declared], frame.module, frame.module.viewOf(frame.function)),
                                       print(frame.module.types[inferred], frame.module, frame.module.viewOf(frame.function)));
  m.labels.emplace_back(v.range, "made here");
  m.path = frame.path;
  return pend(std::move(m));
}

} // namespace shardc
