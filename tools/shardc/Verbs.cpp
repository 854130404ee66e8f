// Verbs: check, types, models, explain. Each is a few lines: the pipeline and an emitter. See the header.
#include "Verbs.h"
#include "Pipeline.h"
#include "shardc/Emit/Diagnostics.h"
#include "shardc/Emit/Explain.h"
#include "shardc/Emit/Models.h"
#include "shardc/Emit/Types.h"

namespace shardc {

namespace {

SourceRange placeOf(const Word &word, FileId commandLine) { return {commandLine, word.begin, word.end}; }

// Something to check must be named; nothing is guessed.
bool namesJob(const Options &options) { return !options.positionals.empty() || options.model || options.config || !options.flags.empty(); }

int refuseNoJob(const Options &options, Streams &streams) {
  return reportCall(options, streams, [&](DiagnosticEngine &diags, FileId commandLine) {
    diags.emit<Diag::BadCall>({commandLine, 0, static_cast<uint32_t>(options.flagsBegin)}, "no job is named")
        .help("name job or graph files, or describe the job: --model FAMILY/FLAVOUR --world N --framework NAME -- FLAGS");
  });
}

// Jobs are printed as they are done; as JSON they are one answer.
class CheckRuns {
public:
  CheckRuns(const Options &o, Streams &s) : options(o), streams(s) {}

  void add(std::unique_ptr<JobRun> run) {
    code = std::max(code, exitCode(*run, options.failOn));
    if (options.format == Format::Text) {
      writeCheckText(streams.out, run->asReport(), streams.outColour);
    } else {
      run->typed.reset(); // the answer needs the findings only
      runs.push_back(std::move(run));
    }
  }

  int finish() {
    if (options.format == Format::Json) {
      std::vector<JobReport> reports;
      for (const auto &run : runs) {
        reports.push_back(run->asReport());
      }
      writeCheckJson(streams.out, reports);
    }
    return code;
  }

private:
  const Options &options;
  Streams &streams;
  int code = ExitOk;
  std::vector<std::unique_ptr<JobRun>> runs;
};

int check(const Options &options, Streams &streams) {
  if (!namesJob(options)) {
    return refuseNoJob(options, streams);
  }
  if (options.resume && options.positionals.size() > 1) {
    return reportCall(options, streams, [&](DiagnosticEngine &diags, FileId commandLine) {
      diags.emit<Diag::BadCall>(placeOf(options.positionals[1], commandLine), "`--resume` takes one job that saves");
    });
  }
  CheckRuns runs(options, streams);
  const auto one = [&](const Word *file) {
    auto run = std::make_unique<JobRun>();
    runJob(file, options, *run);
    std::unique_ptr<JobRun> reader;
    if (options.resume) {
      reader = std::make_unique<JobRun>(run->shared);
      resumeJob(*run, options, *reader);
    }
    runs.add(std::move(run));
    if (reader) {
      runs.add(std::move(reader));
    }
  };
  for (const Word &file : options.positionals) {
    one(&file);
  }
  if (options.positionals.empty()) {
    one(nullptr);
  }
  return runs.finish();
}

// What `types` shows; false if a named view or module does not exist, which is reported.
bool readTypesOptions(const Options &options, const TypedModule &typed, TypesOptions &wanted, const Streams &streams) {
  const auto refuse = [&](const Word &word, llvm::StringRef what, llvm::StringRef help) {
    reportCall(options, streams, [&](DiagnosticEngine &diags, FileId commandLine) {
      diags.emit<Diag::UnknownName>(placeOf(word, commandLine), word.text, what).help(help.str());
    });
    return false;
  };
  if (options.view) {
    std::string known;
    for (const ViewSpec &view : typed.module.axes.views()) {
      known += (known.empty() ? "" : ", ") + view.name;
      wanted.view = view.name == options.view->text ? view.name : wanted.view;
    }
    if (wanted.view.empty()) {
      return refuse(*options.view, "a view of this job", "it has " + known);
    }
  }
  if (const uint64_t values = countValues(typed); values > MostValues) {
    reportCall(options, streams, [&](DiagnosticEngine &diags, FileId commandLine) {
      diags.emit<Diag::TooManyValues>({commandLine, 0, static_cast<uint32_t>(options.flagsBegin)}, typed.module.name, values, MostValues);
    });
    return false;
  }
  wanted.modulePattern = options.module ? options.module->text : "";
  if (!anyModuleMatches(typed, wanted.modulePattern)) {
    return refuse(*options.module, "a module of this job", "`shardc types` without --module shows all; `*` stands for any text");
  }
  return true;
}

int types(const Options &options, Streams &streams) {
  if (!namesJob(options)) {
    return refuseNoJob(options, streams);
  }
  if (options.positionals.size() > 1) {
    return reportCall(options, streams, [&](DiagnosticEngine &diags, FileId commandLine) {
      diags.emit<Diag::BadCall>(placeOf(options.positionals[1], commandLine), "`types` takes one job");
    });
  }
  JobRun run;
  runJob(options.positionals.empty() ? nullptr : &options.positionals.front(), options, run);
  TypesOptions typesOptions;
  if (run.typed && !readTypesOptions(options, *run.typed, typesOptions, streams)) {
    return ExitUnreadable;
  }
  if (options.format == Format::Json) {
    writeTypesJson(streams.out, run.asReport(), typesOptions);
  } else {
    renderText(streams.err, run.diags, streams.errColour);
    streams.err.flush();
    if (run.typed) {
      writeTypesText(streams.out, *run.typed, typesOptions);
    }
  }
  return exitCode(run, options.failOn);
}

int models(const Options &options, Streams &streams) {
  SourceManager sources;
  DiagnosticEngine diags(sources);
  const std::vector<Word> &names = options.positionals;
  if (names.empty()) {
    options.format == Format::Json ? writeModelsJson(streams.out, diags) : writeModelsText(streams.out, diags);
    renderText(streams.err, diags, streams.errColour);
    return diags.hasErrors() ? ExitBug : ExitOk; // what is shipped must read
  }
  if (names.front().text != "show" || names.size() != 2) {
    return reportCall(options, streams, [&](DiagnosticEngine &callDiags, FileId commandLine) {
      callDiags.emit<Diag::BadCall>(placeOf(names.front(), commandLine), "`models` takes nothing, or `show NAME`");
    });
  }
  if (const CatalogFile *file = findShipped(names[1].text, diags)) {
    streams.out << file->text;
    return ExitOk;
  }
  return reportCall(options, streams, [&](DiagnosticEngine &callDiags, FileId commandLine) {
    const std::vector<std::string> known = shippedNames(diags);
    const std::vector<llvm::StringRef> candidates(known.begin(), known.end());
    auto builder = callDiags.emit<Diag::UnknownName>(placeOf(names[1], commandLine), names[1].text, "a shipped model or strategy");
    if (const llvm::StringRef near = nearest(names[1].text, candidates); !near.empty()) {
      builder.help(("did you mean `" + near + "`?").str());
    } else {
      builder.help("`shardc models` lists what is shipped");
    }
  });
}

int explainVerb(const Options &options, Streams &streams) {
  SourceManager sources;
  DiagnosticEngine diags(sources);
  const bool json = options.format == Format::Json;
  if (options.positionals.empty()) {
    json ? writeExplainableJson(streams.out) : writeExplainableText(streams.out);
    return ExitOk;
  }
  std::vector<Explanation> found;
  const Word *unknown = nullptr;
  for (const Word &name : options.positionals) {
    const std::vector<Explanation> one = explain(name.text, diags);
    found.insert(found.end(), one.begin(), one.end());
    unknown = one.empty() && !unknown ? &name : unknown;
  }
  if (unknown) {
    return reportCall(options, streams, [&](DiagnosticEngine &callDiags, FileId commandLine) {
      auto builder =
          callDiags.emit<Diag::UnknownName>(placeOf(*unknown, commandLine), unknown->text, "a diagnostic, an operation or a change");
      const std::string near = nearestExplainable(unknown->text);
      builder.help(near.empty() ? "`shardc explain` lists all names" : "did you mean `" + near + "`?");
    });
  }
  renderText(streams.err, diags, streams.errColour);
  json ? writeExplanationsJson(streams.out, found) : writeExplanationsText(streams.out, found);
  return diags.hasErrors() ? ExitBug : ExitOk;
}

constexpr Verb verbs[] = {
    {"check", "read, infer, verify; the exit code gates CI", "FILE",
     "job files, graph files, a model's config.json or a framework's config", JobOptions | FailOptions | CheckOnly, check},
    {"types", "every value with its type, its gradient's type and the collectives between", "FILE",
     "one job file, graph file or config.json", JobOptions | FailOptions | TypesOnly | ViewOptions, types},
    {"grads", "each gradient: its type, what synchronises it, scale, verdict; and the clip norm", "FILE",
     "one job file, graph file or config.json", JobOptions | FailOptions | ViewOptions, gradsVerb},
    {"groups", "every process group as ranks", "FILE", "one job file, graph file or config.json", JobOptions | FailOptions, groupsVerb},
    {"prove", "runs the job exactly, rank by rank and on one device, and compares", "FILE", "one job file, graph file or config.json",
     JobOptions | FailOptions | ProveOnly, proveVerb},
    {"plan", "the steps from one layout to another, within memory, and how near they come to the least", "TYPE",
     "two types: 'bf16[64@dp, 64@tp]' 'bf16[64@tp, 64@dp]'", PlanOnly, planVerb},
    {"models", "what is shipped; `models show NAME` prints the file to copy and change", "show NAME", "show and a family or strategy",
     NoOptions, models},
    {"explain", "a diagnostic, an operation or a change: what, why, example, mend", "NAME",
     "names as printed: add-mixes-layouts, rms_norm, P:S; without any, all names", NoOptions, explainVerb},
};

} // namespace

llvm::ArrayRef<Verb> allVerbs() { return verbs; }

int reportCall(const Options &options, const Streams &streams, llvm::function_ref<void(DiagnosticEngine &diags, FileId commandLine)> emit) {
  SourceManager sources;
  DiagnosticEngine diags(sources);
  emit(diags, sources.add("<command line>", options.commandLine));
  renderText(streams.err, diags, streams.errColour);
  return ExitUnreadable;
}

} // namespace shardc
