// ColossalaiRules: what the plugins refuse about their arguments, a model and a mesh, and what they should refuse but do not.
//
// Every rule is looked at, whatever the others found. Arguments that a plugin takes and silently passes over are warnings:
// what was asked for is not what runs. A rule that ColossalAI does not check itself says so in a note.
#include "Colossalai.h"

namespace shardc::colossalai {

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

namespace {

constexpr llvm::StringLiteral NotChecked = "not checked by the plugin: the job fails or computes something else at run time";

void helpIf(DiagnosticBuilder builder, std::string help) {
  if (!help.empty()) {
    builder.help(std::move(help));
  }
}

// Rules among the arguments themselves.
class ArgumentRules {
public:
  explicit ArgumentRules(const Arguments &a) : arguments(a), diags(a.diags), pp(a.integer("pp_size")), tp(a.integer("tp_size")) {}

  void check() {
    checkZero();
    checkSequence();
    checkPipeline();
    checkNorm();
  }

private:
  SourceRange at(llvm::StringRef name) const { return placeOf(arguments, name); }

  // An argument that was written and does nothing.
  void ignored(llvm::StringRef name, const llvm::Twine &why) {
    if (arguments.given(name) && !arguments.isNone(name)) {
      diags.emit<Diag::IgnoredArgument>(at(name), name, why.str());
    }
  }

  void checkZero() {
    const int64_t written = arguments.integer("zero_stage"), stage = zeroStage(arguments);
    if (written > 2) {
      diags.emit<Diag::OutOfRange>(at("zero_stage"), "zero_stage", "0, 1 or 2", written).help("nearest legal zero_stage: 2");
    }
    if (stage != written) {
      diags.emit<Diag::ArgumentRunAsOther>(at("zero_stage"), "zero_stage", written, stage,
                                           written == 2 ? "experts and the rest have stores of their own"
                                                        : "`overlap_communication` makes the plugin set it");
    }
    if (pp > 1 && stage > 1) {
      diags.emit<Diag::ZeroWithPipeline>(at("zero_stage"), stage, pp)
          .note("each micro-batch would shard its gradients before the last one has added its part")
          .help("nearest legal zero_stage: 1");
    }
    if (stage >= 1 && arguments.text("precision") == "fp32") {
      diags.emit<Diag::ZeroPrecision>(at("precision"), stage, "fp32").help("use precision fp16 or bf16, or zero_stage 0");
    }
    if (overlapsExperts(arguments)) {
      ignored("overlap_communication", "the plugin turns it off, since ranks whose experts get no tokens would hang");
    }
  }

  void checkSequence() {
    const std::string mode = sequenceMode(arguments);
    const int64_t sp = arguments.integer("sp_size");
    if (!arguments.on("enable_sequence_parallelism")) {
      if (sp != 1) {
        diags.emit<Diag::SequenceNotEnabled>(at("sp_size"), sp).help("set `enable_sequence_parallelism: true`, or sp_size 1");
      }
      ignored("sequence_parallelism_mode", "`enable_sequence_parallelism` is false");
      ignored("inner_ring_size", "`enable_sequence_parallelism` is false");
      return;
    }
    if (arguments.isMoe() && mode == "ring_attn") {
      diags.emit<Diag::SequenceModeUnknown>(at("sequence_parallelism_mode"), arguments.plugin->name, mode)
          .note("both plugins take the word, but only HybridParallelPlugin acts on it")
          .help("use split_gather, ring or all_to_all");
    }
    if (sharesTensorRanks(mode)) {
      if (tp == 1) {
        diags.emit<Diag::SequenceNeedsTensor>(at("sequence_parallelism_mode"), mode).help("set tp_size to 2 or more, or use all_to_all");
      }
      if (sp != 1) {
        ignored("sp_size", mode + " shares sequences over the ranks of tensor parallelism, tp_size " + llvm::Twine(tp));
      }
    }
    checkRing(mode, sp);
  }

  void checkRing(llvm::StringRef mode, int64_t sp) {
    if (mode != "ring_attn") {
      ignored("inner_ring_size", "only ring_attn has rings");
      return;
    }
    if (!arguments.on("parallel_output")) {
      diags.emit<Diag::RingNeedsParallelOutput>(at("parallel_output")).help("set `parallel_output: true`, its default");
    }
    const int64_t inner = arguments.integer("inner_ring_size", sp);
    if (sp % inner != 0) {
      helpIf(diags.emit<Diag::InnerRing>(at("inner_ring_size"), inner, sp),
             nearestLegal("inner_ring_size", inner, sp, [&](int64_t r) { return sp % r == 0; }));
    }
  }

  void checkPipeline() {
    const std::string style = arguments.text("pp_style");
    const int64_t chunks = arguments.integer("num_model_chunks");
    if (pp == 1) {
      for (llvm::StringRef name : {"num_microbatches", "microbatch_size", "pp_style", "num_model_chunks", "scheduler_nodes"}) {
        ignored(name, "pp_size is 1");
      }
      return;
    }
    if (arguments.isNone("num_microbatches") && arguments.isNone("microbatch_size")) {
      diags.emit<Diag::PipelineNeedsMicrobatches>(at("pp_size"), pp)
          .help("set one of them: how often a step runs the pipeline, or rows of one run");
    } else if (!arguments.isNone("num_microbatches") && !arguments.isNone("microbatch_size")) {
      ignored("microbatch_size", "`num_microbatches` decides");
    }
    const auto chunksMust = [&](llvm::StringRef wanted, llvm::StringRef nearestValue) {
      diags
          .emit<Diag::PipelineStyle>(at(arguments.given("num_model_chunks") ? "num_model_chunks" : "pp_style"), style,
                                     "num_model_chunks " + wanted.str(), chunks)
          .help("nearest legal num_model_chunks: " + nearestValue.str());
    };
    if (style == "1f1b" && chunks != 1) {
      chunksMust("1", "1");
    } else if (style == "interleaved" && chunks < 2) {
      chunksMust("2 or more", "2");
    } else if (style == "zbv" && chunks != 2) {
      chunksMust("2", "2");
    }
    if (style == "zbv" && arguments.isNone("scheduler_nodes")) {
      diags.emit<Diag::PipelineStyle>(at("pp_style"), style, "`scheduler_nodes`", "None")
          .help("set `scheduler_nodes` to the graph that the schedule is made from");
    } else if (style != "zbv") {
      ignored("scheduler_nodes", "only zbv has a schedule of its own");
    }
  }

  // Dense parameters and experts stand in two stores, and their norms are added as they are.
  void checkNorm() {
    const double most = std::strtod(arguments.text("max_norm").c_str(), nullptr);
    if (arguments.isMoe() && most > 0 && zeroStage(arguments) > 0) {
      diags.emit<Diag::NormsAddedLinearly>(at("max_norm"), arguments.text("max_norm"))
          .note("norms of 3 and 4 make 5 together, the root of 9 + 16; here they make 7, and gradients are cut more than asked")
          .help("set max_norm 0 and clip in the training loop");
    }
  }

  const Arguments &arguments;
  DiagnosticEngine &diags;
  int64_t pp, tp;
};

// Rules about the model and the mesh.
class ModelRules {
public:
  ModelRules(const Arguments &a, const Job &j)
      : arguments(a), job(j), diags(a.diags), mode(sequenceMode(a)), tp(a.integer("tp_size")), pp(a.integer("pp_size")),
        ep(a.isMoe() ? a.integer("ep_size") : 1), sp(sequenceRanks(a)) {}

  bool check() {
    const size_t before = diags.errorCount();
    checkHeads();
    checkWidths();
    checkExperts();
    const bool even = diags.errorCount() == before;
    checkPolicy();
    checkReplicas();
    return even;
  }

private:
  int64_t size(llvm::StringRef name) const { return sizeOf(job, name); }
  SourceRange at(llvm::StringRef name) const { return placeOf(arguments, name); }
  bool latentAttention() const { return size("C") > 0; }
  bool exchangesHeads() const { return mode == "all_to_all"; }

  bool headsFit(int64_t t, int64_t s) const { return size("N") % (t * s) == 0 && (latentAttention() || size("G") % (t * s) == 0); }

  // Attention has whole heads: those that tp leaves are shared once more by all_to_all.
  void checkHeads() {
    for (auto [name, what] : {std::pair{"N", "query"}, std::pair{"G", "key and value"}}) {
      const int64_t heads = size(name), shards = exchangesHeads() ? tp * sp : tp;
      if (heads == 0 || heads % shards == 0 || (latentAttention() && name[0] == 'G')) {
        continue;
      }
      const bool tensor = heads % tp != 0;
      const std::string over = exchangesHeads() && sp > 1 ? llvm::formatv("tp_size {0} x sp_size {1}", tp, sp).str() : "tp_size";
      DiagnosticBuilder builder = diags.emit<Diag::HeadsNotShared>(at(tensor ? "tp_size" : "sp_size"), heads, what, over, shards);
      if (!tensor) {
        builder.note(("heads per rank are divided by sp_size with a remainder dropped: " + NotChecked).str());
      }
      const int64_t s = exchangesHeads() ? sp : 1;
      helpIf(builder, tensor ? nearestLegal("tp_size", tp, size("N"),
                                            [&](int64_t t) { return headsFit(t, 1) && (headsFit(t, s) || !headsFit(1, s)); })
                             : nearestLegal("sp_size", sp, size("N"), [&](int64_t other) { return headsFit(tp, other); }));
    }
  }

  std::vector<std::pair<llvm::StringRef, int64_t>> widths() const {
    std::vector<std::pair<llvm::StringRef, int64_t>> result;
    if (size("E") == 0 || size("dense_layers") > 0) {
      result.emplace_back("feed-forward", size("F"));
    }
    if (size("E") > 0 && arguments.isMoe()) { // the other plugin cuts no expert
      result.emplace_back("experts'", size("Fm"));
      result.emplace_back("shared experts'", size("Fs"));
    }
    return result;
  }

  void checkWidths() {
    for (const auto &[name, width] : widths()) {
      if (width % tp != 0) {
        DiagnosticBuilder builder = diags.emit<Diag::WidthNotShared>(at("tp_size"), name, width, tp);
        builder.note(NotChecked.str());
        const int64_t w = width;
        helpIf(builder, nearestLegal("tp_size", tp, size("N"), [&](int64_t t) { return w % t == 0 && headsFit(t, 1); }));
      }
    }
  }

  void checkExperts() {
    if (!arguments.isMoe()) {
      return;
    }
    const int64_t experts = size("E"), dp = size("dp");
    if (experts == 0) {
      diags.emit<Diag::NoExpertParameters>(arguments.pluginName.range, job.family + "/" + job.flavour, arguments.plugin->name)
          .help("consider HybridParallelPlugin");
      return;
    }
    if (experts % ep != 0) {
      helpIf(diags.emit<Diag::ExpertsNotShared>(at("ep_size"), experts, ep),
             nearestLegal("ep_size", ep, experts, [&](int64_t e) { return experts % e == 0 && (dp == 0 || dp % e == 0); }));
    }
  }

  void lacks(llvm::StringRef name, llvm::StringRef policy, const std::string &what, llvm::StringRef help) {
    diags.emit<Diag::PolicyLacks>(at(name), policy, what).help(help.str());
  }

  // What the model's own policy cannot do.
  void checkPolicy() {
    const bool deepseek = job.family == "deepseek_v3", sequence = mode != "none";
    if (deepseek && tp > 1) {
      lacks("tp_size", "DeepSeek-V3", "tensor parallelism", "nearest legal tp_size: 1");
    }
    if (deepseek && sequence) {
      lacks("enable_sequence_parallelism", "DeepSeek-V3", "sequence parallelism", "set `enable_sequence_parallelism: false`");
    }
    if (deepseek && pp > 1 && arguments.text("pp_style") == "zbv") {
      lacks("pp_style", "DeepSeek-V3", "zbv schedule", "use 1f1b or interleaved");
    }
    if (job.family == "mixtral" && sequence && pp > 1) {
      lacks("enable_sequence_parallelism", "Mixtral", "sequence parallelism in a pipeline", "nearest legal pp_size: 1");
    }
  }

  // Without ZeRO and a pipeline one wrapper reduces all parameters alike, which needs experts to be replicated like the rest.
  void checkReplicas() {
    const bool apart = ep > 1 || (exchangesHeads() && sp > 1);
    if (!arguments.isMoe() || size("E") == 0 || zeroStage(arguments) != 0 || pp != 1 || !apart) {
      return;
    }
    const std::string own = size("moe_dp") > 0 ? llvm::formatv("moe_dp {0}", size("moe_dp")).str() : "moe_dp"; // of no mesh
    const std::string others = llvm::formatv(exchangesHeads() && sp > 1 ? "{0} x ep {1} x sp {2}" : "{0} x ep {1}", own, ep, sp).str();
    diags.emit<Diag::ReplicasNotAlike>(at("zero_stage"), own, others)
        .note("meant to be refused with these words, ColossalAI fails while it makes them: `NameError`")
        .help("nearest legal zero_stage: 1");
  }

  const Arguments &arguments;
  const Job &job;
  DiagnosticEngine &diags;
  std::string mode;
  int64_t tp, pp, ep, sp;
};

} // namespace

void checkArguments(const Arguments &arguments) {
  if (!arguments.broken) {
    ArgumentRules(arguments).check();
  }
}

bool checkModel(const Arguments &arguments, const Job &job) {
  if (arguments.broken || sizeOf(job, "D") == 0) {
    return true; // no model, or degrees that say nothing: reported elsewhere
  }
  return ModelRules(arguments, job).check();
}

} // namespace shardc::colossalai
