// SyncReader: families, rules, norms and units of sync files. See the header, and docs/graphs.md for the form.
//
// Rules whose `if:` and `version:` do not hold are left out here, so that a plan has no conditions but those on a parameter.
#include "SyncReader.h"
#include "CatalogModel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace shardc {

using Kind = ConfigNode::Kind;

namespace {

template <class Names> void suggest(DiagnosticBuilder d, llvm::StringRef written, const Names &names, llvm::StringRef what) {
  std::vector<llvm::StringRef> all(names.begin(), names.end());
  llvm::StringRef near = nearest(written, all);
  if (!near.empty()) {
    d.help("did you mean `" + near.str() + "`?");
  } else if (!all.empty()) {
    d.help(what.str() + " are " + llvm::join(all, ", "));
  }
}

} // namespace

// Axes by name, or digits of axes (`tp.0`); each rank stands in one of them only.
template <class Atoms> void SyncReader::axes(llvm::ArrayRef<Located<std::string>> names, Atoms &atoms, std::string *text) {
  for (const Located<std::string> &name : names) {
    const auto found = module.axes.findAtoms(name.value);
    if (!found) {
      suggest(diags.emit<Diag::UnknownName>(name.range, name.value, "an axis of this job"), name.value, module.axes.axisNames(),
              "its axes");
      continue;
    }
    for (AtomId a : *found) {
      if (llvm::is_contained(atoms, a)) {
        diags.emit<Diag::OutOfRange>(name.range, name.value, "an axis that shares no ranks with those before it", "one that does");
        break;
      }
      atoms.push_back(a);
    }
    if (text && !found->empty()) {
      *text += (text->empty() ? "" : ", ") + name.value;
    }
  }
}

std::optional<size_t> SyncReader::choice(DictReader &reader, llvm::StringRef key, llvm::ArrayRef<llvm::StringRef> words) {
  std::optional<Located<std::string>> word = reader.string(key);
  if (!word) {
    return std::nullopt;
  }
  const auto *found = llvm::find(words, llvm::StringRef(word->value));
  if (found == words.end()) {
    diags.emit<Diag::OutOfRange>(word->range, key, llvm::join(words.drop_back(), ", ") + " or " + words.back().str(),
                                 "`" + word->value + "`");
    return std::nullopt;
  }
  return size_t(found - words.begin());
}

void SyncReader::read(const ConfigNode &root, llvm::StringRef what, bool written) {
  DictReader reader(root, what.str(), diags);
  RuleGate gate(job, diags);
  reader.string("sync");
  gate.read(reader, what);
  lastVersion = gate.version();
  userWrote = written;
  extends = reader.string("extends");
  std::vector<std::string> &steps = stepLists.emplace_back();
  for (const Located<std::string> &step : reader.strings("steps")) {
    steps.push_back(step.value);
  }
  if (std::optional<Located<std::string>> text = reader.string("micro_steps")) {
    std::optional<int64_t> n = evaluate(text->value, text->range, [&](llvm::StringRef s) { return gate.scope().size(s); }, diags);
    if (n && *n < 1) {
      diags.emit<Diag::OutOfRange>(text->range, "micro_steps", "at least 1", *n);
    } else if (!microSteps) {
      microSteps = n;
    }
  }
  if (std::optional<Located<std::string>> text = reader.string("same_bits"); text && sameBits.empty()) {
    sameBits = text->value;
  }
  if (const ConfigNode *node = reader.any("norm"); node && !defaultNorm) {
    defaultNorm = norm(*node, gate);
  }
  if (const ConfigNode *list = reader.sequence("families")) {
    for (const ConfigNode &node : list->items) {
      family(node, gate);
    }
  }
  if (const ConfigNode *list = reader.sequence("units")) {
    for (const ConfigNode &node : list->items) {
      unit(node);
    }
  }
  if (const ConfigNode *list = reader.any("rules")) {
    rules(*list, gate, 0);
  }
  reader.finish();
}

void SyncReader::family(const ConfigNode &node, const RuleGate &gate) {
  DictReader reader(node, "a family", diags);
  if (!reader.require("family") || !reader.require("params")) {
    return;
  }
  const std::optional<bool> on = gate.applies(reader);
  SyncFamily f;
  const Located<std::string> name = reader.string("family").value_or(Located<std::string>());
  f.name = name.value;
  f.range = name.range;
  f.written = userWrote;
  for (const Located<std::string> &pattern : reader.strings("params")) {
    f.patterns.push_back(pattern.value);
  }
  const std::vector<Located<std::string>> tied = reader.strings("tied_over");
  axes(tied, f.tiedOver);
  if (!llvm::all_of(f.tiedOver, [&](AtomId a) { return module.axes.isStage(a); })) {
    diags.emit<Diag::OutOfRange>(tied.front().range, "tied_over", "an axis of pipeline stages", "`" + tied.front().value + "`");
  }
  const ConfigNode *own = reader.any("norm");
  if (own && on.value_or(false)) { // another job need not have its axes
    f.norm = norm(*own, gate);
  }
  reader.finish();
  familyNames.push_back(f.name);
  if (on.value_or(false)) {
    families.push_back(std::move(f));
    ownNorm.push_back(own != nullptr);
  }
}

void SyncReader::unit(const ConfigNode &node) {
  DictReader reader(node, "a unit", diags);
  if (!reader.require("unit") || !reader.require("params")) {
    return;
  }
  const Located<std::string> name = reader.string("unit").value_or(Located<std::string>());
  SyncUnit u{name.value, {}, name.range};
  for (const Located<std::string> &pattern : reader.strings("params")) {
    u.patterns.push_back(pattern.value);
  }
  reader.finish();
  units.push_back(std::move(u));
}

// Where the user wrote what the size at `at` follows from. Shipped files name sizes that not every job has.
SourceRange SyncReader::decidedAt(DictReader &reader) {
  const std::optional<Located<std::string>> name = reader.string("at");
  const auto size = name ? job.sizes.find(name->value) : job.sizes.end();
  if (name && size == job.sizes.end() && userWrote) {
    diags.emit<Diag::UnknownName>(name->range, name->value, "a size of this job");
  }
  return size == job.sizes.end() ? SourceRange() : size->second.range;
}

// `[dp, tp]`, `none`, or `{over: [dp, tp], once: [tp]}` where of copies over tp one counts; `once: all`. `at` as in a rule.
std::optional<SyncNorm> SyncReader::norm(const ConfigNode &node, const RuleGate &gate) {
  if (node.kind == Kind::Scalar && node.scalar == "none") {
    return std::nullopt;
  }
  SyncNorm n;
  n.range = node.range;
  if (node.kind == Kind::Mapping) {
    DictReader reader(node, "`norm`", diags);
    const bool on = gate.applies(reader).value_or(false);
    reader.require("over");
    const std::vector<Located<std::string>> over = reader.strings("over"), once = reader.strings("once");
    if (on) {
      axes(over, n.over);
    }
    if (!on || (once.size() == 1 && once[0].value == "all")) {
      n.once = n.over;
    } else {
      axes(once, n.once);
    }
    const auto *other = llvm::find_if(n.once, [&](AtomId a) { return !llvm::is_contained(n.over, a); });
    if (!over.empty() && other != n.once.end()) {
      const std::string name = module.axes.describe({*other}, module.view);
      diags.emit<Diag::OutOfRange>(once.front().range, "once", "axes that the norm goes over", "`" + name + "`");
    }
    const SourceRange place = decidedAt(reader);
    n.range = place.valid() ? place : n.range;
    reader.finish();
    return on ? std::optional(n) : std::nullopt;
  }
  std::vector<Located<std::string>> names;
  for (const ConfigNode &item : node.kind == Kind::Sequence ? llvm::ArrayRef(node.items) : llvm::ArrayRef(node)) {
    if (item.kind != Kind::Scalar) {
      diags.emit<Diag::WrongKind>(item.range, "norm", "a list of axes, `none`, or a mapping with `over`", describe(item));
      return std::nullopt;
    }
    names.push_back(scalarOf(item));
  }
  axes(names, n.over);
  return n;
}

void SyncReader::rules(const ConfigNode &node, const RuleGate &gate, unsigned depth) {
  if (node.kind != Kind::Sequence || depth > 16) {
    diags.emit<Diag::WrongKind>(node.range, "rules", "a list of rules, at most 16 deep", describe(node));
    return;
  }
  for (const ConfigNode &item : node.items) {
    if (item.kind != Kind::Mapping || !item.find("rules")) {
      rule(item, gate);
      continue;
    }
    DictReader reader(item, "a group of rules", diags);
    const std::optional<bool> on = gate.applies(reader);
    const ConfigNode *inner = reader.any("rules");
    reader.finish();
    if (on.value_or(false)) {
      rules(*inner, gate, depth + 1);
    }
  }
}

void SyncReader::rule(const ConfigNode &node, const RuleGate &gate) {
  DictReader reader(node, "a rule", diags);
  if (node.kind != Kind::Mapping) {
    if (node.kind == Kind::Null) { // which a reader takes for an empty mapping
      diags.emit<Diag::NotAMapping>(node.range, "a rule", describe(node));
    }
    return;
  }
  const std::optional<bool> on = gate.applies(reader);
  Rule r;
  r.rule.range = node.range;
  r.rule.step = reader.string("step").value_or(Located<std::string>{"reduce", {}}).value;
  r.families = reader.strings("family");
  readReduction(reader, r.rule);
  std::string overNames; // those of one rank too
  for (const Located<std::string> &axis : reader.strings("over")) {
    overNames += (overNames.empty() ? "" : ", ") + axis.value;
  }
  if (std::optional<Located<std::string>> text = reader.string("scale")) {
    r.rule.scale = scale(*text, gate).value_or(Scale());
  }
  r.rule.everyMicroStep = choice(reader, "when", {"boundary", "micro-step", "contribution"}).value_or(0) == 1;
  if (std::optional<size_t> state = choice(reader, "typed", {"R", "I", "S"})) {
    r.rule.typed = *state == 0 ? State::R : *state == 1 ? State::I : State::S;
  }
  readShard(reader.mapping("shard"), gate, r.rule);
  r.rule.condition = reader.string("only_if").value_or(Located<std::string>()).value;
  if (const std::optional<Located<std::string>> dtype = reader.string("dtype")) { // a dtype, or a switch that says one
    const std::string word = gate.scope().text(dtype->value).value_or(dtype->value);
    r.rule.dtype = word;
    if (!word.empty() && !parseDType(word)) {
      diags.emit<Diag::UnknownName>(dtype->range, word, "a dtype");
    }
  }
  r.rule.decided = decidedAt(reader);
  r.rule.decidedText = "reduced over `" + overNames + "`";
  reader.finish();
  if (on.value_or(false)) {
    ruleList.push_back(std::move(r));
  }
}

void SyncReader::readReduction(DictReader &reader, SyncRule &r) {
  const std::vector<Located<std::string>> over = reader.strings("over");
  axes(over, r.over, &r.overText);
  const std::optional<size_t> op = choice(reader, "op", {"sum", "average", "none"});
  static constexpr SyncOp ops[] = {SyncOp::Sum, SyncOp::Average, SyncOp::None};
  r.op = op ? ops[*op] : over.empty() ? SyncOp::None : SyncOp::Sum;
}

void SyncReader::readShard(const ConfigNode *node, const RuleGate &gate, SyncRule &r) {
  if (!node) {
    return;
  }
  DictReader reader(*node, "`shard`", diags);
  if (reader.require("over")) {
    axes(reader.strings("over"), r.shardedOver);
  }
  if (std::optional<Located<std::string>> dim = reader.string("dim")) {
    std::optional<int64_t> n = evaluate(dim->value, dim->range, [&](llvm::StringRef s) { return gate.scope().size(s); }, diags);
    if (n && (*n < 0 || *n > 16)) {
      diags.emit<Diag::OutOfRange>(dim->range, "dim", "the number of a dimension, from 0", *n);
    } else {
      r.shardDim = int32_t(n.value_or(0));
    }
  }
  r.shardEven = reader.boolean("even").value_or(Located<bool>()).value;
  r.shardDecided = decidedAt(reader);
  reader.finish();
}

// Numbers, sizes and axes, multiplied and divided: `1 / tp`, `dp * 2 / (E / ep)`.
std::optional<Scale> SyncReader::scale(const Located<std::string> &text, const RuleGate &gate) {
  Scale result;
  llvm::StringRef all = text.value;
  const bool literal = text.range.valid() && text.range.end - text.range.begin == all.size();
  size_t from = 0, depth = 0;
  bool under = false, good = true;
  for (size_t at = 0; at <= all.size(); ++at) {
    const char c = at < all.size() ? all[at] : '*';
    depth += c == '(' ? 1 : 0;
    depth -= c == ')' && depth > 0 ? 1 : 0;
    if ((c == '*' || c == '/') && (depth == 0 || at == all.size())) {
      const llvm::StringRef word = all.slice(from, at).trim();
      const size_t begin = size_t(word.data() - all.data());
      const SourceRange range = literal ? text.range.slice(begin, begin + word.size()) : text.range;
      good &= factor(word, range, under, gate, result);
      under = c == '/';
      from = at + 1;
    }
  }
  if (good && !result.value.valid) {
    diags.emit<Diag::OutOfRange>(text.range, "scale", "a factor that can be counted", "`" + text.value + "`");
    good = false;
  }
  return good ? std::optional(result) : std::nullopt;
}

bool SyncReader::factor(llvm::StringRef word, SourceRange range, bool under, const RuleGate &gate, Scale &scale) {
  if (const Axis *axis = module.axes.find(word)) {
    for (AtomId a : axis->atoms) {
      scale.multiplyRanks(module.axes, a, under ? -1 : 1);
    }
    return true;
  }
  Rational number;
  const auto [whole, digits] = word.split('.');
  const bool decimal = !digits.empty() && digits.size() <= 12 && llvm::all_of(digits, llvm::isDigit);
  std::optional<int64_t> value;
  if (decimal) { // 0.25 is 25 / 100
    value = parseInteger(llvm::StringRef((whole + digits).str()).ltrim('0'));
    for (size_t i = 0; i < digits.size(); ++i) {
      number = number.times(1, 10);
    }
  } else {
    value = evaluate(word, range, [&](llvm::StringRef s) { return gate.scope().size(s); }, diags);
    if (!value) {
      return false;
    }
  }
  if (!value || *value < 1) {
    diags.emit<Diag::OutOfRange>(range, "scale", "a positive factor", "`" + word.str() + "`");
    return false;
  }
  number = number.times(*value, 1);
  scale.multiply(under ? Rational{}.times(number.den, number.num) : number);
  return true;
}

SyncPlan SyncReader::plan() {
  SyncPlan plan;
  plan.units = std::move(units);
  plan.microSteps = microSteps.value_or(1);
  plan.sameBits = sameBits;
  for (const Rule &r : ruleList) {
    for (const Located<std::string> &name : r.families) {
      if (!llvm::is_contained(familyNames, name.value) && !(familyNames.empty() && name.value == "all")) {
        suggest(diags.emit<Diag::UnknownName>(name.range, name.value, "a family of these rules"), name.value, familyNames, "families");
      }
    }
  }
  if (familyNames.empty()) { // rules without families are about all parameters
    SyncFamily all;
    all.name = "all";
    all.patterns = {"*"};
    families.push_back(std::move(all));
    ownNorm.push_back(false);
  }
  // The order of the steps: as the last file, which is the one that is extended, says, then as they first appear.
  std::vector<std::string> steps;
  auto addStep = [&](const std::string &step) {
    if (!llvm::is_contained(steps, step)) {
      steps.push_back(step);
    }
  };
  for (const std::vector<std::string> &list : llvm::reverse(stepLists)) {
    llvm::for_each(list, addStep);
  }
  for (const Rule &r : ruleList) {
    addStep(r.rule.step);
  }
  for (size_t i = 0; i < families.size(); ++i) {
    SyncFamily &f = families[i];
    for (const std::string &step : steps) {
      for (const Rule &r : ruleList) {
        auto named = [&](const Located<std::string> &n) { return n.value == f.name; };
        if (r.rule.step == step && (r.families.empty() || llvm::any_of(r.families, named))) {
          f.rules.push_back(r.rule);
        }
      }
    }
    f.norm = ownNorm[i] ? f.norm : defaultNorm;
  }
  plan.families = std::move(families);
  return plan;
}

} // namespace shardc
