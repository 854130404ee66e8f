// Body: from a line's text to operations of a function.
//
// The scope maps names to values. Operands are evaluated before the operation that takes them, so operations stand in the
// order in which they can run. A line that is wrong still defines its results, as values that nothing computes, so that
// one mistake is one message.
#include "BodyArguments.h"
#include "llvm/ADT/StringExtras.h"

namespace shardc {

namespace {
constexpr int64_t MaxRepeat = 100000;

std::string counted(size_t n, llvm::StringRef what) { return llvm::utostr(n) + " " + what.str() + (n == 1 ? "" : "s"); }
} // namespace

struct BodyBuilder::Impl {
  using Values = llvm::SmallVector<ValueId, 4>;

  struct Known {
    ValueId value;
    SourceRange range;
  };

  Module &module;
  FunctionId function;
  const SizeTable &sizes;
  DiagnosticEngine &diags;
  Resolve resolve;
  llvm::StringMap<Known> scope;
  llvm::StringMap<ValueId> temporaries; // not in scope: only their operation's user sees them
  llvm::StringMap<uint32_t> nextNumber; // of the temporaries of one name

  // Not kept: `resolve` may add functions.
  Function &body() { return module.function(function); }
  ParseEnv env() { return {module, sizes, diags}; }

  // `linear`, `linear_1`, ...: the first that is free.
  NameId temporaryName(llvm::StringRef base) {
    std::string name = base.str();
    uint32_t &next = nextNumber[base];
    while (scope.count(name) || temporaries.count(name)) {
      name = base.str() + "_" + llvm::utostr(++next);
    }
    return module.names.intern(name);
  }

  bool define(llvm::StringRef name, ValueId value, SourceRange range) {
    auto [it, isNew] = scope.try_emplace(name, Known{value, range});
    if (!isNew) {
      diags.emit<Diag::NameTaken>(range, name).label(it->second.range, "defined here");
      return false;
    }
    auto temporary = temporaries.find(name);
    if (temporary != temporaries.end()) { // what a person names keeps its name
      ValueId old = temporary->second;
      temporaries.erase(temporary);
      NameId fresh = temporaryName(name);
      body().values[old.index].name = fresh;
      temporaries[module.names.str(fresh)] = old;
    }
    return true;
  }

  // Results named by the line, or (no names) temporaries; `_` names nothing.
  llvm::SmallVector<NameId, 2> resultNames(llvm::ArrayRef<Piece> names, llvm::StringRef base, size_t count) {
    llvm::SmallVector<NameId, 2> ids;
    for (size_t i = 0; i < count; ++i) {
      bool named = i < names.size() && names[i].text != "_";
      ids.push_back(named ? module.names.intern(names[i].text) : temporaryName(base));
      if (!named) { // taken already while the other results look for theirs
        temporaries.try_emplace(module.names.str(ids.back()));
      }
    }
    return ids;
  }

  Values add(OpKind kind, llvm::ArrayRef<ValueId> operands, llvm::ArrayRef<NameId> names, SourceRange range, AttrsId attrs = {},
             const Callee *callee = nullptr) {
    Op &op = addOp(body(), kind, operands, names, range);
    op.attrs = attrs;
    if (callee) {
      op.callee = callee->function;
      op.instance = callee->instance;
    }
    Values results;
    for (size_t i = 0; i < names.size(); ++i) {
      results.push_back(ValueId(op.firstResult + i));
      auto temporary = temporaries.find(module.names.str(names[i]));
      if (temporary != temporaries.end() && !temporary->second.valid()) {
        temporary->second = results.back();
      }
    }
    return results;
  }

  AttrsId keep(Attrs attrs) {
    module.attrs.push_back(std::move(attrs));
    return AttrsId(module.attrs.size() - 1);
  }

  // With the nearest name in scope.
  void unknownValue(Piece name) {
    std::vector<std::string> names;
    for (const auto &entry : scope) {
      names.push_back(entry.getKey().str());
    }
    llvm::sort(names);
    std::vector<llvm::StringRef> candidates(names.begin(), names.end());
    auto d = diags.emit<Diag::UnknownName>(name.range, name.text, "a value here");
    llvm::StringRef near = nearest(name.text, candidates);
    if (!near.empty()) {
      d.help("did you mean `" + near.str() + "`?");
    }
  }

  // One value, or nothing (reported).
  std::optional<ValueId> operand(Piece text, unsigned depth) {
    if (isCall(text)) {
      std::optional<Values> values = call(text, {}, false, depth + 1);
      return values ? std::optional(values->front()) : std::nullopt;
    }
    if (!isIdentifier(text.text)) {
      diags.emit<Diag::BadExpression>(text.range, "`" + text.text.str() + "` is neither a name nor a call");
      return std::nullopt;
    }
    auto it = scope.find(text.text);
    if (it == scope.end()) {
      unknownValue(text);
      return std::nullopt;
    }
    return it->second.value;
  }

  // The results of one call. `line`: they get `names`, and there must be as many; otherwise there must be one.
  std::optional<Values> call(Piece text, llvm::ArrayRef<Piece> names, bool line, unsigned depth) {
    if (depth > MaxExprDepth) { // brackets are bounded before; this holds however a call was reached
      diags.emit<Diag::BadExpression>(text.range, "calls are nested too deeply");
      return std::nullopt;
    }
    std::optional<CallText> parsed = parseCall(text, diags);
    if (!parsed) {
      return std::nullopt;
    }
    std::vector<Callee> callees = resolve ? resolve(parsed->name.text, parsed->name.range) : std::vector<Callee>();
    if (!callees.empty() && !callees.front().function.valid()) {
      return std::nullopt;
    }
    if (!callees.empty()) {
      return submodule(*parsed, std::move(callees), names, line, depth);
    }
    std::optional<OpKind> kind = findOp(parsed->name.text);
    if (!kind || *kind == OpKind::Call) {
      unknownOperation(parsed->name);
      return std::nullopt;
    }
    return operation(*parsed, *kind, names, line, depth);
  }

  void unknownOperation(Piece name) {
    std::vector<llvm::StringRef> candidates;
    for (const OpInfo &info : allOps()) {
      candidates.push_back(info.name);
    }
    auto d = diags.emit<Diag::UnknownName>(name.range, name.text, "an operation");
    llvm::StringRef near = nearest(name.text, candidates);
    if (!near.empty()) {
      d.help("did you mean `" + near.str() + "`?");
    }
  }

  bool checkResults(const CallText &c, size_t results, llvm::ArrayRef<Piece> names, bool line) {
    if (line ? names.size() == results : results == 1) {
      return true;
    }
    auto d =
        diags.emit<Diag::WrongResults>(c.whole.range, c.name.text, counted(results, "result"), line ? llvm::utostr(names.size()) : "1");
    if (!line && results > 1) {
      d.help("name them on a line of their own");
    }
    return false;
  }

  // Tensors first, then what the row takes. False: the number of tensors is wrong, or one of them is.
  bool operands(const CallText &c, uint32_t min, uint32_t max, bool more, Values &values, llvm::SmallVectorImpl<Piece> &rest,
                llvm::SmallVectorImpl<ArgumentText> &options, unsigned depth, bool &countWrong) {
    bool good = true;
    uint32_t seen = 0;
    for (const ArgumentText &a : c.arguments) {
      if (!a.key.empty()) {
        options.push_back(a);
        continue;
      }
      bool tensor = rest.empty() && seen < max && (!more || seen < min || isCall(a.value) || scope.count(a.value.text));
      if (!tensor) {
        rest.push_back(a.value);
        continue;
      }
      ++seen;
      std::optional<ValueId> value = operand(a.value, depth);
      good &= value.has_value();
      values.push_back(value.value_or(ValueId()));
    }
    countWrong = seen < min;
    return good && !countWrong;
  }

  std::optional<Values> operation(const CallText &c, OpKind kind, llvm::ArrayRef<Piece> names, bool line, unsigned depth) {
    const OpInfo &info = opInfo(kind);
    bool mayBias = kind == OpKind::Linear; // typed term by term, so it is two operations
    Values values;
    llvm::SmallVector<Piece, 4> rest;
    llvm::SmallVector<ArgumentText, 4> options;
    bool countWrong = false;
    bool good =
        operands(c, info.minOperands, info.maxOperands + mayBias, info.takes != Takes::Nothing, values, rest, options, depth, countWrong);
    if (countWrong || (mayBias && !rest.empty())) {
      std::string takes = mayBias ? "2 tensors, or 3 with a bias" : takesText(kind);
      diags.emit<Diag::WrongArguments>(c.whole.range, info.name, takes + ", " + llvm::utostr(values.size() + rest.size()) + " given");
      return std::nullopt;
    }
    Attrs attrs;
    ParseEnv environment = env();
    good &= readAttrs(c, kind, rest, options, environment, attrs);
    size_t results = kind == OpKind::Unfuse && line ? names.size() : info.results; // as many as the dimension has parts
    good &= checkResults(c, results, names, line);
    if (!good) {
      return std::nullopt;
    }
    bool bare = info.takes == Takes::Nothing && attrs.options.empty();
    AttrsId id = bare ? AttrsId() : keep(std::move(attrs));
    if (mayBias && values.size() == 3) {
      Values product = add(kind, {values[0], values[1]}, resultNames({}, info.name, 1), c.whole.range);
      return add(OpKind::Add, {product[0], values[2]}, resultNames(names, opInfo(OpKind::Add).name, 1), c.whole.range);
    }
    return add(kind, values, resultNames(names, info.name, results), c.whole.range, id);
  }

  // as=NAME renames the one callee, repeat=N makes N of it: NAME.0, NAME.1, ...
  bool instances(llvm::ArrayRef<ArgumentText> options, std::vector<Callee> &callees) {
    bool good = true;
    std::string name = module.names.str(callees.front().instance).str();
    std::optional<int64_t> repeat;
    llvm::StringRef seen;
    for (const ArgumentText &o : options) {
      if (o.key.text == seen) {
        diags.emit<Diag::DuplicateKey>(o.key.range, o.key.text);
        return false;
      }
      seen = o.key.text;
      if (o.key.text == "as" && isIdentifier(o.value.text) && callees.size() == 1) {
        name = o.value.text.str();
        continue;
      }
      int64_t n = 0;
      bool number = !o.value.text.getAsInteger(10, n);
      auto size = sizes.find(module.names.find(o.value.text));
      n = number ? n : size != sizes.end() && size->second.product.empty() ? size->second.extent : 0;
      if (o.key.text == "repeat" && callees.size() == 1 && n >= 1 && n <= MaxRepeat) {
        repeat = n;
        continue;
      }
      good = false;
      if (o.key.text == "as" || o.key.text == "repeat") {
        diags.emit<Diag::OutOfRange>(o.value.range, o.key.text, o.key.text == "as" ? "a name for one module" : "a number from 1 to 100000",
                                     "`" + o.value.text.str() + "`");
      } else {
        auto d = diags.emit<Diag::UnknownKey>(o.key.range, o.key.text, "a call of a module");
        d.help("it has as=NAME and repeat=N");
      }
    }
    Callee callee = callees.front();
    if (repeat) {
      callees.clear();
      for (int64_t i = 0; i < *repeat; ++i) {
        callees.push_back({callee.function, module.names.intern(name + "." + llvm::itostr(i))});
      }
    } else if (callees.size() == 1) {
      callees.front().instance = module.names.intern(name);
    }
    return good;
  }

  std::optional<Values> submodule(const CallText &c, std::vector<Callee> callees, llvm::ArrayRef<Piece> names, bool line, unsigned depth) {
    const Function &first = module.function(callees.front().function);
    uint32_t inputs = first.inputs.size();
    size_t results = module.function(callees.back().function).results.size();
    Values values;
    llvm::SmallVector<Piece, 4> rest;
    llvm::SmallVector<ArgumentText, 4> options;
    bool countWrong = false;
    bool good = operands(c, inputs, inputs, false, values, rest, options, depth, countWrong);
    if (countWrong || !rest.empty()) {
      diags.emit<Diag::WrongArguments>(c.whole.range, c.name.text,
                                       counted(inputs, "tensor") + ", " + llvm::utostr(values.size() + rest.size()) + " given");
      return std::nullopt;
    }
    good &= instances(options, callees);
    good &= checkResults(c, results, names, line);
    if (!good) {
      return std::nullopt;
    }
    for (size_t i = 0; i < callees.size(); ++i) {
      const Callee &callee = callees[i];
      bool last = i + 1 == callees.size();
      const Function &f = module.function(callee.function);
      if (f.inputs.size() != values.size() || f.results.empty()) {
        diags.emit<Diag::WrongArguments>(c.whole.range, module.names.str(callee.instance),
                                         counted(f.inputs.size(), "tensor") + " and gives " + counted(f.results.size(), "result") +
                                             "; as one of several it must take and give what the others do");
        return std::nullopt;
      }
      size_t count = f.results.size();
      Values out = add(OpKind::Call, values, resultNames(last ? names : llvm::ArrayRef<Piece>(), module.names.str(callee.instance), count),
                       c.whole.range, {}, &callee);
      if (last) {
        return out;
      }
      values.front() = out.front();
    }
    return std::nullopt;
  }

  bool line(Piece text) {
    if (!checkBrackets(text, diags)) {
      return salvage(text, false);
    }
    std::optional<LineText> parsed = parseLine(text, diags);
    if (!parsed) {
      return salvage(text, false);
    }
    std::optional<Values> values;
    Piece expression = parsed->expression;
    if (isCall(expression)) {
      values = call(expression, parsed->results, true, 0);
    } else if (std::optional<ValueId> value = operand(expression, 0)) {
      if (parsed->results.size() == 1) {
        values = add(OpKind::Identity, *value, resultNames(parsed->results, "identity", 1), expression.range);
      } else {
        diags.emit<Diag::WrongResults>(expression.range, expression.text, "1 value", llvm::utostr(parsed->results.size()));
      }
    }
    return defineResults(parsed->results, values) && values.has_value();
  }

  bool defineResults(llvm::ArrayRef<Piece> names, const std::optional<Values> &values) {
    bool good = true;
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i].text == "_") {
        continue;
      }
      ValueId value = values ? (*values)[i] : nothing(names[i]);
      good &= define(names[i].text, value, names[i].range);
    }
    return good;
  }

  // A value that no operation computes: later lines may use its name.
  ValueId nothing(Piece name) { return addValue(body(), module.names.intern(name.text), ValueKind::Result, TypeId(), name.range); }

  // After a line that cannot be cut: whatever looks like the name of a result before `=` is defined. Returns `result`.
  bool salvage(Piece text, bool result) {
    size_t equals = text.text.find('=');
    llvm::SmallVector<llvm::StringRef, 4> names;
    if (equals != llvm::StringRef::npos) {
      text.text.take_front(equals).split(names, ',');
    }
    for (llvm::StringRef name : names) {
      name = name.trim();
      if (isIdentifier(name) && name != "_" && !scope.count(name)) {
        define(name, nothing({name, text.range}), text.range);
      }
    }
    return result;
  }

  std::optional<ValueId> boundary(ValueId value, llvm::StringRef spec, SourceRange range) {
    ParseEnv environment = env();
    std::optional<Change> change = parseChange(spec, range, environment);
    if (!change) {
      return std::nullopt;
    }
    if (change->parts.empty() && change->gradientScale.isOne()) { // axes of one rank only
      return value;
    }
    Attrs attrs;
    attrs.change = std::move(*change);
    attrs.range = range;
    NameId name = body().values[value.index].name;
    Values results = add(OpKind::Redistribute, value, name, range, keep(std::move(attrs)));
    body().ops.back().boundary = true;
    auto it = scope.find(module.names.str(name));
    if (it != scope.end() && it->second.value == value) {
      it->second.value = results.front();
    }
    return results.front();
  }
};

BodyBuilder::BodyBuilder(Module &module, FunctionId function, const SizeTable &sizes, DiagnosticEngine &diags, Resolve resolve)
    : impl(new Impl{module, function, sizes, diags, std::move(resolve), {}, {}, {}}) {}

void BodyBuilder::define(llvm::StringRef name, ValueId value, SourceRange range) { impl->define(name, value, range); }

std::optional<ValueId> BodyBuilder::lookup(llvm::StringRef name) const {
  auto it = impl->scope.find(name);
  return it == impl->scope.end() ? std::nullopt : std::optional(it->second.value);
}

bool BodyBuilder::line(llvm::StringRef text, SourceRange range) { return impl->line({text, range}); }

std::optional<ValueId> BodyBuilder::boundary(ValueId value, llvm::StringRef spec, SourceRange range) {
  return impl->boundary(value, spec, range);
}

} // namespace shardc
