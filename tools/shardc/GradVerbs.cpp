// GradVerbs: grads and groups. Each runs the pipeline and an emitter.
#include "Pipeline.h"
#include "Verbs.h"
#include "shardc/Emit/Diagnostics.h"
#include "shardc/Emit/Grads.h"
#include "shardc/Emit/Groups.h"

namespace shardc {

namespace {

// The one job of the call; nothing, with the exit code, if the call is wrong.
std::optional<int> runOneJob(const Options &options, Streams &streams, llvm::StringRef verb, JobRun &run) {
  const bool named = !options.positionals.empty() || options.model || options.config || !options.flags.empty();
  if (!named || options.positionals.size() > 1) {
    return reportCall(options, streams, [&](DiagnosticEngine &diags, FileId commandLine) {
      if (named) {
        const Word &second = options.positionals[1];
        diags.emit<Diag::BadCall>({commandLine, second.begin, second.end}, "`" + verb.str() + "` takes one job");
        return;
      }
      diags.emit<Diag::BadCall>({commandLine, 0, static_cast<uint32_t>(options.flagsBegin)}, "no job is named")
          .help("name a job or graph file, or describe the job: --model FAMILY/FLAVOUR --world N --framework NAME -- FLAGS");
    });
  }
  runJob(options.positionals.empty() ? nullptr : &options.positionals.front(), options, run);
  if (options.format == Format::Text) {
    renderText(streams.err, run.diags, streams.errColour);
    streams.err.flush();
  }
  return std::nullopt;
}

// The view that `--view` names; nothing if there is none of that name, which is reported.
std::optional<std::string> viewOf(const Options &options, const JobRun &run, const Streams &streams) {
  if (!options.view || !run.typed) {
    return "";
  }
  std::string known;
  for (const ViewSpec &view : run.typed->module.axes.views()) {
    known += (known.empty() ? "" : ", ") + view.name;
    if (view.name == options.view->text) {
      return view.name;
    }
  }
  reportCall(options, streams, [&](DiagnosticEngine &diags, FileId commandLine) {
    const SourceRange range{commandLine, options.view->begin, options.view->end};
    diags.emit<Diag::UnknownName>(range, options.view->text, "a view of this job").help("it has " + known);
  });
  return std::nullopt;
}

} // namespace

int gradsVerb(const Options &options, Streams &streams) {
  JobRun run;
  if (std::optional<int> code = runOneJob(options, streams, "grads", run)) {
    return *code;
  }
  const std::optional<std::string> view = viewOf(options, run, streams);
  if (!view) {
    return ExitUnreadable;
  }
  options.format == Format::Json ? writeGradsJson(streams.out, run.asReport(), *view) : writeGradsText(streams.out, run.asReport(), *view);
  return exitCode(run, options.failOn);
}

int groupsVerb(const Options &options, Streams &streams) {
  JobRun run;
  if (std::optional<int> code = runOneJob(options, streams, "groups", run)) {
    return *code;
  }
  if (options.format == Format::Json) {
    writeGroupsJson(streams.out, run.asReport());
  } else if (run.typed) {
    writeGroupsText(streams.out, run.typed->module.axes);
  }
  return exitCode(run, options.failOn);
}

} // namespace shardc
