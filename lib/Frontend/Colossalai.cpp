// Colossalai: how the arguments of ColossalAI's booster plugins are read, from a file or flags to a job.
//
// The steps: what was written, the model, the mesh with its groups, tokens of a micro-batch, and then the rules. What layouts
// follow is the strategy's matter (lib/Catalog/strategies), what happens to gradients that of lib/Catalog/sync.

#include "Colossalai.h"

namespace shardc::colossalai {

bool recognises(const ConfigNode &root) {
  if (const ConfigNode *plugin = root.find("plugin")) {
    return llvm::StringRef(plugin->scalar).ends_with("HybridParallelPlugin");
  }
  const ConfigNode *inner = root.find("plugin_config");
  const ConfigNode &arguments = inner ? *inner : root;
  return arguments.find("tp_size") && arguments.find("pp_size");
}

static bool addModel(const Arguments &arguments, const JobRequest &request, Job &job) {
  if (!request.model) {
    arguments.diags.emit<Diag::MissingKey>(request.range, "the job", "model").help("a plugin knows no model: name it with `--model`");
    return false;
  }
  if (!loadModel(*request.model, job, arguments.diags)) {
    return false;
  }
  // A family whose policy knows experts stands in the row of the plugin for them.
  const PluginRow *moe = arguments.framework.plugin("moe");
  const bool experts = sizeOf(job, "E") > 0, knowsExperts = moe && llvm::is_contained(moe->families, job.family);
  const auto has = [&](const PluginRow &row) { return llvm::is_contained(row.families, job.family) && (!experts || knowsExperts); };
  if (arguments.plugin && !request.strategy && !has(*arguments.plugin)) {
    // A model without experts under the plugin for experts is refused for that reason.
    if (arguments.isMoe() && !experts) {
      return true;
    }
    DiagnosticBuilder builder = arguments.diags.emit<Diag::PluginLacksFamily>(request.model->range, arguments.plugin->name,
                                                                              job.family + (experts ? " with experts" : ""));
    for (const PluginRow &row : arguments.framework.plugins) {
      if (has(row)) {
        builder.help("use " + row.name);
      }
    }
    builder.help("name a strategy with `--strategy`: `--strategy colossalai` applies ColossalAI's contracts to this family");
    return false;
  }
  return true;
}

static void addSwitches(const Arguments &arguments, Job &job) {
  auto put = [&](llvm::StringRef name, bool value) { job.switches[name.str()] = value ? "true" : "false"; };
  const std::string mode = sequenceMode(arguments);
  job.switches["sp_mode"] = mode;
  put("tp", sizeOf(job, "tp") > 1);
  put("pp", sizeOf(job, "pp") > 1);
  put("ep", sizeOf(job, "ep") > 1);
  put("sp", sequenceRanks(arguments) > 1);
  put("sp_in_tp", sharesTensorRanks(mode));
  put("moe", arguments.isMoe());
  job.switches["model"] = job.family;
  job.switches["fused_norms"] = arguments.on("enable_fused_normalization") ? "true"
                                : arguments.on("enable_all_optimization")  ? "with apex"
                                                                           : "false";
  put("folded", false);
  put("parallel_output", arguments.on("parallel_output"));
  put("inference", job.inference);
  put("clip", std::strtod(arguments.text("max_norm").c_str(), nullptr) > 0);
  job.switches["zero"] = std::to_string(zeroStage(arguments));
  job.switches["precision"] = arguments.text("precision");
  const std::string reduced = arguments.text("communication_dtype"); // torch.float32
  static constexpr std::pair<llvm::StringRef, const char *> DTypes[] = {{"bfloat16", "bf16"}, {"float16", "f16"}, {"float32", "f32"}};
  const auto *known = llvm::find_if(DTypes, [&](const auto &d) { return llvm::StringRef(reduced).ends_with(d.first); });
  job.switches["reduce_dtype"] = known == std::end(DTypes) ? "" : known->second;
  job.switches["compute_dtype"] = arguments.text("precision") == "fp32" ? "float32" : "bfloat16";
  // Zigzag: each rank of a ring holds a chunk from either end of the sequence, an order of its own.
  job.switches["load_balancer"] = mode == "ring_attn" ? "headtail" : "none";
  if (mode == "ring_attn") {
    job.sizes["cp"] = job.sizes["sp"];
  }
}

static void addAssumptions(const Arguments &arguments, Job &job) {
  job.assumes.push_back(job.version == "0.5.0" ? "ColossalAI 0.5.0" : "ColossalAI 0.5.0 with the mend of issue 6466");
  job.assumes.push_back("strategy " + job.strategy);
  job.assumes.push_back(arguments.plugin->name + "'s defaults for what is not set");
  if (arguments.enabledByScript) {
    job.assumes.push_back("`--sp` turns sequence parallelism on, as the example scripts do");
  }
  const std::string mode = sequenceMode(arguments);
  if (mode == "ring_attn") {
    job.assumes.push_back("the keys that a ring passes on are typed as gathered");
  }
  const int64_t rows = sizeOf(job, "V"), multiple = arguments.integer("make_vocab_size_divisible_by"), tp = sizeOf(job, "tp");
  if (rows > 0 && tp > 0 && rows % (multiple * tp) != 0) {
    job.assumes.push_back(
        llvm::formatv("the {0} rows of the vocabulary are padded to a multiple of {1}; logits of the pad are cut off", rows, multiple * tp)
            .str());
  }
  if (arguments.text("precision") == "fp16") {
    job.assumes.push_back("the loss scale of fp16 is taken back before the step");
  }
  if (sizeOf(job, "pp") > 1) {
    job.unchecked.push_back({"the pipeline schedule", "stages and micro-batches are counted, the schedule is not executed"});
  }
  if (mode != "none" && arguments.isNone("sequence_parallelism_mode")) {
    job.unchecked.push_back(
        {"`sequence_parallelism_mode` left out", "groups are made for all_to_all; layers that get None take split_gather"});
  }
  if (sizeOf(job, "E") > 0 && sharesTensorRanks(mode)) {
    job.unchecked.push_back({"experts under " + mode, "typed as gathering their tokens first; no policy says so"});
  } else if (sizeOf(job, "E") > 0 && mode == "ring_attn") {
    job.unchecked.push_back({"experts under " + mode, "typed as for models without experts; no policy says so"});
  }
  if (!arguments.isNone("custom_policy")) {
    job.unchecked.push_back({"`custom_policy`", "a policy of one's own may shard other modules"});
  }
  if (arguments.on("use_fp8")) {
    job.unchecked.push_back({"fp8 linear layers", "their scaling and casts have no model here"});
  }
  if (arguments.on("fp8_communication")) {
    job.unchecked.push_back({"fp8 communication", "what it rounds is not followed"});
  }
}

std::optional<Job> build(const JobRequest &request, const ConfigNode *config, llvm::StringRef version, DiagnosticEngine &diags) {
  const std::optional<Framework> framework = loadFramework(diags);
  if (!framework) {
    return std::nullopt;
  }
  // What was written, each value with its place.
  Arguments arguments(*framework, diags);
  readArguments(config, request.flags, request.range, arguments);
  Job job;
  job.name = request.name;
  job.framework = "colossalai";
  job.version = version.str();
  job.strategy = request.strategy ? request.strategy->value : "colossalai";
  job.inference = request.inference;
  // From here on every step goes on past the others' mistakes, so that one run shows all.
  bool described = !arguments.broken;
  described &= addModel(arguments, request, job);
  checkArguments(arguments);
  const bool meshed = addMesh(arguments, request, job);
  described &= meshed && addTokens(arguments, job);
  described &= checkModel(arguments, job);
  described &= !arguments.isMoe() || sequenceMode(arguments) != "ring_attn"; // which the plugin takes for nothing that it knows
  if (!described) {
    return std::nullopt;
  }
  addSwitches(arguments, job);
  addAssumptions(arguments, job);
  return job;
}

} // namespace shardc::colossalai
