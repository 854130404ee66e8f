// Expansion: names of values and the order in which a program runs. See the header.
#include "Expansion.h"
#include "shardc/Emit/Types.h"
#include "shardc/IR/Text.h"
#include "llvm/Support/MathExtras.h"

namespace shardc {

namespace {

std::string plainName(const Module &module, const Function &function, ValueId id, llvm::ArrayRef<llvm::StringRef> opOfValue) {
  const Value &value = function.values[id.index];
  if (value.name.valid()) {
    return module.names.str(value.name).str();
  }
  return opOfValue[id.index].empty() ? "value" : opOfValue[id.index].str();
}

// What a call's results are called: by the module if there is one, else by the module and the callee's name of it.
std::string callResultName(const Module &module, const Op &op, llvm::StringRef call, uint32_t result) {
  const Function &callee = module.function(op.callee);
  if (op.numResults == 1 || result >= callee.results.size()) {
    return op.numResults == 1 ? call.str() : (call + "." + std::to_string(result)).str();
  }
  const llvm::StringRef name = module.names.str(callee.values[callee.results[result].index].name);
  return (call + "." + (name.empty() ? llvm::StringRef(std::to_string(result)) : name)).str();
}

LocalNames nameFunction(const Module &module, const Function &function, bool isRoot) {
  LocalNames names;
  const size_t count = function.values.size();
  names.values.resize(count);
  names.plain.resize(count);
  names.hidden.assign(count, false);
  names.calls.resize(function.ops.size());
  // Calls first: their results carry the module's name.
  std::vector<llvm::StringRef> opOfValue(count);
  std::vector<bool> fromCall(count, false);
  llvm::StringMap<unsigned> callCounts;
  for (size_t i = 0; i < function.ops.size(); ++i) {
    const Op &op = function.ops[i];
    if (op.kind == OpKind::Call) {
      std::string call = module.names.str(op.instance).str();
      const unsigned n = ++callCounts[call];
      names.calls[i] = n == 1 ? call : call + "#" + std::to_string(n);
    }
    for (uint32_t r = 0; r < op.numResults; ++r) {
      const size_t value = op.firstResult + r;
      opOfValue[value] = opInfo(op.kind).name;
      if (op.kind == OpKind::Call) {
        names.values[value] = callResultName(module, op, names.calls[i], r);
        fromCall[value] = true;
      }
    }
  }
  if (!isRoot) {
    for (ValueId result : function.results) {
      // The result of a submodule keeps that module's name and is shown under both.
      names.hidden[result.index] = function.values[result.index].kind == ValueKind::Result && !fromCall[result.index];
    }
  }
  // The last value of a name has the name: a boundary makes the name mean its result. Those before it are told apart.
  llvm::StringMap<unsigned> later;
  for (size_t i = count; i-- > 0;) {
    names.plain[i] = plainName(module, function, ValueId(i), opOfValue);
    if (fromCall[i] || names.hidden[i]) {
      continue;
    }
    const unsigned n = later[names.plain[i]]++;
    names.values[i] = n == 0 ? names.plain[i] : names.plain[i] + ".before" + (n == 1 ? "" : "." + std::to_string(n));
  }
  return names;
}

std::string endText(const Module &module, State state, NameId dim) {
  if (state != State::S) {
    return stateName(state).str();
  }
  return dim.valid() ? ("S(" + module.names.str(dim) + ")").str() : "S";
}

} // namespace

MoveText forwardText(const TypedModule &typed, const Move &move, llvm::StringRef view) {
  const Module &module = typed.module;
  MoveText text;
  text.from = endText(module, move.from, move.fromDim);
  text.to = endText(module, move.to, move.toDim);
  text.collective = primitiveName(move.forward).str();
  text.axes = module.axes.describe(move.atoms, view);
  text.ranks = move.ranks;
  if (move.localBytes) {
    text.bytes = move.forwardCost.bytes;
  }
  return text;
}

std::optional<MoveText> gradientText(const TypedModule &typed, const Instance &instance, const Move &move, llvm::StringRef view) {
  const Module &module = typed.module;
  if (!module.types[move.before].grad) {
    return std::nullopt;
  }
  MoveText text = forwardText(typed, move, view);
  text.collective = primitiveName(move.gradient).str();
  text.bytes = move.localBytes ? std::optional<int64_t>(move.gradientCost.bytes) : std::nullopt;
  // What a framework declares goes before the table.
  const Op &op = module.function(instance.function).ops[move.op];
  if (op.attrs.valid()) {
    const Change &change = module.attrs[op.attrs.index].change;
    if (change.parts.size() == 1 && change.declaredGradient.size() == 1) {
      const auto &[from, to] = change.declaredGradient.front();
      text.from = endText(module, from.state, from.dim);
      text.to = endText(module, to.state, to.dim);
      return text;
    }
  }
  const ChangeRow *row = findChange(move.from, move.to);
  if (!row || !row->gradient) {
    return std::nullopt;
  }
  text.from = endText(module, row->gradient->first, move.toDim);
  text.to = endText(module, row->gradient->second, move.fromDim);
  return text;
}

Expansion::Expansion(const TypedModule &program) : typed(program), gradients(inferValueGradients(program)) {
  localNames.reserve(typed.module.functions.size());
  for (size_t i = 0; i < typed.module.functions.size(); ++i) {
    localNames.push_back(nameFunction(typed.module, typed.module.functions[i], FunctionId(i) == typed.module.root));
  }
}

std::string Expansion::fullName(llvm::StringRef path, const Instance &instance, ValueId value) const {
  const LocalNames &local = names(instance.function);
  if (!local.hidden[value.index]) {
    const std::string &name = local.values[value.index];
    return path.empty() ? name : (path + "." + name).str();
  }
  const Function &function = typed.module.function(instance.function);
  return function.results.size() == 1 ? path.str() : (path + "." + local.plain[value.index]).str();
}

std::string Expansion::callPath(llvm::StringRef path, const Instance &instance, uint32_t op) const {
  const std::string &call = names(instance.function).calls[op];
  return path.empty() ? call : (path + "." + call).str();
}

uint32_t Expansion::callRun(uint32_t run, uint32_t op) const {
  if (run >= gradients.runs.size()) {
    return ValueGradients::None;
  }
  llvm::ArrayRef<std::pair<uint32_t, uint32_t>> calls = gradients.runs[run].calls;
  const auto *found = llvm::lower_bound(calls, std::pair(op, 0U));
  return found != calls.end() && found->first == op ? found->second : ValueGradients::None;
}

uint32_t Expansion::gradientOf(uint32_t run, ValueId value) const {
  return run < gradients.runs.size() ? gradients.runs[run].values[value.index] : ValueGradients::Unknown;
}

std::string Expansion::gradientText(const Type &type, uint32_t gradient, llvm::StringRef view) const {
  const Module &module = typed.module;
  if (!type.grad || gradient == ValueGradients::None) {
    return "none";
  }
  if (gradient == ValueGradients::Wrong) {
    return "unknown";
  }
  if (gradient == ValueGradients::Unknown) { // nothing is trained, or not everything has a type: what the table says
    const std::optional<Type> natural = dual(type, module.axes);
    return natural ? print(*natural, module, view) : "none";
  }
  const Gradient &g = gradients.gradients[gradient];
  return print(g.type, module, view) + (g.scale.isOne() ? "" : " times " + g.scale.describe(module.axes, view));
}

void Expansion::visitInstance(const std::string &path, uint32_t index, uint32_t run, const Visitor &visitor) const {
  const Instance &instance = typed.instances[index];
  const Function &function = typed.module.function(instance.function);
  const LocalNames &local = names(instance.function);
  const bool inside = visitor.enter(path, instance);
  const auto show = [&](ValueId value) {
    if (inside && !local.hidden[value.index]) {
      visitor.value(path, instance, value, run);
    }
  };
  for (ValueId input : function.inputs) {
    show(input);
  }
  for (ValueId param : function.params) {
    show(param);
  }
  size_t next = 0; // of the moves, which are in order of execution
  for (uint32_t i = 0; i < function.ops.size(); ++i) {
    const Op &op = function.ops[i];
    for (; next < instance.moves.size() && instance.moves[next].op <= i; ++next) {
      if (inside) {
        visitor.move(path, instance, instance.moves[next]);
      }
    }
    if (op.kind == OpKind::Call && i < instance.callees.size() && instance.callees[i] < typed.instances.size()) {
      visitInstance(callPath(path, instance, i), instance.callees[i], callRun(run, i), visitor);
    }
    for (uint32_t r = 0; r < op.numResults; ++r) {
      show(function.result(op, r));
    }
  }
}

uint64_t countValues(const TypedModule &typed) {
  // Callees stand before callers.
  std::vector<uint64_t> counts(typed.instances.size(), 0);
  for (size_t i = 0; i < typed.instances.size(); ++i) {
    const Instance &instance = typed.instances[i];
    counts[i] = 1 + typed.module.function(instance.function).values.size();
    for (uint32_t callee : instance.callees) {
      counts[i] = llvm::SaturatingAdd(counts[i], callee < i ? counts[callee] : 0);
    }
  }
  return counts.empty() ? 0 : counts[typed.root];
}

ModuleFilter::ModuleFilter(llvm::StringRef pattern) : everything(pattern.empty()) {
  if (everything) {
    return;
  }
  llvm::Expected<llvm::GlobPattern> parsed = llvm::GlobPattern::create(pattern);
  if (parsed) {
    glob = std::move(*parsed);
  } else {
    llvm::consumeError(parsed.takeError());
  }
}

bool ModuleFilter::selects(llvm::StringRef path) const {
  if (everything) {
    return true;
  }
  for (llvm::StringRef part = path; glob && !part.empty(); part = part.rsplit('.').first) {
    if (glob->match(part)) {
      return true;
    }
    if (!part.contains('.')) {
      break;
    }
  }
  return false;
}

} // namespace shardc
