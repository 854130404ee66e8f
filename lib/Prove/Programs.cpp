// Random programs against both roads.
//
// A program grows by one operation at a time; each step is read and inferred as a graph file is, so that a failure is a file
// that a person can run. The first rejected operation ends a program: it is then run all the same on what its operands hold,
// and every layout that its result could have is tried.
#include "shardc/Prove/Programs.h"
#include "Generator.h"
#include "Trial.h"
#include "shardc/Frontend/Dialect.h"
#include "shardc/IR/Text.h"
#include "shardc/Prove/Field.h"
#include "shardc/Prove/Prove.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace shardc {
namespace {

// A graph file through reader and checker.
struct Checked {
  std::optional<TypedModule> typed;
  std::string finding; // "" if accepted
  std::string message;
  std::vector<ParamGradient> gradients;
};

Checked checkText(const std::string &text) {
  Checked out;
  SourceManager sources;
  DiagnosticEngine diags(sources);
  const std::optional<ConfigNode> root = parseConfig(sources.add("program.yaml", text), diags, ConfigFormat::Yaml);
  std::optional<Module> module = root ? readGraph(*root, diags) : std::nullopt;
  if (module) {
    out.typed = infer(std::move(*module), {}, diags);
    if (!diags.hasErrors()) {
      inferGradients(*out.typed, diags);
    }
  }
  for (const Diagnostic &d : diags.all()) {
    if (d.severity == Severity::Error) {
      out.finding = diagName(d.id);
      out.message = d.message;
      break;
    }
  }
  return out;
}

std::vector<KnownValue> knownValues(const TypedModule &typed) {
  std::vector<KnownValue> out;
  const Function &f = typed.module.function(typed.module.root);
  for (uint32_t v = 0; v < f.values.size(); ++v) {
    const TypeId id = typed.instances[typed.root].values[v];
    const llvm::StringRef name = typed.module.names.str(f.values[v].name);
    if (!id.valid() || f.values[v].kind != ValueKind::Result || !name.starts_with("v")) {
      continue;
    }
    KnownValue value{name.str(), {}, &typed.module.types[id]};
    for (const Dim &d : value.type->dims) {
      const bool plain = d.factors.size() == 1 && d.factors[0].name.valid() && d.factors[0].padTo == 0;
      value.dims.push_back(plain ? typed.module.names.str(d.factors[0].name).str() : "");
    }
    out.push_back(std::move(value));
  }
  return out;
}

// Half of the programs run on small integers, where zeros, signs and ties occur.
ProveOptions optionsOf(uint64_t seed) {
  ProveOptions options;
  options.seed = seed;
  options.believeAssertions = true;
  options.integers = (seed & 1) != 0;
  return options;
}

class Runner {
public:
  Runner(const ProgramsOptions &o, ProgramsReport &r) : options(o), report(r), random(mix(o.seed)) {}

  void one() {
    const uint64_t seed = random.next();
    Generator generator(seed);
    SmallProgram program = generator.begin();
    Checked last;
    const size_t length = 1 + random.below(5);
    for (size_t i = 0; i < length; ++i) {
      SmallProgram next = program;
      const std::vector<KnownValue> known = last.typed ? knownValues(*last.typed) : std::vector<KnownValue>();
      const std::string op = generator.extend(next, known);
      Checked checked = checkText(next.text());
      if (!checked.typed) {
        break; // not a program: what was written makes no sense on any layout
      }
      if (!checked.finding.empty()) {
        ++report.rejected;
        rejected(next, checked, op, seed);
        break;
      }
      program = std::move(next);
      last = std::move(checked);
      ++report.operations[op];
    }
    if (last.typed) {
      ++report.accepted;
      accepted(program, *last.typed, seed);
    }
  }

private:
  void accepted(const SmallProgram &program, const TypedModule &typed, uint64_t seed) {
    const Proof proof = prove(typed, optionsOf(seed));
    report.values += proof.compared;
    if (!proof.unable.empty() && proof.refutations.empty()) {
      ++report.unable;
      ++report.reasons[proof.unable];
      return;
    }
    if (proof.holds()) {
      ++report.proved;
      return;
    }
    const Refutation &first = proof.refutations.front();
    const std::string op = operationOf(typed, first.value);
    const std::string kind = first.gradient ? "gradient" : "value";
    if (++report.unsound[{op, kind}] == 1 && report.failures.size() < options.keep) {
      const SmallProgram small = shrink(program, seed);
      const Checked checked = checkText(small.text());
      const Proof again = prove(*checked.typed, optionsOf(seed));
      report.failures.push_back({op, "", "`" + again.refutations.front().value + "`: " + again.refutations.front().text, small.text()});
    }
  }

  static std::string operationOf(const TypedModule &typed, llvm::StringRef value) {
    const Function &f = typed.module.function(typed.module.root);
    for (const Op &op : f.ops) {
      for (uint32_t r = 0; r < op.numResults; ++r) {
        if (typed.module.names.str(f.values[op.firstResult + r].name) == value) {
          return opInfo(op.kind).name.str();
        }
      }
    }
    for (const Op &op : f.ops) { // a gradient: the first user of the input
      for (ValueId v : f.operandsOf(op)) {
        if (typed.module.names.str(f.values[v.index].name) == value) {
          return opInfo(op.kind).name.str();
        }
      }
    }
    return "?";
  }

  static bool stillFails(const SmallProgram &program, uint64_t seed) {
    const Checked checked = checkText(program.text());
    return checked.typed && checked.finding.empty() && !prove(*checked.typed, optionsOf(seed)).refutations.empty();
  }

  // Fewer lines, then fewer inputs; an operation is replaced by an input of the type of its result.
  static SmallProgram shrink(SmallProgram program, uint64_t seed) {
    for (bool smaller = true; smaller;) {
      smaller = false;
      for (size_t i = 0; i < program.lines.size() && !smaller; ++i) {
        SmallProgram less = program;
        less.lines.erase(less.lines.begin() + static_cast<std::ptrdiff_t>(i));
        SmallProgram given = less;
        const Checked checked = checkText(program.text());
        const llvm::StringRef result = llvm::StringRef(program.lines[i]).split(" = ").first;
        const Function &f = checked.typed->module.function(checked.typed->module.root);
        for (uint32_t v = 0; v < f.values.size(); ++v) {
          const TypeId t = checked.typed->instances[checked.typed->root].values[v];
          if (checked.typed->module.names.str(f.values[v].name) == result && t.valid()) {
            given.inputs.emplace_back(result.str(), print(checked.typed->module.types[t], checked.typed->module));
          }
        }
        for (SmallProgram *candidate : {&less, &given}) {
          dropUnused(*candidate);
          if (!candidate->lines.empty() && stillFails(*candidate, seed)) {
            program = *candidate;
            smaller = true;
            break;
          }
        }
      }
    }
    dropUnused(program);
    return program;
  }

  static void dropUnused(SmallProgram &program) {
    llvm::erase_if(program.inputs, [&](const auto &input) {
      return llvm::none_of(program.lines, [&](const std::string &line) {
        llvm::SmallVector<llvm::StringRef, 8> words;
        llvm::SplitString(line, words, " ,()=");
        return llvm::is_contained(words, llvm::StringRef(input.first));
      });
    });
  }

  void rejected(const SmallProgram &program, const Checked &checked, const std::string &op, uint64_t seed) {
    // Some findings are about gradients alone, which a trial does not run; comparisons of random elements say nothing.
    const OpKind kind = *findOp(op);
    if (!options.falseAlarms || checked.finding == "invariant-mixes" || opInfo(kind).kernel == "compare") {
      return;
    }
    const TrialResult trial = tryLastOperation(*checked.typed, seed);
    if (!trial.ran) {
      return;
    }
    ++report.judged;
    if (trial.layout.empty()) {
      return;
    }
    const auto key = std::pair(checked.finding, op);
    if (++report.falseAlarms[key] == 1) {
      report.alarms.push_back({op, checked.finding, trial.layout, program.text()});
    }
  }

  const ProgramsOptions &options;
  ProgramsReport &report;
  Random random;
};

} // namespace

ProgramsReport runPrograms(const ProgramsOptions &options, llvm::function_ref<bool(int64_t done)> progress) {
  ProgramsReport report;
  Runner runner(options, report);
  for (; report.programs < options.programs; ++report.programs) {
    if (report.programs % 256 == 0 && !progress(report.programs)) {
      break;
    }
    runner.one();
  }
  return report;
}

} // namespace shardc
