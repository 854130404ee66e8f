// DeepSpeedBatch: the relation of the three batch sizes, which DeepSpeed checks with a number of ranks of its own making.
//
// train_batch_size = train_micro_batch_size_per_gpu * gradient_accumulation_steps * Wb. Two given make the third by whole
// division, after which the product is checked; one alone makes the others with one step of accumulation. Wb is, in this order:
// the data-parallel size of an mpu; the world over sp for a Ulysses mpu, which cannot say it; the data-parallel size of the
// mesh that the config asks for; the world over `sequence_parallel_size`; else the whole world. AutoTP has no part in it.

#include "DeepSpeed.h"

namespace shardc::deepspeed {
namespace {

constexpr llvm::StringLiteral Train = "train_batch_size", Micro = "train_micro_batch_size_per_gpu", Steps = "gradient_accumulation_steps";

struct Replicas {
  int64_t ranks = 1;
  std::string why;
};

Replicas replicasOf(const Settings &s, const Degrees &d) {
  const std::optional<int64_t> mpu = s.number("mpu.data_parallel_size"), data = s.number("data_parallel_size");
  const int64_t ulysses = s.integer("launch.sequence_parallel_size"), sequence = s.integer("sequence_parallel_size");
  if (d.stages > 1) {
    return {d.dp, "the data-parallel ranks of the pipeline's grid"};
  }
  if (mpu) {
    return {*mpu, "the data-parallel size of the mpu"};
  }
  if (ulysses > 1) {
    return {d.world / ulysses, llvm::formatv("the world of {0} over sequence_parallel_size {1}", d.world, ulysses)};
  }
  if (data && s.has("sequence_parallel_size")) {
    return {*data, "`data_parallel_size` of the mesh"};
  }
  if (s.has("sequence_parallel_size")) {
    return {std::max<int64_t>(d.world / sequence, 1),
            llvm::formatv("the world of {0} over `sequence_parallel_size` {1}", d.world, sequence)};
  }
  return {d.world, d.tp > 1 ? "the whole world: tensor-parallel ranks count as replicas where no mpu says otherwise" : "the whole world"};
}

bool multiply(int64_t a, int64_t b, int64_t c, int64_t &product) {
  return !__builtin_mul_overflow(a, b, &product) && !__builtin_mul_overflow(product, c, &product);
}

class Batch {
public:
  Batch(const Settings &s, const Degrees &degrees) : settings(s), d(degrees), replicas(replicasOf(s, degrees)) {}

  // Rows of one micro-batch of a rank, 1 if nobody says.
  int64_t check(int64_t &steps) {
    std::optional<int64_t> train = settings.number(Train), micro = settings.number(Micro), accumulate = settings.number(Steps);
    const bool open = isOpen(Train) || isOpen(Micro) || isOpen(Steps);
    if (!train && !micro) {
      if (!open) {
        settings.diags.emit<Diag::BatchSizeMissing>(placeOf(settings, d, Steps))
            .help("give one of them; the other and `gradient_accumulation_steps` may follow from it");
      }
      steps = accumulate.value_or(1);
      return 1;
    }
    const int64_t n = std::max<int64_t>(replicas.ranks, 1);
    if (!open || (train && micro && accumulate)) {
      complete(train, micro, accumulate, n);
      relation(*train, *micro, *accumulate, n);
    }
    steps = std::max<int64_t>(accumulate.value_or(1), 1);
    return std::max<int64_t>(micro.value_or(1), 1);
  }

private:
  // It is written, but its value is not known here.
  bool isOpen(llvm::StringRef key) const { return llvm::is_contained(settings.autos, key) || llvm::is_contained(settings.refused, key); }

  static void complete(std::optional<int64_t> &train, std::optional<int64_t> &micro, std::optional<int64_t> &steps, int64_t n) {
    if (train && micro && !steps) {
      steps = *train / *micro / n;
    } else if (train && steps && !micro) {
      micro = *train / n / *steps;
    } else if (train && !micro) {
      steps = 1;
      micro = *train / n;
    }
    steps = steps.value_or(1);
    if (!train) {
      int64_t product = 0;
      train = multiply(*micro, *steps, n, product) ? product : INT64_MAX;
    }
  }

  void relation(int64_t train, int64_t micro, int64_t steps, int64_t n) {
    int64_t product = 0;
    const bool counted = multiply(micro, steps, n, product);
    if (!counted || train != product || micro < 1 || steps < 1) {
      DiagnosticBuilder builder =
          settings.diags.emit<Diag::BatchRelation>(placeOf(settings, d, settings.place(Train).valid() ? Train : Micro), train, micro, steps,
                                                   n, counted ? std::to_string(product) : "more than 2^63");
      builder.note(llvm::formatv("{0} is {1}", n, replicas.why));
      for (llvm::StringRef key : {llvm::StringRef(Micro), llvm::StringRef(Steps)}) {
        if (settings.place(key).valid()) {
          builder.label(settings.place(key), "given here");
        } else {
          builder.note(llvm::formatv("`{0}` is not given: it is made by whole division", key));
        }
      }
      help(builder, train, n);
      return;
    }
    if (d.tp > 1 && replicas.ranks == d.world && settings.place(Train).valid()) {
      settings.diags.emit<Diag::BatchInflated>(settings.place(Train), train, d.tp, train / d.tp)
          .note("no mpu is passed, so the batch relation counts every rank; ranks of one tensor-parallel group get the same samples");
    }
  }

  // The nearest sizes that fit what else is written.
  void help(DiagnosticBuilder &builder, int64_t train, int64_t n) {
    int64_t unit = 0;
    const std::optional<int64_t> micro = settings.number(Micro), steps = settings.number(Steps);
    if (!multiply(micro.value_or(1), steps.value_or(1), n, unit)) {
      return;
    }
    const int64_t below = train / unit * unit;
    if (micro && steps) {
      builder.help(llvm::formatv("train_batch_size {0} fits the other two", unit));
    } else if (below > 0 && below <= INT64_MAX - unit) {
      builder.help(llvm::formatv("nearest legal train_batch_size: {0} or {1}", below, below + unit));
    } else {
      builder.help(llvm::formatv("nearest legal train_batch_size: {0}", unit));
    }
  }

  const Settings &settings;
  const Degrees &d;
  Replicas replicas;
};

} // namespace

int64_t checkBatch(const Settings &settings, const Degrees &degrees, Job &job) {
  int64_t steps = 1;
  const int64_t rows = Batch(settings, degrees).check(steps);
  job.sizes["micro_steps"] = {steps, placeOf(settings, degrees, Steps)};
  return rows;
}

} // namespace shardc::deepspeed
