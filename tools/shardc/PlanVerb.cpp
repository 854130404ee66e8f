// PlanVerb: plan. Reads a mesh and two types from the command line, plans, prints.
#include "Verbs.h"
#include "shardc/Emit/Diagnostics.h"
#include "shardc/Emit/Plan.h"
#include "shardc/Frontend/Config.h"
#include "shardc/IR/Text.h"

namespace shardc {

namespace {

constexpr int64_t MostRanks = 1 << 20;

class Planner {
public:
  Planner(const Options &o, DiagnosticEngine &d, FileId c) : options(o), diags(d), call(c) {}

  // False if something was wrong and reported.
  bool run() {
    if (!options.mesh) {
      diags.emit<Diag::BadCall>(SourceRange{call, 0, uint32_t(options.flagsBegin)}, "no mesh is named")
          .help("--mesh dp=2,tp=4: axes and their sizes, outermost first");
      return false;
    }
    if (options.positionals.size() != 2) {
      diags.emit<Diag::BadCall>(SourceRange{call, 0, uint32_t(options.flagsBegin)}, "`plan` takes two types, from and to")
          .help("shardc plan --mesh dp=2,tp=4 'bf16[64@dp, 64@tp]' 'bf16[64@tp, 64@dp]'");
      return false;
    }
    if (!readMesh(*options.mesh)) {
      return false;
    }
    const SizeTable sizes;
    ParseEnv env{module, sizes, diags};
    from = parseType(options.positionals[0].text, placeOf(options.positionals[0]), env);
    to = parseType(options.positionals[1].text, placeOf(options.positionals[1]), env);
    const Word name = options.machine.value_or(Word{"h100", 0, 0});
    machine = readMachine({name.text, placeOf(name)}, diags);
    if (!from || !to || !machine) {
      return false;
    }
    std::string why;
    plan = redistribute(*from, *to, module, *machine, options.search, why);
    if (!plan) {
      diags.emit<Diag::BadCall>(placeOf(options.positionals[1]), "no plan leads from `" + options.positionals[0].text + "` here: " + why);
    }
    return plan.has_value();
  }

  PlanReport report() const { return {*plan, module, *from, *to, *machine, options.search}; }

private:
  SourceRange placeOf(const Word &word) const { return {call, word.begin, word.end}; }

  // dp=2,tp=4, outermost first; a stride may follow: x=2:1.
  bool readMesh(const Word &word) {
    ViewSpec view;
    view.name = "mesh";
    view.range = placeOf(word);
    int64_t world = 1;
    llvm::SmallVector<llvm::StringRef, 8> entries;
    llvm::StringRef(word.text).split(entries, ',');
    for (llvm::StringRef entry : entries) {
      const auto begin = static_cast<uint32_t>(word.begin + (entry.data() - word.text.data()));
      AxisSpec axis;
      axis.range = {call, begin, static_cast<uint32_t>(begin + entry.size())};
      const auto [name, numbers] = entry.split('=');
      const auto [size, stride] = numbers.split(':');
      const std::optional<int64_t> n = parseInteger(size);
      axis.name = name.str();
      axis.size = n.value_or(0);
      axis.stride = stride.empty() ? std::nullopt : parseInteger(stride);
      const bool strideWrong = numbers.contains(':') && axis.stride.value_or(0) < 1;
      if (name.empty() || axis.size < 1 || strideWrong || __builtin_mul_overflow(world, axis.size, &world) || world > MostRanks) {
        diags.emit<Diag::WrongKind>(axis.range, "--mesh", "axes such as `dp=2,tp=4`, of at most " + std::to_string(MostRanks) + " ranks",
                                    "`" + entry.str() + "`");
        return false;
      }
      view.axes.push_back(std::move(axis));
    }
    std::optional<Axes> axes = Axes::build({world, view.range}, view, {}, diags);
    if (!axes) {
      return false;
    }
    module.axes = std::move(*axes);
    return true;
  }

  const Options &options;
  DiagnosticEngine &diags;
  FileId call;
  Module module;
  std::optional<Type> from, to;
  std::optional<Machine> machine;
  std::optional<Redistribution> plan;
};

} // namespace

int planVerb(const Options &options, Streams &streams) {
  SourceManager sources;
  DiagnosticEngine diags(sources);
  Planner planner(options, diags, sources.add("<command line>", options.commandLine));
  const bool planned = planner.run();
  renderText(streams.err, diags, streams.errColour);
  if (!planned) {
    return ExitUnreadable;
  }
  options.format == Format::Json ? writePlanJson(streams.out, planner.report()) : writePlanText(streams.out, planner.report());
  return ExitOk;
}

} // namespace shardc
