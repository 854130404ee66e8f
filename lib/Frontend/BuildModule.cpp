// BuildModule: the program of a model under a strategy.
//
// The problem. A model is a tree of modules, hundreds of layers wide and thousands of linear layers large; a strategy speaks
// about places in that tree. The program must say for each place what the strategy says there, without being as large as the
// tree. What others do: build every layer, or have the strategy refer to kinds of modules, which cannot tell layer 3 apart.
//
// What we do. A function is made for each distinct (kind of module, arguments, rules that can still match below), on the first
// call of it; later ones find it in `built`. Layers that no rule tells apart are one function. It ends because modules are
// made only where a line calls them and nesting is bounded, and costs a step per module, per layer one look at the rules.
#include "CatalogModel.h"
#include "Expr.h"
#include "Strategy.h"
#include "StrategyLayout.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace shardc {
namespace {

constexpr unsigned MaxNesting = 64;
constexpr int64_t MaxRepeat = 100000;

// One module while its function is made.
struct Frame {
  const ModelModule &def;
  std::map<std::string, Dim> args;
  std::vector<RuleState> states;
  std::string path; // "layers.*.moe": for messages
  unsigned depth = 0;
  FunctionId function;
  std::vector<uint32_t> rules; // that end here
  std::map<std::string, int64_t> called;
};

class ModuleBuilder {
public:
  ModuleBuilder(const Job &j, ModelModules ms, Strategy s, DiagnosticEngine &d)
      : job(j), models(std::move(ms)), strategy(std::move(s)), diags(d), scope(job, defaults) {
    defaults = {
        {"inference", j.inference ? "true" : "false"}, {"folded", "true"}, {"compute_dtype", "bfloat16"}, {"Lpad", "0"}, {"Lshort", "0"}};
    job.sizes.insert(strategy.sizes.begin(), strategy.sizes.end());
  }

  std::optional<Module> build(Axes axes, SourceRange family) {
    size_t before = diags.errorCount();
    module.name = job.name;
    module.axes = std::move(axes);
    module.view = job.views.empty() ? "" : job.views.front().name;
    addSizes();
    const ModelModule *root = models.find("model");
    if (!root) {
      diags.emit<Diag::MissingKey>(family, "the model's `modules`", "model");
      return std::nullopt;
    }
    Frame frame{*root, {}, strategy.start(), "", 0, {}, {}, {}};
    module.root = make(frame);
    strategy.reportUnused(diags);
    return diags.errorCount() == before ? std::optional(std::move(module)) : std::nullopt;
  }

private:
  ParseEnv env() { return {module, sizes, diags}; }
  NameId name(llvm::StringRef text) { return module.names.intern(text); }

  void addSizes() {
    for (const auto &[key, value] : job.sizes) {
      if (!module.axes.find(key) && key != "T") {
        sizes[name(key)].extent = value.value;
        module.sizes.emplace_back(name(key), value.value);
      }
    }
    // T is the tokens; a job without a batch has one row.
    sizes.try_emplace(name("B")).first->second.divisor = 1;
    SizeEntry tokens;
    // A sequence that cp cuts into balanced pairs of chunks has an order of its own.
    auto balancer = job.switches.find("load_balancer");
    auto cp = job.sizes.find("cp");
    bool balanced = balancer != job.switches.end() && (balancer->second == "headtail" || balancer->second == "ptrr");
    sizes[name("L")].permuted = balanced && cp != job.sizes.end() && cp->second.value > 1;
    tokens.product = {name("B"), name("L")};
    sizes[name("T")] = tokens;
    module.products.emplace_back(name("T"), tokens.product);
    for (const auto &[key, value] : job.switches) { // numbers that only constants use: `scale(x, route_scale)`
      double number = 0;
      if (!llvm::StringRef(value).getAsDouble(number)) {
        sizes.try_emplace(name(key));
      }
    }
  }

  bool active(const Condition &when) { return holds(when, scope, diags).value_or(false); }

  // The function of a module that no call has made yet.
  FunctionId make(Frame &frame) {
    frame.function = FunctionId(module.functions.size());
    module.functions.emplace_back();
    module.function(frame.function).name = name(frame.def.name.value);
    module.function(frame.function).range = frame.def.name.range;
    frame.rules = strategy.endingAt(frame.states);
    BodyBuilder body(module, frame.function, sizes, diags, [&](llvm::StringRef called, SourceRange) { return resolve(frame, called); });
    for (const ModelTensor &input : frame.def.inputs) {
      addInput(frame, input, body);
    }
    for (const ModelTensor &tensor : frame.def.tensors) {
      addTensor(frame, tensor, body);
    }
    for (const ModelTensor &input : frame.def.inputs) {
      boundary(frame, &StrategyRule::in, input.name.value, input.name.value, body);
    }
    bool good = true;
    for (const ModelLine &line : frame.def.body) {
      good &= !active(line.when) || addLine(frame, line, body);
    }
    bool first = true;
    for (const ModelLine &result : frame.def.returns) {
      if (active(result.when)) {
        addResult(frame, result, first, body);
        first = false;
      }
    }
    if (good) {
      checkCalled(frame);
    }
    return frame.function;
  }

  // A module that stands in the file and that no line uses has parameters that nobody would count.
  void checkCalled(const Frame &frame) {
    for (const auto &[child, ways] : frame.def.children) {
      bool wanted = llvm::any_of(ways, [&](const ModelChild &way) { return active(way.when); });
      if (wanted && !frame.called.count(child.value)) {
        diags.emit<Diag::UncalledFunction>(child.range, child.value);
      }
    }
  }

  // Dimensions as the model writes them: arguments of the module, T, or anything that parseDim reads.
  std::optional<llvm::SmallVector<Dim, 3>> dims(const Frame &frame, llvm::ArrayRef<Located<std::string>> texts) {
    llvm::SmallVector<Dim, 3> all;
    bool good = true;
    for (const Located<std::string> &text : texts) {
      if (text.value == "T" && scope.text("folded") == "false") {
        for (llvm::StringRef part : {"B", "L"}) {
          all.emplace_back();
          all.back().factors.emplace_back();
          all.back().factors[0].name = name(part);
          all.back().factors[0].extent = sizes[name(part)].extent;
          all.back().factors[0].permuted = sizes[name(part)].permuted;
        }
        continue;
      }
      std::optional<Dim> one = dim(frame, {text.value, text.range});
      good &= one.has_value();
      all.push_back(one.value_or(Dim()));
    }
    return good ? std::optional(all) : std::nullopt;
  }

  std::optional<Dim> dim(const Frame &frame, Piece text) {
    auto arg = frame.args.find(text.text.str());
    if (arg != frame.args.end()) {
      return arg->second;
    }
    ParseEnv e = env();
    return parseDim(text.text, text.range, e);
  }

  void addInput(Frame &frame, const ModelTensor &input, BodyBuilder &body) {
    RuleEntry *entry = nullptr;
    for (RuleEntry &e : strategy.inputs) {
      if (frame.depth == 0 && e.name.value == input.name.value) {
        e.used = true; // also where this job does without the input
        entry = entry ? entry : &e;
      }
    }
    if (!active(input.when)) {
      return;
    }
    TypeId declared;
    if (frame.depth == 0) {
      Type type;
      type.dtype = input.dtype;
      type.grad = isFloat(input.dtype);
      type.dims = dims(frame, input.dims).value_or(llvm::SmallVector<Dim, 3>());
      ParseEnv e = env();
      if (entry) {
        putLayout(type, entry->text.value, entry->text.range, "`" + input.name.value + "`", e);
      }
      declared = module.types.intern(type);
    }
    ValueId value = addValue(module.function(frame.function), name(input.name.value), ValueKind::Input, declared, input.name.range);
    module.function(frame.function).values[value.index].declaredRange = entry ? entry->text.range : SourceRange();
    body.define(input.name.value, value, input.name.range);
  }

  // A parameter or buffer with its layout; `as` is looked up where its full name says.
  void addTensor(Frame &frame, const ModelTensor &tensor, BodyBuilder &body) {
    if (!active(tensor.when)) {
      return;
    }
    Type type;
    type.dtype = tensor.dtype == DType::BF16 && scope.text("compute_dtype") == "float32" ? DType::F32 : tensor.dtype;
    type.grad = !tensor.buffer && isFloat(tensor.dtype);
    type.dims = dims(frame, tensor.dims).value_or(llvm::SmallVector<Dim, 3>());
    std::string local = tensor.name.value, full = frame.path + (frame.path.empty() ? "" : ".") + local;
    std::vector<uint32_t> rules = frame.rules;
    if (!tensor.as.value.empty()) {
      full = tensor.as.value;
      std::vector<RuleState> states = frame.states;
      auto [owner, last] = llvm::StringRef(full).rsplit('.');
      for (llvm::StringRef component : llvm::split(owner, '.')) {
        states = strategy.below(states, component);
      }
      rules = strategy.endingAt(states);
      local = last.str();
    }
    const RuleEntry *entry = strategy.find(rules, &StrategyRule::params, local);
    SourceRange place = entry ? entry->text.range : SourceRange();
    if (entry) {
      ParseEnv e = env();
      putLayout(type, entry->text.value, place, "`" + full + "`", e);
      rememberView(module.function(frame.function), entry->text.value);
    } else {
      auto d = diags.emit<Diag::NoPlacement>(tensor.name.range, full);
      llvm::StringRef owner = llvm::StringRef(full).rsplit('.').first;
      d.help(("give it one in the strategy: {module: " + owner + ", params: {" + local + ": R}}").str());
    }
    std::string shown = tensor.as.value.empty() ? tensor.name.value : full;
    Function &f = module.function(frame.function);
    ValueId value = addValue(f, name(shown), ValueKind::Param, module.types.intern(type), tensor.name.range);
    f.values[value.index].declaredRange = place;
    body.define(tensor.name.value, value, tensor.name.range);
  }

  // A module whose parameters are laid out over another view's axes is printed in that view's words: `E@ep`.
  void rememberView(Function &f, llvm::StringRef layout) {
    for (const ViewSpec &view : module.axes.views()) {
      for (const AxisSpec &axis : view.axes) {
        const Axis *known = module.axes.find(axis.name);
        if (view.name != module.view && known && known->view == view.name && layout.contains("@" + axis.name)) {
          f.view = view.name;
        }
      }
    }
  }

  // Puts the change that the strategy writes for a value, if any, behind it.
  void boundary(Frame &frame, std::vector<RuleEntry> StrategyRule::*where, llvm::StringRef key, llvm::StringRef value, BodyBuilder &body) {
    const RuleEntry *entry = strategy.find(frame.rules, where, key);
    std::optional<ValueId> known = body.lookup(value);
    if (entry && known) {
      body.boundary(*known, entry->text.value, entry->text.range);
    }
  }

  // A line, and behind it what the strategy writes for the values that it makes.
  bool addLine(Frame &frame, const ModelLine &line, BodyBuilder &body) {
    bool good = body.line(line.text.value, line.text.range);
    llvm::SmallVector<llvm::StringRef, 2> names;
    llvm::StringRef(line.text.value).split('=').first.split(names, ',');
    for (llvm::StringRef made : names) {
      boundary(frame, &StrategyRule::values, made.trim(), made.trim(), body);
    }
    return good;
  }

  void addResult(Frame &frame, const ModelLine &result, bool first, BodyBuilder &body) {
    const std::string &text = result.text.value;
    if (!body.lookup(text)) {
      diags.emit<Diag::UnknownName>(result.text.range, text, "a value here");
      return;
    }
    boundary(frame, &StrategyRule::out, text, text, body);
    if (first) {
      boundary(frame, &StrategyRule::out, "", text, body);
    }
    ValueId value = *body.lookup(text);
    module.function(frame.function).results.push_back(value);
    if (!result.loss.empty()) {
      addLoss(result, value);
    }
  }

  void addLoss(const ModelLine &result, ValueId value) {
    static constexpr std::pair<llvm::StringLiteral, LossKind> kinds[] = {{"local_mean", LossKind::LocalMean},
                                                                         {"sum", LossKind::Sum},
                                                                         {"global_mean", LossKind::GlobalMean},
                                                                         {"invariant", LossKind::Invariant}};
    for (const auto &[kindName, kind] : kinds) {
      if (result.loss == kindName) {
        module.loss = Loss{value, kind, result.text.range};
        return;
      }
    }
    diags.emit<Diag::UnknownName>(result.text.range, result.loss, "a kind of loss");
  }

  // What a call of `called` in this module's body means.
  std::vector<Callee> resolve(Frame &frame, llvm::StringRef called) {
    const std::vector<ModelChild> *ways = frame.def.child(called);
    std::vector<Callee> callees;
    int64_t index = 0;
    bool good = true, any = false;
    for (const ModelChild &way : ways ? llvm::ArrayRef(*ways) : llvm::ArrayRef<ModelChild>()) {
      if (!active(way.when)) {
        continue;
      }
      any = true;
      std::optional<int64_t> count = way.repeat ? repeats(*way.repeat) : 1;
      good &= count.has_value();
      for (int64_t i = 0; i < count.value_or(0); ++i, ++index) {
        std::string instance = called.str() + (way.repeat ? "." + std::to_string(index) : "");
        std::optional<FunctionId> f = child(frame, way, instance, called.str() + (way.repeat ? ".*" : ""));
        if (!f) {
          return {Callee()};
        }
        callees.push_back({*f, name(instance)});
      }
    }
    if (any) {
      frame.called[called.str()] += 1;
    }
    if (any && good && callees.empty()) {
      diags.emit<Diag::OutOfRange>(ways->front().repeat->range, called, "at least one module", "none");
      good = false;
    }
    return good ? callees : std::vector<Callee>{Callee()};
  }

  std::optional<int64_t> repeats(const Located<std::string> &term) {
    std::optional<int64_t> count = evaluate(term.value, term.range, [&](llvm::StringRef n) { return scope.size(n); }, diags);
    if (count && (*count < 0 || *count > MaxRepeat)) {
      diags.emit<Diag::OutOfRange>(term.range, term.value, "from 0 to " + std::to_string(MaxRepeat), std::to_string(*count));
      return std::nullopt;
    }
    return count;
  }

  std::optional<FunctionId> child(Frame &parent, const ModelChild &way, const std::string &instance, const std::string &shown) {
    std::vector<RuleState> states = strategy.below(parent.states, instance);
    std::optional<Frame> frame = open(parent, {way.of.value, way.of.range});
    if (!frame) {
      return std::nullopt;
    }
    std::string key = frame->def.name.value;
    llvm::raw_string_ostream text(key);
    for (const Located<std::string> &arg : frame->def.args) {
      text << ',' << print(frame->args[arg.value], module);
    }
    for (const RuleState &state : states) {
      text << ';' << state.rule << ':' << state.matched;
    }
    auto [it, isNew] = built.try_emplace(key);
    if (!isNew && it->second.valid()) {
      return it->second;
    }
    if (!isNew || parent.depth >= MaxNesting) { // still being made: it is part of itself
      diags.emit<Diag::RecursiveModule>(way.of.range, frame->def.name.value);
      return std::nullopt;
    }
    frame->states = std::move(states);
    frame->path = parent.path + (parent.path.empty() ? "" : ".") + shown;
    frame->depth = parent.depth + 1;
    FunctionId made = make(*frame);
    built[key] = made;
    return made;
  }

  // The module that `linear(D, (G H))` names, with its arguments.
  std::optional<Frame> open(const Frame &parent, Piece text) {
    std::optional<CallText> call;
    Piece kind = text.trim();
    if (isCall(kind)) {
      call = checkBrackets(kind, diags) ? parseCall(kind, diags) : std::nullopt;
      if (!call) {
        return std::nullopt;
      }
      kind = call->name;
    }
    const ModelModule *def = models.find(kind.text);
    if (!def) {
      std::vector<llvm::StringRef> known;
      for (const auto &entry : models.byName) {
        known.push_back(entry.first);
      }
      auto d = diags.emit<Diag::UnknownName>(kind.range, kind.text, "a module of the model");
      llvm::StringRef near = nearest(kind.text, known);
      if (!near.empty()) {
        d.help("did you mean `" + near.str() + "`?");
      }
      return std::nullopt;
    }
    size_t given = call ? call->arguments.size() : 0;
    if (given != def->args.size()) {
      diags.emit<Diag::WrongArguments>(text.range, kind.text,
                                       std::to_string(def->args.size()) + " dimensions, " + std::to_string(given) + " given");
      return std::nullopt;
    }
    Frame frame{*def, {}, {}, "", 0, {}, {}, {}};
    for (size_t i = 0; i < given; ++i) {
      std::optional<Dim> one = dim(parent, call->arguments[i].value);
      if (!one) {
        return std::nullopt;
      }
      frame.args[def->args[i].value] = *one;
    }
    return frame;
  }

  Job job; // with the strategy's sizes
  ModelModules models;
  Strategy strategy;
  DiagnosticEngine &diags;
  std::map<std::string, std::string> defaults;
  TermScope scope;
  Module module;
  SizeTable sizes;
  std::map<std::string, FunctionId> built;
};

} // namespace

std::optional<Module> buildModule(const Job &job, DiagnosticEngine &diags) {
  std::optional<ConfigNode> root = readCatalogNode(familyPath(job.family), {}, diags);
  std::optional<ModelHead> head = root ? readModelHead(std::move(*root), diags) : std::nullopt;
  std::optional<ModelModules> models = head ? readModules(*head, diags) : std::nullopt;
  std::optional<Strategy> strategy = Strategy::read(job, diags);
  std::optional<Axes> axes = Axes::build(job.world, job.views, job.flats, diags);
  if (!models || !strategy || !axes) {
    return std::nullopt;
  }
  return ModuleBuilder(job, std::move(*models), std::move(*strategy), diags).build(std::move(*axes), head->family.range);
}

} // namespace shardc
