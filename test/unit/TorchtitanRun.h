// TorchtitanRun: one job described as on a command line, read by torchtitan's or another dialect, and what was said about it.
#pragma once

#include "shardc/Frontend/Dialect.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>

namespace shardc {

struct TorchtitanRun {
  SourceManager sources;
  DiagnosticEngine diags{sources};
  std::optional<Job> job;

  // `flags` are separated by spaces. An empty model is left out.
  TorchtitanRun(llvm::StringRef version, llvm::StringRef model, int64_t world, llvm::StringRef flags, bool inference = false,
                llvm::StringRef framework = "torchtitan") {
    JobRequest request;
    request.name = "test";
    request.framework = located("framework", (framework + (version.empty() ? "" : "@" + version)).str());
    if (!model.empty()) {
      request.model = located("model", model.str());
    }
    if (world != 0) {
      const FileId file = sources.add("world", std::to_string(world));
      request.world = Located<int64_t>{world, {file, 0, static_cast<uint32_t>(sources.text(file).size())}};
    }
    const FileId file = sources.add("flags", flags.str());
    llvm::StringRef rest = sources.text(file);
    for (size_t at = 0; at < rest.size();) {
      const size_t end = std::min(rest.find(' ', at), rest.size());
      if (end > at) {
        request.flags.push_back({rest.slice(at, end).str(), {file, static_cast<uint32_t>(at), static_cast<uint32_t>(end)}});
      }
      at = end + 1;
    }
    request.inference = inference;
    job = buildJob(request, diags);
  }

  Located<std::string> located(std::string name, std::string text) {
    const FileId file = sources.add(std::move(name), text);
    return {text, {file, 0, static_cast<uint32_t>(text.size())}};
  }

  // "heads-not-divisible `8`, width-not-divisible `8`": names and the text they point at, in order.
  std::string found(Severity atLeast = Severity::Error) const {
    std::vector<std::string> parts;
    for (const Diagnostic &d : diags.all()) {
      if (d.severity >= atLeast) {
        parts.push_back(diagName(d.id) + (d.range.valid() ? " `" + sources.text(d.range).str() + "`" : ""));
      }
    }
    return llvm::join(parts, ", ");
  }
  std::string helps() const {
    std::vector<std::string> parts;
    for (const Diagnostic &d : diags.all()) {
      parts.insert(parts.end(), d.helps.begin(), d.helps.end());
    }
    return llvm::join(parts, "; ");
  }
  std::string notes() const {
    std::vector<std::string> parts;
    for (const Diagnostic &d : diags.all()) {
      parts.insert(parts.end(), d.notes.begin(), d.notes.end());
    }
    return llvm::join(parts, "; ");
  }
  int64_t size(const char *name) const { return job && job->sizes.count(name) ? job->sizes.at(name).value : -1; }
  std::string on(const char *name) const { return job && job->switches.count(name) ? job->switches.at(name) : ""; }
};

} // namespace shardc
