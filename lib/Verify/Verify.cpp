// Verify: the list of checks and the verdict. See the header for what a verdict covers.
//
// Each check is one function and one row of the table below; a larger one gets its own file and keeps its row here. Not
// here: anything that a single operation or change can decide, which is Infer's.
#include "shardc/Verify/Verify.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace shardc {

llvm::StringRef verdictName(Verdict v) {
  switch (v) {
  case Verdict::Ok:
    return "ok";
  case Verdict::Findings:
    return "findings";
  case Verdict::Incomplete:
    return "incomplete";
  case Verdict::Unreadable:
    return "unreadable";
  }
  return "";
}

// Inference leaves a value without a type only after a finding. Should it ever do so silently, the verdict must not be ok.
static void checkTyped(const TypedModule &typed, Report &report, DiagnosticEngine &diags) {
  if (diags.hasErrors()) {
    return;
  }
  for (const Instance &instance : typed.instances) {
    const Function &function = typed.module.function(instance.function);
    const bool untyped = instance.failed || llvm::any_of(instance.values, [](TypeId id) { return !id.valid(); });
    if (untyped) {
      report.unchecked.push_back(
          {llvm::formatv("module `{0}`", typed.module.names.str(function.name)).str(), "some of its values got no type"});
    }
  }
}

// A relabelling keeps no meaning: the verdict holds only if its written reason does.
static void listReinterprets(const TypedModule &typed, Report &report, DiagnosticEngine &) {
  for (const Function &function : typed.module.functions) {
    for (const Op &op : function.ops) {
      if (op.kind != OpKind::Reinterpret || !op.attrs.valid()) {
        continue;
      }
      const Attrs &attrs = typed.module.attrs[op.attrs.index];
      const std::string &fromChange = attrs.change.reinterpretReason;
      const llvm::StringRef reason = fromChange.empty() ? attrs.option("reason").value_or("no reason given") : llvm::StringRef(fromChange);
      const llvm::StringRef value = typed.module.names.str(function.values[op.firstResult].name);
      report.assumes.push_back(llvm::formatv("`{0}` is relabelled rightly: {1}", value, reason).str());
    }
  }
}

// What `--reshard=insert` added is not what the job does: the verdict is about the job with these changes in it.
static void listInserted(const TypedModule &typed, Report &report, DiagnosticEngine &) {
  const Module &module = typed.module;
  for (const Instance &instance : typed.instances) {
    const Function &function = module.function(instance.function);
    for (const Move &move : instance.moves) {
      if (!move.inserted) {
        continue;
      }
      std::string text = llvm::formatv("inserted: `{0}` from {1} to {2} over {3}", module.names.str(function.values[move.value.index].name),
                                       stateName(move.from), stateName(move.to), module.axes.describe(move.atoms, module.view));
      if (communicates(move.forward)) {
        text += llvm::formatv(", {0} of {1} bytes per rank", primitiveName(move.forward), move.forwardCost.bytes);
      }
      if (instance.uses > 1) {
        text += llvm::formatv(", {0} times", instance.uses);
      }
      report.assumes.push_back(std::move(text));
    }
  }
}

// What a reader of files has warned that it passes over is no part of the verdict. Its message says what, and why.
static void listPassedOver(const TypedModule &, Report &report, DiagnosticEngine &diags) {
  for (const Diagnostic &d : diags.all()) {
    if (d.id == Diag::NotSupported || d.id == Diag::UncalledFunction) {
      const auto [what, why] = llvm::StringRef(d.message).split(": ");
      report.unchecked.push_back({what.str(), why.str()});
    }
  }
}

// Gradients from the loss to the parameters, and what synchronises them.
static void checkGradients(const TypedModule &typed, Report &report, DiagnosticEngine &diags) {
  const Module &module = typed.module;
  if (llvm::any_of(typed.instances, [](const Instance &i) { return i.failed; })) {
    return; // what has no type was reported, and what rests on it is not known
  }
  const size_t errors = diags.errorCount();
  const std::vector<ParamGradient> params = inferGradients(typed, diags);
  const bool listed = !params.empty() || diags.errorCount() == errors; // else there are too many to judge
  const SyncPlan *plan = module.sync ? &*module.sync : nullptr;
  report.gradients = synchronise(typed, params, plan);
  if (plan && listed) {
    reportPlan(typed, params, diags);
    reportSync(typed, report.gradients, diags);
    reportNorm(typed, report.gradients, diags);
    if (!params.empty() && !plan->name.empty()) {
      report.assumes.push_back("gradients are synchronised by the rules of " + plan->name);
    }
    const bool apart = llvm::any_of(report.gradients, [](const SyncRow &r) { return !r.apart.empty(); });
    if (apart && !plan->sameBits.empty()) {
      report.assumes.push_back(plan->sameBits);
    }
  } else if (module.loss && !params.empty() && module.axes.world() > 1) {
    report.unchecked.push_back({"synchronisation of gradients", "no rules are known"});
  }
  for (const SyncRow &row : report.gradients) {
    if (row.verdict == SyncVerdict::Right && !row.condition.empty()) {
      std::string text = "the gradient of `" + row.parameters + "` is reduced rightly only if " + row.condition;
      if (!llvm::is_contained(report.assumes, text)) {
        report.assumes.push_back(std::move(text));
      }
    }
  }
}

// Which elements of gradients and optimizer states ranks keep.
static void checkSlices(const TypedModule &typed, Report &report, DiagnosticEngine &diags) {
  if (llvm::none_of(typed.instances, [](const Instance &i) { return i.failed; })) {
    int64_t leftOut = 0;
    report.slices = storedParams(typed, report.gradients, Listing::Alike, &leftOut);
    if (leftOut > 0) {
      report.unchecked.push_back({llvm::formatv("what ranks keep of {0} parameters", leftOut).str(),
                                  "their sizes, or the pipeline stages that they are on, are not known before it runs"});
    }
    reportSlices(typed, report.slices, diags);
  }
}

static constexpr Check checks[] = {
    {"typed", "every value has a type", checkTyped},
    {"gradients", "each gradient is reduced as its type needs it, and counted once in the clip norm", checkGradients},
    {"slices", "the parts of optimizer states that ranks keep tile them, and are what a loader takes", checkSlices},
    {"passed-over", "what was read but not used is listed as unchecked", listPassedOver},
    {"reinterprets", "what relabellings claim is listed as assumed", listReinterprets},
    {"inserted", "changes of layout that nobody declared are listed as assumed", listInserted},
};

llvm::ArrayRef<Check> allChecks() { return checks; }

Report verify(const TypedModule &typed, Report known, DiagnosticEngine &diags) {
  Report report = std::move(known);
  for (const Check &check : checks) {
    check.run(typed, report, diags);
  }
  if (diags.hasErrors()) {
    report.verdict = Verdict::Findings;
  } else {
    report.verdict = report.unchecked.empty() ? Verdict::Ok : Verdict::Incomplete;
  }
  return report;
}

} // namespace shardc
