// Module: operations keep their operands and results apart from one another.
#include "shardc/IR/Module.h"
#include "Catch.h"

using namespace shardc;

TEST_CASE("operations and values are added in order") {
  NameTable names;
  Function f;
  const SourceRange place{FileId(0), 3, 5};
  const ValueId x = addValue(f, names.intern("x"), ValueKind::Input, TypeId(7), place);
  const ValueId w = addValue(f, names.intern("w"), ValueKind::Param, TypeId(8), place);
  addOp(f, OpKind::Linear, {x, w}, {names.intern("y")}, place);
  const ValueId y = f.result(f.ops[0]);
  const Op &op = addOp(f, OpKind::Topk, {y}, {names.intern("values"), names.intern("ids")}, place);
  CHECK(f.inputs == std::vector<ValueId>{x});
  CHECK(f.params == std::vector<ValueId>{w});
  CHECK(f.operandsOf(f.ops[0]) == llvm::ArrayRef<ValueId>({x, w}));
  CHECK(f.operandsOf(op) == llvm::ArrayRef<ValueId>({y}));
  CHECK(names.str(f.values[f.result(op, 1).index].name) == "ids");
  CHECK(f.values[y.index].kind == ValueKind::Result);
  CHECK_FALSE(f.values[y.index].declared.valid());
  CHECK(f.values[x.index].declared == TypeId(7));
  CHECK(f.values[x.index].declaredRange == place);
}
