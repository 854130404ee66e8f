// Colossalai: what the parts of the ColossalAI dialect share: its table of arguments, those of one job, the steps.
//
// A job is the keyword arguments of one booster plugin, from a file or from flags, each with its place. Rules and the job are
// made from them; nothing outside lib/Frontend/Colossalai*.cpp sees them.
#pragma once

#include "shardc/Frontend/Dialect.h"

namespace shardc::colossalai {

enum class ArgumentKind : uint8_t { Integer, Number, Boolean, Choice, Any };

// One argument of the plugins: a row of lib/Catalog/frameworks/colossalai.yaml.
struct Argument {
  std::string name; // "tp_size"
  ArgumentKind kind = ArgumentKind::Any;
  bool optional = false; // None is a value
  bool required = false;
  bool job = false;    // of the script, not of the plugin
  std::string plugin;  // the one that has it; "": both
  std::string flag;    // how the example scripts call it
  std::string initial; // its default; "" for None
  int64_t least = INT64_MIN;
  int64_t most = INT64_MAX; // no job has more; products of several stay countable
  std::vector<std::string> choices;
};

struct PluginRow {
  std::string name;  // "MoeHybridParallelPlugin"
  std::string brief; // "moe"
  std::vector<std::string> families;
};

struct Framework {
  std::vector<PluginRow> plugins;
  std::vector<Argument> arguments;

  const Argument *find(llvm::StringRef name) const;
  const PluginRow *plugin(llvm::StringRef name) const; // by its name or the short one
};
std::optional<Framework> loadFramework(DiagnosticEngine &diags);

// A value as it was written, after its kind was checked.
struct Value {
  std::string text; // "8", "true", "bf16"; "" for None
  bool none = false;
  SourceRange range;
};

// The arguments of one job. Asking for one that was not written gives its default.
class Arguments {
public:
  Arguments(const Framework &f, DiagnosticEngine &d) : framework(f), diags(d) {}

  // Takes a value after checking its kind; a mistake is reported and leaves the default.
  void set(const Argument &argument, Value value);
  // Chooses the plugin that is named, or the one whose arguments these are. False if that cannot be told; reported.
  bool choosePlugin(SourceRange whole);
  // Arguments that the plugin does not have, and those that it needs.
  void checkPlugin(SourceRange whole);

  bool given(llvm::StringRef name) const { return values.count(name.str()) != 0; }
  bool isNone(llvm::StringRef name) const { return text(name).empty(); }
  std::string text(llvm::StringRef name) const;
  int64_t integer(llvm::StringRef name, int64_t otherwise = 1) const; // `otherwise` for None
  bool on(llvm::StringRef name) const { return text(name) == "true"; }
  SourceRange place(llvm::StringRef name) const; // invalid for a default
  bool isMoe() const { return plugin && plugin->brief == "moe"; }

  const Framework &framework;
  DiagnosticEngine &diags;
  const PluginRow *plugin = nullptr;
  Located<std::string> pluginName;
  SourceRange whole;            // of the config, for what stands nowhere else
  bool broken = false;          // a value was refused: the job is not the one that was meant
  bool enabledByScript = false; // sequence parallelism, by `--sp` alone

private:
  std::map<std::string, Value> values;
};

// Reads a file's mapping and flags (`--tp 2`, `--tp_size=2`); the flags win.
void readArguments(const ConfigNode *file, llvm::ArrayRef<Located<std::string>> flags, SourceRange request, Arguments &arguments);

// How sequences are shared, after the defaults: "none", "split_gather", "ring", "all_to_all", "ring_attn".
std::string sequenceMode(const Arguments &arguments);
bool sharesTensorRanks(llvm::StringRef mode); // split_gather and ring use the tp group
// The stage that the plugin really runs: the MoE plugin has no 2, and sets 1 as well where communication was to overlap.
bool overlapsExperts(const Arguments &arguments);
int64_t zeroStage(const Arguments &arguments);
int64_t sequenceRanks(const Arguments &arguments); // of the sp axis

// Degrees, views and groups. False if no mesh can be made; reported.
bool addMesh(const Arguments &arguments, const JobRequest &request, Job &job);
// B, L and T of one micro-batch. False if they cannot be counted.
bool addTokens(const Arguments &arguments, Job &job);
// Rules of the arguments among themselves, and of the model and the mesh; each violation is a finding. False if some extent
// cannot be cut as the degrees ask.
void checkArguments(const Arguments &arguments);
bool checkModel(const Arguments &arguments, const Job &job);

// What the rules share.
int64_t sizeOf(const Job &job, llvm::StringRef name);                  // 0 if the job has none
SourceRange placeOf(const Arguments &arguments, llvm::StringRef name); // of the config as a whole for a default
// "nearest legal NAME: 4 or 8", "" if there is none in 1..limit.
std::string nearestLegal(llvm::StringRef name, int64_t value, int64_t limit, llvm::function_ref<bool(int64_t)> legal);

std::optional<Job> build(const JobRequest &request, const ConfigNode *config, llvm::StringRef version, DiagnosticEngine &diags);
bool recognises(const ConfigNode &root);

} // namespace shardc::colossalai
