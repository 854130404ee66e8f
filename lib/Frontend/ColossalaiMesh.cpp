// ColossalaiMesh: from degrees to the mesh of the ranks and its groups, and the sizes of one micro-batch.
//
// One row-major mesh whose axes the plugin orders: `moe_dp, pp, ep, tp, sp` or `dp, pp, tp, sp`; ring_attn has sp outside of tp.
// Everything else is a product of its axes. What is called dp changes with the mode: the loader's replicas are moe_dp x ep,
// the dense parameters' are those times sp where sp ranks hold different tokens.
#include "Colossalai.h"

namespace shardc::colossalai {

int64_t sizeOf(const Job &job, llvm::StringRef name) {
  auto it = job.sizes.find(name.str());
  return it == job.sizes.end() ? 0 : it->second.value;
}

SourceRange placeOf(const Arguments &arguments, llvm::StringRef name) {
  const SourceRange place = arguments.place(name);
  return place.valid() ? place : arguments.pluginName.range.valid() ? arguments.pluginName.range : arguments.whole;
}

std::string sequenceMode(const Arguments &arguments) {
  if (!arguments.on("enable_sequence_parallelism")) {
    return "none";
  }
  const std::string mode = arguments.text("sequence_parallelism_mode");
  return mode.empty() ? "all_to_all" : mode;
}

bool sharesTensorRanks(llvm::StringRef mode) { return mode == "split_gather" || mode == "ring"; }

bool overlapsExperts(const Arguments &arguments) {
  return arguments.isMoe() && arguments.given("overlap_communication") && arguments.on("overlap_communication");
}

int64_t zeroStage(const Arguments &arguments) {
  const int64_t stage = arguments.integer("zero_stage");
  return overlapsExperts(arguments) || (arguments.isMoe() && stage == 2) ? 1 : stage;
}

int64_t sequenceRanks(const Arguments &arguments) {
  const std::string mode = sequenceMode(arguments);
  return mode == "none" || sharesTensorRanks(mode) ? 1 : arguments.integer("sp_size");
}

namespace {

std::optional<int64_t> product(llvm::ArrayRef<int64_t> factors) {
  int64_t result = 1;
  for (int64_t factor : factors) {
    if (__builtin_mul_overflow(result, factor, &result)) {
      return std::nullopt;
    }
  }
  return result;
}

class MeshBuilder {
public:
  MeshBuilder(const Arguments &a, Job &j)
      : arguments(a), job(j), tp(a.integer("tp_size")), pp(a.integer("pp_size")), ep(a.isMoe() ? a.integer("ep_size") : 1),
        sp(sequenceRanks(a)) {}

  bool build() {
    put("tp", tp, "tp_size");
    put("pp", pp, "pp_size");
    put("ep", ep, "ep_size");
    put("sp", sp, "sp_size");
    const std::optional<int64_t> dp = dataRanks();
    if (!dp) {
      return false;
    }
    put("dp", *dp, arguments.isMoe() ? "ep_size" : "tp_size");
    if (*dp % ep != 0) {
      reportExperts(*dp);
      return false;
    }
    put("moe_dp", *dp / ep, "ep_size");
    addView();
    addFlats();
    return true;
  }

private:
  void put(llvm::StringRef name, int64_t value, llvm::StringRef argument) { job.sizes[name.str()] = {value, placeOf(arguments, argument)}; }

  std::string others() const {
    std::string text = llvm::formatv("tp {0} x pp {1}", tp, pp);
    return sp > 1 ? text + llvm::formatv(" x sp {0}", sp).str() : text;
  }

  std::optional<int64_t> dataRanks() {
    const std::optional<int64_t> model = product({tp, pp, sp});
    const int64_t world = job.world.value;
    if (model && world % *model == 0) {
      return world / *model;
    }
    const std::string count = model ? std::to_string(*model) : "more than 2^63";
    DiagnosticBuilder builder = arguments.diags.emit<Diag::WorldNotInDegrees>(job.world.range, world, others(), count);
    for (llvm::StringRef name : {"tp_size", "pp_size", "sp_size"}) {
      if (arguments.place(name).valid() && (name != "sp_size" || sp > 1)) {
        builder.label(arguments.place(name), llvm::formatv("{0} {1}", name, arguments.text(name)).str());
      }
    }
    if (model) {
      const int64_t below = world / *model * *model;
      int64_t above = 0;
      const std::string first = below > 0 ? std::to_string(below) : "";
      const bool fits = !__builtin_add_overflow(below, *model, &above);
      builder.help("nearest legal world: " + first + (fits ? (first.empty() ? "" : " or ") + std::to_string(above) : ""));
    }
    return std::nullopt;
  }

  void reportExperts(int64_t dp) {
    DiagnosticBuilder builder =
        arguments.diags.emit<Diag::ExpertDegreeNotInData>(placeOf(arguments, "ep_size"), ep, dp, job.world.value, others());
    const int64_t experts = sizeOf(job, "E");
    const std::string help = nearestLegal("ep_size", ep, dp, [&](int64_t e) { return dp % e == 0 && (experts == 0 || experts % e == 0); });
    if (!help.empty()) {
      builder.help(help);
    }
    if (const std::optional<int64_t> needed = product({tp, pp, sp, ep})) {
      builder.help(llvm::formatv("nearest legal world: {0}, or a multiple of it", *needed).str());
    }
  }

  void addView() {
    std::vector<llvm::StringRef> axes;
    const std::string mode = sequenceMode(arguments);
    if (arguments.isMoe()) {
      axes = arguments.on("moe_dp_outside") ? std::vector<llvm::StringRef>{"moe_dp", "pp", "ep", "tp"}
                                            : std::vector<llvm::StringRef>{"pp", "moe_dp", "ep", "tp"};
    } else {
      axes = arguments.on("dp_outside") ? std::vector<llvm::StringRef>{"dp", "pp", "tp"} : std::vector<llvm::StringRef>{"pp", "dp", "tp"};
    }
    axes.insert(mode == "ring_attn" ? axes.end() - 1 : axes.end(), "sp");
    ViewSpec view;
    view.name = "mesh";
    view.range = job.world.range;
    for (llvm::StringRef axis : axes) {
      const Located<int64_t> &size = job.sizes[axis.str()];
      view.axes.push_back({axis.str(), size.value, std::nullopt, size.range});
    }
    job.views.push_back(std::move(view));
  }

  void addFlats() {
    const std::string mode = sequenceMode(arguments);
    const bool mixed = mode == "all_to_all" || mode == "ring_attn";
    if (sharesTensorRanks(mode)) { // the axis sp has one rank; what is called so is tp's group
      job.flats.push_back({"sp_group", {"tp"}, {}});
    }
    std::vector<std::string> data = arguments.isMoe() ? std::vector<std::string>{"moe_dp", "ep"} : std::vector<std::string>{"dp"};
    if (arguments.isMoe()) {
      job.flats.push_back({"dp", data, {}});
    }
    if (mixed) {
      data.push_back("sp");
    }
    job.flats.push_back({"mixed_dp", data, {}});
    if (arguments.isMoe() && job.version != "0.5.0") {
      job.flats.push_back({"mixed_moe_dp", mixed ? std::vector<std::string>{"moe_dp", "sp"} : std::vector<std::string>{"moe_dp"}, {}});
    }
  }

  const Arguments &arguments;
  Job &job;
  int64_t tp, pp, ep, sp;
};

} // namespace

bool addMesh(const Arguments &arguments, const JobRequest &request, Job &job) {
  if (!request.world) {
    arguments.diags.emit<Diag::MissingKey>(request.range, "the job", "world").note("the launcher says it, never the plugin's arguments");
    return false;
  }
  job.world = *request.world;
  if (job.world.value < 1) {
    arguments.diags.emit<Diag::OutOfRange>(job.world.range, "world", "at least 1", job.world.value);
    return false;
  }
  return !arguments.broken && MeshBuilder(arguments, job).build();
}

namespace {

// How many ways sequences are cut, and what cuts them. Zigzag gives each rank two chunks, one from either end.
std::pair<int64_t, std::string> sequenceShards(const Arguments &arguments) {
  const std::string mode = sequenceMode(arguments);
  if (sharesTensorRanks(mode)) {
    return {arguments.integer("tp_size"), "tp_size"};
  }
  const int64_t sp = sequenceRanks(arguments);
  return mode == "ring_attn" && sp > 1 ? std::pair<int64_t, std::string>{2 * sp, "2 x sp_size"}
                                       : std::pair<int64_t, std::string>{sp, "sp_size"};
}

// Rows of one micro-batch of one data-parallel rank.
std::optional<int64_t> rowsOf(const Arguments &arguments, Job &job) {
  const int64_t batch = arguments.integer("batch_size", 0);
  if (arguments.integer("pp_size") == 1) {
    return std::max<int64_t>(batch, 1);
  }
  const bool counted = !arguments.isNone("num_microbatches");
  const llvm::StringRef name = counted ? "num_microbatches" : "microbatch_size";
  const int64_t value = arguments.integer(name);
  if (batch == 0) {
    return counted ? 1 : value;
  }
  if (batch % value != 0) {
    DiagnosticBuilder builder = arguments.diags.emit<Diag::BatchNotWhole>(placeOf(arguments, name), batch, name, value);
    const std::string help = nearestLegal(name, value, batch, [&](int64_t v) { return batch % v == 0; });
    if (!help.empty()) {
      builder.help(help);
    }
    return std::nullopt;
  }
  job.sizes["microbatches"] = {counted ? value : batch / value, placeOf(arguments, name)};
  return counted ? batch / value : value;
}

} // namespace

bool addTokens(const Arguments &arguments, Job &job) {
  const auto [shards, name] = sequenceShards(arguments);
  int64_t length = arguments.integer("seq_length", 0);
  if (length == 0) { // nothing in a plugin says how long sequences are
    constexpr int64_t Usual = 2048;
    const int64_t most = sizeOf(job, "max_context");
    length = most > 0 ? std::min(Usual, most) : Usual;
    if (shards > 1) {
      length = std::max<int64_t>(length / shards, 1) * shards;
    }
    job.assumes.push_back(llvm::formatv("sequences of {0} tokens, as `seq_length` is not given", length).str());
  } else if (length % shards != 0) {
    const SourceRange place = placeOf(arguments, "seq_length");
    const int64_t below = length / shards * shards;
    arguments.diags.emit<Diag::SequenceNotShared>(place, length, name, shards)
        .note("asserted only when the first batch is split")
        .help("nearest legal seq_length: " + (below > 0 ? std::to_string(below) + " or " : "") + std::to_string(below + shards));
    return false;
  }
  const std::optional<int64_t> rows = rowsOf(arguments, job);
  if (!rows) {
    return false;
  }
  const int64_t dp = sizeOf(job, "dp");
  const std::optional<int64_t> batch = product({*rows, dp}), tokens = product({*rows, dp, length});
  if (!batch || !tokens) {
    arguments.diags.emit<Diag::OutOfRange>(placeOf(arguments, "seq_length"), "seq_length", "small enough for the tokens to be counted",
                                           length);
    return false;
  }
  job.sizes["B"] = {*batch, placeOf(arguments, "batch_size")};
  job.sizes["L"] = {length, placeOf(arguments, "seq_length")};
  job.sizes["T"] = {*tokens, placeOf(arguments, "seq_length")};
  return dp > 0;
}

} // namespace shardc::colossalai
