// The text and the JSON of `types` on a program made by hand: names, shapes, both directions of a change, folded layers.
#include "shardc/Emit/Types.h"
#include "Catch.h"
#include "Program.h"
#include "llvm/Support/JSON.h"

using namespace shardc;

namespace {

std::string textOf(Program &program, llvm::StringRef pattern = "") {
  std::string text;
  llvm::raw_string_ostream out(text);
  writeTypesText(out, program.typed, {pattern.str(), ""});
  return text;
}

llvm::json::Object jsonOf(Program &program, llvm::StringRef pattern = "") {
  std::string text;
  llvm::raw_string_ostream out(text);
  Report report;
  report.verdict = Verdict::Ok;
  writeTypesJson(out, {"job", report, program.diags, &program.typed}, {pattern.str(), ""});
  return *llvm::cantFail(llvm::json::parse(text)).getAsObject();
}

std::vector<std::string> namesOf(const llvm::json::Object &answer) {
  std::vector<std::string> names;
  for (const llvm::json::Value &value : *answer.getArray("values")) {
    names.push_back(value.getAsObject()->getString("name")->str());
  }
  return names;
}

const llvm::json::Object *valueOf(const llvm::json::Object &answer, llvm::StringRef name) {
  for (const llvm::json::Value &value : *answer.getArray("values")) {
    if (value.getAsObject()->getString("name") == name) {
      return value.getAsObject();
    }
  }
  return nullptr;
}

} // namespace

TEST_CASE("json lists every layer under names that follow the modules") {
  Program program;
  std::vector<std::string> expected = {"x"};
  for (const char *layer : {"layers.0", "layers.1", "layers.2"}) {
    const std::string path = layer;
    for (const char *inside : {".x", ".w2.x", ".w2.weight", ".w2.y", ".w2"}) {
      expected.push_back(path + inside);
    }
    expected.push_back(path);
  }
  CHECK(namesOf(jsonOf(program)) == expected);
}

TEST_CASE("a module's name is its output, its values have their types, gradients and local shapes") {
  Program program;
  const llvm::json::Object answer = jsonOf(program);
  const llvm::json::Object *inner = valueOf(answer, "layers.1.w2.y");
  REQUIRE(inner);
  CHECK(inner->getString("type") == "bf16[T@dp, D] P@tp");
  CHECK(inner->getString("gradient") == "bf16[T@dp, D]");
  CHECK(*inner->getArray("local_shape") == llvm::json::Array{4, 4});
  const llvm::json::Object *output = valueOf(answer, "layers.1.w2");
  REQUIRE(output);
  CHECK(output->getString("type") == "bf16[T@(dp,tp), D]");
  CHECK(*output->getArray("local_shape") == llvm::json::Array{2, 4});
}

TEST_CASE("a change is listed in both directions with what each rank sends") {
  Program program;
  const llvm::json::Object answer = jsonOf(program);
  const llvm::json::Array &changes = *answer.getArray("changes");
  REQUIRE(changes.size() == 6);
  const llvm::json::Object forward{{"value", "layers.0.w2"},          {"from", "P"}, {"to", "S(T)"}, {"collective", "reduce-scatter"},
                                   {"axes", llvm::json::Array{"tp"}}, {"ranks", 2},  {"bytes", 16},  {"direction", "forward"}};
  CHECK(*changes[0].getAsObject() == forward);
  // The backward pass begins with the last layer.
  const llvm::json::Object backward{{"value", "layers.2.w2"},          {"from", "S(T)"}, {"to", "R"},   {"collective", "all-gather"},
                                    {"axes", llvm::json::Array{"tp"}}, {"ranks", 2},     {"bytes", 16}, {"direction", "gradient"}};
  CHECK(*changes[3].getAsObject() == backward);
}

TEST_CASE("bytes that are known only at run time are null") {
  Program program;
  program.typed.instances[0].moves[0].localBytes.reset();
  const llvm::json::Object answer = jsonOf(program);
  CHECK(answer.getArray("changes")->front().getAsObject()->get("bytes")->getAsNull().has_value());
}

TEST_CASE("a value that was not typed is null, never left out") {
  Program program;
  program.typed.instances[0].values[2] = TypeId();
  const llvm::json::Object answer = jsonOf(program);
  const llvm::json::Object *value = valueOf(answer, "layers.0.w2.y");
  REQUIRE(value);
  CHECK(value->get("type")->getAsNull().has_value());
  CHECK(value->get("local_shape")->getAsNull().has_value());
}

TEST_CASE("text folds layers that are alike into one block") {
  Program program;
  CHECK(textOf(program) == R"(three layers: 4 ranks
  mesh dense: dp 2 tp 2
  value: type | gradient; change over axes: collective, bytes sent per rank

x  bf16[T@dp, F@tp] | bf16[T@dp, F@tp]
layers.0..2  layer  (3 alike)
  x  bf16[T@dp, F@tp] | bf16[T@dp, F@tp]
  layers.0..2.w2  linear
    x       bf16[T@dp, F@tp]   | bf16[T@dp, F@tp]
    weight  bf16[D, F@tp]      | bf16[D, F@tp] P@dp
    y       bf16[T@dp, D] P@tp | bf16[T@dp, D]
    y       * P -> S(T) over tp (2 ranks): reduce-scatter, 16 B | S(T) -> R: all-gather, 16 B
    -> y    bf16[T@(dp,tp), D] | bf16[T@(dp,tp), D]
)");
}

TEST_CASE("a layer of another instance is not folded in") {
  Program program;
  program.typed.instances.insert(program.typed.instances.begin() + 2, program.typed.instances[1]);
  program.typed.root = 3;
  program.typed.instances[3].callees = {1, 2, 2};
  const std::string text = textOf(program);
  CHECK(text.find("layers.0  layer\n") != std::string::npos);
  CHECK(text.find("layers.1..2  layer  (2 alike)\n") != std::string::npos);
}

TEST_CASE("a pattern restricts to modules and what is below them") {
  Program program;
  CHECK(namesOf(jsonOf(program, "layers.1.w2")) == std::vector<std::string>{"layers.1.w2.x", "layers.1.w2.weight", "layers.1.w2.y"});
  const std::string text = textOf(program, "layers.1");
  CHECK(text.find("layers.1  layer\n") != std::string::npos);
  CHECK(text.find("layers.0") == std::string::npos);
  CHECK(text.find("layers.1.w2  linear\n") != std::string::npos);
  CHECK(textOf(program, "layers.*").find("layers.0..2  layer  (3 alike)\n") != std::string::npos);
  CHECK(anyModuleMatches(program.typed, "layers.?.w2"));
  CHECK_FALSE(anyModuleMatches(program.typed, "layers.3"));
  CHECK_FALSE(anyModuleMatches(program.typed, "layers.[0"));
}

TEST_CASE("a value that a boundary replaced keeps a name of its own") {
  Program program;
  Function &linear = program.typed.module.functions[0];
  linear.results = {ValueId(2)}; // now the last y is inside, and the first the result
  program.typed.instances[1].values[1] = program.type("bf16[T@dp, D] P@tp");
  CHECK(namesOf(jsonOf(program, "layers.0.w2")) == std::vector<std::string>{"layers.0.w2.x", "layers.0.w2.weight", "layers.0.w2.y"});
  linear.results.clear();
  CHECK(namesOf(jsonOf(program, "layers.0.w2")) ==
        std::vector<std::string>{"layers.0.w2.x", "layers.0.w2.weight", "layers.0.w2.y.before", "layers.0.w2.y"});
}

TEST_CASE("values are counted before they are listed, however many calls make them") {
  Program program;
  // The linear has 4 values, a layer 2 and its linear, the root 4 and three layers; each instance counts one more.
  CHECK(countValues(program.typed) == 5 + 3 * (3 + 5));
  // Calls that call twice what calls twice: 2^70 runs of the linear do not fit.
  std::vector<Instance> &instances = program.typed.instances;
  instances.resize(2);
  for (uint32_t i = 1; i < 71; ++i) {
    instances.push_back(instances[1]);
    instances.back().callees = {i, i};
  }
  program.typed.root = static_cast<uint32_t>(instances.size() - 1);
  CHECK(countValues(program.typed) == ~uint64_t(0));
}
