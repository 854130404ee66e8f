// Strategy: which rule speaks about which module.
//
// A pattern is matched component by component on the way down the model, so that a rule costs nothing in modules that it
// cannot reach, and a repeated layer is looked at once per group of rules that can still match and not once per rule: two
// layers below which the same rules are left are the same function (BuildModule.cpp).
#include "Strategy.h"
#include "CatalogModel.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

namespace shardc {
namespace {

using Kind = ConfigNode::Kind;

class StrategyReader {
public:
  StrategyReader(const Job &j, Strategy &s, DiagnosticEngine &d) : job(j), strategy(s), diags(d) {}

  bool read(const ConfigNode &root) {
    DictReader reader(root, "a strategy file", diags);
    reader.string("strategy");
    versions = reader.strings("versions");
    for (const auto &[name, value] : entriesOf(reader.mapping("defaults"))) {
      defaults[name.value] = value.scalar;
    }
    defaults.try_emplace("inference", job.inference ? "true" : "false");
    findVersion();
    if (const ConfigNode *sizes = reader.sequence("sizes")) {
      for (const ConfigNode &node : sizes->items) {
        addSizes(node);
      }
    }
    if (const ConfigNode *inputs = reader.any("inputs")) {
      addInputs(*inputs);
    }
    good &= reader.require("rules");
    if (const ConfigNode *rules = reader.sequence("rules")) {
      group(*rules, 0);
    }
    reader.finish();
    return good;
  }

private:
  void findVersion() {
    for (size_t i = 0; i < versions.size(); ++i) {
      if (versions[i].value == job.version) {
        version = i;
      }
    }
    if (!versions.empty() && !version) {
      std::string known;
      for (const Located<std::string> &v : versions) {
        known += (known.empty() ? "" : ", ") + v.value;
      }
      diags.emit<Diag::NoSuchVersion>(versions.front().range, job.strategy, job.version).help("it has " + known);
      good = false;
    }
  }

  // `{if: .., Lpad: ceil(L / tp) * tp}`: where the condition holds, sizes that the model's conditions and lines may use.
  void addSizes(const ConfigNode &node) {
    Condition condition;
    if (const ConfigNode *when = node.find("if")) {
      readCondition(*when, condition, diags);
    }
    TermScope scope(job, defaults);
    std::optional<bool> on = holds(condition, scope, diags);
    good &= on.has_value();
    for (const auto &[name, term] : entriesOf(&node)) {
      if (name.value == "if" || !on.value_or(false)) {
        continue;
      }
      std::optional<int64_t> value = evaluate(term.scalar, term.range, [&](llvm::StringRef n) { return scope.size(n); }, diags);
      good &= value.has_value();
      strategy.sizes.try_emplace(name.value, Located<int64_t>{value.value_or(0), term.range});
    }
  }

  // A mapping of inputs to layouts, or a list of such with conditions; the first that says something about an input holds.
  void addInputs(const ConfigNode &node) {
    if (node.kind == Kind::Mapping) {
      DictReader inputs(node, "`inputs`", diags);
      const bool on = applies(inputs);
      std::vector<RuleEntry> read;
      ConfigNode layouts = node;
      llvm::erase_if(layouts.entries, [](const auto &entry) { return entry.first.value == "if" || entry.first.value == "version"; });
      entries(&layouts, read);
      strategy.inputs.insert(strategy.inputs.end(), read.begin(), on ? read.end() : read.begin());
      return;
    }
    for (const ConfigNode &item : node.items) {
      if (item.kind != Kind::Mapping) {
        diags.emit<Diag::WrongKind>(item.range, "inputs", "layouts of inputs", describe(item));
        good = false;
        continue;
      }
      addInputs(item);
    }
  }

  void group(const ConfigNode &rules, unsigned depth) {
    if (rules.kind != Kind::Sequence || depth > 16) {
      diags.emit<Diag::WrongKind>(rules.range, "rules", "a list of rules, at most 16 deep", describe(rules));
      good = false;
      return;
    }
    for (const ConfigNode &node : rules.items) {
      if (node.kind == Kind::Mapping && node.find("rules")) {
        DictReader reader(node, "a group of rules", diags);
        bool on = applies(reader);
        const ConfigNode *inner = reader.any("rules");
        reader.finish();
        if (on) {
          group(*inner, depth + 1);
        }
        continue;
      }
      rule(node);
    }
  }

  void rule(const ConfigNode &node) {
    DictReader reader(node, "a rule", diags);
    if (!reader.require("module")) {
      good = false;
      return;
    }
    bool on = applies(reader);
    StrategyRule r;
    r.module = reader.string("module").value_or(Located<std::string>());
    r.components = pattern(r.module);
    entries(reader.mapping("params"), r.params);
    entries(reader.mapping("in"), r.in);
    entries(reader.mapping("values"), r.values);
    if (const ConfigNode *out = reader.any("out")) {
      if (out->kind == Kind::Scalar) {
        r.out.push_back({{"", out->range}, scalarOf(*out)});
      } else {
        entries(reader.mapping("out"), r.out);
      }
    }
    reader.finish();
    if (on) {
      strategy.rules.push_back(std::move(r));
    }
  }

  static std::vector<std::vector<std::string>> pattern(const Located<std::string> &module) {
    std::vector<std::vector<std::string>> components;
    for (llvm::StringRef component : llvm::split(module.value, '.')) {
      components.emplace_back();
      for (llvm::StringRef alternative : llvm::split(component, '|')) {
        components.back().push_back(alternative.str());
      }
    }
    return components;
  }

  void entries(const ConfigNode *node, std::vector<RuleEntry> &into) {
    for (const auto &[name, value] : entriesOf(node)) {
      if (value.kind != Kind::Scalar) {
        diags.emit<Diag::WrongKind>(value.range, name.value, "a layout or a change of layout in quotes", describe(value));
        good = false;
        continue;
      }
      into.push_back({name, scalarOf(value)});
    }
  }

  // `if:` and `version:` of a rule or group.
  bool applies(DictReader &reader) {
    bool on = true;
    if (const ConfigNode *when = reader.any("if")) {
      Condition condition;
      readCondition(*when, condition, diags);
      std::optional<bool> value = holds(condition, TermScope(job, defaults), diags);
      good &= value.has_value();
      on &= value.value_or(false);
    }
    if (std::optional<Located<std::string>> range = reader.string("version")) {
      on &= inRange(*range);
    }
    return on;
  }

  // `a..b`, `a..`, `..b`, `a`, both ends included.
  bool inRange(const Located<std::string> &range) {
    llvm::StringRef text = range.value;
    auto [first, last] = text.contains("..") ? text.split("..") : std::pair(text, text);
    std::optional<size_t> from = place(first.trim(), range), to = place(last.trim(), range);
    if (!from || !to || !version) {
      return false;
    }
    return *version >= *from && (last.trim().empty() || *version <= *to);
  }

  // The index of a version; 0 for none.
  std::optional<size_t> place(llvm::StringRef name, const Located<std::string> &range) {
    for (size_t i = 0; i < versions.size(); ++i) {
      if (name.empty() || versions[i].value == name) {
        return i;
      }
    }
    diags.emit<Diag::UnknownName>(range.range, name, "one of the strategy's versions");
    good = false;
    return std::nullopt;
  }

  const Job &job;
  Strategy &strategy;
  DiagnosticEngine &diags;
  std::vector<Located<std::string>> versions;
  std::map<std::string, std::string> defaults;
  std::optional<size_t> version;
  bool good = true;
};

} // namespace

static std::string shippedPath(llvm::StringRef name) { return ("strategies/" + name + ".yaml").str(); }

bool Strategy::exists(const Located<std::string> &name, DiagnosticEngine &diags) {
  if (catalogFile(shippedPath(name.value)) || (llvm::sys::fs::exists(name.value) && !llvm::sys::fs::is_directory(name.value))) {
    return true;
  }
  std::vector<llvm::StringRef> names;
  for (const CatalogFile &file : catalogFiles()) {
    llvm::StringRef shipped = file.path;
    if (shipped.consume_front("strategies/") && shipped.consume_back(".yaml")) {
      names.push_back(shipped);
    }
  }
  auto d = diags.emit<Diag::UnknownStrategy>(name.range, name.value);
  llvm::StringRef near = nearest(name.value, names);
  d.help(near.empty() ? "shipped are " + llvm::join(names, ", ") + "; write others as --strategy FILE"
                      : "did you mean `" + near.str() + "`?");
  return false;
}

std::optional<Strategy> Strategy::read(const Job &job, DiagnosticEngine &diags) {
  if (!exists({job.strategy, {}}, diags)) {
    return std::nullopt;
  }
  const std::string shipped = shippedPath(job.strategy);
  std::optional<ConfigNode> root = readCatalogNode(catalogFile(shipped) ? shipped : job.strategy, {}, diags);
  if (!root) {
    return std::nullopt;
  }
  Strategy strategy;
  return StrategyReader(job, strategy, diags).read(*root) ? std::optional(std::move(strategy)) : std::nullopt;
}

std::vector<RuleState> Strategy::start() const {
  std::vector<RuleState> states;
  states.reserve(rules.size());
  for (uint32_t i = 0; i < rules.size(); ++i) {
    states.push_back({i, 0});
  }
  return states;
}

std::vector<RuleState> Strategy::below(llvm::ArrayRef<RuleState> states, llvm::StringRef component) const {
  // `layers.3` is two components, of which the second is a number.
  auto [name, number] = component.split('.');
  std::vector<RuleState> left;
  for (const RuleState &state : states) {
    const auto &components = rules[state.rule].components;
    auto matches = [&](size_t i, llvm::StringRef text) {
      return i < components.size() && llvm::any_of(components[i], [&](llvm::StringRef c) { return c == "*" || c == text; });
    };
    if (matches(state.matched, name) && (number.empty() || matches(state.matched + 1, number))) {
      left.push_back({state.rule, state.matched + (number.empty() ? 1 : 2)});
    }
  }
  return left;
}

std::vector<uint32_t> Strategy::endingAt(llvm::ArrayRef<RuleState> states) {
  std::vector<uint32_t> ending;
  for (const RuleState &state : states) {
    if (state.matched == rules[state.rule].components.size()) {
      rules[state.rule].matched = true;
      ending.push_back(state.rule);
    }
  }
  return ending;
}

const RuleEntry *Strategy::find(llvm::ArrayRef<uint32_t> ending, std::vector<RuleEntry> StrategyRule::*where, llvm::StringRef name) {
  const RuleEntry *first = nullptr;
  for (uint32_t rule : ending) {
    for (RuleEntry &entry : rules[rule].*where) {
      if (entry.name.value == name) {
        entry.used = true;
        first = first ? first : &entry;
      }
    }
  }
  return first;
}

void Strategy::reportUnused(DiagnosticEngine &diags) const {
  for (const RuleEntry &entry : inputs) {
    if (!entry.used) {
      diags.emit<Diag::RuleNamesNothing>(entry.name.range, "the model", "input", entry.name.value);
    }
  }
  for (const StrategyRule &rule : rules) {
    if (!rule.matched) {
      diags.emit<Diag::RuleMatchesNothing>(rule.module.range, rule.module.value);
      continue;
    }
    auto report = [&](const std::vector<RuleEntry> &entries, llvm::StringRef what) {
      for (const RuleEntry &entry : entries) {
        if (!entry.used) {
          diags.emit<Diag::RuleNamesNothing>(entry.name.range, "`" + rule.module.value + "`", what, entry.name.value);
        }
      }
    };
    report(rule.params, "parameter");
    report(rule.in, "input");
    report(rule.values, "value");
    report(rule.out, "result");
  }
}

} // namespace shardc
