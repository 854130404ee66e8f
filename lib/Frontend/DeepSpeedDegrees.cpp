// DeepSpeedDegrees: from the world and the degrees to the ranks' groups, and what DeepSpeed refuses about them.
//
// A stage of the pipeline has world / pp ranks. Tensor-parallel groups are consecutive, data-parallel ones go over equal lanes.
// AutoEP with AutoTP ("folding") lays the expert groups over the same ranks: dp = stage / tp and edp = stage / ep follow, so
// that tp * dp = ep * edp always holds. Up to 42c4148de the ranks of a stage are put in order lane by lane (all with tensor-
// parallel rank 0, then all with 1) and cut into groups of ep; from 74cf2c2cc on the groups are consecutive whatever the lanes.
// Every rule is looked at, whatever the others found.

#include "DeepSpeed.h"
#include "llvm/ADT/StringExtras.h"

namespace shardc::deepspeed {
namespace {

constexpr llvm::StringLiteral Tensor = "tensor_parallel.autotp_size";
constexpr llvm::StringLiteral Expert = "expert_parallel.autoep_size";
constexpr llvm::StringLiteral ExpertTensor = "expert_parallel.expert_tensor_parallel_size";
constexpr llvm::StringLiteral Pipeline = "launch.pipeline_parallel_size";
constexpr llvm::StringLiteral Ulysses = "launch.sequence_parallel_size";
constexpr llvm::StringLiteral Sequence = "sequence_parallel_size";
constexpr llvm::StringLiteral Stage = "zero_optimization.stage";
constexpr int64_t Largest = 1 << 20; // no world has more ranks

// "the divisors of 8 are 1, 2, 4, 8".
std::string divisors(int64_t n) {
  std::vector<std::string> list;
  for (int64_t d = 1; d <= n && d <= Largest; ++d) {
    if (n % d == 0) {
      list.push_back(std::to_string(d));
    }
  }
  return "it must divide " + std::to_string(n) + ": " + llvm::join(list, ", ");
}

class DegreeRules {
public:
  DegreeRules(const Settings &s, Degrees &degrees) : settings(s), diags(s.diags), d(degrees) {}

  bool check() {
    bool good = sizes();
    sequence();
    if (good) {
      good = divisions();
    }
    pipeline();
    mpu();
    experts();
    return good;
  }

private:
  SourceRange place(llvm::StringRef key) const { return placeOf(settings, d, key); }

  // 1: every size is a positive whole number.
  bool sizes() {
    bool good = true;
    const std::pair<llvm::StringRef, int64_t *> all[] = {{Tensor, &d.tp}, {Expert, &d.ep}, {Pipeline, &d.stages}};
    for (const auto &[key, size] : all) {
      const int64_t value = settings.integer(key);
      *size = key == Expert && !d.autoEP ? 1 : std::max<int64_t>(value, key == Tensor ? 1 : value);
      if (*size < 1 || *size > Largest) {
        diags.emit<Diag::DegreeTooSmall>(place(key), key, value, *size < 1 ? "at least 1" : "at most " + std::to_string(Largest));
        *size = 1; // the other rules are looked at all the same
        good = false;
      }
    }
    const int64_t etp = settings.integer(ExpertTensor);
    if (d.autoEP && etp < 1) { // what it may be besides 1 is said with the other rules of experts
      diags.emit<Diag::DegreeTooSmall>(place(ExpertTensor), ExpertTensor, etp, "at least 1");
      good = false;
    }
    d.folded = d.autoEP && d.tp > 1;
    return good;
  }

  // 2 to 4: how many ranks are left for each kind of data parallelism.
  bool divisions() {
    if (d.world % d.stages != 0) {
      diags.emit<Diag::StageNotWhole>(place(Pipeline), d.stages, d.world).help(divisors(d.world));
      return false;
    }
    d.stage = d.world / d.stages;
    bool good = true;
    if (d.stage % d.tp != 0) {
      diags.emit<Diag::TensorDegreeNotInStage>(place(Tensor), d.tp, d.stage).help(divisors(d.stage));
      good = false;
    }
    const int64_t etp = settings.integer(ExpertTensor);
    if (d.autoEP && etp >= 1 && d.stage % (d.ep * std::min(etp, Largest)) != 0) {
      DiagnosticBuilder builder =
          diags.emit<Diag::ExpertDegreeNotInStage>(place(Expert), d.ep, etp, d.stage, d.ep * std::min(etp, Largest));
      builder.help(divisors(d.stage));
      good = false;
    }
    if (d.stage % (d.tp * d.sp) != 0) {
      good = false; // said with sequence parallelism, or above
    } else {
      d.dp = d.stage / (d.tp * d.sp);
      d.edp = d.stage / std::max<int64_t>(d.ep, 1);
      good &= laneOrder();
    }
    return good;
  }

  // Before the groups became consecutive they were cut from the order lane by lane.
  bool laneOrder() {
    if (!d.folded || settings.from("74cf2c2cc") || d.stage % d.ep != 0) {
      return true;
    }
    const int64_t etp = std::max<int64_t>(settings.integer(ExpertTensor), 1);
    const bool early = !settings.from("13dceecf5");
    if (early && (d.ep * etp > d.dp || (settings.from("7246b1460") && d.dp % (d.ep * etp) != 0))) {
      DiagnosticBuilder builder = diags.emit<Diag::ExpertGroupsAcrossLanes>(place(Expert), d.ep, d.dp);
      builder.note("groups across lanes of tensor parallelism are allowed from 13dceecf5 on");
      return false;
    }
    if (d.dp % d.ep != 0 && d.ep % d.dp != 0) {
      diags.emit<Diag::ExpertGroupsIrregular>(place(Expert), d.ep, d.dp);
      return false;
    }
    return true;
  }

  void sequence() {
    const int64_t ulysses = settings.integer(Ulysses), written = settings.integer(Sequence);
    const std::optional<int64_t> data = settings.number("data_parallel_size");
    const Setting *passes = settings.find("compile.passes");
    const bool autoSP = passes && llvm::is_contained(passes->items, "autosp");
    const bool mesh = data && settings.has(Sequence);
    d.sp = std::max(ulysses, mesh || autoSP ? written : 1);
    if (written > 1 && !mesh && !autoSP && ulysses == 1) {
      diags.emit<Diag::KeyWithoutEffect>(
          settings.place(Sequence), Sequence,
          "without `data_parallel_size` it makes no groups and only divides the world in the batch relation");
    }
    for (auto [key, size] : {std::pair<llvm::StringRef, int64_t>{Ulysses, ulysses}, {Sequence, written}}) {
      if (size > 1 && d.world % size != 0) {
        diags.emit<Diag::SequenceDegreeNotInWorld>(place(key), key, size, d.world)
            .note("the quotient would be a fraction, on which the batch relation fails late")
            .help(divisors(d.world));
      }
    }
    if (mesh && (*data > Largest || written > Largest || *data * written != d.world)) {
      diags.emit<Diag::MeshNotWorld>(settings.place("data_parallel_size"), *data, written, d.world)
          .label(settings.place(Sequence), "and here");
    }
    if (d.sp > Largest) {
      d.sp = Largest;
    }
  }

  void pipeline() {
    const int64_t stage = settings.integer(Stage);
    if (d.stages > 1 && stage >= 2) {
      diags
          .emit<Diag::KeysConflict>(place(Stage), llvm::formatv("`zero_optimization.stage` {0}", stage),
                                    llvm::formatv("pipeline_parallel_size {0}", d.stages))
          .note("a pipeline needs the gradients of all its micro-batches whole");
    }
  }

  // 14: a model-parallel unit that the program passes must say what the config says.
  void mpu() {
    const std::optional<int64_t> tensor = settings.number("mpu.tensor_parallel_size"),
                                 stages = settings.number("mpu.pipeline_parallel_size");
    if (tensor && *tensor != 1 && d.autoTP && *tensor != d.tp) {
      diags.emit<Diag::MpuDiffers>(settings.place("mpu.tensor_parallel_size"), "tensor_parallel_size", *tensor, "autotp_size", d.tp)
          .label(settings.place(Tensor), "given here");
    }
    if (stages && *stages != d.stages) {
      diags.emit<Diag::MpuDiffers>(settings.place("mpu.pipeline_parallel_size"), "pipeline_parallel_size", *stages, "the pipeline's",
                                   d.stages);
    }
  }

  void experts() {
    if (!d.autoEP) {
      return;
    }
    const int64_t etp = settings.integer(ExpertTensor);
    if (etp > 1) { // 8
      diags.emit<Diag::ExpertTensorReserved>(place(ExpertTensor), etp)
          .note("it is reserved for tensor parallelism inside of experts, which does not exist yet");
    }
    presets();
    if (d.tp > 1) {
      folding();
    } else if (settings.integer(Stage) == 3) {
      withZero3();
    }
  }

  // 9: only mixtral and deepseek_v2 are presets of both.
  void presets() {
    const std::string tensor = settings.text("tensor_parallel.preset_model"), expert = settings.text("expert_parallel.preset_model");
    if (!tensor.empty() && !expert.empty() && tensor != expert) {
      diags.emit<Diag::PresetsDiffer>(place("expert_parallel.preset_model"), tensor, expert)
          .label(place("tensor_parallel.preset_model"), "AutoTP's preset");
    }
  }

  void refuse(SourceRange at, const std::string &what, const char *why) { diags.emit<Diag::FoldingRefused>(at, d.tp, what).note(why); }

  // 5 to 13, without 8 and 9.
  void folding() {
    if (settings.on("compile.deepcompile") && settings.from("74cf2c2cc")) {
      refuse(place("compile.deepcompile"), "DeepCompile",
             "compiled reductions go past the correction of gradients over tensor-parallel ranks");
    } else if (settings.on("compile.deepcompile")) {
      diags.emit<Diag::FoldingUncorrected>(place("compile.deepcompile"), settings.version)
          .note("later versions refuse it: compiled reductions go past the correction of gradients over tensor-parallel ranks");
    }
    if (d.stages > 1) {
      refuse(place(Pipeline), llvm::formatv("pipeline_parallel_size {0}", d.stages),
             "expert groups are laid over the ranks of one stage only");
    }
    if (d.sp > 1) {
      refuse(place(settings.integer(Ulysses) > 1 ? Ulysses : Sequence), llvm::formatv("sequence parallelism of degree {0}", d.sp),
             "tensor and sequence parallelism are mutually exclusive here");
    }
    if (d.ep == 1) {
      refuse(place(Expert), "autoep_size 1", "the gradients of routed tokens would be counted once per tensor-parallel rank");
    }
    if (d.dataFirst) {
      refuse(place("use_data_before_expert_parallelism"), "`use_data_before_expert_parallelism`",
             "the expert groups would not be consecutive");
    }
    if (settings.integer(Stage) == 3) {
      refuse(place(Stage), "ZeRO stage 3", "its partitions know nothing of the groups of experts over tensor-parallel ranks");
    }
    for (llvm::StringRef part : {"offload_optimizer", "offload_param"}) {
      const std::string key = ("zero_optimization." + part + ".device").str();
      const std::string device = settings.text(key);
      if (!device.empty() && device != "none") {
        refuse(place(key), ("`" + part + "`").str(), "gradients that leave the device are not corrected over tensor-parallel ranks");
      }
    }
    for (llvm::StringRef key : {"zero_optimization.cpu_offload", "zero_optimization.cpu_offload_param"}) {
      if (settings.on(key)) {
        refuse(place(key), ("`" + key + "`").str(), "gradients that leave the device are not corrected over tensor-parallel ranks");
      }
    }
  }

  // AutoEP under ZeRO 3 takes the plain partition only.
  void withZero3() {
    auto conflict = [&](llvm::StringRef key, const std::string &what) {
      diags.emit<Diag::KeysConflict>(place(key), what, "AutoEP under ZeRO stage 3").label(settings.place(Expert), "AutoEP");
    };
    if (d.sp > 1) {
      conflict(settings.integer(Ulysses) > 1 ? Ulysses : Sequence, "sequence parallelism");
    }
    if (settings.on("zero_optimization.zero_quantized_gradients")) {
      conflict("zero_optimization.zero_quantized_gradients", "`zero_quantized_gradients`");
    }
    if (settings.integer("zero_optimization.mics_shard_size") > 0) {
      conflict("zero_optimization.mics_shard_size", "`mics_shard_size`");
    }
    if (settings.integer("zero_optimization.zero_hpz_partition_size") > 1) {
      conflict("zero_optimization.zero_hpz_partition_size", "`zero_hpz_partition_size`");
    }
  }

  const Settings &settings;
  DiagnosticEngine &diags;
  Degrees &d;
};

class Views {
public:
  Views(const Settings &s, const Degrees &degrees, Job &j) : settings(s), d(degrees), job(j) {}

  void add() {
    view("dense", {{"pp", d.stages}, {"dense_dp", d.dp}, {"sp", d.sp}, {"tp", d.tp}});
    if (!d.autoEP) {
      return;
    }
    if (d.folded && !settings.from("74cf2c2cc")) {
      laneByLane();
    } else if (d.dataFirst) {
      view("expert", {{"pp", d.stages}, {"ep", d.ep}, {"edp", d.edp}});
    } else {
      view("expert", {{"pp", d.stages}, {"edp", d.edp}, {"ep", d.ep}});
    }
  }

private:
  struct Named {
    llvm::StringRef name;
    int64_t size;
    std::optional<int64_t> stride = std::nullopt;
  };

  void view(llvm::StringRef name, llvm::ArrayRef<Named> axes) {
    ViewSpec spec;
    spec.name = name.str();
    spec.range = d.worldRange;
    for (const Named &axis : axes) {
      spec.axes.push_back({axis.name.str(), axis.size, axis.stride, d.worldRange});
    }
    job.views.push_back(std::move(spec));
  }

  // The rank at place p = lane * dp + i of the order lane by lane is i * tp + lane. Groups are cut inside lanes where ep divides
  // dp, and hold whole lanes where dp divides ep.
  // A flattened name lists its digits outermost first, so ranks stand in a group in their own order, not lane by lane.
  void laneByLane() {
    if (d.dp % d.ep == 0) {
      view("expert", {{"edp_lane", d.tp, 1}, {"edp_data", d.dp / d.ep, d.tp * d.ep}, {"ep", d.ep, d.tp}});
      job.flats.push_back({"edp", {"edp_data", "edp_lane"}, {}});
      return;
    }
    const int64_t lanes = d.ep / d.dp;
    view("expert", {{"edp", d.tp / lanes, lanes}, {"ep_lane", lanes, 1}, {"ep_data", d.dp, d.tp}});
    job.flats.push_back({"ep", {"ep_data", "ep_lane"}, {}});
  }

  const Settings &settings;
  const Degrees &d;
  Job &job;
};

} // namespace

std::optional<Degrees> findDegrees(const Settings &settings, const JobRequest &request) {
  if (!request.world) {
    settings.diags.emit<Diag::MissingKey>(request.range, "the job", "world")
        .note("the number of ranks is never part of DeepSpeed's config");
    return std::nullopt;
  }
  Degrees d;
  d.world = request.world->value;
  d.worldRange = request.world->range;
  if (d.world < 1 || d.world > Largest) {
    settings.diags.emit<Diag::OutOfRange>(d.worldRange, "world", "from 1 to " + std::to_string(Largest), d.world);
    return std::nullopt;
  }
  d.autoTP = settings.integer(Tensor) > 0;
  d.autoEP = settings.on("expert_parallel.enabled");
  d.dataFirst = settings.on("use_data_before_expert_parallelism");
  const size_t before = settings.diags.errorCount();
  const bool even = DegreeRules(settings, d).check();
  d.valid = even && settings.diags.errorCount() == before;
  return d;
}

void addViews(const Settings &settings, const Degrees &degrees, Job &job) {
  Views(settings, degrees, job).add();
  auto put = [&](llvm::StringRef name, int64_t value, llvm::StringRef key) {
    job.sizes[name.str()] = {value, placeOf(settings, degrees, key)};
  };
  put("pp", degrees.stages, Pipeline);
  put("dense_dp", degrees.dp, Tensor);
  put("sp", degrees.sp, degrees.sp == settings.integer(Ulysses) ? Ulysses : Sequence);
  put("tp", degrees.tp, Tensor);
  put("ep", degrees.ep, Expert);
  put("edp", degrees.autoEP ? degrees.edp : degrees.dp, Expert);
  // As checkpoints name them; `tp` and the like are switches too.
  put("autotp_size", degrees.tp, Tensor);
  put("autoep_size", degrees.ep, Expert);
  put("expert_tensor_parallel_size", settings.integer(ExpertTensor), ExpertTensor);
  put("sequence_parallel_size", degrees.sp, Sequence);
  put("pipeline_parallel_size", degrees.stages, Pipeline);
}

} // namespace shardc::deepspeed
