// A small typed program made by hand, so that the emitters are tested against arithmetic and not against inference.
//
// Four ranks, dp 2 x tp 2; T = 8, F = 16, D = 4. Three equal layers, each of which calls `w2`: a row-parallel linear whose
// partial result its boundary reduce-scatters onto T.
#pragma once

#include "shardc/IR/Text.h"
#include "shardc/Infer/Infer.h"

namespace shardc {

class Program {
public:
  SourceManager sources;
  DiagnosticEngine diags{sources};
  TypedModule typed;

  Program() {
    Module &module = typed.module;
    module.name = "three layers";
    module.view = "dense";
    const ViewSpec dense{"dense", {{"dp", 2, std::nullopt, {}}, {"tp", 2, std::nullopt, {}}}, {}};
    module.axes = *Axes::build({4, {}}, {dense}, {}, diags);
    for (const auto &[name, extent] : {std::pair("T", 8), std::pair("F", 16), std::pair("D", 4)}) {
      module.sizes.emplace_back(module.names.intern(name), extent);
      sizes[module.names.intern(name)].extent = extent;
    }
    const FunctionId linear = addLinear();
    const FunctionId layer = addLayer(linear);
    addRoot(layer);
  }

  TypeId type(llvm::StringRef text) {
    ParseEnv env{typed.module, sizes, diags};
    const FileId file = sources.add("type", text.str());
    return typed.module.types.intern(*parseType(text, {file, 0, static_cast<uint32_t>(text.size())}, env));
  }

private:
  SizeTable sizes;
  NameId name(llvm::StringRef text) { return typed.module.names.intern(text); }

  FunctionId addFunction(llvm::StringRef kind) {
    typed.module.functions.emplace_back();
    typed.module.functions.back().name = name(kind);
    return FunctionId(typed.module.functions.size() - 1);
  }

  void addInstance(FunctionId function, std::vector<TypeId> values, std::vector<uint32_t> callees, std::vector<Move> moves, int64_t uses) {
    Instance instance;
    instance.function = function;
    instance.values = std::move(values);
    instance.callees = std::move(callees);
    instance.moves = std::move(moves);
    instance.uses = uses;
    typed.root = static_cast<uint32_t>(typed.instances.size());
    typed.instances.push_back(std::move(instance));
  }

  FunctionId addLinear() {
    const FunctionId id = addFunction("linear");
    Function &f = typed.module.function(id);
    const ValueId x = addValue(f, name("x"), ValueKind::Input, {}, {});
    const ValueId weight = addValue(f, name("weight"), ValueKind::Param, {}, {});
    f.inputs = {x};
    f.params = {weight};
    addOp(f, OpKind::Linear, {x, weight}, {name("y")}, {});
    addOp(f, OpKind::Redistribute, {ValueId(2)}, {name("y")}, {}).boundary = true;
    f.results = {ValueId(3)};
    const TypeId partial = type("bf16[T@dp, D] P@tp");
    const TypeId sharded = type("bf16[T@(dp,tp), D]");
    Move move;
    move.value = ValueId(3);
    move.before = partial;
    move.after = sharded;
    move.from = State::P;
    move.to = State::S;
    move.toDim = name("T");
    move.atoms = typed.module.axes.find("tp")->atoms;
    move.forward = Primitive::ReduceScatter;
    move.gradient = Primitive::AllGather;
    move.ranks = 2;
    move.localBytes = 4 * 4 * 2;
    move.forwardCost = {1, 16};  // half of 32 bytes
    move.gradientCost = {1, 16}; // 2 rows of 4, bf16
    move.op = 1;
    addInstance(id, {type("bf16[T@dp, F@tp]"), type("bf16[D, F@tp]"), partial, sharded}, {~0u, ~0u}, {move}, 3);
    return id;
  }

  FunctionId addLayer(FunctionId linear) {
    const FunctionId id = addFunction("layer");
    Function &f = typed.module.function(id);
    const ValueId x = addValue(f, name("x"), ValueKind::Input, {}, {});
    f.inputs = {x};
    Op &call = addOp(f, OpKind::Call, {x}, {name("h")}, {});
    call.callee = linear;
    call.instance = name("w2");
    f.results = {ValueId(1)};
    addInstance(id, {type("bf16[T@dp, F@tp]"), type("bf16[T@(dp,tp), D]")}, {0}, {}, 3);
    return id;
  }

  void addRoot(FunctionId layer) {
    const FunctionId id = addFunction("main");
    typed.module.root = id;
    Function &f = typed.module.function(id);
    const ValueId x = addValue(f, name("x"), ValueKind::Input, {}, {});
    f.inputs = {x};
    std::vector<TypeId> values = {type("bf16[T@dp, F@tp]")};
    for (llvm::StringRef instance : {"layers.0", "layers.1", "layers.2"}) {
      Op &call = addOp(f, OpKind::Call, {x}, {name("h")}, {});
      call.callee = layer;
      call.instance = name(instance);
      values.push_back(type("bf16[T@(dp,tp), D]"));
    }
    f.results = {ValueId(3)};
    addInstance(id, std::move(values), {1, 1, 1}, {}, 1);
  }
};

} // namespace shardc
