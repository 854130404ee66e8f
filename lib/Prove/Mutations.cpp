// Mutations: each mistake through the checker, and what it accepts through the proof. See the header.
#include "Mutations.h"
#include "shardc/Prove/Mutations.h"
#include "shardc/Verify/Verify.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc {
namespace {

class Judge {
public:
  Judge(TypedModule &t, const ProveOptions &o, SourceManager &s) : typed(t), options(o), sources(s) {}

  // What the job's results are belongs to what it promises.
  void promise() {
    Function &root = typed.module.function(typed.module.root);
    for (ValueId v : root.results) {
      Value &value = root.values[v.index];
      value.declared = value.kind == ValueKind::Result ? typed.instances[typed.root].values[v.index] : value.declared;
    }
  }

  // Types the module as it stands and judges it.
  Mutant judge() {
    Mutant mutant;
    DiagnosticEngine diags(sources);
    typed = infer(std::move(typed.module), {}, diags);
    verify(typed, {}, diags);
    const auto error = llvm::find_if(diags.all(), [](const Diagnostic &d) { return d.severity == Severity::Error; });
    if (error != diags.all().end()) {
      mutant.fate = Fate::Refused;
      mutant.why = diagName(error->id);
      return mutant;
    }
    const Proof proof = prove(typed, options);
    const auto scaled =
        llvm::find_if(proof.parameters, [](const ParameterProof &p) { return p.judged && !p.none && (!p.synced || !p.synced->isOne()); });
    if (!proof.refutations.empty()) {
      mutant.fate = Fate::Hole;
      mutant.why = "`" + proof.refutations.front().value + "`: " + proof.refutations.front().text;
    } else if (!proof.unable.empty()) {
      mutant.fate = Fate::NotRun;
      mutant.why = proof.unable;
    } else if (scaled != proof.parameters.end()) {
      mutant.fate = Fate::Hole;
      mutant.why = "the synchronised gradient of `" + scaled->path + "` is " +
                   (scaled->synced ? scaled->synced->text() + " of the true one" : std::string("no multiple of the true one"));
    } else {
      mutant.fate = Fate::Equal;
    }
    return mutant;
  }

private:
  TypedModule &typed;
  const ProveOptions &options;
  SourceManager &sources;
};

} // namespace

int64_t MutationReport::count(Fate f) const {
  return llvm::count_if(mutants, [&](const Mutant &m) { return m.fate == f; });
}

Rational MutationReport::rate() const {
  const auto all = static_cast<int64_t>(mutants.size()) - count(Fate::Equal);
  return all == 0 ? Rational() : Rational{count(Fate::Refused), all};
}

// A module is not copied, since its types are not: what a mutant may edit is, and is put back.
MutationReport mutate(TypedModule &typed, const ProveOptions &options, SourceManager &sources,
                      llvm::function_ref<bool(size_t done, size_t all)> progress) {
  MutationReport report;
  const std::vector<Function> written = typed.module.functions;
  Judge judge(typed, options, sources);
  judge.promise();
  report.job = judge.judge();
  const std::vector<Mutation> list = report.job.fate == Fate::Equal ? listMutations(typed) : std::vector<Mutation>();
  const std::vector<Function> functions = typed.module.functions;
  const std::vector<Attrs> attrs = typed.module.attrs;
  const std::optional<SyncPlan> sync = typed.module.sync;
  const std::optional<Loss> loss = typed.module.loss;
  for (size_t i = 0; i < list.size() && progress(i, list.size()); ++i) {
    list[i].apply(typed.module);
    Mutant mutant = judge.judge();
    mutant.what = list[i].what;
    mutant.range = list[i].range;
    report.mutants.push_back(std::move(mutant));
    typed.module.functions = functions;
    typed.module.attrs = attrs;
    typed.module.sync = sync;
    typed.module.loss = loss;
  }
  typed.module.functions = written;
  DiagnosticEngine diags(sources);
  typed = infer(std::move(typed.module), {}, diags);
  return report;
}

} // namespace shardc
