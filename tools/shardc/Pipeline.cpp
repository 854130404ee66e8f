// Pipeline: the phases in their order, each with what holds from there on. A table of contents: the work is elsewhere.
#include "Pipeline.h"
#include "shardc/Frontend/Storage.h"
#include "shardc/Frontend/Sync.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FileSystem.h"

namespace shardc {

namespace {

// What the command line says, with places in the job's own copy of it.
class Request {
public:
  Request(const Options &given, JobRun &job) : options(given), run(job) {
    commandLine = run.sources.add("<command line>", options.commandLine);
  }

  SourceRange place(const Word &word) const { return {commandLine, word.begin, word.end}; }
  SourceRange wholeCall() const { return {commandLine, 0, static_cast<uint32_t>(options.flagsBegin)}; }
  // The call itself is at fault, not the framework's flags in it.
  bool inCall(SourceRange range) const { return range.file == commandLine && range.begin < options.flagsBegin; }

  // Options win over what the job file says. False if one of them is wrong: what is missing then was not left out.
  bool addTo(JobRequest &request) const {
    set(request.model, options.model);
    set(request.framework, options.framework);
    set(request.config, options.config);
    set(request.strategy, options.strategy);
    for (const Word &flag : options.flags) {
      request.flags.push_back({flag.text, place(flag)});
    }
    if (options.phase) {
      request.inference = options.phase->text == "inference";
    }
    return !options.world || setWorld(request);
  }

  // A graph file says everything itself.
  void rejectForGraph() const {
    const std::pair<const std::optional<Word> *, const char *> given[] = {
        {&options.model, "--model"},   {&options.world, "--world"},       {&options.framework, "--framework"},
        {&options.config, "--config"}, {&options.strategy, "--strategy"}, {&options.phase, "--phase"}};
    for (const auto &[word, name] : given) {
      if (*word) {
        run.diags.emit<Diag::NotForGraphs>(place(**word), name);
      }
    }
    if (!options.flags.empty()) {
      run.diags.emit<Diag::NotForGraphs>(place(options.flags.front()), options.flags.front().text);
    }
  }

private:
  void set(std::optional<Located<std::string>> &field, const std::optional<Word> &word) const {
    if (word) {
      field = Located<std::string>{word->text, place(*word)};
    }
  }

  bool setWorld(JobRequest &request) const {
    const std::optional<int64_t> world = parseInteger(options.world->text);
    if (!world) {
      run.diags.emit<Diag::WrongKind>(place(*options.world), "--world", "an integer", "`" + options.world->text + "`");
    } else if (*world < 1) {
      run.diags.emit<Diag::OutOfRange>(place(*options.world), "--world", "at least 1", *world);
    } else {
      request.world = Located<int64_t>{*world, place(*options.world)};
    }
    return world && *world >= 1;
  }

  const Options &options;
  JobRun &run;
  FileId commandLine;
};

bool isFile(llvm::StringRef path) { return llvm::sys::fs::exists(path) && !llvm::sys::fs::is_directory(path); }

// A file is a graph, a model's config.json, a framework's config, or a job file, told by content.
std::optional<Module> moduleOfGraph(const ConfigNode &root, const Request &request, JobRun &run) {
  request.rejectForGraph();
  return readGraph(root, run.diags);
}

// From a request to a program. Nothing if a reported error prevents it.
std::optional<Module> moduleOfRequest(const JobRequest &request, JobRun &run, Report &known) {
  // The framework's own meaning of the config, for the stated version, with its own rules checked. From here on no code
  // knows which framework wrote the job.
  run.job = buildJob(request, run.diags);
  if (!run.job) {
    return std::nullopt;
  }
  known.assumes = run.job->assumes;
  known.unchecked = run.job->unchecked;
  run.sync = request.sync;
  std::optional<Module> module = programOf(*run.job, run.sync.get(), run.diags);
  if (module && request.storage) { // what the job file adds to what the framework keeps
    addStorage(*run.job, request.storage.get(), *module, run.diags);
  }
  return module;
}

std::optional<Module> buildProgram(const Word *file, const Options &options, const Request &given, JobRun &run, Report &known) {
  JobRequest request;
  request.name = run.name;
  request.range = given.wholeCall();
  if (file) {
    // Everything the user wrote, with its place. Nothing is interpreted yet.
    const std::optional<ConfigNode> root = readConfig(file->text, run.diags, ConfigFormat::Auto, given.place(*file));
    if (!root) {
      return std::nullopt;
    }
    if (isGraph(*root)) {
      return moduleOfGraph(*root, given, run);
    }
    if (root->find("architectures")) { // a model's own config.json
      request.model = Located<std::string>{file->text, given.place(*file)};
    } else if (!root->find("framework") && recogniseDialect(*root)) { // a framework's config, without the job around it
      request.config = Located<std::string>{file->text, given.place(*file)};
    } else if (std::optional<JobRequest> read = readJobFile(*root, file->text, run.diags)) {
      request = std::move(*read);
      request.name = run.name;
    } else {
      return std::nullopt;
    }
  } else if (options.model && isFile(options.model->text)) {
    const std::optional<ConfigNode> root = readConfig(options.model->text, run.diags, ConfigFormat::Auto, given.place(*options.model));
    if (!root) {
      return std::nullopt;
    }
    if (isGraph(*root)) {
      Options others = options;
      others.model.reset(); // it names the graph
      return moduleOfGraph(*root, Request(others, run), run);
    }
  }
  if (!given.addTo(request)) {
    return std::nullopt;
  }
  return moduleOfRequest(request, run, known);
}

// Nothing could be said about the job: a file could not be read, or the call itself is wrong. A rule of the framework that
// the job breaks is a finding instead.
constexpr Diag fileMistakes[] = {Diag::CannotRead,  Diag::NotUtf8,     Diag::NotText,       Diag::TooDeep,
                                 Diag::SyntaxError, Diag::NotAMapping, Diag::OldConfigStyle};
constexpr Diag callMistakes[] = {Diag::UnknownName, Diag::UnknownKey, Diag::UnknownModel, Diag::UnknownVersion,      Diag::MissingKey,
                                 Diag::WrongKind,   Diag::OutOfRange, Diag::NotForGraphs, Diag::FamilyNotInFramework};

bool isUnreadable(const JobRun &run, const Request &request) {
  return llvm::any_of(run.diags.all(), [&](const Diagnostic &d) {
    return llvm::is_contained(fileMistakes, d.id) || (llvm::is_contained(callMistakes, d.id) && request.inCall(d.range));
  });
}

} // namespace

std::optional<Module> programOf(const Job &job, const ConfigNode *sync, DiagnosticEngine &diags) {
  // The model as a program, with the strategy's layouts in it. Beyond this point every value has a shape.
  std::optional<Module> module = buildModule(job, diags);
  if (module) {
    // What the framework does to gradients outside of it.
    addSync(job, sync, *module, diags);
    // What each rank keeps of the optimizer's state.
    addStorage(job, nullptr, *module, diags);
  }
  return module;
}

bool runJob(const Word *file, const Options &options, JobRun &run) {
  run.name = file ? file->text : options.model ? options.model->text : options.config ? options.config->text : "job";
  const Request request(options, run);
  Report known;
  std::optional<Module> module = buildProgram(file, options, request, run, known);
  if (!module) {
    if (!run.diags.hasErrors()) {
      llvm::report_fatal_error("a job was given up without a message"); // never silence
    }
    run.report = std::move(known);
    run.report.verdict = isUnreadable(run, request) ? Verdict::Unreadable : Verdict::Findings;
    return false;
  }
  // Beyond this point every value has a type, or a diagnostic says why not.
  InferOptions inferOptions;
  inferOptions.reshard = options.reshard;
  run.typed = infer(std::move(*module), inferOptions, run.diags);
  // Nothing below changes the program.
  run.report = verify(*run.typed, std::move(known), run.diags);
  if (isUnreadable(run, request)) {
    run.report.verdict = Verdict::Unreadable;
  }
  return true;
}

void resumeJob(const JobRun &saved, const Options &options, JobRun &run) {
  Options own;
  own.commandLine = options.commandLine;
  own.flagsBegin = options.flagsBegin;
  own.reshard = options.reshard;
  if (!runJob(&*options.resume, own, run)) {
    return;
  }
  if (!saved.typed) {
    run.report.unchecked.push_back({"the checkpoint", "the job that saves it could not be typed"});
    run.report.verdict = run.report.verdict == Verdict::Ok ? Verdict::Incomplete : run.report.verdict;
    return;
  }
  const SourceRange place = Request(own, run).place(*options.resume);
  const std::string how = compareCheckpoints({*saved.typed, saved.report.gradients}, {*run.typed, run.report.gradients}, place, run.diags);
  run.report.assumes.push_back("the checkpoint of " + saved.name + " is " + how);
  if (run.diags.hasErrors() && run.report.verdict != Verdict::Unreadable) {
    run.report.verdict = Verdict::Findings;
  }
}

int exitCode(const JobRun &run, FailOn failOn) {
  switch (run.report.verdict) {
  case Verdict::Unreadable:
    return ExitUnreadable;
  case Verdict::Findings:
    return ExitFindings;
  case Verdict::Incomplete:
    if (failOn == FailOn::Incomplete) {
      return ExitFindings;
    }
    break;
  case Verdict::Ok:
    break;
  }
  return failOn != FailOn::Error && run.diags.atLeast(Severity::Warning) ? ExitFindings : ExitOk;
}

} // namespace shardc
