// Torchtitan: how torchtitan's config is read, from flags or a resolved file to a job.
//
// The steps: what was written (settings), the model, degrees and views, tokens of a micro-batch, and then the rules. What
// layouts follow from the job is the strategy's matter (lib/Catalog/strategies), not said here.

#include "Torchtitan.h"

namespace shardc::torchtitan {

int64_t sizeOf(const Job &job, llvm::StringRef name) {
  auto it = job.sizes.find(name.str());
  return it == job.sizes.end() ? 0 : it->second.value;
}

bool usesFoldedBatch(llvm::StringRef version) { return version >= "2026-08-20"; }

SourceRange placeOf(const Settings &settings, const Job &job, llvm::StringRef key) {
  SourceRange place = settings.place(key);
  return place.valid() ? place : job.world.range;
}

void explainOrigin(DiagnosticBuilder builder, const Settings &settings, llvm::StringRef key) {
  switch (settings.origin(key)) {
  case Origin::Registry:
    builder.note(llvm::formatv("`{0}` {1} comes from base job `{2}`", key, settings.text(key), settings.base->name).str());
    break;
  case Origin::Default:
    builder.note(llvm::formatv("`{0}` is at its default, {1}", key, settings.text(key)).str());
    break;
  case Origin::File:
  case Origin::Flag:
    break;
  }
}

// The model that was asked for, else the base job's, else the one that the file names.
static std::optional<Located<std::string>> chooseModel(const Settings &settings, const JobRequest &request) {
  std::optional<Located<std::string>> implied = settings.model;
  std::string source = "the config file";
  if (settings.base) {
    implied = Located<std::string>{settings.base->model, settings.config->range};
    source = "base job `" + settings.base->name + "`";
  }
  if (!request.model) {
    if (!implied) {
      settings.diags.emit<Diag::MissingKey>(request.range, "the job", "model")
          .help("name it with `--model`, or a base job with `--module M --config C` behind `--`");
    }
    return implied;
  }
  // A config.json or graph of one's own may replace the registry's model; another flavour would not be the base job.
  const bool shipped = !llvm::StringRef(request.model->value).ends_with(".json");
  if (implied && shipped && implied->value != request.model->value) {
    settings.diags.emit<Diag::ModelConflict>(request.model->range, request.model->value, source, implied->value)
        .label(implied->range, "said here");
  }
  return request.model;
}

static bool addModel(const Settings &settings, const JobRequest &request, Job &job) {
  const std::optional<Located<std::string>> model = chooseModel(settings, request);
  if (!model || !loadModel(*model, job, settings.diags)) {
    return false;
  }
  if (settings.base && settings.base->predictionLayers != 0) {
    job.sizes["mtp_layers"] = {settings.base->predictionLayers, settings.config->range};
  }
  if (!request.strategy && !llvm::is_contained(settings.framework.families, job.family)) {
    settings.diags.emit<Diag::FamilyNotInFramework>(model->range, job.family)
        .help("name a strategy with `--strategy`: `--strategy torchtitan` applies torchtitan's contracts to this family");
    return false;
  }
  return true;
}

static void addSwitches(const Settings &settings, Job &job) {
  auto put = [&](llvm::StringRef name, bool value) { job.switches[name.str()] = value ? "true" : "false"; };
  const bool tp = sizeOf(job, "tp") > 1;
  put("tp", tp);
  put("sp", tp && settings.on("parallelism.enable_sequence_parallel"));
  put("cp", sizeOf(job, "cp") > 1);
  put("ep", sizeOf(job, "ep") > 1);
  put("pp", sizeOf(job, "pp") > 1);
  put("folded", usesFoldedBatch(settings.version));
  put("loss_parallel", true);
  put("typecheck", settings.on("debug.spmd_typechecking"));
  put("inference", job.inference);
  job.switches["attention"] = settings.attention;
  job.switches["dispatcher"] = settings.dispatcher;
  job.switches["checkpoint"] = settings.checkpoint;
  job.switches["spmd_backend"] = settings.text("parallelism.spmd_backend");
  job.switches["load_balancer"] = settings.text("parallelism.context_parallel_load_balancer");
  job.switches["compute_dtype"] = settings.text("training.mixed_precision_param");
  job.switches["stored_dtype"] = settings.text("training.dtype") == "bfloat16" ? "bf16" : "f32";
}

static void addAssumptions(const Settings &settings, Job &job) {
  job.assumes.push_back("torchtitan as of " + settings.version);
  job.assumes.push_back("strategy " + job.strategy);
  if (settings.base) {
    job.assumes.push_back("base job " + settings.base->name + " for what is not set");
  } else {
    job.assumes.push_back("torchtitan's defaults for what is not set");
  }
  job.assumes.push_back(settings.attention + " attention");
  if (sizeOf(job, "G") > 0 && sizeOf(job, "C") == 0) {
    job.assumes.push_back("wq, wk and wv cut by heads as the fused wqkv is");
  }
  if (sizeOf(job, "mtp_layers") > 1) {
    job.assumes.push_back("every prediction layer sees the next token: layouts do not depend on how far it looks ahead");
  }
  const std::string backend = settings.text("parallelism.spmd_backend");
  if (backend != "spmd_types") {
    job.assumes.push_back("spmd_backend " + backend + " lays tensors out as spmd_types does");
  }
  if (job.inference) {
    job.assumes.push_back("inference: forward only, training's own rules are not applied");
  }
  if (settings.on("parallelism.enable_fsdp_symm_mem")) {
    job.assumes.push_back("devices that allow symmetric memory for FSDP");
  }
  if (settings.base) {
    job.unchecked = settings.base->unchecked;
  }
  if (settings.dispatcher != "standard" && sizeOf(job, "ep") > 1) {
    job.unchecked.push_back({settings.dispatcher + " dispatch and combine", "their kernels are taken on trust"});
  }
  if (sizeOf(job, "pp") > 1) {
    job.unchecked.push_back({"the pipeline schedule", "stages and micro-batches are counted, the schedule is not executed"});
  }
}

std::optional<Job> build(const JobRequest &request, const ConfigNode *config, llvm::StringRef version, DiagnosticEngine &diags) {
  const std::optional<Framework> framework = loadFramework(diags);
  if (!framework) {
    return std::nullopt;
  }
  // What was written, each value with its place.
  Settings settings(*framework, version, diags);
  readSettings(request.flags, config, settings);
  Job job;
  job.name = request.name;
  job.framework = "torchtitan";
  job.version = version.str();
  job.strategy = request.strategy ? request.strategy->value : "torchtitan";
  job.inference = request.inference;
  // From here on every step goes on past the others' mistakes, so that one run shows all.
  bool described = !settings.broken;
  described &= addModel(settings, request, job);
  described &= addDegrees(settings, request, job);
  described &= addTokens(settings, job);
  addSwitches(settings, job);
  addAssumptions(settings, job);
  described &= checkRules(settings, job);
  return described ? std::optional(std::move(job)) : std::nullopt;
}

} // namespace shardc::torchtitan
