// DeepSpeed: how DeepSpeed's config is read, from the file and flags to a job.
//
// The steps: what was written (settings), the model, degrees and their rules, batch sizes, how AutoTP cuts layers, views, and what
// strategy and synchronisation ask for. What layouts and reductions follow is their matter (lib/Catalog), not said here.

#include "DeepSpeed.h"

namespace shardc::deepspeed {

// In order: the commits that made folding, then the release that has it.
static constexpr llvm::StringRef Versions[] = {"278c91948", "0d44a1d24", "8b1c04283", "7246b1460", "13dceecf5",
                                               "b485a75e6", "42c4148de", "74cf2c2cc", "0.19.6"};

llvm::ArrayRef<llvm::StringRef> versionList() { return Versions; }

bool recognises(const ConfigNode &root) {
  if (root.kind != ConfigNode::Kind::Mapping) {
    return false;
  }
  for (llvm::StringRef key : {"train_batch_size", "train_micro_batch_size_per_gpu", "zero_optimization", "gradient_accumulation_steps"}) {
    if (root.find(key)) {
      return true;
    }
  }
  return false;
}

SourceRange placeOf(const Settings &settings, const Degrees &degrees, llvm::StringRef key) {
  SourceRange place = settings.place(key);
  return place.valid() ? place : degrees.worldRange;
}

static bool addModel(const Settings &settings, const JobRequest &request, Job &job) {
  if (!request.model) {
    settings.diags.emit<Diag::MissingKey>(request.range, "the job", "model").note("DeepSpeed's config names none");
    return false;
  }
  return loadModel(*request.model, job, settings.diags);
}

// B, L and T of one micro-batch.
static bool addTokens(const Settings &settings, const Degrees &d, int64_t rows, Job &job) {
  constexpr llvm::StringLiteral Length = "launch.seq_len";
  int64_t length = settings.integer(Length), batch = 0, all = 0;
  if (length == 0) {
    auto longest = job.sizes.find("max_context");
    length = longest == job.sizes.end() ? 1 : longest->second.value;
    job.assumes.push_back(llvm::formatv("sequences of {0} tokens, the model's longest: no flag `--launch.seq_len` says otherwise", length));
  }
  if (__builtin_mul_overflow(rows, d.dp, &batch) || __builtin_mul_overflow(batch, length, &all)) {
    settings.diags.emit<Diag::OutOfRange>(placeOf(settings, d, "train_micro_batch_size_per_gpu"), "train_micro_batch_size_per_gpu",
                                          "small enough for the tokens to be counted", rows);
    return false;
  }
  job.sizes["B"] = {batch, placeOf(settings, d, "train_micro_batch_size_per_gpu")};
  job.sizes["L"] = {length, placeOf(settings, d, Length)};
  job.sizes["T"] = {all, placeOf(settings, d, Length)};
  return true;
}

// Which code reduces the gradients of a step over tensor-parallel ranks: it has differed by optimizer.
static std::string correctionPath(const Settings &settings) {
  const int64_t stage = settings.integer("zero_optimization.stage");
  const std::string accumulate = settings.text("data_types.grad_accum_dtype");
  if (stage == 1 && settings.on("bf16.enabled") && accumulate != "bf16") {
    return "bf16"; // BF16_Optimizer adds into its own buffers
  }
  if (stage == 1 && settings.on("zero_optimization.overlap_comm")) {
    return "overlap";
  }
  return stage >= 2 ? "hook" : "engine";
}

// The dtype in which gradients are reduced, "" for their own. Over sequences ZeRO 1 and 2 know fp32 only, and the others have a key of
// their own, of which null leaves the choice to the common one.
static std::string reductionType(const Settings &settings, const Degrees &d) {
  constexpr llvm::StringLiteral Sequences = "seq_parallel_communication_data_type", All = "communication_data_type";
  const int64_t stage = settings.integer("zero_optimization.stage");
  const bool none = settings.place(Sequences).valid() && !settings.has(Sequences);
  if (d.sp > 1 && (stage == 1 || stage == 2)) {
    return "f32";
  }
  const std::string type = d.sp > 1 && !none ? settings.text(Sequences) : settings.text(All);
  return llvm::StringRef(type).starts_with("fp") ? "f" + type.substr(2) : type; // fp32 is f32 here
}

static void addSwitches(const Settings &settings, const Degrees &d, Job &job) {
  auto put = [&](llvm::StringRef name, bool value) { job.switches[name.str()] = value ? "true" : "false"; };
  const int64_t stage = settings.integer("zero_optimization.stage");
  const bool sum = settings.text("gradient_allreduce_op") == "sum";
  // ZeRO 3 with reduce_scatter averages over all ranks that share parameters; all others sum over those of a sequence.
  const bool meanOverAll = stage == 3 && settings.on("zero_optimization.reduce_scatter");
  const std::string loss = settings.text("launch.loss");
  put("tp", d.tp > 1);
  put("sp", d.sp > 1);
  put("pp", d.stages > 1);
  put("ep", d.autoEP && d.ep > 1);
  put("autoep", d.autoEP);
  put("fold", d.folded);
  put("folded", true);
  put("inference", job.inference);
  put("sum", sum);
  put("ulysses", settings.integer("launch.sequence_parallel_size") > 1);
  put("mean_over_sp", meanOverAll && d.sp > 1);
  put("universal", settings.on("checkpoint.load_universal") || settings.on("load_universal_checkpoint"));
  put("kv_copied", d.sp > 1 && job.sizes.count("G") && job.sizes.at("G").value % d.sp != 0);
  // What a rank's loss is: the mean of its own tokens, its share of the mean over the ranks of a sequence, or of all tokens.
  put("loss_mean_dp", loss == "mean" || loss == "share" || (loss == "expected" && !sum));
  put("loss_mean_sp", loss == "mean" || (loss == "expected" && meanOverAll));
  put("loss_expected", loss == "expected");
  put("heads_sharded", job.switches["tp_wq"] == "column" || job.switches["tp_wq_b"] == "column");
  job.switches["stage"] = std::to_string(stage);
  job.switches["path"] = correctionPath(settings);
  job.switches["reduce_dtype"] = reductionType(settings, d);
  job.switches["compute_dtype"] = settings.on("bf16.enabled") || settings.on("fp16.enabled") ? "bfloat16" : "float32";
}

static void addAssumptions(const Settings &settings, const Degrees &d, Job &job) {
  job.assumes.push_back("DeepSpeed " + settings.version + ", strategy " + job.strategy);
  if (!settings.place("gradient_clipping").valid() && settings.version == "0.19.6") {
    job.assumes.push_back(
        llvm::formatv("`gradient_clipping` is at its default, 1.0: gradients are clipped{0}",
                      averagesExpertNorms(settings, d) ? ", and the norms of ranks that hold different experts are averaged for it" : ""));
  }
  if (const int64_t stage = settings.integer("zero_optimization.stage"); stage == 1 || stage == 2) {
    job.assumes.push_back("the optimizer has one group of parameters, and one of experts: ZeRO pads and cuts each group as a row");
  }
  if (settings.text("launch.loss") == "expected") {
    const std::string sp =
        job.switches["loss_mean_sp"] == "true" ? "the mean of its own tokens" : "its share of the mean over a sequence's ranks";
    job.assumes.push_back(d.sp > 1 ? "the loss of a rank is what this ZeRO stage expects: " + sp
                                   : "the loss of a rank is the mean of its own tokens");
  }
  if (settings.text("zero_optimization.stage") == "1" && job.switches["path"] == "bf16" && d.folded) {
    job.assumes.push_back("bf16 with ZeRO 1 accumulates in BF16_Optimizer, in fp32");
  }
  // The history of folding says nothing about these paths at these commits.
  const std::string path = job.switches["path"];
  const llvm::StringRef known = path == "hook" ? "8b1c04283" : path == "engine" ? "278c91948" : "13dceecf5";
  if (d.folded && !settings.from(known)) {
    job.assumes.push_back(llvm::formatv(
        "derived, not documented: at {0} gradients over tensor-parallel ranks are {1} where ZeRO stage {2} {3}", settings.version,
        path == "hook" ? "summed as at stage 0" : "left as they are", settings.integer("zero_optimization.stage"),
        path == "bf16"      ? "accumulates in BF16_Optimizer"
        : path == "overlap" ? "overlaps communication"
                            : "reduces them"));
  }
  if (job.inference) {
    job.assumes.push_back("inference: forward only");
  }
  for (const std::string &key : settings.autos) {
    if (settings.framework.find(key)->layout) {
      job.unchecked.push_back({"`" + key + "`", "it is `auto`, and the trainer that fills it in is not asked"});
    }
  }
  if (d.stages > 1) {
    job.unchecked.push_back({"the pipeline", "stages are counted, the schedule is not executed"});
  }
  if (job.switches["kv_copied"] == "true") {
    job.unchecked.push_back({"key and value heads copied for Ulysses", "attention is checked as if every rank held all heads"});
  }
  for (const auto &[section, why] : settings.framework.unchecked) {
    if (settings.section(section)) {
      job.unchecked.push_back({"`" + section + "`", why});
    }
  }
  if (const std::optional<Located<std::string>> optimizer = compressedOptimizer(settings)) {
    job.unchecked.push_back({"`" + optimizer->value + "`", "it exchanges compressed momenta instead of gradients"});
  }
}

std::optional<Job> build(const JobRequest &request, const ConfigNode *config, llvm::StringRef version, DiagnosticEngine &diags) {
  const std::optional<Framework> framework = loadFramework(diags);
  if (!framework) {
    return std::nullopt;
  }
  // What was written, each value with its place.
  Settings settings(*framework, version, Versions, diags);
  if (config) {
    settings.readFile(*config);
  }
  settings.readFlags(request.flags);
  settings.reportAuto();
  settings.reportIdle();
  Job job;
  job.name = request.name;
  job.framework = "deepspeed";
  job.version = version.str();
  job.strategy = request.strategy ? request.strategy->value : "deepspeed";
  job.inference = request.inference;
  // From here on every step goes on past the others' mistakes, so that one run shows all.
  bool described = !settings.broken;
  described &= addModel(settings, request, job);
  const std::optional<Degrees> degrees = findDegrees(settings, request);
  if (!degrees) {
    return std::nullopt;
  }
  job.world = *request.world;
  checkZero(settings, *degrees);
  const int64_t rows = checkBatch(settings, *degrees, job);
  if (degrees->valid) {
    addViews(settings, *degrees, job);
  }
  described &= degrees->valid;
  described &= addTokens(settings, *degrees, rows, job);
  described &= addTensorParallel(settings, *degrees, job);
  described &= checkModel(settings, *degrees, job);
  addSwitches(settings, *degrees, job);
  addAssumptions(settings, *degrees, job);
  return described ? std::optional(std::move(job)) : std::nullopt;
}

} // namespace shardc::deepspeed
