// TorchtitanDegrees: from degrees and token counts to the views of the ranks and the sizes of one micro-batch.
//
// All meshes are row-major unflattenings of the world, last name fastest. The expert degree is no factor of the world: it
// borrows ranks from dp_shard, cp and tp, so that dp_shard * cp * tp = efsdp * ep.

#include "Torchtitan.h"

namespace shardc::torchtitan {
namespace {

constexpr llvm::StringLiteral Replicate = "parallelism.data_parallel_replicate_degree";
constexpr llvm::StringLiteral Shard = "parallelism.data_parallel_shard_degree";
constexpr llvm::StringLiteral Context = "parallelism.context_parallel_degree";
constexpr llvm::StringLiteral Tensor = "parallelism.tensor_parallel_degree";
constexpr llvm::StringLiteral Pipeline = "parallelism.pipeline_parallel_degree";
constexpr llvm::StringLiteral Expert = "parallelism.expert_parallel_degree";

std::optional<int64_t> product(llvm::ArrayRef<int64_t> factors) {
  int64_t result = 1;
  for (int64_t factor : factors) {
    if (__builtin_mul_overflow(result, factor, &result)) {
      return std::nullopt;
    }
  }
  return result;
}

bool checkDegrees(const Settings &settings, const Job &job) {
  bool good = true;
  for (llvm::StringRef key : {llvm::StringRef(Replicate), llvm::StringRef(Context), llvm::StringRef(Tensor), llvm::StringRef(Pipeline),
                              llvm::StringRef(Expert)}) {
    if (settings.integer(key) < 1) {
      settings.diags.emit<Diag::DegreeTooSmall>(placeOf(settings, job, key), key, settings.integer(key), "at least 1");
      good = false;
    }
  }
  const int64_t shard = settings.integer(Shard);
  if (shard != -1 && shard < 1) {
    settings.diags.emit<Diag::DegreeTooSmall>(placeOf(settings, job, Shard), Shard, shard, "at least 1, or -1 for the ranks that are left");
    good = false;
  }
  return good;
}

void labelDegrees(DiagnosticBuilder builder, const Settings &settings) {
  for (auto [key, name] : {std::pair<llvm::StringRef, llvm::StringRef>{Replicate, "dp_replicate"},
                           {Shard, "dp_shard"},
                           {Context, "cp"},
                           {Tensor, "tp"},
                           {Pipeline, "pp"}}) {
    const SourceRange place = settings.place(key);
    if (place.valid()) {
      builder.label(place, llvm::formatv("{0} {1}", name, settings.text(key)).str());
    }
  }
}

// The shard degree, resolved; reports a world that the degrees do not fill.
std::optional<int64_t> fillWorld(const Settings &settings, const Job &job) {
  const int64_t world = job.world.value, shard = settings.integer(Shard);
  const int64_t replicate = settings.integer(Replicate), cp = settings.integer(Context), tp = settings.integer(Tensor),
                pp = settings.integer(Pipeline);
  const std::optional<int64_t> others = product({replicate, cp, tp, pp});
  auto text = [](std::optional<int64_t> n) { return n ? std::to_string(*n) : std::string("more than 2^63"); };
  if (shard == -1) {
    if (others && world % *others == 0) {
      return world / *others;
    }
    DiagnosticBuilder builder = settings.diags.emit<Diag::DegreesNotInWorld>(job.world.range, replicate, cp, tp, pp, text(others), world);
    labelDegrees(builder, settings);
    if (others) {
      builder.help(nearestMultiple("world", world, *others));
    }
    return std::nullopt;
  }
  const std::optional<int64_t> all = product({others.value_or(INT64_MAX), shard});
  if (others && all == world) {
    return shard;
  }
  DiagnosticBuilder builder =
      settings.diags.emit<Diag::DegreesNotWorld>(job.world.range, replicate, shard, cp, tp, pp, text(others ? all : std::nullopt), world);
  labelDegrees(builder, settings);
  if (others && world % *others == 0) {
    builder.help(llvm::formatv("nearest legal data_parallel_shard_degree: {0}, or -1 for the ranks that are left", world / *others).str());
  } else if (others && all) {
    builder.help(llvm::formatv("nearest legal world: {0}", *all).str());
  }
  return std::nullopt;
}

// The degree of the experts' own data parallelism, or a finding.
std::optional<int64_t> splitExperts(const Settings &settings, const Job &job, int64_t shard) {
  const int64_t cp = settings.integer(Context), tp = settings.integer(Tensor), ep = settings.integer(Expert);
  const int64_t ranks = shard * cp * tp; // divides the world
  if (ranks % ep == 0) {
    return ranks / ep;
  }
  DiagnosticBuilder builder = settings.diags.emit<Diag::ExpertDegreeNotInMesh>(placeOf(settings, job, Expert), ep, shard, cp, tp, ranks);
  builder.note("not checked by this version");
  explainOrigin(builder, settings, Expert);
  const int64_t experts = sizeOf(job, "E");
  const std::string help =
      nearestLegal("expert_parallel_degree", ep, ranks, [&](int64_t e) { return ranks % e == 0 && (experts == 0 || experts % e == 0); });
  if (!help.empty()) {
    builder.help(help);
  }
  return std::nullopt;
}

void addViews(Job &job) {
  auto view = [&](llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> axes) {
    ViewSpec spec;
    spec.name = name.str();
    spec.range = job.world.range;
    for (llvm::StringRef axis : axes) {
      const Located<int64_t> &size = job.sizes[axis.str()];
      spec.axes.push_back({axis.str(), size.value, std::nullopt, size.range});
    }
    job.views.push_back(std::move(spec));
  };
  view("dense", {"pp", "dp", "cp", "tp"});
  view("storage", {"pp", "dp_replicate", "dp_shard", "cp", "tp"});
  view("sparse", {"pp", "dp_replicate", "efsdp", "ep"});
  job.flats = {{"fsdp", {"dp_shard", "cp"}, {}}, {"batch", {"dp"}, {}}, {"loss", {"dp", "cp"}, {}}};
}

} // namespace

bool addDegrees(const Settings &settings, const JobRequest &request, Job &job) {
  if (!request.world) {
    settings.diags.emit<Diag::MissingKey>(request.range, "the job", "world")
        .note("the number of ranks is never part of torchtitan's config");
    checkDegrees(settings, job);
    return false;
  }
  job.world = *request.world;
  if (job.world.value < 1) {
    settings.diags.emit<Diag::OutOfRange>(job.world.range, "world", "at least 1", job.world.value);
    checkDegrees(settings, job);
    return false;
  }
  if (!checkDegrees(settings, job)) {
    return false;
  }
  // Degrees that no world has are left out, so that the rules need not fear for their products.
  constexpr int64_t Largest = 1 << 20;
  if (std::max({settings.integer(Replicate), settings.integer(Context), settings.integer(Tensor), settings.integer(Pipeline)}) > Largest) {
    fillWorld(settings, job);
    return false;
  }
  // Even where the world does not fit, the rules of the single degrees are to be checked.
  auto put = [&](llvm::StringRef name, int64_t value, llvm::StringRef key) {
    job.sizes[name.str()] = {value, placeOf(settings, job, key)};
  };
  put("cp", settings.integer(Context), Context);
  put("tp", settings.integer(Tensor), Tensor);
  put("pp", settings.integer(Pipeline), Pipeline);
  put("ep", settings.integer(Expert), Expert);
  put("dp_replicate", settings.integer(Replicate), Replicate);
  const std::optional<int64_t> shard = fillWorld(settings, job);
  if (!shard) {
    return false;
  }
  put("dp_shard", *shard, Shard);
  put("dp", *shard * settings.integer(Replicate), Shard);
  const std::optional<int64_t> efsdp = splitExperts(settings, job, *shard);
  if (!efsdp) {
    return false;
  }
  put("efsdp", *efsdp, Expert);
  addViews(job);
  return true;
}

llvm::StringRef microbatchKey(const Settings &settings) {
  if (usesFoldedBatch(settings.version)) {
    return "parallelism.num_pp_microbatches";
  }
  constexpr llvm::StringLiteral Size = "parallelism.pipeline_parallel_microbatch_size";
  return settings.origin(Size) == Origin::Default ? llvm::StringLiteral("training.local_batch_size") : Size;
}

static bool atLeastOne(const Settings &settings, const Job &job, llvm::StringRef key) {
  if (settings.integer(key) >= 1) {
    return true;
  }
  settings.diags.emit<Diag::OutOfRange>(placeOf(settings, job, key), key, "at least 1", settings.integer(key));
  return false;
}

// Micro-batches of a pipeline; 1 without one. Nothing if they cannot be counted.
static std::optional<int64_t> countMicrobatches(const Settings &settings, const Job &job) {
  const bool pipelined = sizeOf(job, "pp") > 1;
  if (usesFoldedBatch(settings.version)) {
    constexpr llvm::StringLiteral Key = "parallelism.num_pp_microbatches";
    if (!atLeastOne(settings, job, Key)) {
      return std::nullopt;
    }
    return pipelined ? settings.integer(Key) : 1;
  }
  constexpr llvm::StringLiteral Size = "parallelism.pipeline_parallel_microbatch_size", Rows = "training.local_batch_size";
  if (!pipelined || !atLeastOne(settings, job, Size)) {
    return pipelined ? std::nullopt : std::optional<int64_t>(1);
  }
  const int64_t rows = settings.integer(Rows), size = settings.integer(Size);
  if (rows < 1) {
    return std::nullopt;
  }
  if (rows % size == 0) {
    return rows / size;
  }
  DiagnosticBuilder builder = settings.diags.emit<Diag::MicrobatchNotWhole>(placeOf(settings, job, microbatchKey(settings)), rows, size);
  builder.help(nearestLegal("pipeline_parallel_microbatch_size", size, rows, [&](int64_t s) { return rows % s == 0; }));
  return std::nullopt;
}

bool addTokens(const Settings &settings, Job &job) {
  const bool folded = usesFoldedBatch(settings.version);
  const llvm::StringRef length = folded ? "training.num_tokens_per_microbatch_per_dp_rank" : "training.seq_len";
  const llvm::StringRef rows = folded ? "training.num_tokens_per_microbatch_per_dp_rank" : "training.local_batch_size";
  bool good = atLeastOne(settings, job, length);
  good &= folded ? atLeastOne(settings, job, "training.max_context_length") : atLeastOne(settings, job, rows);
  const std::optional<int64_t> microbatches = countMicrobatches(settings, job);
  if (!good || !microbatches) {
    return false;
  }
  job.sizes["microbatches"] = {*microbatches, placeOf(settings, job, microbatchKey(settings))};
  const int64_t localRows = folded ? 1 : settings.integer(rows) / *microbatches;
  const int64_t dp = sizeOf(job, "dp");
  // Tokens of one micro-batch of one data-parallel rank, before context and tensor parallelism divide them.
  const std::optional<int64_t> local = product({localRows, settings.integer(length)});
  const std::optional<int64_t> batch = product({localRows, dp}), all = product({localRows, dp, settings.integer(length)});
  if (!local || !batch || !all) {
    settings.diags.emit<Diag::OutOfRange>(placeOf(settings, job, length), length, "small enough for the tokens to be counted",
                                          settings.text(length));
    return false;
  }
  job.sizes["B"] = {*batch, placeOf(settings, job, rows)};
  job.sizes["L"] = {settings.integer(length), placeOf(settings, job, length)};
  job.sizes["T"] = {*all, placeOf(settings, job, length)};
  return dp > 0;
}

} // namespace shardc::torchtitan
