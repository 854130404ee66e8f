// Torchtitan: what the parts of the torchtitan dialect share: its table of keys, the settings of one job, the steps.
//
// A job's settings start from the version's defaults or from a registered base job, are overridden by a resolved config
// file and then by flags, and keep the place of each value. Rules and the job are made from the settings; nothing outside
// lib/Frontend/Torchtitan*.cpp sees them.
#pragma once

#include "shardc/Frontend/Dialect.h"

namespace shardc::torchtitan {

enum class KeyKind : uint8_t { Integer, Number, Boolean, String, Choice, List, Nested };

// A fact that holds from a date on; "" is since ever. Dates are text such as 2026-08-20 and compare as text.
template <class T> struct Dated {
  std::string since;
  T value;
};

struct Key {
  std::string name; // "parallelism.tensor_parallel_degree"
  KeyKind kind = KeyKind::String;
  bool optional = false; // None is a value
  bool layout = false;   // decides layouts
  std::vector<Dated<std::string>> defaults;
  std::vector<Dated<std::vector<std::string>>> choices;
  std::string since, until; // exists in versions v with since <= v < until
  std::string instead, before, why;
  std::string of; // activation checkpointing: the one policy that has it

  bool existsIn(llvm::StringRef version) const { return (since.empty() || version >= since) && (until.empty() || version < until); }
};

// A function of torchtitan's config registry.
struct BaseJob {
  std::string name, module, model, checkpoint, dispatcher, attention;
  int64_t rows = 1, length = 1, chunks = 0, predictionLayers = 0;
  std::vector<std::pair<std::string, std::string>> set;
  std::vector<Unchecked> unchecked;
};

// lib/Catalog/frameworks/torchtitan.yaml, read.
struct Framework {
  std::vector<std::string> families; // models that torchtitan has itself
  std::vector<std::string> open;     // sections whose keys are accepted unseen
  std::vector<std::string> sections; // sections with keys, in order
  std::vector<Key> keys;
  std::vector<BaseJob> jobs;

  const Key *find(llvm::StringRef name) const;
  const BaseJob *job(llvm::StringRef name) const;
  bool isOpen(llvm::StringRef section) const;
};
std::optional<Framework> loadFramework(DiagnosticEngine &diags);

enum class Origin : uint8_t { Default, Registry, File, Flag };

struct Setting {
  std::string text;                            // scalars, normalised: "8", "true", "None"
  std::vector<std::vector<std::string>> parts; // lists: one inner list, or several if nested
  bool none = false;
  SourceRange range;
  Origin origin = Origin::Default;
};

// The values of one job. Asking for a key that the version lacks gives the key's default all the same.
class Settings {
public:
  Settings(const Framework &f, llvm::StringRef v, DiagnosticEngine &d) : framework(f), version(v), diags(d) {}

  // Takes a value for a key that the version has, after checking its kind and choices. False if it was reported.
  bool set(llvm::StringRef key, Setting value);
  // Reports a key that torchtitan or this version does not have; null then. `what` names where it stood.
  const Key *know(llvm::StringRef key, SourceRange range);
  void setCheckpoint(llvm::StringRef policy, SourceRange range);
  void apply(const BaseJob &job, SourceRange range);

  int64_t integer(llvm::StringRef key) const;
  bool on(llvm::StringRef key) const;
  std::string text(llvm::StringRef key) const;
  std::vector<std::vector<std::string>> parts(llvm::StringRef key) const;
  bool isNone(llvm::StringRef key) const;
  Origin origin(llvm::StringRef key) const;
  // Where the value was written; invalid for a default.
  SourceRange place(llvm::StringRef key) const;

  const Framework &framework;
  std::string version;
  DiagnosticEngine &diags;
  const BaseJob *base = nullptr;
  std::string checkpoint = "selective"; // none, selective, full, memory-budget
  SourceRange checkpointRange;
  std::string attention = "flex";
  std::string dispatcher = "standard";
  bool broken = false; // a value was refused: the job is not the one that was meant
  std::optional<Located<std::string>> module, config, model;

private:
  const Setting *find(llvm::StringRef key) const;
  bool normalise(const Key &key, Setting &value);

  std::map<std::string, Setting> values;
};

// "activation-checkpoint" -> "activation_checkpoint".
std::string underscores(llvm::StringRef text);
// The policy that a subcommand of activation-checkpoint names ("full", "full-ac.config"), "" if none.
std::string checkpointPolicy(llvm::StringRef name);
// The default or choice that holds at a version.
template <class T> const T *at(const std::vector<Dated<T>> &facts, llvm::StringRef version) {
  const T *found = nullptr;
  for (const Dated<T> &fact : facts) {
    if (fact.since <= version) {
      found = &fact.value;
    }
  }
  return found;
}

void readFile(const ConfigNode &root, Settings &settings);
// Finds --module and --config first, applies the base job, then the rest of the flags (after `file`, which may be null).
void readSettings(llvm::ArrayRef<Located<std::string>> flags, const ConfigNode *file, Settings &settings);

// Rules of the framework and the gaps in them, each violation a finding. `job` has its model and degrees. False if some
// extent cannot be cut as the degrees ask: layouts would only repeat the finding.
bool checkRules(const Settings &settings, const Job &job);
bool checkModelRules(const Settings &settings, const Job &job);
bool checkTokenRules(const Settings &settings, const Job &job);
void checkPipelineRules(const Settings &settings, const Job &job);
// Degrees and their product. False if no mesh can be made; the job then has no views.
bool addDegrees(const Settings &settings, const JobRequest &request, Job &job);
// B, L and T of one micro-batch. False if they cannot be counted.
bool addTokens(const Settings &settings, Job &job);

// What the rules share.
int64_t sizeOf(const Job &job, llvm::StringRef name); // 0 if the job has none
bool usesFoldedBatch(llvm::StringRef version);
// The key that decides the number of a pipeline's micro-batches.
llvm::StringRef microbatchKey(const Settings &settings);
// The place of a key's value, or of the world where it is a default.
SourceRange placeOf(const Settings &settings, const Job &job, llvm::StringRef key);
// Says where a value that the user did not write came from.
void explainOrigin(DiagnosticBuilder builder, const Settings &settings, llvm::StringRef key);
// "nearest legal NAME: 4 or 8", "" if there is none in 1..limit.
std::string nearestLegal(llvm::StringRef name, int64_t value, int64_t limit, llvm::function_ref<bool(int64_t)> legal);
// The nearest multiples of `divisor`: "nearest legal NAME: 2046 or 2048".
std::string nearestMultiple(llvm::StringRef name, int64_t value, int64_t divisor);

std::optional<Job> build(const JobRequest &request, const ConfigNode *config, llvm::StringRef version, DiagnosticEngine &diags);
bool recognises(const ConfigNode &root);

} // namespace shardc::torchtitan
