// Main: reads the arguments and runs a verb. The only file that includes CLI11, which splits options from values and writes
// the help of a verb; places, choices and messages are ours, so that a wrong call is reported like any other mistake.
// Everything after the first `--` belongs to the framework and is cut off before CLI11 sees it.
#include "Verbs.h"
#include "llvm/Support/ErrorHandling.h"
#include <CLI/CLI.hpp>
#include <csignal>
#include <unistd.h>

using namespace shardc;

// There only in a build with the address sanitizer, which tells crashes better than we do.
extern "C" __attribute__((weak)) void __asan_init();

namespace {

struct OptionRow {
  const char *name;
  uint8_t groups;    // of verbs that take it; NoOptions: all do
  const char *value; // "": a switch
  const char *help;
  bool isSwitch() const { return *value == 0; }
};
constexpr OptionRow optionRows[] = {
    {"--model", JobOptions, "NAME", "FAMILY/FLAVOUR as `shardc models` lists, a config.json, or a graph file"},
    {"--world", JobOptions, "N", "number of ranks"},
    {"--framework", JobOptions, "NAME[@VERSION]", "who reads the config, and as which version"},
    {"--config", JobOptions, "FILE", "the framework's config file"},
    {"--strategy", JobOptions, "NAME|FILE", "layouts and module boundaries, instead of the framework's own"},
    {"--phase", JobOptions, "training|inference", "inference: forward only"},
    {"--reshard", JobOptions, "refuse|insert", "a needed change of layout that nobody declared is an error, or inserted"},
    {"--resume", CheckOnly, "FILE", "the job or graph file that reads the checkpoint which FILE... saves"},
    {"--view", ViewOptions, "NAME", "whose axes types are written in, e.g. sparse; the first view otherwise"},
    {"--module", TypesOnly, "PATTERN", "only modules whose path matches, e.g. 'layers.3.*'"},
    {"--programs", ProveOnly, "N", "instead of a job: N random programs, on which checker and proof must agree"},
    {"--mutate", ProveOnly, "", "put one mistake after the other into the job: does the checker notice each?"},
    {"--seed", ProveOnly, "N", "what random values and programs are made from; 1 otherwise"},
    {"--mesh", PlanOnly, "AXIS=N,...", "axes and their sizes, outermost first: dp=2,tp=4"},
    {"--machine", PlanOnly, "NAME|FILE", "what messages cost: h100 otherwise"},
    {"--cost", PlanOnly, "time|bytes|steps", "what is to be least"},
    {"--memory", PlanOnly, "ends|any", "ends: no layout between steps is larger than the larger end"},
    {"--exchange", PlanOnly, "allow|refuse", "refuse: collectives of equal parts only, no all-to-all-v"},
    {"--format", NoOptions, "text|json", "for people, or for machines"},
    {"--fail-on", FailOptions, "error|warning|incomplete", "the least that makes the exit code 1"},
    {"--color", NoOptions, "auto|always|never", "auto asks NO_COLOR, CLICOLOR_FORCE, FORCE_COLOR and the terminal"},
};

bool takes(const Verb &verb, const OptionRow &row) { return row.groups == NoOptions || (verb.options & row.groups) != 0; }

// What CLI11 found, before it is given its places.
struct Parsed {
  std::vector<std::pair<const OptionRow *, std::string>> values;
  std::vector<std::string> positionals;
  std::vector<std::string> extras;
  std::string error; // CLI11's own message
  std::string help;  // asked for
};

Parsed parse(const Verb &verb, const CommandLine &line) {
  CLI::App app(verb.brief.str(), "shardc " + verb.name.str());
  app.allow_extras();
  std::string sinks[std::size(optionRows)];
  std::vector<std::pair<const OptionRow *, CLI::Option *>> added;
  for (size_t i = 0; i < std::size(optionRows); ++i) {
    if (takes(verb, optionRows[i])) {
      const OptionRow &row = optionRows[i];
      added.emplace_back(&row, row.isSwitch() ? app.add_flag(row.name, row.help)
                                              : app.add_option(row.name, sinks[i], row.help)->type_name(row.value));
    }
  }
  Parsed parsed;
  app.add_option(verb.positional.str(), parsed.positionals, verb.positionalHelp.str())->type_name("");
  if (verb.options & JobOptions) {
    app.footer("Everything after `--` goes to the framework's own flag reader.\nExit codes: 0 nothing to report, 1 findings, 2 unreadable "
               "input or "
               "wrong call, 3 a bug in shardc.");
  }
  std::vector<std::string> arguments;
  for (size_t i = line.dashes; i-- > 1;) { // CLI11 takes them in reverse
    arguments.push_back(line.words[i].text);
  }
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp &) {
    parsed.help = app.help();
  } catch (const CLI::ParseError &error) {
    parsed.error = error.what();
  }
  for (const auto &[row, option] : added) {
    if (option->count() > 0) {
      parsed.values.emplace_back(row, sinks[row - optionRows]);
    }
  }
  parsed.extras = app.remaining();
  return parsed;
}

// The arguments of a verb as options with places.
class OptionReader {
public:
  OptionReader(const CommandLine &commandLine, const Verb &chosen, DiagnosticEngine &engine, FileId commandLineFile)
      : line(commandLine), verb(chosen), diags(engine), file(commandLineFile) {}

  // Fills `options`; mistakes are emitted. Returns the help text if it was asked for.
  std::string read(Options &options) {
    reportRepeated();
    const Parsed parsed = parse(verb, line);
    if (!parsed.help.empty()) {
      return parsed.help;
    }
    reportUnknown(parsed.extras);
    if (!parsed.error.empty() && !diags.hasErrors()) {
      diags.emit<Diag::BadCall>(whole(), parsed.error);
    }
    for (const auto &[row, value] : parsed.values) {
      values.emplace_back(row->name, row->isSwitch() ? Word{value, 0, 0} : placeOfValue(*row, value));
      if (llvm::StringRef(value).starts_with("--")) {
        const std::string what = std::string("`") + row->name + "` needs a value, but the next word is the option `" + value + "`";
        diags.emit<Diag::BadCall>(range(values.back().second), what);
      }
    }
    placePositionals(parsed.positionals, options);
    options.model = take("--model");
    options.world = take("--world");
    options.framework = take("--framework");
    options.config = take("--config");
    options.strategy = take("--strategy");
    options.resume = take("--resume");
    options.module = take("--module");
    options.view = take("--view");
    options.programs = take("--programs");
    options.seed = take("--seed");
    options.mesh = take("--mesh");
    options.machine = take("--machine");
    options.search.cost = static_cast<CostKind>(choose("--cost", {"time", "bytes", "steps"}));
    options.search.cap = choose("--memory", {"ends", "any"}) == 0;
    options.search.exchange = choose("--exchange", {"allow", "refuse"}) == 0;
    options.mutate = take("--mutate").has_value();
    options.phase = take("--phase");
    choose("--phase", {"training", "inference"});
    options.format = static_cast<Format>(choose("--format", {"text", "json"}));
    options.failOn = static_cast<FailOn>(choose("--fail-on", {"error", "warning", "incomplete"}));
    options.colour = static_cast<When>(choose("--color", {"auto", "always", "never"}));
    options.reshard = choose("--reshard", {"refuse", "insert"}) == 1 ? Reshard::Insert : Reshard::Refuse;
    return "";
  }

private:
  SourceRange range(const Word &word) const { return {file, word.begin, word.end}; }
  SourceRange whole() const { return {file, 0, line.dashes ? line.words[line.dashes - 1].end : 0}; }
  bool isOption(const Word &word, llvm::StringRef name) const {
    return word.text == name || llvm::StringRef(word.text).starts_with((name + "=").str());
  }

  // Single options: the second one is a mistake, never the winner.
  void reportRepeated() const {
    for (const OptionRow &row : optionRows) {
      unsigned seen = 0;
      for (size_t i = 1; i < line.dashes; ++i) {
        if (isOption(line.words[i], row.name) && takes(verb, row) && ++seen == 2) {
          diags.emit<Diag::DuplicateKey>(range(line.words[i]), row.name);
        }
      }
    }
  }

  void reportUnknown(llvm::ArrayRef<std::string> extras) const {
    std::vector<llvm::StringRef> known = {"--help"};
    for (const OptionRow &row : optionRows) {
      if (takes(verb, row)) {
        known.push_back(row.name);
      }
    }
    for (const std::string &extra : extras) {
      const auto *word =
          std::find_if(line.words.data() + 1, line.words.data() + line.dashes, [&](const Word &w) { return w.text == extra; });
      const llvm::StringRef name = llvm::StringRef(extra).split('=').first;
      auto builder = diags.emit<Diag::UnknownName>(word == line.words.data() + line.dashes ? whole() : range(*word), name,
                                                   ("an option of `shardc " + verb.name + "`").str());
      if (const llvm::StringRef near = nearest(name, known); !near.empty()) {
        builder.help(("did you mean `" + near + "`?").str());
      } else {
        builder.help(("`shardc " + verb.name + " --help` lists them; a framework's flags follow `--`").str());
      }
    }
  }

  Word placeOfValue(const OptionRow &row, const std::string &value) const {
    for (size_t i = 1; i < line.dashes; ++i) {
      const Word &word = line.words[i];
      if (word.text == row.name && i + 1 < line.dashes) {
        return line.words[i + 1];
      }
      if (isOption(word, row.name)) {
        return {value, word.end - static_cast<uint32_t>(value.size()), word.end};
      }
    }
    return {value, 0, 0};
  }

  // In the order in which they were written; words that are values of options do not count.
  void placePositionals(llvm::ArrayRef<std::string> positionals, Options &options) const {
    size_t at = 1;
    for (const std::string &text : positionals) {
      while (at < line.dashes && (line.words[at].text != text || isValue(at))) {
        ++at;
      }
      options.positionals.push_back(at < line.dashes ? line.words[at] : Word{text, 0, 0});
      ++at;
    }
  }

  bool isValue(size_t index) const {
    return llvm::any_of(
        optionRows, [&](const OptionRow &row) { return takes(verb, row) && !row.isSwitch() && line.words[index - 1].text == row.name; });
  }

  std::optional<Word> take(llvm::StringRef name) const {
    for (const auto &[given, word] : values) {
      if (given == name) {
        return word;
      }
    }
    return std::nullopt;
  }

  // The index of the chosen word; 0, the default, if the option was not given or is wrong, which is reported.
  size_t choose(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> choices) const {
    const std::optional<Word> word = take(name);
    if (!word) {
      return 0;
    }
    const auto *found = llvm::find(choices, llvm::StringRef(word->text));
    if (found != choices.end()) {
      return static_cast<size_t>(found - choices.begin());
    }
    std::string list;
    for (llvm::StringRef choice : choices) {
      list += (list.empty() ? "`" : choice == choices.back() ? " or `" : ", `") + choice.str() + "`";
    }
    diags.emit<Diag::WrongKind>(range(*word), name, list, "`" + word->text + "`");
    return 0;
  }

  const CommandLine &line;
  const Verb &verb;
  DiagnosticEngine &diags;
  FileId file;
  std::vector<std::pair<llvm::StringRef, Word>> values;
};

void writeHelp(llvm::raw_ostream &out) {
  out << "shardc " << SHARDC_VERSION << ": checks the parallel layout of a training job, without a GPU\n\n"
      << "usage: shardc VERB [FILE...] [OPTIONS] [-- FLAGS OF THE FRAMEWORK]\n\n";
  for (const Verb &verb : allVerbs()) {
    out << "  " << verb.name;
    out.indent(static_cast<unsigned>(10 - verb.name.size())) << verb.brief << '\n';
  }
  out << "\n`shardc VERB --help` tells its options. Examples:\n"
      << "  shardc check graph.yaml\n"
      << "  shardc check --model llama3/8B --world 8 --framework torchtitan -- --parallelism.tensor_parallel_degree 8\n"
      << "  shardc explain add-mixes-layouts\n";
}

const Verb *findVerb(llvm::StringRef name) {
  const Verb *found = llvm::find_if(allVerbs(), [&](const Verb &verb) { return verb.name == name; });
  return found == allVerbs().end() ? nullptr : found;
}

// The verb that was meant: at most two letters away, since verbs are short; "" if there is none.
llvm::StringRef nearestVerb(llvm::StringRef written) {
  llvm::StringRef best;
  unsigned distance = 3;
  for (const Verb &verb : allVerbs()) {
    const unsigned d = written.edit_distance(verb.name, true, distance);
    if (d < distance && d < written.size()) {
      best = verb.name;
      distance = d;
    }
  }
  return best;
}

// No verb, or none that is known.
int refuseVerb(const CommandLine &line, const Options &options, const Streams &streams) {
  if (line.words.empty()) {
    writeHelp(streams.err);
    return ExitUnreadable;
  }
  return reportCall(options, streams, [&](DiagnosticEngine &diags, FileId file) {
    const Word &word = line.words.front();
    auto builder = diags.emit<Diag::UnknownName>({file, word.begin, word.end}, word.text, "a verb");
    const llvm::StringRef near = nearestVerb(word.text);
    builder.help(near.empty() ? "`shardc --help` lists the verbs, which come first" : ("did you mean `" + near + "`?").str());
  });
}

int run(const CommandLine &line, Streams &streams) {
  Options options;
  options.commandLine = line.text;
  options.flagsBegin = line.dashes < line.words.size() ? line.words[line.dashes].begin : line.text.size();
  for (size_t i = line.dashes + 1; i < line.words.size(); ++i) {
    options.flags.push_back(line.words[i]);
  }
  const llvm::StringRef first = line.words.empty() ? "" : llvm::StringRef(line.words.front().text);
  if (first == "--help" || first == "-h" || first == "help") {
    writeHelp(streams.out);
    return ExitOk;
  }
  if (first == "--version") {
    streams.out << "shardc " << SHARDC_VERSION << '\n';
    return ExitOk;
  }
  const Verb *verb = line.dashes == 0 ? nullptr : findVerb(first);
  if (!verb) {
    return refuseVerb(line, options, streams);
  }
  bool wrong = false;
  std::string help;
  reportCall(options, streams, [&](DiagnosticEngine &diags, FileId file) {
    help = OptionReader(line, *verb, diags, file).read(options);
    wrong = diags.hasErrors();
  });
  if (wrong || !help.empty()) {
    streams.out << (wrong ? "" : help);
    return wrong ? ExitUnreadable : ExitOk;
  }
  streams.outColour = wantsColour(options.colour, isatty(STDOUT_FILENO));
  streams.errColour = wantsColour(options.colour, isatty(STDERR_FILENO));
  if (!(verb->options & JobOptions) && !options.flags.empty()) {
    return reportCall(options, streams, [&](DiagnosticEngine &diags, FileId file) {
      const Word &flag = options.flags.front();
      diags.emit<Diag::BadCall>({file, flag.begin, flag.end}, "`" + verb->name.str() + "` takes no flags of a framework");
    });
  }
  return verb->run(options, streams);
}

// What we did wrong ends here: one line, and an exit code of its own.
[[noreturn]] void onBug(const char *what) {
  std::fprintf(stderr, "shardc: internal error: %s\nThis is a bug in shardc, not in the job.\n", what);
  std::_Exit(ExitBug);
}

// The same for a crash: a stack of its own, since the usual cause is that the other one is full.
void catchCrashes() {
  if (__asan_init) {
    return;
  }
  static char stack[1 << 16];
  stack_t alternate{};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof(stack);
  sigaltstack(&alternate, nullptr);
  struct sigaction action{};
  action.sa_flags = SA_ONSTACK;
  action.sa_handler = [](int) {
    constexpr char text[] = "shardc: internal error: crashed\nThis is a bug in shardc, not in the job.\n";
    [[maybe_unused]] const auto written = write(STDERR_FILENO, text, sizeof(text) - 1);
    _exit(ExitBug);
  };
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    sigaction(signal, &action, nullptr);
  }
}

} // namespace

int main(int argc, char **argv) {
  llvm::install_fatal_error_handler([](void *, const char *reason, bool) { onBug(reason); });
  catchCrashes();
  std::signal(SIGABRT, [](int) { std::_Exit(ExitBug); }); // an assertion has printed its text
  llvm::raw_fd_ostream out(STDOUT_FILENO, false);
  llvm::raw_fd_ostream err(STDERR_FILENO, false);
  out.SetBufferSize(1 << 16);
  err.SetBufferSize(1 << 12);
  int code = ExitBug;
  try {
    Streams streams{out, err};
    streams.errColour = wantsColour(When::Auto, isatty(STDERR_FILENO));
    code = run(CommandLine(argc, argv), streams);
  } catch (const std::exception &error) {
    onBug(error.what());
  }
  err.flush();
  out.flush();
  err.clear_error();
  if (out.has_error()) {
    // The reader went away: quietly. Anything else (a full disk) must not look like success.
    if (out.error() != std::errc::broken_pipe) {
      std::fprintf(stderr, "shardc: cannot write the output: %s\n", out.error().message().c_str());
      code = ExitUnreadable;
    }
    out.clear_error();
  }
  return code;
}
