// What ranks of a DeepSpeed job keep of optimizer states: rows and pads by ZeRO stage, worked out by hand.
#include "Catch.h"
#include "TorchtitanRun.h"
#include "shardc/Frontend/Storage.h"
#include "shardc/Verify/Slices.h"

using namespace shardc;

namespace {

struct Stored {
  TorchtitanRun run;
  std::optional<TypedModule> typed;
  std::vector<StoredParam> params;

  Stored(int64_t world, llvm::StringRef flags) : run("0.19.6", "mixtral/8x7B", world, flags, false, "deepspeed") {
    std::optional<Module> module = run.job ? buildModule(*run.job, run.diags) : std::nullopt;
    if (module && addStorage(*run.job, nullptr, *module, run.diags)) {
      typed = infer(std::move(*module), InferOptions(), run.diags);
      params = storedParams(*typed, {});
    }
  }

  // Of the last parameter of this name; in a buffer, what of it each rank of the first group keeps.
  std::string cuts(llvm::StringRef name) const {
    std::string text;
    for (const StoredParam &param : params) {
      if (!llvm::StringRef(param.path).ends_with(name)) {
        continue;
      }
      text = cutsText(cutRowOf(*typed, param));
      if (param.rule.cut == StorageCut::Buffer) {
        text.clear();
        const std::vector<std::vector<int64_t>> groups = typed->module.axes.groups(param.rule.share.over);
        for (int64_t rank : groups[0]) {
          const Cut cut = sliceOf(*typed, params, param, rank).cut;
          text += (text.empty() ? "" : ", ") + std::to_string(cut.elements.size()) + (cut.pad == 0 ? "" : "+" + std::to_string(cut.pad));
        }
      }
    }
    return text;
  }
};

constexpr llvm::StringRef Experts = "--train_micro_batch_size_per_gpu 1 --expert_parallel.enabled --expert_parallel.autoep_size 8 ";

} // namespace

TEST_CASE("ZeRO 1 and 2 put experts in a row of their own") {
  // Five ranks hold the same expert: 32 layers of 3 weights of 14336 x 4096 elements, 5637144576 in all, are padded by 4 to a multiple
  // of 10. Each rank keeps 1127428916 of them; the last weight, 58720256 elements, lies in the last rank's part, in front of the pad.
  for (const char *stage : {"1", "2"}) {
    CAPTURE(stage);
    const Stored stored(40, (Experts + "--zero_optimization.stage " + stage).str());
    CHECK(stored.run.found() == "");
    CHECK(stored.cuts("31.moe.experts.w3") == "0, 0, 0, 0, 58720256+4");
    REQUIRE(!stored.params.empty());
    for (const StoredParam &param : stored.params) {
      CHECK(!findUntiled(*stored.typed, param));
    }
  }
}

TEST_CASE("ZeRO 3 cuts each parameter") {
  // 58720256 elements of an expert's weight over 5 ranks: rounded up to 11744052, the last one short of 4.
  const Stored stored(40, (Experts + "--zero_optimization.stage 3").str());
  CHECK(stored.cuts("moe.experts.w1") == "11744052, 11744052, 11744052, 11744052, 11744048+4");
  // 4096 elements of a norm over all 40: 103, of which 39 full parts leave 79.
  CHECK(stored.cuts("ffn_norm.weight") == "103, 103, 103, ..., 79+24");
}

TEST_CASE("without ZeRO every rank keeps all") {
  const Stored stored(40, Experts);
  CHECK(stored.cuts("moe.experts.w1") == "58720256");
  CHECK(stored.cuts("ffn_norm.weight") == "4096");
}

namespace {

// What is said where the first job saves and the second one reads.
std::string resume(llvm::StringRef save, llvm::StringRef load) {
  constexpr llvm::StringRef Common = "--train_micro_batch_size_per_gpu 1 --zero_optimization.stage 1 --expert_parallel.enabled ";
  Stored saved(8, (Common + save).str()), loaded(8, (Common + load).str());
  if (!saved.typed || !loaded.typed) {
    return "unread";
  }
  DiagnosticEngine diags(loaded.run.sources);
  compareCheckpoints({*saved.typed, {}}, {*loaded.typed, {}}, SourceRange(), diags);
  std::vector<std::string> found;
  for (const Diagnostic &d : diags.all()) {
    if (d.id == Diag::CheckpointMetadata) {
      found.push_back(d.message);
    }
  }
  return llvm::join(found, "; ");
}

} // namespace

TEST_CASE("what a folded checkpoint says must be what the job says") {
  constexpr llvm::StringRef Ep4 = "--expert_parallel.autoep_size 4", Ep2 = "--expert_parallel.autoep_size 2",
                            Folded = "--expert_parallel.autoep_size 4 --tensor_parallel.autotp_size 2",
                            Wider = "--expert_parallel.autoep_size 4 --tensor_parallel.autotp_size 4";
  CHECK(resume(Ep4, Ep4) == "");
  CHECK(resume(Folded, Folded) == "");
  CHECK(resume(Ep4, Ep2) == "the checkpoint was saved with autoep_size 4 and is read with 2");
  CHECK(resume(Folded, Wider) == "the checkpoint was saved with autotp_size 2 and is read with 4");
  CHECK(
      resume(Folded, Ep4) ==
      "the checkpoint was saved with autotp_size 2 and is read with 1; the checkpoint was saved with folding true and is read with false");
  // ZeRO 1 and 2 keep states in the same rows, ZeRO 3 in rows of its own.
  CHECK(resume(Ep4, "--expert_parallel.autoep_size 4 --zero_optimization.stage 2") == "");
  CHECK(resume(Ep4, "--expert_parallel.autoep_size 4 --zero_optimization.stage 3") ==
        "the checkpoint was saved with form of optimizer states one row per group and is read with one row per parameter");
  // A universal one is put together before, and cut for any degrees.
  CHECK(resume(Ep4, "--expert_parallel.autoep_size 2 --checkpoint.load_universal") == "");
}
