// Module: a model as a program (design: architecture, "Data").
//
// A module owns functions; a function owns its values and operations in vectors and refers to them by 32-bit ids that are
// local to it. A repeated block is one function and many calls. Parameters are declared inside the function that uses
// them; their full name is the path of calls plus the local name: `layers.3.feed_forward.w2.weight`.
#pragma once

#include "shardc/IR/Changes.h"
#include "shardc/IR/Rule.h"
#include "shardc/IR/Storage.h"
#include "shardc/IR/Sync.h"

namespace shardc {

enum class ValueKind : uint8_t { Result, Input, Param };

struct Value {
  NameId name; // local: "h", "weight"
  ValueKind kind = ValueKind::Result;
  TypeId declared; // params and root inputs: their type; results: the type somebody wrote, to be verified
  SourceRange range;
  SourceRange declaredRange;
};

// What stands in a call besides tensor operands.
struct Attrs {
  llvm::SmallVector<Dim, 2> dims;                           // Takes::Dims, with atoms if written
  llvm::SmallVector<int64_t, 4> ints;                       // Takes::Ints
  std::string text;                                         // Takes::Scalar and Takes::Text, as written
  Change change;                                            // Takes::ChangeSpec
  std::vector<std::pair<std::string, std::string>> options; // key=value, sorted by key
  SourceRange range;

  std::optional<llvm::StringRef> option(llvm::StringRef key) const {
    for (const auto &[k, v] : options) {
      if (k == key) {
        return llvm::StringRef(v);
      }
    }
    return std::nullopt;
  }
};

struct Op {
  OpKind kind{};
  uint32_t firstOperand = 0; // into Function::operands
  uint32_t numOperands = 0;
  uint32_t firstResult = 0; // results are consecutive values
  uint32_t numResults = 0;
  AttrsId attrs;         // into Module::attrs; invalid if none
  FunctionId callee;     // OpKind::Call
  NameId instance;       // OpKind::Call: "feed_forward", "layers.3"
  bool boundary = false; // a change that a strategy put at a module boundary
  SourceRange range;     // the call as written; for a boundary its line in the strategy
};

struct Function {
  NameId name; // kind of module: "feed_forward"
  std::vector<Value> values;
  std::vector<Op> ops;
  std::vector<ValueId> operands;
  std::vector<ValueId> inputs;
  std::vector<ValueId> params;
  std::vector<ValueId> results;
  std::string view; // vocabulary in which its types are printed first; empty: the module's
  SourceRange range;

  llvm::ArrayRef<ValueId> operandsOf(const Op &op) const { return llvm::ArrayRef(operands).slice(op.firstOperand, op.numOperands); }
  ValueId result(const Op &op, uint32_t i = 0) const { return ValueId(op.firstResult + i); }
};

// How the local loss relates to the loss of the whole batch, per axis (design: types, section 6).
enum class LossKind : uint8_t { LocalMean, Sum, GlobalMean, Invariant };

struct Loss {
  ValueId value; // of the root
  LossKind kind{};
  SourceRange range;
};

struct Module {
  std::string name;
  NameTable names;
  Axes axes;
  TypeTable types;
  std::vector<Function> functions;
  std::vector<Attrs> attrs;
  FunctionId root; // runs the whole job; its inputs and params have declared types
  // Named sizes in order of declaration: for printing, and for dimensions written by name.
  std::vector<std::pair<NameId, llvm::SmallVector<NameId, 2>>> products; // T = (b l)
  std::vector<std::pair<NameId, int64_t>> sizes;
  std::string view;                   // vocabulary in which types are printed first: "dense"
  std::optional<SyncPlan> sync;       // what the framework does to gradients, if it is known
  std::optional<StoragePlan> storage; // which elements of gradients and optimizer state ranks keep, if it is known
  std::optional<Loss> loss;           // where the backward pass starts, if it is said

  Function &function(FunctionId id) { return functions[id.index]; }
  const Function &function(FunctionId id) const { return functions[id.index]; }
  llvm::StringRef viewOf(const Function &f) const { return f.view.empty() ? llvm::StringRef(view) : llvm::StringRef(f.view); }
};

// Appends an operation with new result values; names of results may be invalid (temporaries).
Op &addOp(Function &f, OpKind kind, llvm::ArrayRef<ValueId> operands, llvm::ArrayRef<NameId> resultNames, SourceRange range);
ValueId addValue(Function &f, NameId name, ValueKind kind, TypeId declared, SourceRange range);

} // namespace shardc
