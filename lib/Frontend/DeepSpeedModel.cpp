// DeepSpeedModel: rules between the degrees and the model: heads under Ulysses, experts under AutoEP.

#include "DeepSpeed.h"
#include "llvm/ADT/StringExtras.h"

namespace shardc::deepspeed {
namespace {

int64_t sizeOf(const Job &job, llvm::StringRef name) {
  auto it = job.sizes.find(name.str());
  return it == job.sizes.end() ? 0 : it->second.value;
}

// Query heads are shared out, and key and value heads too, or copied sp / kv times.
bool checkUlysses(const Settings &settings, const Degrees &d, Job &job) {
  if (d.sp <= 1) {
    return true;
  }
  const llvm::StringRef key =
      d.sp == settings.integer("launch.sequence_parallel_size") ? "launch.sequence_parallel_size" : "sequence_parallel_size";
  const int64_t queries = sizeOf(job, "N"), shared = sizeOf(job, "G");
  bool good = true;
  if (queries % d.sp != 0) {
    settings.diags.emit<Diag::HeadsNotExchanged>(placeOf(settings, d, key), queries, "query", d.sp);
    good = false;
  }
  if (shared > 0 && shared % d.sp != 0 && d.sp % shared != 0) {
    settings.diags.emit<Diag::HeadsNotExchanged>(placeOf(settings, d, key), shared, "key and value", d.sp)
        .note("they must be a multiple or a divisor of the degree");
    good = false;
  }
  const int64_t length = sizeOf(job, "L");
  if (length % d.sp != 0) {
    settings.diags.emit<Diag::TokensNotDivisible>(placeOf(settings, d, "launch.seq_len"), "launch.seq_len", length,
                                                  "sequence_parallel_size", d.sp);
    good = false;
  }
  return good;
}

// "it must divide 8: 1, 2, 4, 8".
std::string divisorsOf(int64_t n) {
  std::vector<std::string> list;
  for (int64_t k = 1; k <= n; ++k) {
    if (n % k == 0) {
      list.push_back(std::to_string(k));
    }
  }
  return llvm::formatv("it must divide {0}: {1}", n, llvm::join(list, ", "));
}

bool checkExperts(const Settings &settings, const Degrees &d, Job &job) {
  constexpr llvm::StringLiteral Degree = "expert_parallel.autoep_size";
  const int64_t experts = sizeOf(job, "E");
  if (!d.autoEP) {
    for (llvm::StringRef key : {llvm::StringRef(Degree), llvm::StringRef("expert_parallel.preset_model")}) {
      if (settings.find(key)) {
        settings.diags.emit<Diag::KeyWithoutEffect>(settings.place(key), key, "`expert_parallel.enabled` is false");
      }
    }
    return true;
  }
  if (experts == 0) {
    settings.diags.emit<Diag::KeyWithoutEffect>(settings.place("expert_parallel.enabled"), "expert_parallel",
                                                ("`" + job.family + "/" + job.flavour + "` has no experts"));
    return true;
  }
  bool good = true;
  if (experts % d.ep != 0) {
    settings.diags.emit<Diag::ExpertsNotSplit>(placeOf(settings, d, Degree), experts, d.ep)
        .help(divisorsOf(std::min<int64_t>(experts, 1 << 16)));
    good = false;
  }
  const std::optional<int64_t> choices = settings.number("expert_parallel.top_k");
  if (choices && *choices > experts) {
    settings.diags.emit<Diag::OutOfRange>(settings.place("expert_parallel.top_k"), "expert_parallel.top_k",
                                          llvm::formatv("at most the {0} experts", experts).str(), *choices);
  }
  const std::optional<int64_t> groups = settings.number("expert_parallel.num_expert_groups"),
                               limited = settings.number("expert_parallel.num_limited_groups");
  if (groups && (experts % *groups != 0 || limited.value_or(1) > *groups)) {
    settings.diags.emit<Diag::RouterGroups>(settings.place("expert_parallel.num_expert_groups"), experts, *groups, limited.value_or(1));
  }
  if (settings.find("expert_parallel.load_balance_coeff")) {
    settings.diags.emit<Diag::OutOfRange>(settings.place("expert_parallel.load_balance_coeff"), "expert_parallel.load_balance_coeff",
                                          "null", settings.text("expert_parallel.load_balance_coeff"));
  }
  if (settings.on("expert_parallel.validate_folding_routing") && !d.folded) {
    settings.diags.emit<Diag::KeyWithoutEffect>(settings.place("expert_parallel.validate_folding_routing"),
                                                "expert_parallel.validate_folding_routing", "no tensor-parallel ranks share the routing");
  }
  return good;
}

} // namespace

bool checkModel(const Settings &settings, const Degrees &degrees, Job &job) {
  bool good = checkUlysses(settings, degrees, job);
  good &= checkExperts(settings, degrees, job);
  return good;
}

} // namespace shardc::deepspeed
