// Execution: one run of a typed program, on all ranks and on one device, side by side.
//
// Values of every call are kept, since the way back needs them. What one device computes is missing for values that have no
// global meaning (V); an assertion of one (V to S or P) defines it from what the ranks hold.
#pragma once

#include "Collectives.h"
#include "Kernels.h"
#include "shardc/Prove/Prove.h"

namespace shardc {

struct Frame {
  uint32_t instance = 0;
  std::string path;
  std::vector<Spread> values;
  std::vector<std::optional<Tensor>> whole;
  std::vector<Spread> grads; // failed: none
  std::vector<std::optional<Tensor>> wholeGrads;
  std::vector<std::unique_ptr<Frame>> callees; // per op
};

class Execution {
public:
  Execution(const TypedModule &t, const ProveOptions &o, Proof &p)
      : typed(t), module(t.module), options(o), proof(p), ranks(t.module.axes) {}

  void run();
  // Runs the last operation of the root whatever its types; keeps the layouts that fit. False if it cannot be judged.
  bool trial(std::vector<Type> &layouts, bool first);

private:
  std::vector<Type> allLayouts(const Tensor &whole) const; // Trial.cpp

  // Values.cpp
  bool makeRoots(Frame &frame);
  bool makeParams(Frame &frame);
  std::optional<Tensor> randomWhole(const Type &t, uint64_t key, int64_t bound);
  bool spreadOut(const Tensor &whole, const Type &t, uint64_t key, Spread &out);
  int64_t indexBound(uint32_t instance, ValueId value, int depth) const;
  std::optional<Tensor> assemble(const Spread &value, const Type &t) const;

  // Forward.cpp
  bool forward(Frame &frame) { return forwardTo(frame, static_cast<uint32_t>(functionOf(frame).ops.size())); }
  bool forwardTo(Frame &frame, uint32_t end);
  bool runCall(Frame &frame, uint32_t index);
  bool runMoves(Frame &frame, uint32_t index);
  bool runKernel(Frame &frame, uint32_t index);
  bool cannotRun(const Frame &frame, const Op &op, const KernelCall &call, bool known);
  bool insertedMoves(Frame &frame, uint32_t index, llvm::SmallVectorImpl<const Spread *> &operands, std::vector<Spread> &made);
  KernelCall kernelCall(const Frame &frame, uint32_t index, llvm::ArrayRef<const Spread *> operands, int64_t position);
  bool gatherVocabulary(const Frame &frame, uint32_t index, const Spread &logits, Spread &rows);
  bool adopt(Tensor &t, const Type &type, int64_t rank) const;
  void compareValue(const Frame &frame, ValueId v);

  // Backward.cpp
  void backward(Frame &frame);
  void seed(Frame &frame);
  void keepOwnColumns(const Type &own, Spread &g);
  void moveBackInserted(Frame &frame, uint32_t index, bool loss, llvm::MutableArrayRef<Spread> parts);
  void backKernel(Frame &frame, uint32_t index);
  void backMoves(Frame &frame, uint32_t index);
  void backCall(Frame &frame, uint32_t index);
  bool moveBack(const Frame &frame, const Move &m, uint32_t index, Spread &g);
  void addGrad(Frame &frame, ValueId v, Spread part);
  void compareGradients(const Frame &frame);
  void visitParams(const Frame &frame, llvm::function_ref<void(const Frame &, ValueId)> visit);

  // Parameters.cpp
  void judgeParameters(Frame &root);
  void compareSynced(const Spread &g, const Tensor &whole, const Type &t, ParameterProof &result);
  void judgeParameter(const Frame &frame, ValueId v, const Gradient *claimed);
  void compareVerdict(const Frame &frame, ValueId v, const SyncRow &row, bool claimed);
  void compareNorm(const Frame &frame, ValueId v, const SyncRow &row);
  bool synchronise(const std::string &path, Spread &g, const Type &type);

  const Type *typeOf(const Frame &f, ValueId v) const {
    const TypeId t = typed.instances[f.instance].values[v.index];
    return t.valid() ? &module.types[t] : nullptr;
  }
  const Function &functionOf(const Frame &f) const { return module.function(typed.instances[f.instance].function); }
  std::string nameOf(const Frame &f, ValueId v) const;
  bool unable(SourceRange where, std::string why);
  void refute(const Frame &f, ValueId v, std::string text, bool gradient);
  uint64_t keyOf(llvm::StringRef path) const;

  const TypedModule &typed;
  const Module &module;
  const ProveOptions &options;
  Proof &proof;
  Ranks ranks;
};

bool isVarying(const Type &t);

} // namespace shardc
