// Infer: one pass over each function per distinct signature.
//
// The problem. A job has millions of values but few distinct questions: 61 equal layers, equal operations on equal types.
//
// What we do. A function is inferred once per tuple of input types, an operation once per operand types (its answer is
// kept and looked up). Types flow forward only; the one thing that is looked for ahead is the sharding of a dimension that
// an operation makes new, which the operations that use it decide. After a fault the best mend is taken as if it had been
// written, and what depends on it is not reported again: one finding per cause.
//
// Why it ends and what it costs. Calls are nested finitely (a function calls only functions made before it); each distinct
// operation is typed once, each other one costs a look-up.
#include "Links.h"
#include "Report.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Allocator.h"
#include <map>

namespace shardc {
namespace {

class Inferrer {
public:
  Inferrer(TypedModule &t, const InferOptions &o) : typed(t), module(t.module), options(o) {}

  void run(DiagnosticEngine &diags) {
    const Function &root = module.function(module.root);
    std::vector<TypeId> inputs;
    inputs.reserve(root.inputs.size());
    for (ValueId v : root.inputs) {
      inputs.push_back(root.values[v.index].declared);
    }
    typed.root = instantiate(module.root, inputs, std::vector<bool>(inputs.size()), "");
    countUses();
    for (auto &[instance, emit] : pending) {
      emit(usesAlike(instance), diags);
    }
  }

private:
  using Key = std::tuple<uint32_t, std::vector<TypeId>, std::vector<bool>>;

  struct Work {
    FunctionId id;
    const Function *function;
    const Links *links;
    Instance instance;
    std::vector<bool> tainted; // rests on a fault that was reported
    std::string path;
    std::vector<Pending> messages;
  };

  const Links &linksOf(FunctionId id) {
    auto it = links.find(id.index);
    if (it != links.end()) {
      return it->second;
    }
    return links[id.index] = linkFunction(module.function(id));
  }

  uint32_t instantiate(FunctionId id, const std::vector<TypeId> &inputs, const std::vector<bool> &taints, const std::string &path) {
    Key key{id.index, inputs, taints};
    if (auto it = known.find(key); it != known.end()) {
      return it->second;
    }
    Work s;
    s.id = id;
    s.function = &module.function(id);
    s.links = &linksOf(id);
    s.path = path;
    s.instance.function = id;
    s.instance.inputs = inputs;
    s.instance.values.assign(s.function->values.size(), TypeId());
    s.instance.callees.assign(s.function->ops.size(), NoOp);
    const auto moves = llvm::count_if(s.function->ops, [](const Op &op) { return opInfo(op.kind).typing == Typing::Move; });
    s.instance.moves.reserve(static_cast<size_t>(moves));
    s.tainted.assign(s.function->values.size(), false);
    for (size_t i = 0; i < s.function->inputs.size() && i < inputs.size(); ++i) {
      s.tainted[s.function->inputs[i].index] = taints[i];
      settle(s, s.function->inputs[i], inputs[i], taints[i]);
    }
    for (ValueId p : s.function->params) {
      s.instance.values[p.index] = s.function->values[p.index].declared;
    }
    for (uint32_t i = 0; i < s.function->ops.size(); ++i) {
      inferOp(s, i);
    }
    uint32_t index = uint32_t(typed.instances.size());
    taintedResults.emplace_back();
    rests.push_back(llvm::is_contained(taints, true));
    for (ValueId v : s.function->results) {
      taintedResults.back().push_back(s.tainted[v.index]);
    }
    s.instance.failed = !s.messages.empty() || llvm::is_contained(s.tainted, true);
    typed.instances.push_back(std::move(s.instance));
    for (Pending &m : s.messages) {
      pending.emplace_back(index, std::move(m));
    }
    known.emplace(std::move(key), index);
    return index;
  }

  void inferOp(Work &s, uint32_t index) {
    const Op &op = s.function->ops[index];
    llvm::ArrayRef<ValueId> operands = s.function->operandsOf(op);
    bool tainted = false;
    for (ValueId v : operands) {
      if (!s.instance.values[v.index].valid()) {
        return taintResults(s, op); // its own fault was reported where it arose
      }
      tainted |= s.tainted[v.index];
    }
    if (tainted) {
      taintResults(s, op);
    }
    if (op.kind == OpKind::Call) {
      return inferCall(s, index, operands);
    }
    llvm::SmallVector<TypeId, 4> types;
    for (ValueId v : operands) {
      types.push_back(s.instance.values[v.index]);
    }
    if (const llvm::SmallVector<TypeId, 2> *answer = lookUp(op, types)) {
      for (uint32_t r = 0; r < op.numResults; ++r) {
        setResult(s, op, r, (*answer)[r], tainted);
      }
      return;
    }
    typeAndRecord(s, index, types, tainted);
  }

  void taintResults(Work &s, const Op &op) {
    for (uint32_t r = 0; r < op.numResults; ++r) {
      s.tainted[op.firstResult + r] = true;
    }
  }

  void setResult(Work &s, const Op &op, uint32_t r, TypeId type, bool tainted) { settle(s, s.function->result(op, r), type, tainted); }

  // A written type is verified; where it differs it is taken as meant, and what depends on it is not reported again.
  void settle(Work &s, ValueId v, TypeId type, bool tainted) {
    const Value &value = s.function->values[v.index];
    s.instance.values[v.index] = type;
    if (!type.valid() || !value.declared.valid() || value.declared == type ||
        sameAsWritten(module.types[value.declared], module.types[type])) {
      return;
    }
    if (!tainted) {
      s.messages.push_back(reportWritten(frameOf(s), v, type));
    }
    s.instance.values[v.index] = value.declared;
    s.tainted[v.index] = true;
  }

  // Names and whether a gradient flows are not part of what is written.
  bool sameAsWritten(const Type &written, const Type &inferred) {
    llvm::SmallVector<Type, 2> both = {written, inferred};
    if (recutOperands(both, module.axes)) {
      return false;
    }
    bool same = both[0].dtype == both[1].dtype && both[0].states == both[1].states && both[0].dims.size() == both[1].dims.size();
    for (size_t d = 0; same && d < both[0].dims.size(); ++d) {
      same = sameLayout(both[0].dims[d], both[1].dims[d], module.axes);
    }
    return same;
  }

  Frame frameOf(const Work &s) const { return {module, *s.function, s.instance.values, s.links->definers, s.path}; }

  // Answers that depend on operand types alone are shared by the whole program.
  bool shareable(const Op &op, llvm::ArrayRef<TypeId>) const {
    const OpInfo &info = opInfo(op.kind);
    return info.typing == Typing::Row && info.takes != Takes::Dims;
  }

  const llvm::SmallVector<TypeId, 2> *lookUp(const Op &op, llvm::ArrayRef<TypeId> types) {
    if (!shareable(op, types)) {
      return nullptr;
    }
    auto it = answers.find(asText(answerKey(op, types)));
    return it == answers.end() ? nullptr : &it->second;
  }

  static llvm::SmallVector<uint32_t, 6> answerKey(const Op &op, llvm::ArrayRef<TypeId> types) {
    llvm::SmallVector<uint32_t, 6> key = {uint32_t(op.kind), op.attrs.index};
    for (TypeId t : types) {
      key.push_back(t.index);
    }
    return key;
  }

  static llvm::StringRef asText(llvm::ArrayRef<uint32_t> key) {
    return {reinterpret_cast<const char *>(key.data()), key.size() * sizeof(uint32_t)};
  }

  // A literal zero: `zeros(...)`, also after operations that only rename or move it.
  bool isZero(const Work &s, ValueId v) const {
    for (int steps = 0; steps < 16; ++steps) {
      uint32_t d = s.links->definers[v.index];
      if (d == NoOp) {
        return false;
      }
      const Op &op = s.function->ops[d];
      if (op.kind == OpKind::Zeros) {
        return true;
      }
      if (op.kind != OpKind::Identity && op.kind != OpKind::Redistribute && op.kind != OpKind::Cast) {
        return false;
      }
      v = s.function->operandsOf(op)[0];
    }
    return false;
  }

  // Dispatch and combine belong together if their ids are the same value, however it was moved. Ids are numbered in the
  // order in which dispatches use them; other ids get a number that no dispatch has.
  uint32_t siteOf(const Work &s, const Op &op) {
    if (op.kind != OpKind::Dispatch && op.kind != OpKind::Combine) {
      return 0;
    }
    ValueId v = s.function->operandsOf(op)[1];
    for (uint32_t d = s.links->definers[v.index]; d != NoOp && s.function->ops[d].kind == OpKind::Redistribute;
         d = s.links->definers[v.index]) {
      v = s.function->operandsOf(s.function->ops[d])[0];
    }
    std::pair<uint32_t, uint32_t> key(s.id.index, v.index);
    if (op.kind == OpKind::Dispatch) {
      return sites.try_emplace(key, uint32_t(sites.size())).first->second;
    }
    auto it = sites.find(key);
    return it == sites.end() ? NoOp : it->second;
  }

  // Whether this function dispatches with ids of its own.
  bool hasSites(const Work &s) const {
    auto it = sites.lower_bound({s.id.index, 0});
    return it != sites.end() && it->first.first == s.id.index;
  }

  void typeAndRecord(Work &s, uint32_t index, llvm::ArrayRef<TypeId> types, bool tainted) {
    const Op &op = s.function->ops[index];
    llvm::ArrayRef<ValueId> operands = s.function->operandsOf(op);
    llvm::SmallVector<const Type *, 4> pointers;
    for (TypeId t : types) {
      pointers.push_back(&module.types[t]);
    }
    auto wanted = [&](uint32_t fromEnd) {
      return wantedSharding(module, *s.function, *s.links, s.instance.values, s.function->result(op), fromEnd);
    };
    auto zero = [&](uint32_t i) { return isZero(s, operands[i]); };
    uint32_t site = siteOf(s, op);
    TypingContext context{module, wanted, op, site, hasSites(s), zero};
    Typed answer = typeOp(context, pointers);
    bool zeroMatters = llvm::any_of(operands, [&](ValueId v) { return isZero(s, v); });
    if (answer.fault) {
      recover(s, index, context, pointers, answer, tainted);
    } else if (shareable(op, types) && !zeroMatters) {
      llvm::SmallVector<TypeId, 2> ids;
      for (const Type &t : answer.results) {
        ids.push_back(module.types.intern(t));
      }
      answers.try_emplace(asText(answerKey(op, types)), std::move(ids));
    }
    for (uint32_t r = 0; r < op.numResults && r < answer.results.size(); ++r) {
      setResult(s, op, r, module.types.intern(answer.results[r]), tainted || s.tainted[op.firstResult + r]);
    }
    for (Move &m : answer.moves) {
      m.value = m.value.valid() ? m.value : s.function->result(op);
      m.op = index;
      s.instance.moves.push_back(std::move(m));
    }
  }

  // Reports the fault, unless it rests on one, and goes on as if the best mend had been made.
  void recover(Work &s, uint32_t index, TypingContext &context, Operands pointers, Typed &answer, bool tainted) {
    const Op &op = s.function->ops[index];
    Fault fault = *answer.fault;
    std::vector<Fix> fixes =
        op.kind == OpKind::Redistribute || op.kind == OpKind::Reinterpret ? std::vector<Fix>() : findFixes(context, pointers, fault);
    if (!fixes.empty() && options.reshard == Reshard::Insert) {
      Move move = fixes[0].move;
      move.inserted = true;
      move.value = s.function->operandsOf(op)[fixes[0].operand];
      answer = std::move(fixes[0].outcome);
      answer.moves.insert(answer.moves.begin(), move);
      return;
    }
    taintResults(s, op);
    std::optional<Type> meant = op.kind == OpKind::Redistribute ? meantByChange(op, *pointers[0]) : std::nullopt;
    if (!tainted) {
      s.messages.push_back(reportFault(frameOf(s), op, s.function->operandsOf(op), fault, fixes));
    }
    if (!fixes.empty()) {
      answer = std::move(fixes[0].outcome);
    } else {
      answer = {};
      if (meant) {
        answer.results.push_back(std::move(*meant));
      }
    }
  }

  // A change whose source was written wrongly still says where it goes.
  std::optional<Type> meantByChange(const Op &op, Type type) {
    for (AxisChange part : module.attrs[op.attrs.index].change.parts) {
      part.from.reset();
      if (applyChange(type, part, false, module, nullptr)) {
        return std::nullopt;
      }
    }
    return type;
  }

  void inferCall(Work &s, uint32_t index, llvm::ArrayRef<ValueId> operands) {
    const Op &op = s.function->ops[index];
    std::vector<TypeId> types;
    std::vector<bool> taints;
    for (ValueId v : operands) {
      types.push_back(s.instance.values[v.index]);
      taints.push_back(s.tainted[v.index]);
    }
    // Calls recurse here, in the gradients and in everything that walks the program.
    static constexpr unsigned DeepestCalls = 512;
    if (depth >= DeepestCalls) {
      s.messages.push_back([range = op.range](int64_t, DiagnosticEngine &diags) { diags.emit<Diag::TooDeep>(range, DeepestCalls); });
      return taintResults(s, op);
    }
    ++depth;
    llvm::StringRef name = module.names.str(op.instance);
    uint32_t callee = instantiate(op.callee, types, taints, s.path.empty() ? name.str() : s.path + "." + name.str());
    --depth;
    s.instance.callees[index] = callee;
    const Function &f = module.function(op.callee);
    for (uint32_t r = 0; r < op.numResults && r < f.results.size(); ++r) {
      s.tainted[op.firstResult + r] = s.tainted[op.firstResult + r] || taintedResults[callee][r];
      TypeId t = typed.instances[callee].values[f.results[r].index];
      if (t.valid()) {
        setResult(s, op, r, t, s.tainted[op.firstResult + r]);
      }
    }
  }

  // Callees come before callers, so one pass from the root down counts all runs.
  void countUses() {
    typed.instances[typed.root].uses = 1;
    for (size_t i = typed.instances.size(); i-- > 0;) {
      for (uint32_t callee : typed.instances[i].callees) {
        if (callee != NoOp) {
          int64_t &uses = typed.instances[callee].uses;
          uses = __builtin_add_overflow(uses, typed.instances[i].uses, &uses) ? INT64_MAX : uses;
        }
      }
    }
  }

  // Runs that a finding speaks for: behind a fault, further calls of the same function were inferred in silence.
  int64_t usesAlike(uint32_t index) const {
    int64_t uses = typed.instances[index].uses;
    for (size_t i = 0; i < typed.instances.size(); ++i) {
      bool alike = i != index && typed.instances[i].function == typed.instances[index].function && rests[i];
      uses = __builtin_add_overflow(uses, alike ? typed.instances[i].uses : 0, &uses) ? INT64_MAX : uses;
    }
    return uses;
  }

  TypedModule &typed;
  Module &module;
  InferOptions options;
  unsigned depth = 0; // of calls
  std::map<uint32_t, Links> links;
  std::map<Key, uint32_t> known;
  std::vector<std::vector<bool>> taintedResults;           // per instance
  std::vector<bool> rests;                                 // per instance: some input rests on a fault
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> sites; // function and ids
  std::vector<std::pair<uint32_t, Pending>> pending;
  llvm::StringMap<llvm::SmallVector<TypeId, 2>, llvm::BumpPtrAllocator> answers; // by operation and operand types
};

} // namespace

namespace {
// The dtype of a result that is not that of the operands.
std::optional<DType> ownDType(const TypingContext &context, uint32_t result) {
  const OpInfo &info = opInfo(context.op.kind);
  if (context.op.kind == OpKind::Cast) {
    return parseDType(context.module.attrs[context.op.attrs.index].text);
  }
  if (!(info.noGrad >> result & 1) || info.typing != Typing::Row || context.op.kind == OpKind::Detach) {
    return std::nullopt;
  }
  return info.kernel == "compare" ? DType::Bool : DType::I64;
}
} // namespace

// Parts that follow one another are sharded alike or not at all: what is whole on every rank would be added up as often as
// there are ranks where the dimension is reduced, and its gradient would be partial where that of the others is a shard.
static std::optional<uint32_t> partlySharded(Operands operands) {
  for (uint32_t i = 0; i < operands.size(); ++i) {
    for (const Dim &d : operands[i]->dims) {
      if (d.concat && llvm::any_of(d.factors, [&](const Factor &f) { return f.atoms != d.factors[0].atoms; })) {
        return i;
      }
    }
  }
  return std::nullopt;
}

// The operands that pick elements: numbers with a fraction pick none.
static bool hasFractionalIndex(OpKind kind, Operands operands) {
  static constexpr std::pair<OpKind, uint32_t> Indices[] = {
      {OpKind::Embed, 0},    {OpKind::Count, 0},   {OpKind::OneHot, 0},       {OpKind::Take, 1},
      {OpKind::Dispatch, 1}, {OpKind::Combine, 1}, {OpKind::CrossEntropy, 1},
  };
  return llvm::any_of(Indices, [&](const auto &row) { return row.first == kind && isFloat(operands[row.second]->dtype); });
}

// A cast between floats rounds each addend. One that drops what is behind the point is only increasing, and one to truth
// values is neither.
static Linear linearOf(const TypingContext &context, const Type &x) {
  const std::optional<DType> to = context.op.kind == OpKind::Cast ? ownDType(context, 0) : std::nullopt;
  if (to == DType::Bool && x.dtype != DType::Bool) {
    return {};
  }
  const Linear &linear = opInfo(context.op.kind).linear;
  return to && !isFloat(*to) && isFloat(x.dtype) ? Linear{Linearity::Increasing, linear.operands} : linear;
}

static Typed typeByColumn(TypingContext &context, Operands operands) {
  const OpInfo &info = opInfo(context.op.kind);
  switch (info.typing) {
  case Typing::Row:
    return typeByRule(context, opRule(context.op.kind), linearOf(context, *operands[0]), info.reducer, operands);
  case Typing::Views:
    return typeView(context, operands);
  case Typing::Slots:
    return typeSlots(context, operands);
  case Typing::Loss:
    return typeLoss(context, operands);
  case Typing::Move:
    return typeMove(context, operands);
  case Typing::CallFunction:
    return {}; // the driver types calls
  }
  return {};
}

Typed typeOp(TypingContext &context, Operands operands) {
  if (const std::optional<uint32_t> i = partlySharded(operands)) {
    return failed(FaultKind::BadAttribute, *i, 0, {}, {}, "an operand has a dimension whose parts are not sharded alike");
  }
  if (hasFractionalIndex(context.op.kind, operands)) {
    return failed(FaultKind::BadAttribute, 0, 0, {}, {}, "the indices must be integers");
  }
  Typed typed = typeByColumn(context, operands);
  if (context.op.kind == OpKind::Cast && !ownDType(context, 0)) {
    return failed(FaultKind::BadAttribute, 0, 0, {}, {}, "`" + context.module.attrs[context.op.attrs.index].text + "` is no dtype");
  }
  if (std::optional<std::string> wrong = typed.fault ? std::nullopt : wrongConstant(context, operands)) {
    return failed(FaultKind::BadAttribute, 0, 0, {}, {}, *wrong);
  }
  for (uint32_t r = 0; r < typed.results.size(); ++r) {
    typed.results[r].dtype = ownDType(context, r).value_or(typed.results[r].dtype);
    typed.results[r].grad = typed.results[r].grad && isFloat(typed.results[r].dtype);
  }
  return typed;
}

TypedModule infer(Module module, const InferOptions &options, DiagnosticEngine &diags) {
  TypedModule typed;
  typed.module = std::move(module);
  Inferrer(typed, options).run(diags);
  return typed;
}

namespace {
void walkFrom(const TypedModule &typed, const std::string &path, const Instance &instance,
              llvm::function_ref<bool(llvm::StringRef, const Instance &)> visit) {
  if (!visit(path, instance)) {
    return;
  }
  const Function &f = typed.module.function(instance.function);
  for (size_t i = 0; i < f.ops.size(); ++i) {
    if (instance.callees[i] != NoOp) {
      llvm::StringRef name = typed.module.names.str(f.ops[i].instance);
      walkFrom(typed, path.empty() ? name.str() : path + "." + name.str(), typed.instances[instance.callees[i]], visit);
    }
  }
}
} // namespace

void walk(const TypedModule &typed, llvm::function_ref<bool(llvm::StringRef path, const Instance &instance)> visit) {
  walkFrom(typed, "", typed.instances[typed.root], visit);
}

} // namespace shardc
