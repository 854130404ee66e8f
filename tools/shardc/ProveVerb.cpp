// ProveVerb: `shardc prove`, the second road to a verdict, for one job or for random programs.
#include "Pipeline.h"
#include "Verbs.h"
#include "shardc/Emit/Diagnostics.h"
#include "shardc/Emit/Prove.h"
#include "shardc/Prove/Shrink.h"
#include <unistd.h>

namespace shardc {

namespace {

// Beyond this a run would take minutes and gigabytes: sizes are to be chosen smaller.
constexpr int64_t MostElements = int64_t(1) << 26;

// A number given as an option; reported if it is none.
bool readNumber(const std::optional<Word> &word, llvm::StringRef name, const Options &options, const Streams &streams, uint64_t &value) {
  if (!word) {
    return true;
  }
  const std::optional<int64_t> number = parseInteger(word->text);
  if (number && *number >= 0) {
    value = static_cast<uint64_t>(*number);
    return true;
  }
  reportCall(options, streams, [&](DiagnosticEngine &diags, FileId commandLine) {
    diags.emit<Diag::WrongKind>({commandLine, word->begin, word->end}, name, "a whole number, 0 or more", "`" + word->text + "`");
  });
  return false;
}

// A line on a terminal that is overwritten, and gone at the end.
class Progress {
public:
  explicit Progress(Streams &s) : streams(s), shown(isatty(STDERR_FILENO) != 0) {}
  ~Progress() { show("\r\x1b[K"); }
  void show(const std::string &text) const {
    if (shown) {
      streams.err << text;
      streams.err.flush();
    }
  }
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

private:
  Streams &streams;
  bool shown;
};

int provePrograms(const Options &options, Streams &streams, uint64_t count, uint64_t seed) {
  ProgramsOptions wanted;
  wanted.programs = static_cast<int64_t>(count);
  wanted.seed = seed;
  ProgramsReport report;
  {
    const Progress progress(streams);
    report = runPrograms(wanted, [&](int64_t done) {
      progress.show(llvm::formatv("\r{0} of {1} programs", done, count).str());
      return true;
    });
  }
  options.format == Format::Json ? writeProgramsJson(streams.out, report) : writeProgramsText(streams.out, report);
  return report.unsound.empty() ? ExitOk : ExitBug;
}

// The job as it runs: small where its sizes can be chosen. `why` says why it cannot.
std::optional<TypedModule> smallProgram(JobRun &run, InferOptions options, std::vector<ShrunkSize> &shrunk, std::string &why) {
  std::optional<SmallJob> small = shrinkJob(*run.job, *run.typed, why);
  if (!small) {
    why = "no small size was found for " + why;
    return std::nullopt;
  }
  DiagnosticEngine diags(run.sources); // what is refuted has its place in the small program's files
  const auto firstError = [&] {
    const auto error = llvm::find_if(diags.all(), [](const Diagnostic &d) { return d.severity == Severity::Error; });
    return error == diags.all().end() ? std::string() : error->message;
  };
  std::optional<Module> module = programOf(small->job, run.sync.get(), diags);
  if (!module) {
    why = "the small job is none: " + firstError();
    return std::nullopt;
  }
  shrunk = std::move(small->axes);
  llvm::append_range(shrunk, small->sizes);
  llvm::append_range(shrunk, dropRepeats(*module));
  std::optional<TypedModule> typed = infer(std::move(*module), options, diags);
  if (diags.hasErrors() || !sameLayouts(*run.typed, *typed, why)) {
    why = "the small job has other layouts: " + (diags.hasErrors() ? firstError() : why);
    return std::nullopt;
  }
  return typed;
}

// What the checker says of the job in its real sizes.
void addRealScales(const TypedModule &real, Proof &proof) {
  SourceManager sources;
  DiagnosticEngine ignored(sources);
  const std::vector<SyncRow> rows = synchronise(real, inferGradients(real, ignored), real.module.sync ? &*real.module.sync : nullptr);
  for (ParameterProof &p : proof.parameters) {
    const auto row = llvm::find_if(rows, [&](const SyncRow &r) { return matchesPattern(p.path, r.parameters); });
    p.real = row == rows.end() ? "" : row->scale.describe(real.module.axes, real.module.view);
  }
}

int proveMutants(const Options &options, Streams &streams, JobRun &run, TypedModule &typed, const ProveOptions &proveOptions) {
  MutationReport report;
  {
    const Progress progress(streams);
    report = mutate(typed, proveOptions, run.sources, [&](size_t done, size_t all) {
      progress.show(llvm::formatv("\r{0} of {1} mistakes", done, all).str());
      return true;
    });
  }
  options.format == Format::Json ? writeMutationsJson(streams.out, run.name, report, run.sources)
                                 : writeMutationsText(streams.out, run.name, report, run.sources);
  if (report.job.fate != Fate::Equal) {
    return report.job.fate == Fate::Hole ? ExitBug : ExitUnreadable;
  }
  return report.count(Fate::Hole) != 0 ? ExitBug : ExitOk;
}

// Where both roads say the same about synchronisation it is the job that is wrong, otherwise it is this program.
int proofCode(const Proof &proof, const JobRun &run, FailOn failOn) {
  if (!proof.refutations.empty()) {
    return ExitBug;
  }
  if (!proof.unable.empty()) {
    return ExitUnreadable;
  }
  return proof.gradientsRight() ? exitCode(run, failOn) : ExitFindings;
}

} // namespace

int proveVerb(const Options &options, Streams &streams) {
  uint64_t seed = 1;
  uint64_t programs = 0;
  if (!readNumber(options.seed, "--seed", options, streams, seed) ||
      !readNumber(options.programs, "--programs", options, streams, programs)) {
    return ExitUnreadable;
  }
  if (options.programs && options.mutate) {
    return reportCall(options, streams, [&](DiagnosticEngine &diags, FileId commandLine) {
      const SourceRange place{commandLine, options.programs->begin, options.programs->end};
      diags.emit<Diag::BadCall>(place, "`--mutate` needs a job, and `--programs` is instead of one");
    });
  }
  if (options.programs) {
    return provePrograms(options, streams, programs, seed);
  }
  if (options.positionals.size() > 1) {
    return reportCall(options, streams, [&](DiagnosticEngine &diags, FileId commandLine) {
      const Word &word = options.positionals[1];
      diags.emit<Diag::BadCall>({commandLine, word.begin, word.end}, "`prove` takes one job");
    });
  }
  JobRun run;
  runJob(options.positionals.empty() ? nullptr : &options.positionals.front(), options, run);
  renderText(streams.err, run.diags, streams.errColour);
  // Only a program whose every value has a type can run; what synchronises its gradients may be wrong.
  const bool failed = !run.typed || llvm::any_of(run.typed->instances, [](const Instance &i) {
    return i.failed || llvm::any_of(i.values, [](TypeId t) { return !t.valid(); });
  });
  if (failed || run.report.verdict == Verdict::Unreadable) {
    return exitCode(run, options.failOn);
  }
  Proof proof;
  std::vector<ShrunkSize> shrunk;
  std::optional<TypedModule> small;
  if (run.job) {
    InferOptions inferOptions;
    inferOptions.reshard = options.reshard;
    small = smallProgram(run, inferOptions, shrunk, proof.unable);
  }
  TypedModule *typed = small ? &*small : run.job ? nullptr : &*run.typed;
  const ProveOptions proveOptions{seed, run.typed->module.loss.has_value() || options.phase == std::nullopt};
  const std::optional<int64_t> elements = typed ? proofElements(*typed) : std::nullopt;
  if (typed && (!elements || *elements > MostElements)) {
    proof.unable = "the job is too large to be run exactly; describe it with smaller sizes and fewer ranks";
  } else if (typed && options.mutate) {
    return proveMutants(options, streams, run, *typed, proveOptions);
  } else if (typed) {
    proof = prove(*typed, proveOptions);
    addRealScales(*run.typed, proof);
  }
  proof.shrunk = std::move(shrunk);
  if (options.format == Format::Json) {
    writeProofJson(streams.out, run.name, proof, run.sources);
  } else {
    writeProofText(streams.out, run.name, proof, run.sources);
  }
  return proofCode(proof, run, options.failOn);
}

} // namespace shardc
