// Generator: random programs as graph files, one operation after the other.
//
// Layouts are drawn so that most operations type: axes are given to letters of the operation's rule, the same in all
// operands, and then one operand is sometimes changed. Extents are distinct and mostly even; one is not.
#pragma once

#include "shardc/Infer/Infer.h"
#include <map>

namespace shardc {

// One after the other, the same on every machine.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next();
  size_t below(size_t n) { return static_cast<size_t>(next() % n); }
  bool chance(unsigned percent) { return below(100) < percent; }
  template <class T> const T &choose(llvm::ArrayRef<T> list) { return list[below(list.size())]; }

private:
  uint64_t state;
};

struct SmallProgram {
  std::string world; // lines `world:` and `mesh:`
  std::vector<std::string> axes;
  std::vector<std::pair<std::string, std::string>> inputs; // name, type
  std::vector<std::string> lines;
  bool trained = false; // floats are parameters, so that the checker infers their gradients
  std::string text() const;
};

// A value of the program so far, as the generator sees it.
struct KnownValue {
  std::string name;
  std::vector<std::string> dims; // "T", "(B L)"; empty text where it cannot be written
  const Type *type = nullptr;
};

class Generator {
public:
  explicit Generator(uint64_t seed);
  SmallProgram begin();
  // Adds one operation and the inputs that it needs; its name.
  std::string extend(SmallProgram &program, llvm::ArrayRef<KnownValue> known);

private:
  std::string inputType(bool integer, llvm::StringRef pattern);
  std::string combine(SmallProgram &program, const KnownValue &slots);
  std::string redistribute(SmallProgram &program, llvm::ArrayRef<KnownValue> known);
  std::string argumentsAfter(const SmallProgram &program, llvm::StringRef pattern);
  void drawDims(llvm::StringRef op, llvm::StringRef letters);
  void drawLayout(const SmallProgram &program, llvm::StringRef letters);

  Random random;
  std::map<char, std::string> dimOf;               // letter -> name of a size
  std::map<char, std::vector<std::string>> axesOf; // letter -> axes that shard it
  std::map<std::string, std::string> stateOfAxis;  // other axes -> state
  int counter = 0;
};

} // namespace shardc
