// Infer: a type for every value, or a diagnostic that says why not (design: types, section 3 to 5).
//
// A function is inferred once per distinct signature (the types of its inputs). What nobody wrote is derived from the
// operations' rules; what was written is verified.
#pragma once

#include "shardc/IR/Module.h"

namespace shardc {

enum class Reshard : uint8_t { Refuse, Insert };

struct InferOptions {
  Reshard reshard = Reshard::Refuse;
};

// A change of layout that the program makes on one value, with its price for one rank.
struct Move {
  ValueId value; // the result of the change (local to the function)
  TypeId before;
  TypeId after;
  State from{};
  State to{};
  NameId fromDim, toDim; // where from or to is S
  llvm::SmallVector<AtomId, 4> atoms;
  Primitive forward{};
  Primitive gradient{}; // None where the value needs no gradient
  int64_t ranks = 1;
  std::optional<int64_t> localBytes; // before the change; nothing if ragged
  Cost forwardCost, gradientCost;
  bool inserted = false; // by --reshard=insert
  uint32_t op = 0;       // index in Function::ops
};

// One function under one signature.
struct Instance {
  FunctionId function;
  std::vector<TypeId> inputs;
  std::vector<TypeId> values;    // per value of the function; invalid where inference failed
  std::vector<uint32_t> callees; // per op: the instance it calls, ~0u for other operations
  std::vector<Move> moves;       // in order of execution
  int64_t uses = 0;              // how often the whole program runs it
  bool failed = false;           // a finding was reported here, or something rests on one
};

struct TypedModule {
  Module module;
  std::vector<Instance> instances; // callees before callers; the root is last
  uint32_t root = 0;
};

TypedModule infer(Module module, const InferOptions &options, DiagnosticEngine &diags);

// Calls visit(path, instance) for the root and every call below it in order of execution; path is "" for the root,
// "layers.3.moe" below. `visit` returns whether to go into the instance's calls.
void walk(const TypedModule &typed, llvm::function_ref<bool(llvm::StringRef path, const Instance &instance)> visit);

} // namespace shardc
