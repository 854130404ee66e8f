// ProveVerb: `shardc prove`, the second road to a verdict, for one job or for random programs.
#include "Pipeline.h"
#include "Verbs.h"
#include "shardc/Emit/Diagnostics.h"
#include "shardc/Emit/Prove.h"
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

int provePrograms(const Options &options, Streams &streams, uint64_t count, uint64_t seed) {
  ProgramsOptions wanted;
  wanted.programs = static_cast<int64_t>(count);
  wanted.seed = seed;
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const ProgramsReport report = runPrograms(wanted, [&](int64_t done) {
    if (terminal) {
      streams.err << '\r' << done << " of " << count << " programs";
      streams.err.flush();
    }
    return true;
  });
  if (terminal) {
    streams.err << "\r\x1b[K";
  }
  options.format == Format::Json ? writeProgramsJson(streams.out, report) : writeProgramsText(streams.out, report);
  return report.unsound.empty() ? ExitOk : ExitBug;
}

// Where both roads say the same about synchronisation it is the job that is wrong, otherwise it is this program.
int proofCode(const Proof &proof, const JobRun &run, FailOn failOn) {
  if (!proof.refutations.empty()) {
    return ExitBug;
  }
  if (!proof.unable.empty()) {
    return ExitUnreadable;
  }
  const bool wrong = llvm::any_of(
      proof.parameters, [&](const ParameterProof &p) { return proof.synchronised && !p.none && (!p.synced || !p.synced->isOne()); });
  return wrong ? ExitFindings : exitCode(run, failOn);
}

} // namespace

int proveVerb(const Options &options, Streams &streams) {
  uint64_t seed = 1;
  uint64_t programs = 0;
  if (!readNumber(options.seed, "--seed", options, streams, seed) ||
      !readNumber(options.programs, "--programs", options, streams, programs)) {
    return ExitUnreadable;
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
  const std::optional<int64_t> elements = proofElements(*run.typed);
  if (!elements || *elements > MostElements) {
    proof.unable = "the job is too large to be run exactly; describe it with smaller sizes and fewer ranks";
  } else {
    proof = prove(*run.typed, {seed, run.typed->module.loss.has_value() || options.phase == std::nullopt});
  }
  if (options.format == Format::Json) {
    writeProofJson(streams.out, run.name, proof, run.sources);
  } else {
    writeProofText(streams.out, run.name, proof, run.sources);
  }
  return proofCode(proof, run, options.failOn);
}

} // namespace shardc
