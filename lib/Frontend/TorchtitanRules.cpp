// TorchtitanRules: what torchtitan refuses about a model and its degrees, and what it should refuse but does not.
//
// Every rule is looked at, whatever the others found. A rule that this version of torchtitan does not check itself (it came
// later, or was never written) says so in a note: the job would fail or be wrong at run time instead.

#include "Torchtitan.h"

namespace shardc::torchtitan {

static constexpr llvm::StringLiteral Tensor = "parallelism.tensor_parallel_degree";
static constexpr llvm::StringLiteral Context = "parallelism.context_parallel_degree";
static constexpr llvm::StringLiteral Pipeline = "parallelism.pipeline_parallel_degree";
static constexpr llvm::StringLiteral Expert = "parallelism.expert_parallel_degree";
static constexpr llvm::StringLiteral Typecheck = "debug.spmd_typechecking";
static constexpr llvm::StringLiteral NotChecked = "not checked by this version";

std::string nearestLegal(llvm::StringRef name, int64_t value, int64_t limit, llvm::function_ref<bool(int64_t)> legal) {
  constexpr int64_t Farthest = 1 << 16; // no degree is looked for beyond
  limit = std::min(limit, Farthest);
  int64_t below = std::min(value - 1, limit), above = std::max<int64_t>(std::min(value, limit) + 1, 1);
  while (below >= 1 && !legal(below)) {
    --below;
  }
  while (above <= limit && !legal(above)) {
    ++above;
  }
  std::string result = below >= 1 ? std::to_string(below) : "";
  if (above <= limit) {
    result += (result.empty() ? "" : " or ") + std::to_string(above);
  }
  return result.empty() ? "" : llvm::formatv("nearest legal {0}: {1}", name, result).str();
}

std::string nearestMultiple(llvm::StringRef name, int64_t value, int64_t divisor) {
  const int64_t below = value / divisor * divisor;
  int64_t above = 0;
  const bool fits = !__builtin_add_overflow(below, divisor, &above);
  std::string result = below > 0 ? std::to_string(below) : "";
  if (fits) {
    result += (result.empty() ? "" : " or ") + std::to_string(above);
  }
  return llvm::formatv("nearest legal {0}: {1}", name, result).str();
}

namespace {

class ModelRules {
public:
  ModelRules(const Settings &s, const Job &j) : settings(s), job(j), tp(sizeOf(j, "tp")), ep(sizeOf(j, "ep")) {}
  void check();

private:
  int64_t size(llvm::StringRef name) const { return sizeOf(job, name); }
  bool latentAttention() const { return size("C") > 0; }
  SourceRange place(llvm::StringRef key) const { return placeOf(settings, job, key); }
  bool splitsVocabulary(int64_t t) const { return (t - 1) * ((size("V") + t - 1) / t) < size("V"); }
  bool legalTensorDegree(int64_t t) const;
  std::vector<std::pair<llvm::StringRef, int64_t>> widths() const;
  void helpTensorDegree(DiagnosticBuilder builder) const;
  void checkHeads();
  void checkWidths();
  void checkExperts();
  void checkVocabulary();

  const Settings &settings;
  const Job &job;
  int64_t tp, ep;
};

// Widths that tensor parallelism cuts: those of experts only where expert parallelism does not hold them whole.
std::vector<std::pair<llvm::StringRef, int64_t>> ModelRules::widths() const {
  std::vector<std::pair<llvm::StringRef, int64_t>> result;
  if (size("F") > 0 && (size("E") == 0 || size("dense_layers") > 0)) {
    result.emplace_back("feed-forward", size("F"));
  }
  if (size("E") > 0 && size("Fs") > 0) {
    result.emplace_back("shared experts'", size("Fs"));
  }
  if (size("E") > 0 && ep == 1) {
    result.emplace_back("routed experts'", size("Fm"));
  }
  return result;
}

bool ModelRules::legalTensorDegree(int64_t t) const {
  if (size("N") % t != 0 || (!latentAttention() && size("G") % t != 0) || !splitsVocabulary(t)) {
    return false;
  }
  for (const auto &[name, width] : widths()) {
    if (width % t != 0) {
      return false;
    }
  }
  // Where the shard degree takes what is left, the world must still come out even.
  const int64_t others = size("dp_replicate") * size("cp") * size("pp");
  return settings.integer("parallelism.data_parallel_shard_degree") != -1 || others == 0 || job.world.value / others % t == 0;
}

void ModelRules::helpTensorDegree(DiagnosticBuilder builder) const {
  explainOrigin(builder, settings, Tensor);
  std::string help = nearestLegal("tensor_parallel_degree", tp, size("N"), [&](int64_t t) { return legalTensorDegree(t); });
  if (!help.empty()) {
    builder.help(std::move(help));
  }
}

void ModelRules::checkHeads() {
  for (auto [name, what] : {std::pair{"N", "query"}, std::pair{"G", "key and value"}}) {
    const int64_t heads = size(name);
    if (heads == 0 || heads % tp == 0 || (latentAttention() && name[0] == 'G')) {
      continue;
    }
    helpTensorDegree(settings.diags.emit<Diag::HeadsNotDivisible>(place(Tensor), heads, what, tp));
  }
  if (!latentAttention() && size("G") > 0 && size("N") % size("G") != 0) {
    settings.diags.emit<Diag::HeadsNotGrouped>(job.sizes.at("G").range, size("N"), size("G"));
  }
}

void ModelRules::checkWidths() {
  for (const auto &[name, width] : widths()) {
    if (width > 0 && width % tp != 0) {
      DiagnosticBuilder builder = settings.diags.emit<Diag::WidthNotDivisible>(place(Tensor), name, width, tp);
      builder.note(NotChecked.str());
      helpTensorDegree(builder);
    }
  }
}

void ModelRules::checkVocabulary() {
  if (size("V") > 0 && !splitsVocabulary(tp)) {
    helpTensorDegree(settings.diags.emit<Diag::EmptyVocabShard>(place(Tensor), size("V"), tp));
  }
}

void ModelRules::checkExperts() {
  const int64_t experts = size("E");
  const int64_t groups = size("groups");
  if (experts > 0 && groups > 0 && (experts % groups != 0 || experts / groups < 2 || size("limited") < 1)) {
    settings.diags.emit<Diag::RouterGroups>(job.sizes.at("groups").range, experts, groups, size("limited"))
        .note("the router fails at its first step: groups are equal, hold two experts or more, and some are chosen");
  }
  if (ep == 1) {
    return;
  }
  if (experts == 0) {
    settings.diags.emit<Diag::NoExperts>(place(Expert), ep, job.family + "/" + job.flavour);
    return;
  }
  if (experts % ep != 0) {
    DiagnosticBuilder builder = settings.diags.emit<Diag::ExpertsNotDivisible>(place(Expert), experts, ep);
    explainOrigin(builder, settings, Expert);
    const int64_t ranks = size("dp_shard") * size("cp") * tp;
    std::string help =
        nearestLegal("expert_parallel_degree", ep, experts, [&](int64_t e) { return experts % e == 0 && (ranks == 0 || ranks % e == 0); });
    if (!help.empty()) {
      builder.help(std::move(help));
    }
  }
}

void ModelRules::check() {
  if (tp < 1 || ep < 1 || size("D") == 0) {
    return; // no degrees or no model: said elsewhere
  }
  checkHeads();
  checkWidths();
  checkVocabulary();
  checkExperts();
}

bool compilesModel(const Settings &settings) {
  const auto parts = settings.parts("compile.components");
  return settings.on("compile.enable") && !parts.empty() && llvm::is_contained(parts.front(), "model");
}

void checkContextParallel(const Settings &settings, const Job &job) {
  const int64_t cp = sizeOf(job, "cp");
  if (cp <= 1) {
    return;
  }
  const std::string backend = settings.text("parallelism.spmd_backend");
  if (backend != "spmd_types") {
    const llvm::StringRef key = "parallelism.spmd_backend";
    DiagnosticBuilder builder = settings.diags.emit<Diag::ContextParallelBackend>(
        settings.place(key).valid() ? settings.place(key) : placeOf(settings, job, Context), cp, backend);
    explainOrigin(builder, settings, key);
    builder.help("set `--parallelism.spmd_backend spmd_types`, or context_parallel_degree 1");
  }
  if (!llvm::StringRef(settings.attention).starts_with("flex")) {
    settings.diags.emit<Diag::ContextParallelAttention>(placeOf(settings, job, Context), cp, settings.attention)
        .help("use FlexAttention, or context_parallel_degree 1");
  }
}

void checkTypechecking(const Settings &settings, const Job &job) {
  if (!settings.on(Typecheck)) {
    return;
  }
  const std::string backend = settings.text("parallelism.spmd_backend");
  if (backend != "spmd_types") {
    DiagnosticBuilder builder = settings.diags.emit<Diag::TypecheckBackend>(placeOf(settings, job, Typecheck), backend);
    explainOrigin(builder, settings, "parallelism.spmd_backend");
    builder.help("set `--parallelism.spmd_backend spmd_types`");
  }
  if (sizeOf(job, "pp") > 1) {
    settings.diags.emit<Diag::TypecheckPipeline>(placeOf(settings, job, Pipeline), sizeOf(job, "pp"))
        .label(settings.place(Typecheck), "type checking is asked for here")
        .help("nearest legal pipeline_parallel_degree: 1");
  }
  if (!job.inference && settings.checkpoint == "selective" && llvm::StringRef(settings.attention).starts_with("flex")) {
    DiagnosticBuilder builder = settings.diags.emit<Diag::TypecheckSelective>(placeOf(settings, job, Typecheck));
    if (settings.checkpointRange.valid()) {
      builder.label(settings.checkpointRange, "selective checkpointing comes from here");
    } else {
      builder.note("selective checkpointing is the default");
    }
    builder.help("add `activation-checkpoint:none` or `activation-checkpoint:full` at the end");
  }
}

void checkCompile(const Settings &settings, const Job &job) {
  if (compilesModel(settings)) {
    return;
  }
  for (llvm::StringRef key : {"parallelism.enable_async_tensor_parallel", "compile.enable_async_tensor_parallel"}) {
    if (settings.on(key)) {
      settings.diags.emit<Diag::CompileNeeded>(placeOf(settings, job, key), "`" + key.str() + "`").help("add `--compile.enable`");
    }
  }
  if (settings.checkpoint == "memory-budget" && !job.inference) {
    settings.diags
        .emit<Diag::CompileNeeded>(settings.checkpointRange.valid() ? settings.checkpointRange : job.world.range,
                                   "`activation-checkpoint:memory-budget`")
        .help("add `--compile.enable`");
  }
}

// False where no layouts follow: what looks at the next token has none for a sequence that is cut.
bool checkPredictionLayers(const Settings &settings, const Job &job) {
  if (sizeOf(job, "mtp_layers") == 0 || job.inference) {
    return true;
  }
  for (auto [degree, key, name] : {std::tuple<const char *, llvm::StringRef, const char *>{"pp", Pipeline, "pipeline_parallel_degree"},
                                   {"cp", Context, "context_parallel_degree"}}) {
    if (sizeOf(job, degree) > 1) {
      settings.diags.emit<Diag::PredictionLayers>(placeOf(settings, job, key), llvm::formatv("{0} {1}", name, sizeOf(job, degree)).str())
          .help(llvm::formatv("nearest legal {0}: 1", name).str());
    }
  }
  if (settings.integer("loss.num_chunks") > 0) {
    settings.diags.emit<Diag::PredictionLayers>(placeOf(settings, job, "loss.num_chunks"), "a chunked loss")
        .help("use a loss without chunks");
  }
  return sizeOf(job, "cp") <= 1;
}

void checkPolicyKeys(const Settings &settings) {
  for (const Key &key : settings.framework.keys) {
    if (!key.of.empty() && key.of != settings.checkpoint && settings.origin(key.name) == Origin::Flag) {
      settings.diags.emit<Diag::KeyOfOtherPolicy>(settings.place(key.name), key.name, key.of, settings.checkpoint);
    }
  }
}

} // namespace

bool checkModelRules(const Settings &settings, const Job &job) {
  const size_t before = settings.diags.errorCount();
  ModelRules(settings, job).check();
  return settings.diags.errorCount() == before;
}

bool checkRules(const Settings &settings, const Job &job) {
  checkPolicyKeys(settings);
  bool described = checkTokenRules(settings, job);
  checkContextParallel(settings, job);
  described &= checkModelRules(settings, job);
  checkPipelineRules(settings, job);
  described &= checkPredictionLayers(settings, job);
  checkTypechecking(settings, job);
  checkCompile(settings, job);
  return described;
}

} // namespace shardc::torchtitan
