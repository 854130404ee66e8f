// TorchtitanPipeline: whether stages, schedule and micro-batches fit together, before anything is launched.
//
// Layers are counted with weights for the embedding (first stage) and for the last norm and output layer (last stage). Stages
// come from the explicit list of modules, from layers per stage, or from the schedule: one per rank, or two where ranks
// hold several. The order of work inside a schedule is not executed here.

#include "Torchtitan.h"

namespace shardc::torchtitan {
namespace {

constexpr llvm::StringLiteral Degree = "parallelism.pipeline_parallel_degree";
constexpr llvm::StringLiteral ScheduleKey = "parallelism.pipeline_parallel_schedule";
constexpr llvm::StringLiteral ModulesKey = "parallelism.module_fqns_per_model_part";
constexpr llvm::StringLiteral PerStageKey = "parallelism.pipeline_parallel_layers_per_stage";
constexpr llvm::StringLiteral FirstKey = "parallelism.pipeline_parallel_first_stage_less_layers";
constexpr llvm::StringLiteral LastKey = "parallelism.pipeline_parallel_last_stage_less_layers";

enum class Shape : uint8_t { Single, Loop, V };
enum class Count : uint8_t { Any, Rounds, Stages };

struct Schedule {
  llvm::StringLiteral name;
  Shape shape;   // stages per rank: one, two or more in a loop, exactly two in a V
  Count batches; // what the number of micro-batches must satisfy
  bool fromFile; // the order of work is read from a CSV file
};
constexpr Schedule Schedules[] = {
    {"1F1B", Shape::Single, Count::Any, false},
    {"GPipe", Shape::Single, Count::Any, false},
    {"Interleaved1F1B", Shape::Loop, Count::Rounds, false},
    {"LoopedBFS", Shape::Loop, Count::Any, false},
    {"InterleavedZeroBubble", Shape::Loop, Count::Rounds, false},
    {"ZBVZeroBubble", Shape::V, Count::Any, false},
    {"DualPipeV", Shape::V, Count::Stages, false},
    {"PipelineScheduleSingle", Shape::Single, Count::Any, true},
    {"PipelineScheduleMulti", Shape::Loop, Count::Any, true},
};

// How many stages a rank may have under a schedule: "" if `perRank` fits, else what it runs.
llvm::StringRef wantedStages(Shape shape, int64_t perRank) {
  switch (shape) {
  case Shape::Single:
    return perRank == 1 ? "" : "one stage";
  case Shape::Loop:
    return perRank >= 2 ? "" : "two or more stages";
  case Shape::V:
    return perRank == 2 ? "" : "exactly two stages";
  }
  return "";
}

class PipelineRules {
public:
  PipelineRules(const Settings &s, const Job &j) : settings(s), job(j), pp(sizeOf(j, "pp")) {}
  void check();

private:
  SourceRange place(llvm::StringRef key) const { return placeOf(settings, job, key); }
  const Schedule *findSchedule();
  std::optional<int64_t> countStages(const Schedule &schedule);
  bool checkWeights();
  void checkStages(const Schedule &schedule, int64_t stages);
  void helpLayersPerStage(DiagnosticBuilder builder, Shape shape) const;
  void checkSplit(int64_t stages);
  void checkModules() const;
  void checkMicrobatches(const Schedule &schedule, int64_t stages);

  const Settings &settings;
  const Job &job;
  int64_t pp;
  std::string derivation;         // how the number of stages came about
  llvm::StringRef cause = Degree; // the key that decided it
};

const Schedule *PipelineRules::findSchedule() {
  const std::string name = settings.text(ScheduleKey);
  std::vector<llvm::StringRef> candidates;
  for (const Schedule &schedule : Schedules) {
    if (schedule.name.equals_insensitive(name)) {
      const std::string file = settings.text("parallelism.pipeline_parallel_schedule_csv");
      if (!file.empty() && file != "None" && !schedule.fromFile) {
        settings.diags.emit<Diag::ScheduleFile>(place("parallelism.pipeline_parallel_schedule_csv"), schedule.name);
      }
      return &schedule;
    }
    candidates.push_back(schedule.name);
  }
  DiagnosticBuilder builder = settings.diags.emit<Diag::UnknownSchedule>(place(ScheduleKey), name);
  if (llvm::StringRef near = nearest(name, candidates); !near.empty()) {
    builder.help(llvm::formatv("did you mean `{0}`?", near).str());
  }
  return nullptr;
}

bool PipelineRules::checkWeights() {
  bool good = true;
  for (llvm::StringRef key : {llvm::StringRef(FirstKey), llvm::StringRef(LastKey)}) {
    if (settings.integer(key) < 0 || settings.integer(key) > INT32_MAX) {
      settings.diags.emit<Diag::OutOfRange>(place(key), key, "at least 0 and no more than there are layers", settings.integer(key));
      good = false;
    }
  }
  if (!settings.isNone(PerStageKey) && settings.integer(PerStageKey) < 1) {
    settings.diags.emit<Diag::OutOfRange>(place(PerStageKey), PerStageKey, "at least 1", settings.integer(PerStageKey));
    good = false;
  }
  return good;
}

std::optional<int64_t> PipelineRules::countStages(const Schedule &schedule) {
  if (!settings.isNone(ModulesKey)) {
    cause = ModulesKey;
    derivation = "the parts of module_fqns_per_model_part";
    return static_cast<int64_t>(settings.parts(ModulesKey).size());
  }
  if (!checkWeights()) {
    return std::nullopt;
  }
  if (!settings.isNone(PerStageKey)) {
    cause = PerStageKey;
    const int64_t layers = sizeOf(job, "layers") + settings.integer(FirstKey) + settings.integer(LastKey);
    const int64_t each = settings.integer(PerStageKey);
    derivation = llvm::formatv("{0} layers with weights, {1} per stage", layers, each).str();
    return layers / each + (layers % each != 0);
  }
  const bool single = schedule.shape == Shape::Single;
  derivation = single ? "one per rank" : "two per rank";
  return single ? pp : 2 * pp;
}

void PipelineRules::helpLayersPerStage(DiagnosticBuilder builder, Shape shape) const {
  if (cause != PerStageKey) {
    return;
  }
  const int64_t layers = sizeOf(job, "layers") + settings.integer(FirstKey) + settings.integer(LastKey);
  std::string help = nearestLegal("pipeline_parallel_layers_per_stage", settings.integer(PerStageKey), layers, [&](int64_t each) {
    const int64_t stages = (layers + each - 1) / each;
    return stages % pp == 0 && wantedStages(shape, stages / pp).empty();
  });
  if (!help.empty()) {
    builder.help(std::move(help));
  }
}

void PipelineRules::checkStages(const Schedule &schedule, int64_t stages) {
  if (stages % pp != 0) {
    helpLayersPerStage(settings.diags.emit<Diag::StagesNotDivisible>(place(cause), stages, derivation, pp), schedule.shape);
    return;
  }
  const int64_t perRank = stages / pp;
  const llvm::StringRef wanted = wantedStages(schedule.shape, perRank);
  if (!wanted.empty()) {
    DiagnosticBuilder builder = settings.diags.emit<Diag::StagesPerRank>(place(cause), schedule.name, wanted, perRank);
    builder.note(llvm::formatv("{0} stages ({1}) over pipeline_parallel_degree {2}", stages, derivation, pp).str());
    helpLayersPerStage(builder, schedule.shape);
  }
}

// Every stage needs a layer's worth, and the first and last as much as their extra weight.
void PipelineRules::checkSplit(int64_t stages) {
  const int64_t layers = sizeOf(job, "layers");
  if (!settings.isNone(ModulesKey) || layers == 0 || stages < 1) {
    return;
  }
  const int64_t all = layers + settings.integer(FirstKey) + settings.integer(LastKey);
  if (stages > all) {
    DiagnosticBuilder builder = settings.diags.emit<Diag::TooManyStages>(place(cause), stages, all);
    builder.note(derivation);
    if (cause == Degree) {
      const int64_t each = stages / pp;
      std::string help = nearestLegal("pipeline_parallel_degree", pp, all / each, [&](int64_t p) { return job.world.value % p == 0; });
      if (!help.empty()) {
        builder.help(std::move(help));
      }
    }
    return;
  }
  for (llvm::StringRef key : {llvm::StringRef(FirstKey), llvm::StringRef(LastKey)}) {
    if (stages > 1 && settings.integer(key) > all / stages) {
      settings.diags.emit<Diag::StageWeight>(place(key), key, settings.integer(key), all / stages)
          .help(llvm::formatv("nearest legal {0}: {1}", key.split('.').second, all / stages).str());
    }
  }
}

// An explicit list must hold each module once, in the model's order over the stages: torchtitan drops what no stage names,
// builds twice what two name, and passes over names that the model does not have.
void PipelineRules::checkModules() const {
  if (settings.isNone(ModulesKey) || sizeOf(job, "layers") == 0) {
    return;
  }
  std::vector<std::string> modules = {"tok_embeddings"};
  for (int64_t i = 0; i < sizeOf(job, "layers"); ++i) {
    modules.push_back("layers." + std::to_string(i));
  }
  modules.insert(modules.end(), {"norm", "lm_head"});
  const SourceRange range = place(ModulesKey);
  std::vector<bool> held(modules.size());
  size_t last = 0; // of the stages in front
  bool ordered = true;
  for (const std::vector<std::string> &stage : settings.parts(ModulesKey)) {
    size_t furthest = last;
    for (const std::string &name : stage) {
      const size_t at = llvm::find(modules, name) - modules.begin();
      if (at == modules.size()) {
        DiagnosticBuilder builder = settings.diags.emit<Diag::UnknownName>(range, name, "a module that a stage can hold");
        builder.note("torchtitan passes over it");
        if (llvm::StringRef near = nearest(name, std::vector<llvm::StringRef>(modules.begin(), modules.end())); !near.empty()) {
          builder.help(llvm::formatv("did you mean `{0}`?", near).str());
        }
        continue;
      }
      if (held[at]) {
        settings.diags.emit<Diag::DuplicateKey>(range, name).note("each of its copies would be trained by itself");
      } else if (at < last && ordered) {
        ordered = false;
        settings.diags.emit<Diag::OutOfRange>(range, ModulesKey, "a list of stages in the model's order",
                                              "`" + modules[last] + "` in a stage before that of `" + name + "`");
      }
      held[at] = true;
      furthest = std::max(furthest, at);
    }
    last = furthest;
  }
  if (const size_t first = llvm::find(held, false) - held.begin(); first < held.size()) {
    settings.diags.emit<Diag::MissingKey>(range, "`" + ModulesKey.str() + "`", modules[first])
        .note(llvm::formatv("modules that no stage holds: {0}; the model would run without them", llvm::count(held, false)).str())
        .note("not checked by this version");
  }
}

void PipelineRules::checkMicrobatches(const Schedule &schedule, int64_t stages) {
  const int64_t batches = sizeOf(job, "microbatches");
  if (batches < 1) {
    return;
  }
  const llvm::StringRef key = microbatchKey(settings);
  const int64_t rounds = std::max<int64_t>(1, batches / pp);
  if (schedule.batches == Count::Rounds && batches % rounds != 0) {
    settings.diags
        .emit<Diag::ScheduleMicrobatches>(place(key), schedule.name,
                                          llvm::formatv("micro-batches that {0} rounds share evenly", rounds).str(), batches)
        .help(nearestLegal("number of micro-batches", batches, 2 * std::min<int64_t>(batches, INT32_MAX),
                           [&](int64_t n) { return n % std::max<int64_t>(1, n / pp) == 0; }));
  } else if (schedule.batches == Count::Stages && batches < stages) {
    settings.diags
        .emit<Diag::ScheduleMicrobatches>(place(key), schedule.name, llvm::formatv("at least {0} micro-batches", stages).str(), batches)
        .help(llvm::formatv("nearest legal number of micro-batches: {0}", stages).str());
  } else if (batches < stages) {
    settings.diags.emit<Diag::PipelineBubble>(place(key), batches, stages);
  }
}

void PipelineRules::check() {
  if (pp <= 1) {
    return;
  }
  if (auto it = job.switches.find("tied"); it != job.switches.end() && it->second == "true") {
    settings.diags.emit<Diag::TiedAcrossStages>(place(Degree), job.family + "/" + job.flavour, pp)
        .help("nearest legal pipeline_parallel_degree: 1");
  }
  checkModules();
  const Schedule *schedule = findSchedule();
  if (!schedule) {
    return;
  }
  if (const std::optional<int64_t> stages = countStages(*schedule)) {
    checkStages(*schedule, *stages);
    checkSplit(*stages);
    checkMicrobatches(*schedule, *stages);
  }
}

} // namespace

void checkPipelineRules(const Settings &settings, const Job &job) { PipelineRules(settings, job).check(); }

} // namespace shardc::torchtitan
