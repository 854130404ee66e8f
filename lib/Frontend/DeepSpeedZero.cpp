// DeepSpeedZero: rules between keys of reduction, precision and ZeRO that need no model.
//
// Most are assertions of DeepSpeed. Two are silent mistakes of its own: where gradient_predivide_factor equals the size of a
// group, the product that takes the division back is left out.

#include "DeepSpeed.h"

namespace shardc::deepspeed {
namespace {

class ZeroRules {
public:
  ZeroRules(const Settings &s, const Degrees &degrees)
      : settings(s), diags(s.diags), d(degrees), stage(s.integer("zero_optimization.stage")) {}

  void check() {
    precision();
    reduction();
    predivide();
    partitions();
    offload();
    clip();
  }

private:
  SourceRange place(llvm::StringRef key) const { return placeOf(settings, d, key); }
  std::string stageText() const { return llvm::formatv("`zero_optimization.stage` {0}", stage); }
  static std::string zero(llvm::StringRef key) { return ("zero_optimization." + key).str(); }

  DiagnosticBuilder conflict(llvm::StringRef key, const std::string &what, const std::string &other) {
    return diags.emit<Diag::KeysConflict>(place(key), what, other);
  }

  void precision() {
    if (settings.on("fp16.enabled") && settings.on("bf16.enabled")) {
      conflict("bf16.enabled", "`bf16.enabled`", "`fp16.enabled`").label(place("fp16.enabled"), "enabled here");
    }
  }

  void reduction() {
    if (settings.text("gradient_allreduce_op") == "sum") {
      const std::string what = "`gradient_allreduce_op` sum";
      if (stage == 3) {
        conflict("gradient_allreduce_op", what, stageText()).label(place(zero("stage")), "given here");
      }
      if (settings.place(zero("zenflow")).valid()) {
        conflict("gradient_allreduce_op", what, "ZenFlow");
      }
      if (settings.on("compile.deepcompile")) {
        conflict("gradient_allreduce_op", what, "DeepCompile").label(place("compile.deepcompile"), "enabled here");
      }
    }
    if (const std::optional<Located<std::string>> optimizer = compressedOptimizer(settings); optimizer && stage > 0) {
      diags.emit<Diag::KeysConflict>(optimizer->range, "`" + optimizer->value + "`", stageText()).label(place(zero("stage")), "given here");
    }
    if (settings.on("sparse_gradients") && stage >= 2) {
      conflict("sparse_gradients", "`sparse_gradients`", stageText()).label(place(zero("stage")), "given here");
    }
    constexpr llvm::StringLiteral Sequences = "seq_parallel_communication_data_type";
    const bool left = settings.place(Sequences).valid() && !settings.has(Sequences); // null leaves it to the common key
    if (d.sp == 1 && settings.has(Sequences)) {
      diags.emit<Diag::KeyWithoutEffect>(place(Sequences), Sequences, "no sequence parallelism is on");
    }
    if (d.sp > 1 && settings.has("communication_data_type") && !left) {
      diags.emit<Diag::KeyWithoutEffect>(place("communication_data_type"), "communication_data_type",
                                         "with sequence parallelism `seq_parallel_communication_data_type` is taken");
    }
  }

  void predivide() {
    const double factor = settings.real("gradient_predivide_factor");
    const bool before = settings.on("prescale_gradients"), scatter = settings.on(zero("reduce_scatter"));
    if (stage >= 2 && scatter) {
      if (before) {
        conflict("prescale_gradients", "`prescale_gradients`", stageText() + " and `reduce_scatter`");
      }
      if (factor != 1) {
        conflict("gradient_predivide_factor", "`gradient_predivide_factor` " + settings.text("gradient_predivide_factor"),
                 stageText() + " and `reduce_scatter`");
      }
      return;
    }
    if (before && factor != 1) {
      diags.emit<Diag::KeyWithoutEffect>(place("gradient_predivide_factor"), "gradient_predivide_factor",
                                         "`prescale_gradients` divides by the number of ranks at once");
      return;
    }
    const int64_t group = d.dp * d.sp;
    const int64_t lost = stage == 3 ? group : stage >= 1 && d.sp > 1 ? d.sp : 1;
    if (!scatter && stage >= 1 && lost > 1 && factor == static_cast<double>(group)) {
      diags.emit<Diag::PredivideKept>(place("gradient_predivide_factor"), settings.text("gradient_predivide_factor"), lost)
          .note("the division before the reduction is taken back behind it, but not where the factor equals the number of ranks");
    }
  }

  void partitions() {
    const std::string bucket = zero("allgather_bucket_size");
    if (settings.integer(bucket) % 2 != 0) {
      diags.emit<Diag::OutOfRange>(place(bucket), bucket, "a multiple of 2", settings.integer(bucket));
    }
    for (llvm::StringRef name : {"zero_hpz_partition_size", "mics_shard_size"}) {
      const int64_t size = settings.integer(zero(name));
      if (size > 1 && d.world % size != 0) {
        diags.emit<Diag::ShardGroupNotInWorld>(place(zero(name)), name, size, d.world);
      }
    }
    const int64_t lanes = settings.integer("hybrid_engine.inference_tp_size");
    if (lanes > 1 && d.world % lanes != 0) {
      diags.emit<Diag::ShardGroupNotInWorld>(place("hybrid_engine.inference_tp_size"), "hybrid_engine.inference_tp_size", lanes, d.world);
    }
    if (d.autoEP && stage >= 1 && stage <= 2 && !settings.on(zero("reduce_scatter"))) {
      conflict(zero("reduce_scatter"), "`reduce_scatter` false", "experts under " + stageText());
    }
  }

  void clip() {
    if (averagesExpertNorms(settings, d) && settings.has("gradient_clipping")) {
      diags.emit<Diag::ExpertNormsAveraged>(place("gradient_clipping"), settings.text("gradient_clipping"))
          .note("every element counts once in the root of the sum of squares: norms 6 and 8 of two halves make 10, not 7")
          .help("set `gradient_clipping` to 0, or clip in the program");
    }
  }

  void offload() {
    const std::string device = settings.text(zero("offload_optimizer.device"));
    if (!device.empty() && device != "none" && stage == 0) {
      diags.emit<Diag::KeyWithoutEffect>(place(zero("offload_optimizer.device")), zero("offload_optimizer"), stageText());
    }
    if (settings.real(zero("offload_optimizer.ratio")) < 1 && stage < 3) {
      conflict(zero("offload_optimizer.ratio"), "`offload_optimizer.ratio` " + settings.text(zero("offload_optimizer.ratio")), stageText())
          .help("only stage 3 keeps a part of the optimizer on the device");
    }
    const std::string params = settings.text(zero("offload_param.device"));
    if (!params.empty() && params != "none" && stage < 3) {
      diags.emit<Diag::KeyWithoutEffect>(place(zero("offload_param.device")), zero("offload_param"), stageText());
    }
  }

  const Settings &settings;
  DiagnosticEngine &diags;
  const Degrees &d;
  int64_t stage;
};

} // namespace

std::optional<Located<std::string>> compressedOptimizer(const Settings &settings) {
  const ConfigNode *section = settings.section("optimizer"), *type = section ? section->find("type") : nullptr;
  for (llvm::StringRef known : {"OneBitAdam", "ZeroOneAdam", "OneBitLamb"}) {
    if (type && known.equals_insensitive(type->scalar)) {
      return Located<std::string>{known.str(), type->range};
    }
  }
  return std::nullopt;
}

// Without ZeRO, the engine and the optimizers of half precision average norms over data-parallel ranks.
bool averagesExpertNorms(const Settings &settings, const Degrees &degrees) {
  return degrees.autoEP && degrees.ep > 1 && settings.integer("zero_optimization.stage") == 0 && settings.real("gradient_clipping") > 0;
}

void checkZero(const Settings &settings, const Degrees &degrees) { ZeroRules(settings, degrees).check(); }

} // namespace shardc::deepspeed
