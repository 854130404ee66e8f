// The generator of random programs. See the header.
#include "Generator.h"
#include "shardc/Prove/Field.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

namespace shardc {

uint64_t Random::next() {
  state += 0x9e3779b97f4a7c15;
  return mix(state);
}

namespace {

struct Mesh {
  const char *text;
  llvm::SmallVector<const char *, 6> axes;
};
const Mesh meshes[] = {
    {"world: 2\nmesh: {a: 2}\n", {"a"}},
    {"world: 3\nmesh: {a: 3}\n", {"a"}},
    {"world: 6\nmesh: {a: 2, b: 3}\n", {"a", "b"}},
    {"world: 6\nmesh: {a: 3, b: 2}\n", {"a", "b"}},
    {"world: 4\nmesh: {a: 2, b: 2}\n", {"a", "b"}},
    {"world: 6\nmesh: {one: {a: 2, b: 3}, two: {e: 6}}\n", {"a", "b", "e"}},
    {"world: 6\nmesh: {one: {a: 3, b: 2}, two: {e: 2, f: 3}}\n", {"a", "b", "e", "f"}},
    {"world: 12\nmesh: {a: 2, b: 2, c: 3}\n", {"a", "b", "c"}},
    {"world: 8\nmesh: {one: {a: 4, b: 2}, two: {e: 2, f: 4}}\n", {"a", "b", "e", "f"}},
};

// U is odd on purpose, O has one element, E is the number of experts.
const char *const sizes = "sizes: {T: 12, D: 24, F: 36, H: 6, B: 4, L: 18, U: 7, O: 1, E: 12, K: 2, N: 30}\n";
const char *const names[] = {"T", "D", "F", "H", "B", "L", "N", "U", "E"};
const int64_t extents[] = {12, 24, 36, 6, 4, 18, 30, 7, 12};

int64_t extentOf(llvm::StringRef name) {
  for (size_t i = 0; i < std::size(names); ++i) {
    if (name == names[i]) {
      return extents[i];
    }
  }
  return 1;
}

} // namespace

std::string SmallProgram::text() const {
  std::string out = "graph: random\n" + world + sizes;
  for (const bool floats : {true, false}) {
    const char *head = floats && trained ? "params:\n" : "inputs:\n";
    for (const auto &[name, type] : inputs) {
      if ((trained && llvm::StringRef(type).starts_with("f32")) == floats) {
        out.append(head).append("  ").append(name).append(": \"").append(type).append("\"\n");
        head = "";
      }
    }
  }
  out += "ops:\n";
  for (const std::string &line : lines) {
    out += "  - '" + line + "'\n";
  }
  return out;
}

namespace {

// Operands as words of letters: small letters are dimensions, (bq) a product; # in front an integer; what follows the
// operands in the call, where {k} stands for the size of a letter and [k] for its sharded form.
struct Template {
  llvm::StringRef op;
  llvm::SmallVector<llvm::StringRef, 6> operands;
  llvm::StringRef rest;
  int results = 1;
};

std::string lettersOf(const Template &t) {
  std::string letters;
  for (llvm::StringRef operand : t.operands) {
    for (char c : operand) {
      if (llvm::isAlpha(c) && !llvm::is_contained(letters, c)) {
        letters += c;
      }
    }
  }
  return letters;
}

const Template templates[] = {
    {"add", {"ij", "ij"}, ""},
    {"add", {"ij", "j"}, ""},
    {"sub", {"ij", "ij"}, ""},
    {"mul", {"ij", "ij"}, ""},
    {"mul", {"ij", "j"}, ""},
    {"div", {"ij", "ij"}, ""},
    {"scale", {"ij"}, ", 1/3"},
    {"neg", {"ij"}, ""},
    {"scale_rows", {"ij", "i"}, ""},
    {"cast", {"ij"}, ", bf16"},
    {"identity", {"ij"}, ""},
    {"detach", {"ij"}, ""},
    {"silu", {"ij"}, ""},
    {"gelu", {"ij"}, ""},
    {"relu", {"ij"}, ""},
    {"tanh", {"ij"}, ""},
    {"square", {"ij"}, ""},
    {"sqrt", {"ij"}, ""},
    {"sigmoid", {"ij"}, ""},
    {"exp", {"ij"}, ""},
    {"log", {"ij"}, ""},
    {"rsqrt", {"ij"}, ""},
    {"swiglu", {"ij", "ij"}, ""},
    {"maximum", {"ij", "ij"}, ""},
    {"greater", {"ij", "ij"}, ""},
    {"equal", {"ij", "ij"}, ""},
    {"where", {"#ij", "ij", "ij"}, ""},
    {"dropout", {"ij"}, ", 0.5, seed=global"},
    {"dropout", {"ij"}, ", 0.5, seed=same"},
    {"dropout", {"ij"}, ", 0.5, seed=rank"},
    {"linear", {"ik", "nk"}, ""},
    {"linear", {"ik", "nk", "n"}, ""},
    {"linear", {"ijk", "nk"}, ""},
    {"matmul", {"bmk", "bkn"}, ""},
    {"matmul", {"mk", "kn"}, ""},
    {"grouped_matmul", {"eck", "enk"}, ""},
    {"grouped_bias", {"ecn", "en"}, ""},
    {"einsum", {"mk", "nk"}, ", \"m k, n k -> n m\""},
    {"einsum", {"mk", "kn", "n"}, ", \"m k, k n, n -> m\""},
    {"einsum", {"mk"}, ", \"m k -> k\""},
    {"embedding", {"#i", "nd"}, ""},
    {"take", {"ie", "#ik"}, ""},
    {"rms_norm", {"id", "d"}, ""},
    {"layer_norm", {"id", "d", "d"}, ""},
    {"softmax", {"id"}, ""},
    {"log_softmax", {"id"}, ""},
    {"normalize", {"id"}, ""},
    {"logsumexp", {"id"}, ""},
    {"variance", {"id"}, ""},
    {"vector_norm", {"ij"}, ""},
    {"nansum", {"id"}, ""},
    {"rotary", {"ihx", "#i"}, ""},
    {"expand", {"ix"}, ", {h}"},
    {"expand", {"ix"}, ", [h]"},
    {"repeat_heads", {"igx"}, ", {h}"},
    {"attention", {"(bq)hx", "(bs)hx", "(bs)hy", "#(bq)", "#(bs)"}, ""},
    {"attention", {"qhx", "shx", "shy", "#q", "#s"}, ""},
    {"attention", {"bqhx", "bshx", "bshy", "#bq", "#bs"}, ""},
    {"sink_attention", {"qhx", "shx", "shy", "#q", "#s", "h"}, ""},
    {"causal_attention", {"qhx", "qhx", "qhy"}, ""},
    {"full_attention", {"(bq)hx", "(bs)hx", "(bs)hy"}, ""},
    {"sum", {"ij"}, ""},
    {"sum", {"ij"}, ", dim=0"},
    {"sum", {"ij"}, ", dim=all"},
    {"mean", {"ij"}, ""},
    {"mean", {"ij"}, ", dim=0"},
    {"mean", {"ij"}, ", dim=all"},
    {"max", {"ij"}, ""},
    {"max", {"ij"}, ", dim=all"},
    {"min", {"ij"}, ""},
    {"min", {"ij"}, ", dim=0"},
    {"merge", {"ijk"}, ""},
    {"merge", {"ijk"}, ", dim=0"},
    {"merge", {"ij"}, ""},
    {"split", {"(ij)k"}, ", {i}, {j}, dim=0"},
    {"split", {"id"}, ", 2, {half}"},
    {"split", {"id"}, ", {half}, 2"},
    {"split", {"id"}, ", 3, {third}"},
    {"split", {"id"}, ", (2 {half})"},
    {"reshape", {"ij"}, ", {j}, {i}"},
    {"reshape", {"ijk"}, ", {i}, ({j} {k})"},
    {"transpose", {"ij"}, ", 1, 0"},
    {"transpose", {"ijk"}, ", 2, 0, 1"},
    {"concat", {"ij", "ij"}, ""},
    {"concat", {"ij", "ij"}, ", dim=0"},
    {"slice", {"ij"}, ", 1, 3"},
    {"pad", {"ij"}, ", 36"},
    {"pad", {"uj"}, ", 8, dim=0"},
    {"trim", {"ij"}, ""},
    {"shift", {"ij"}, ", 1"},
    {"shift", {"i(jk)"}, ", 1"},
    {"unfuse", {"i+jk"}, "", 2},
    {"zeros", {}, "{i}, {j}"},
    {"ones", {}, "{i}"},
    {"arange", {}, "{i}"},
    {"one_hot", {"#i"}, ", {n}"},
    {"one_hot", {"#i"}, ", [n]"},
    {"topk", {"ie"}, ", K", 2},
    {"count", {"#ik"}, ", E"},
    {"dispatch", {"td", "#tk"}, ", E"},
    {"dispatch", {"(bt)d", "#(bt)k"}, ", E"},
    {"dispatch", {"td", "#tk"}, ", E, capacity=3"},
    {"dispatch", {"td", "#tk"}, ", E, capacity=3, per=shard"},
    {"cross_entropy", {"iv", "#i"}, ""},
    {"cross_entropy", {"iv", "#i"}, ", reduction=mean"},
    {"rank_index", {}, "a"},
};

} // namespace

Generator::Generator(uint64_t seed) : random(seed) {}

SmallProgram Generator::begin() {
  const Mesh &mesh = meshes[random.below(std::size(meshes))];
  SmallProgram program;
  program.world = mesh.text;
  program.trained = random.chance(50);
  program.axes.assign(mesh.axes.begin(), mesh.axes.end());
  return program;
}

// Each axis shards one letter, or has a state for all operands.
void Generator::drawLayout(const SmallProgram &program, llvm::StringRef letters) {
  // Axes of different views overlap: one view per operation.
  llvm::SmallVector<std::string, 4> axes;
  const bool second = program.axes.size() > 2 && llvm::is_contained(program.axes, "e") && random.chance(40);
  for (const std::string &a : program.axes) {
    if ((a >= "e") == second) {
      axes.push_back(a);
    }
  }
  if (random.chance(20)) {
    std::reverse(axes.begin(), axes.end());
  }
  const llvm::StringRef states[] = {"R", "R", "R", "I", "P", "P", "P(avg)", "P(max)", "V"};
  for (const std::string &a : axes) {
    if (!letters.empty() && random.chance(60)) {
      axesOf[letters[random.below(letters.size())]].push_back(a);
    } else {
      stateOfAxis[a] = states[random.below(std::size(states))].str();
    }
  }
}

std::string Generator::inputType(bool integer, llvm::StringRef pattern) {
  // Mostly as the operation wants it; sometimes one axis is elsewhere.
  std::map<char, std::vector<std::string>> shards = axesOf;
  std::map<std::string, std::string> states = stateOfAxis;
  std::set<std::string> here;
  for (const auto &[letter, axes] : axesOf) {
    here.insert(axes.begin(), axes.end());
  }
  for (const auto &[axis, state] : stateOfAxis) {
    here.insert(axis);
  }
  if (random.chance(12) && !here.empty()) {
    const std::string axis = *std::next(here.begin(), static_cast<std::ptrdiff_t>(random.below(here.size())));
    for (auto &[letter, axes] : shards) {
      llvm::erase(axes, axis);
    }
    const llvm::StringRef other[] = {"R", "I", "P", "V", "P(avg)", "S", "S"};
    const llvm::StringRef state = other[random.below(std::size(other))];
    states.erase(axis);
    if (state == "S") {
      shards[dimOf.empty() ? 'i' : std::next(dimOf.begin(), static_cast<std::ptrdiff_t>(random.below(dimOf.size())))->first].push_back(
          axis);
    } else {
      states[axis] = state.str();
    }
  }
  std::string type = integer ? "i64[" : "f32[";
  bool inProduct = false;
  bool first = true;
  bool sum = false;
  for (char c : pattern) {
    if (c == '(' || c == ')' || c == '+') {
      if (c != ')') {
        type += (first ? "(" : ", (");
        first = true;
        sum = c == '+';
      } else {
        type += ")";
      }
      inProduct = c != ')';
      continue;
    }
    type += first ? "" : sum ? " + " : inProduct ? " " : ", ";
    first = false;
    type += dimOf[c];
    if (const auto it = shards.find(c); it != shards.end() && !it->second.empty()) {
      type += "@(" + llvm::join(it->second, ",") + ")";
    }
  }
  type += sum ? ")]" : "]";
  for (const auto &[axis, state] : states) {
    // What a state says is for one operand in turn, where it is partial.
    const bool partial = llvm::StringRef(state).starts_with("P");
    if (state != "R" && (!partial || random.chance(60)) && !(integer && partial && random.chance(90))) {
      type.append(" ").append(state).append("@").append(axis);
    }
  }
  return type;
}

std::string Generator::redistribute(SmallProgram &program, llvm::ArrayRef<KnownValue> known) {
  const KnownValue &v = known[random.below(known.size())];
  const std::string axis = program.axes[random.below(program.axes.size())];
  const char *const states[] = {"R", "I", "P", "R", "S"};
  std::string end = states[random.below(std::size(states))];
  if (end == "S") {
    end = v.type->dims.empty() ? "R" : "S(" + std::to_string(random.below(v.type->dims.size())) + ")";
  }
  program.lines.push_back("v" + std::to_string(counter++) + " = redistribute(" + v.name + ", " + end + "@" + axis + ")");
  return "redistribute";
}

// The rows of slots back at their tokens: with the ids that filled them, mostly.
std::string Generator::combine(SmallProgram &program, const KnownValue &slots) {
  dimOf = {{'t', "T"}, {'k', "K"}, {'b', "B"}};
  axesOf.clear();
  stateOfAxis.clear();
  std::string ids;
  bool product = false;
  for (const std::string &line : program.lines) {
    if (const size_t at = line.find("dispatch("); at != std::string::npos) {
      const llvm::StringRef arguments = llvm::StringRef(line).drop_front(at + 9);
      ids = arguments.split(',').second.split(',').first.trim().str();
    }
  }
  for (const auto &[name, type] : program.inputs) {
    if (name == ids) {
      const llvm::StringRef rows = llvm::StringRef(type).split('[').second.split(']').first;
      product = rows.starts_with("(");
      const llvm::StringRef t = product ? rows.split(' ').second : rows;
      dimOf['t'] = t.take_while([](char c) { return llvm::isAlpha(c); }).str();
      dimOf['b'] = product ? rows.drop_front(1).take_while([](char c) { return llvm::isAlpha(c); }).str() : "B";
    }
  }
  drawLayout(program, random.chance(70) ? "t" : "");
  const std::string w = "x" + std::to_string(counter++);
  program.inputs.emplace_back(w, inputType(false, product ? "(bt)k" : "tk"));
  if (ids.empty() || random.chance(35)) {
    ids = "x" + std::to_string(counter++);
    program.inputs.emplace_back(ids, inputType(true, product ? "(bt)k" : "tk"));
  }
  program.lines.push_back("v" + std::to_string(counter++) + " = combine(" + slots.name + ", " + ids + ", " + w + ")");
  return "combine";
}

// What follows the operands: sizes, shardings and numbers in place of their letters.
std::string Generator::argumentsAfter(const SmallProgram &program, llvm::StringRef pattern) {
  std::string rest = pattern.str();
  for (const auto &[letter, dim] : dimOf) {
    const std::string plain = std::string("{") + letter + "}";
    const std::string sharded = std::string("[") + letter + "]";
    for (size_t at; (at = rest.find(plain)) != std::string::npos;) {
      rest.replace(at, 3, dim);
    }
    for (size_t at; (at = rest.find(sharded)) != std::string::npos;) {
      rest.replace(at, 3, dim + "@" + program.axes[random.below(program.axes.size())]);
    }
  }
  const int64_t last = dimOf.count('d') ? extentOf(dimOf['d']) : 12;
  for (const auto &[word, by] : {std::pair("{half}", last / 2), std::pair("{third}", last / 3)}) {
    if (const size_t at = rest.find(word); at != std::string::npos) {
      rest.replace(at, std::string(word).size(), std::to_string(by));
    }
  }
  return rest;
}

// Gives each letter that has no dimension yet one of its own.
void Generator::drawDims(llvm::StringRef op, llvm::StringRef letters) {
  std::vector<std::string> free(std::begin(names), std::end(names));
  for (const auto &[letter, dim] : dimOf) {
    llvm::erase(free, dim);
  }
  const bool choices = op == "dispatch" || op == "take" || op == "count";
  for (char c : letters) {
    if (dimOf.count(c)) {
      continue;
    }
    const std::string drawn = free[c == 'u' ? 0 : random.below(free.size())];
    const std::string pick = c == 'u' ? "U" : c == 'e' ? "E" : c == 'k' && choices ? "K" : drawn;
    dimOf[c] = pick;
    llvm::erase(free, pick);
  }
}

std::string Generator::extend(SmallProgram &program, llvm::ArrayRef<KnownValue> known) {
  for (const KnownValue &v : known) {
    if (v.dims.size() == 3 && v.dims[1] == "c" && random.chance(40)) {
      return combine(program, known[random.chance(50) ? known.size() - 1 : static_cast<size_t>(&v - known.data())]);
    }
  }
  if (!known.empty() && random.chance(30)) {
    return redistribute(program, known);
  }
  const Template &t = templates[random.below(std::size(templates))];
  dimOf.clear();
  axesOf.clear();
  stateOfAxis.clear();
  const std::string letters = lettersOf(t);
  // An existing value may stand for the first operand whose number of dimensions it has.
  const KnownValue *reused = nullptr;
  size_t reusedAt = 0;
  if (!known.empty() && !t.operands.empty() && random.chance(75)) {
    const KnownValue &v = known[random.below(known.size())];
    for (size_t k = 0; k < t.operands.size() && !reused; ++k) {
      const llvm::StringRef p = t.operands[k];
      if (!p.contains('(') && !p.contains('#') && !p.contains('+') && p.size() == v.dims.size() && isFloat(v.type->dtype) &&
          llvm::none_of(v.dims, [](const std::string &d) { return d.empty(); })) {
        reused = &v;
        reusedAt = k;
        for (size_t i = 0; i < p.size(); ++i) {
          dimOf[p[i]] = v.dims[i];
        }
      }
    }
  }
  std::string all = letters + (t.rest.contains("{h}") || t.rest.contains("[h]") ? "h" : "") +
                    (t.rest.contains("n}") || t.rest.contains("[n]") ? "n" : "");
  drawDims(t.op, t.operands.empty() ? all + "ij" : all);
  drawLayout(program, letters);
  std::string call = t.op.str() + "(";
  for (size_t k = 0; k < t.operands.size(); ++k) {
    call += k ? ", " : "";
    if (reused && k == reusedAt) {
      call += reused->name;
      continue;
    }
    llvm::StringRef pattern = t.operands[k];
    const bool integer = pattern.consume_front("#");
    const std::string name = "x" + std::to_string(counter++);
    program.inputs.emplace_back(name, inputType(integer, pattern));
    call += name;
  }
  std::string results = "v" + std::to_string(counter++);
  for (int r = 1; r < t.results; ++r) {
    results += ", v" + std::to_string(counter++);
  }
  program.lines.push_back(results + " = " + call + argumentsAfter(program, t.rest) + ")");
  return t.op.str();
}

} // namespace shardc
