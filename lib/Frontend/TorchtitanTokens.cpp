// TorchtitanTokens: rules about how many tokens there are and who routes them.
//
// From 2026-08-20 the batch dimension is folded: a data-parallel rank has one row of tokens per micro-batch. Before, it has
// rows of a sequence length, and the sequence length is what context and sequence parallelism must divide.

#include "Torchtitan.h"

namespace shardc::torchtitan {
namespace {

constexpr llvm::StringLiteral Expert = "parallelism.expert_parallel_degree";
constexpr llvm::StringLiteral NotChecked = "not checked by this version";

class TokenRules {
public:
  TokenRules(const Settings &s, const Job &j)
      : settings(s), job(j), folded(usesFoldedBatch(s.version)),
        lengthKey(folded ? "training.num_tokens_per_microbatch_per_dp_rank" : "training.seq_len"), length(sizeOf(j, "L")),
        tp(sizeOf(j, "tp")), cp(sizeOf(j, "cp")), ep(sizeOf(j, "ep")) {}
  bool check();

private:
  SourceRange place(llvm::StringRef key) const { return placeOf(settings, job, key); }
  bool sequenceParallel() const { return tp > 1 && settings.on("parallelism.enable_sequence_parallel"); }
  int64_t divisor() const { return (sequenceParallel() ? tp : 1) * (cp > 1 ? 2 * cp : 1); }
  void checkShards();
  void checkStep();
  void checkContext();
  void checkChunks();
  void checkRouting();
  void checkDispatcher();
  void checkCudaGraphs();

  const Settings &settings;
  const Job &job;
  bool folded;
  llvm::StringRef lengthKey;
  int64_t length, tp, cp, ep;
};

void TokenRules::checkShards() {
  const int64_t parts = divisor();
  if (parts <= 1 || length % parts == 0) {
    return;
  }
  const std::string factors = sequenceParallel() && cp > 1 ? llvm::formatv("tp {0} x 2 x cp {1}", tp, cp).str()
                              : cp > 1                     ? llvm::formatv("2 x cp {0}", cp).str()
                                                           : llvm::formatv("tp {0}", tp).str();
  DiagnosticBuilder builder = settings.diags.emit<Diag::TokensNotDivisible>(place(lengthKey), lengthKey, length, factors, parts);
  explainOrigin(builder, settings, lengthKey);
  builder.help(nearestMultiple(lengthKey.split('.').second, length, parts));
}

void TokenRules::checkStep() {
  const llvm::StringRef key = folded ? "training.num_tokens_per_train_step" : "training.global_batch_size";
  const int64_t step = settings.integer(key), dp = sizeOf(job, "dp");
  if (step == -1) {
    return;
  }
  if (step < 1) {
    settings.diags.emit<Diag::OutOfRange>(place(key), key, "at least 1, or -1 for one accumulation step", step);
    return;
  }
  int64_t local = settings.integer("training.local_batch_size"), unit = 0;
  if (folded && __builtin_mul_overflow(length, sizeOf(job, "microbatches"), &local)) {
    return; // more than any step can have; the pipeline's rules speak of the number
  }
  if (dp == 0 || local < 1 || __builtin_mul_overflow(local, dp, &unit) || step % unit == 0) {
    return;
  }
  const std::string factors = folded
                                  ? llvm::formatv("{0} tokens x {1} micro-batches x dp {2}", length, sizeOf(job, "microbatches"), dp).str()
                                  : llvm::formatv("local_batch_size {0} x dp {1}", local, dp).str();
  settings.diags.emit<Diag::StepNotWhole>(place(key), key, step, factors, unit).help(nearestMultiple(key.split('.').second, step, unit));
}

void TokenRules::checkContext() {
  const llvm::StringRef key = folded ? "training.max_context_length" : "training.seq_len";
  const int64_t longest = sizeOf(job, "max_context");
  if (longest > 0 && settings.integer(key) > longest) {
    DiagnosticBuilder builder =
        settings.diags.emit<Diag::ContextTooLong>(place(key), key, settings.integer(key), job.family + "/" + job.flavour, longest);
    explainOrigin(builder, settings, key);
    builder.help(llvm::formatv("nearest legal {0}: {1}", key.split('.').second, longest).str());
  }
}

// The chunked loss cuts the tokens that are left after context parallelism; its hidden states are whole over tp.
void TokenRules::checkChunks() {
  const int64_t chunks = settings.integer("loss.num_chunks");
  if (chunks < 0) {
    settings.diags.emit<Diag::OutOfRange>(place("loss.num_chunks"), "loss.num_chunks", "at least 1", chunks);
    return;
  }
  if (chunks == 0 || length % cp != 0 || length / cp % chunks == 0) {
    return;
  }
  DiagnosticBuilder builder = settings.diags.emit<Diag::ChunksNotWhole>(place("loss.num_chunks"), length / cp, chunks);
  explainOrigin(builder, settings, "loss.num_chunks");
  if (settings.place(lengthKey).valid()) {
    builder.label(settings.place(lengthKey),
                  llvm::formatv("{0} tokens{1}", length, cp > 1 ? llvm::formatv(" over cp {0}", cp).str() : "").str());
  }
  builder.help(nearestLegal("loss.num_chunks", chunks, length / cp, [&](int64_t n) { return length / cp % n == 0; }));
}

// Without sequence parallelism every tp rank holds all tokens and routes its share of them.
void TokenRules::checkRouting() {
  if (ep <= 1 || tp <= 1 || sequenceParallel() || sizeOf(job, "E") == 0 || length % cp != 0 || length / cp % tp == 0) {
    return;
  }
  DiagnosticBuilder builder = settings.diags.emit<Diag::ExpertTokensNotDivisible>(place(lengthKey), length / cp, tp);
  builder.note(NotChecked.str());
  explainOrigin(builder, settings, lengthKey);
  builder.help(nearestMultiple(lengthKey.split('.').second, length, tp * (cp > 1 ? 2 * cp : 1)));
}

void TokenRules::checkDispatcher() {
  const llvm::StringRef dispatcher = settings.dispatcher;
  if (dispatcher == "standard") {
    return;
  }
  const SourceRange where = settings.config ? settings.config->range : place(Expert);
  if (ep <= 1) {
    settings.diags.emit<Diag::DispatcherNeeds>(settings.place(Expert).valid() ? settings.place(Expert) : where, dispatcher,
                                               "expert_parallel_degree above 1");
  }
  if (length % (cp * tp) != 0) {
    settings.diags.emit<Diag::DispatcherTokensNotDivisible>(place(lengthKey), lengthKey, length, cp, tp, dispatcher)
        .help(nearestMultiple(lengthKey.split('.').second, length, cp * tp));
  }
  if (dispatcher == "minimal_async_ep" && settings.checkpoint != "full") {
    settings.diags
        .emit<Diag::DispatcherNeeds>(settings.checkpointRange.valid() ? settings.checkpointRange : where, dispatcher,
                                     "full activation checkpointing")
        .help("add `activation-checkpoint:full` at the end");
  }
}

// Graph capture cannot wait for the host: a pipeline and a dispatcher that asks how many tokens come both do.
void TokenRules::checkCudaGraphs() {
  if (!folded || settings.on("training.disable_cuda_graphs")) {
    return;
  }
  auto refuse = [&](llvm::StringRef key, int64_t degree) {
    DiagnosticBuilder builder =
        settings.diags.emit<Diag::CudaGraphsNotDisabled>(place(key), llvm::formatv("{0} {1}", key.split('.').second, degree).str());
    explainOrigin(builder, settings, key);
    builder.help("add `--training.disable_cuda_graphs`");
  };
  if (sizeOf(job, "pp") > 1) {
    refuse("parallelism.pipeline_parallel_degree", sizeOf(job, "pp"));
  }
  const bool staysOnDevice = settings.dispatcher == "minimal_async_ep" || settings.dispatcher == "hybridep";
  if (ep > 1 && sizeOf(job, "E") > 0 && !staysOnDevice) {
    refuse(Expert, ep);
  }
}

bool TokenRules::check() {
  if (tp < 1) {
    return true; // no degrees: said elsewhere
  }
  if (!job.inference) {
    checkCudaGraphs();
  }
  if (length < 1) {
    return true;
  }
  checkContext();
  if (job.inference) {
    return true; // prompts may have any length: they are padded
  }
  checkStep();
  checkChunks();
  checkDispatcher();
  const size_t before = settings.diags.errorCount();
  checkShards();
  checkRouting();
  return settings.diags.errorCount() == before;
}

} // namespace

bool checkTokenRules(const Settings &settings, const Job &job) { return TokenRules(settings, job).check(); }

} // namespace shardc::torchtitan
