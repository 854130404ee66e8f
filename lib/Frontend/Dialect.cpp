// Dialect: the frameworks whose configs are read, and the way from a request to a job.
//
// One row per framework. Nothing here knows what a key means; a dialect's own files do.

#include "shardc/Frontend/Dialect.h"
#include "Colossalai.h"
#include "DeepSpeed.h"
#include "Strategy.h"
#include "Torchtitan.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

namespace shardc {

// Oldest first; a config without a version is read as the last one.
static constexpr llvm::StringRef TorchtitanVersions[] = {"2026-08-05", "2026-08-10", "2026-08-20"};
static constexpr llvm::StringRef ColossalaiVersions[] = {"0.5.0", "6466"};

static const Dialect Dialects[] = {
    {"torchtitan", TorchtitanVersions, torchtitan::recognises, torchtitan::build},
    {"deepspeed", deepspeed::versionList(), deepspeed::recognises, deepspeed::build, true},
    {"colossalai", ColossalaiVersions, colossalai::recognises, colossalai::build},
};

llvm::ArrayRef<Dialect> allDialects() { return Dialects; }

static const Dialect *findDialect(llvm::StringRef name) {
  for (const Dialect &dialect : Dialects) {
    if (dialect.name == name) {
      return &dialect;
    }
  }
  return nullptr;
}

// A part of a located text, placed exactly where the text stands as it was written.
static SourceRange part(const Located<std::string> &text, size_t from, size_t to) {
  const bool literal = text.range.valid() && text.range.end - text.range.begin == text.value.size();
  return literal ? text.range.slice(from, to) : text.range;
}

static const Dialect *namedDialect(const Located<std::string> &framework, DiagnosticEngine &diags) {
  const llvm::StringRef name = llvm::StringRef(framework.value).split('@').first;
  if (const Dialect *dialect = findDialect(name)) {
    return dialect;
  }
  std::vector<llvm::StringRef> names;
  for (const Dialect &dialect : Dialects) {
    names.push_back(dialect.name);
  }
  DiagnosticBuilder builder = diags.emit<Diag::UnknownName>(part(framework, 0, name.size()), name, "a framework that is read");
  if (llvm::StringRef near = nearest(name, names); !near.empty()) {
    builder.help(llvm::formatv("did you mean `{0}`?", near).str());
  } else {
    builder.help("there is: " + llvm::join(names, ", "));
  }
  return nullptr;
}

// The version behind `@`, the last one without; nothing if it is not known.
static std::optional<llvm::StringRef> chooseVersion(const Dialect &dialect, const JobRequest &request, DiagnosticEngine &diags) {
  if (!request.framework || !llvm::StringRef(request.framework->value).contains('@')) {
    return dialect.versions.back();
  }
  const auto [name, version] = llvm::StringRef(request.framework->value).split('@');
  for (llvm::StringRef known : dialect.versions) {
    if (known == version) {
      return known;
    }
  }
  diags.emit<Diag::UnknownVersion>(part(*request.framework, name.size() + 1, request.framework->value.size()), version, dialect.name)
      .help("known versions: " + llvm::join(dialect.versions, ", "));
  return std::nullopt;
}

// TOML was torchtitan's style until February 2026.
static bool isOldStyle(const JobRequest &request, DiagnosticEngine &diags) {
  const Located<std::string> &path = *request.config;
  if (!llvm::StringRef(path.value).ends_with_insensitive(".toml") || !llvm::sys::fs::is_regular_file(path.value)) {
    return false;
  }
  diags.emit<Diag::OldConfigStyle>(path.range, path.value)
      .note("versions understood: torchtitan@" + llvm::join(llvm::ArrayRef(TorchtitanVersions), ", torchtitan@"))
      .help("give the JSON file that `--debug.save_config_file` writes, or flags behind `--`");
  return true;
}

const Dialect *recogniseDialect(const ConfigNode &root) {
  const Dialect *found = llvm::find_if(Dialects, [&](const Dialect &dialect) { return dialect.recognises(root); });
  return found == std::end(Dialects) ? nullptr : found;
}

std::optional<Job> buildJob(const JobRequest &request, DiagnosticEngine &diags) {
  const Dialect *dialect = request.framework ? namedDialect(*request.framework, diags) : nullptr;
  if (request.framework && !dialect) {
    return std::nullopt;
  }
  std::optional<ConfigNode> config;
  if (request.config) {
    if ((!dialect || dialect->name == "torchtitan") && isOldStyle(request, diags)) {
      return std::nullopt;
    }
    const llvm::StringRef path = request.config->value;
    const bool named = path.ends_with_insensitive(".json") || path.ends_with_insensitive(".toml"); // as the framework reads it
    const bool hjson = dialect && dialect->readsHjson && named;
    config = readConfig(path, diags, hjson ? ConfigFormat::Hjson : ConfigFormat::Auto, request.config->range);
    if (!config) {
      return std::nullopt;
    }
    dialect = dialect ? dialect : recogniseDialect(*config);
  }
  if (!dialect) {
    diags.emit<Diag::MissingKey>(request.config ? request.config->range : request.range, "the job", "framework")
        .note(request.config ? "the config file looks like none that is read" : "it says how the flags are read");
    return std::nullopt;
  }
  const std::optional<llvm::StringRef> version = chooseVersion(*dialect, request, diags);
  if (!version) {
    return std::nullopt;
  }
  std::optional<Job> job = dialect->build(request, config ? &*config : nullptr, *version, diags);
  if (request.strategy && !Strategy::exists(*request.strategy, diags)) {
    return std::nullopt;
  }
  if (job && (!request.framework || !llvm::StringRef(request.framework->value).contains('@'))) {
    job->assumes.insert(job->assumes.begin(), "no version was named: the newest that reads this form is taken");
  }
  return job;
}

} // namespace shardc
