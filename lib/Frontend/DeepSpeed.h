// DeepSpeed: what the parts of the DeepSpeed dialect share: its table of keys, the settings of one job, the steps.
//
// The settings are what the file says by dotted key, each value with its place; flags behind `--` win over the file and say what
// a program tells DeepSpeed in code. Rules and the job are made from the settings; nothing outside lib/Frontend/DeepSpeed*.cpp
// sees them.
#pragma once

#include "shardc/Frontend/Dialect.h"

namespace shardc::deepspeed {

enum class KeyKind : uint8_t { Integer, Number, Boolean, String, Choice, List, Any };

struct Key {
  std::string name; // "zero_optimization.stage"
  KeyKind kind = KeyKind::String;
  bool optional = false; // null is a value
  bool layout = false;   // decides layouts, groups or gradients
  bool mayBeAuto = false;
  std::optional<int64_t> min, max;
  int64_t stage = 0;     // the first ZeRO stage at which it has an effect
  int64_t lastStage = 3; // the last
  std::string fallback;  // its default, "" if it has none
  std::vector<std::string> choices;
};

// One row of AutoTP's partition table, shipped or written in `partition_config.layer_specs`.
struct LayerSpec {
  std::vector<Located<std::string>> patterns;
  std::string type = "column"; // column, row, skip
  bool gather = false;         // gather_output
  bool allreduce = false;      // grad_allreduce
  bool shaped = false;
  SourceRange range;
};

// lib/Catalog/frameworks/deepspeed.yaml, read.
struct Framework {
  std::vector<std::string> open;                              // sections whose keys are accepted unseen
  std::vector<std::pair<std::string, std::string>> unchecked; // of those: section, why it leaves a job unchecked
  std::vector<std::pair<std::string, std::string>> aliases;   // old name of a section, new name
  std::vector<std::string> sections;                          // with keys, in order; "" is outside of all
  std::vector<Key> keys;
  std::vector<std::pair<std::string, std::vector<LayerSpec>>> presets;
  std::vector<std::pair<std::string, std::string>> linears; // switch -> parameter name of Hugging Face's model

  const Key *find(llvm::StringRef name) const;
  const std::vector<LayerSpec> *preset(llvm::StringRef name) const;
};
std::optional<Framework> loadFramework(DiagnosticEngine &diags);

struct Setting {
  std::string text; // scalars, normalised: "8", "true"
  std::vector<std::string> items;
  bool none = false;
  bool isAuto = false;
  const ConfigNode *node = nullptr; // of KeyKind::Any
  SourceRange range;
};

class Settings {
public:
  Settings(const Framework &f, llvm::StringRef v, llvm::ArrayRef<llvm::StringRef> vs, DiagnosticEngine &d)
      : framework(f), version(v), versions(vs), diags(d) {}

  void readFile(const ConfigNode &root);
  void readFlags(llvm::ArrayRef<Located<std::string>> flags);
  // Warns of values that are `auto` and decide something, and of keys without an effect at this ZeRO stage.
  void reportAuto();
  void reportIdle() const;

  bool has(llvm::StringRef key) const { return values.count(key.str()) != 0; } // a value, not null, not auto
  std::optional<int64_t> number(llvm::StringRef key) const;                    // as written
  int64_t integer(llvm::StringRef key) const;                                  // or its default, or 0
  double real(llvm::StringRef key) const;
  bool on(llvm::StringRef key) const;
  std::string text(llvm::StringRef key) const;
  const Setting *find(llvm::StringRef key) const;
  SourceRange place(llvm::StringRef key) const; // invalid for a default
  bool from(llvm::StringRef first) const;       // is the version that one or a later one?
  // A section of `framework.open`, if it is written and nothing in it switches it off.
  const ConfigNode *section(llvm::StringRef name) const;

  const Framework &framework;
  std::string version;
  llvm::ArrayRef<llvm::StringRef> versions;
  DiagnosticEngine &diags;
  bool broken = false;              // a value was refused: the job is not the one that was meant
  std::vector<std::string> autos;   // keys whose value is `auto`
  std::vector<std::string> refused; // keys whose value does not fit

private:
  void readSection(llvm::StringRef section, const ConfigNode &node);
  void readEntry(llvm::StringRef section, const Located<std::string> &name, const ConfigNode &node);
  void unknown(llvm::StringRef section, const Located<std::string> &name);
  void put(const Key &key, const ConfigNode &node);
  bool normalise(const Key &key, const ConfigNode &node, Setting &value);
  bool scalarFits(const Key &key, const ConfigNode &node, std::string &text);

  std::map<std::string, Setting> values; // autos and nulls are not among them
  std::map<std::string, SourceRange> places;
  std::map<std::string, const ConfigNode *> sections; // of framework.open
};

// What the rules share, resolved from the settings.
struct Degrees {
  int64_t world = 0, stages = 1, tp = 1, sp = 1, ep = 1, dp = 1, edp = 1; // stages: of the pipeline
  int64_t stage = 0;                                                      // ranks of one pipeline stage
  bool autoTP = false, autoEP = false, folded = false;
  bool dataFirst = false; // use_data_before_expert_parallelism
  bool valid = false;     // the ranks can be laid out, and DeepSpeed refuses nothing about it
  SourceRange worldRange;
};

// The place of a key's value, or the world where it is not written.
SourceRange placeOf(const Settings &settings, const Degrees &degrees, llvm::StringRef key);

// Keys against each other.
void checkZero(const Settings &settings, const Degrees &degrees);
// An optimizer that reduces no gradients but signs of momenta: its name.
std::optional<Located<std::string>> compressedOptimizer(const Settings &settings);
// Is the clip norm an average over ranks that hold different experts?
bool averagesExpertNorms(const Settings &settings, const Degrees &degrees);
// Degrees from keys and world; nothing without a world. Every rejection of folding is reported.
std::optional<Degrees> findDegrees(const Settings &settings, const JobRequest &request);
void addViews(const Settings &settings, const Degrees &degrees, Job &job);
// The batch relation. Gives the rows of one micro-batch of a rank (1 if nobody says).
int64_t checkBatch(const Settings &settings, const Degrees &degrees, Job &job);
// AutoTP: how each linear layer is cut, as switches; and rules on heads and widths. False if extents cannot be cut so.
bool addTensorParallel(const Settings &settings, const Degrees &degrees, Job &job);
bool checkModel(const Settings &settings, const Degrees &degrees, Job &job);

std::optional<Job> build(const JobRequest &request, const ConfigNode *config, llvm::StringRef version, DiagnosticEngine &diags);
bool recognises(const ConfigNode &root);
llvm::ArrayRef<llvm::StringRef> versionList();

} // namespace shardc::deepspeed
