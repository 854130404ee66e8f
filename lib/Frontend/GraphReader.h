// GraphReader: the parts of reading a graph file that its two sources share. Graph.cpp reads mesh, sizes and the list of
// functions; GraphBody.cpp reads one function. Not for others: they call readGraph.
#pragma once

#include "Expr.h"
#include "shardc/Frontend/Dialect.h"

namespace shardc {

// What is written as one scalar, as a text whose pieces have places. A plain scalar over several lines is taken as it stands
// in the file.
Piece pieceOf(const ConfigNode &node, const SourceManager &sources);

// None of a mapping or list that is absent.
inline auto entriesOf(const ConfigNode *node) {
  return node ? llvm::ArrayRef(node->entries) : llvm::ArrayRef<std::pair<Located<std::string>, ConfigNode>>();
}
inline auto itemsOf(const ConfigNode *node) { return node ? llvm::ArrayRef(node->items) : llvm::ArrayRef<ConfigNode>(); }

class GraphReader {
public:
  GraphReader(const ConfigNode &r, DiagnosticEngine &d) : root(r), diags(d) {}
  std::optional<Module> read();

private:
  friend class GraphFunction;

  struct Known {
    SourceRange range; // of its name
    FunctionId id;     // invalid until it is read
    bool called = false;
  };

  bool readAxes(DictReader &reader);
  bool readView(llvm::StringRef name, SourceRange range, const ConfigNode &node, std::vector<ViewSpec> &views);
  std::optional<AxisSpec> readAxis(const Located<std::string> &name, const ConfigNode &node);
  void readSizes(const ConfigNode *node);
  void readSize(const Located<std::string> &name, const ConfigNode &node);
  void checkProducts();
  bool checkName(const Located<std::string> &name, llvm::StringRef what);
  void readFunctions(DictReader &reader);
  void readLoss(const ConfigNode *node, const BodyBuilder &builder);
  std::vector<Callee> callee(llvm::StringRef name, SourceRange range, llvm::StringMap<uint32_t> &uses);

  const ConfigNode &root;
  DiagnosticEngine &diags;
  Module module;
  SizeTable sizes;
  std::vector<std::pair<NameId, Located<std::string>>> productNames; // each factor, with its product
  llvm::StringMap<Known> functions;
  llvm::StringMap<const ConfigNode *> functionBoundaries; // of `boundaries` that name a function
  llvm::StringMap<SourceRange> boundaryNames;
};

// Reads the keys of one function (the root or one of `functions`) and adds its body to the module.
class GraphFunction {
public:
  GraphFunction(GraphReader &g, DictReader &r, FunctionId f, bool rootFunction);
  // The body is complete; every mistake in it has been reported.
  void read();
  const BodyBuilder &scope() const { return builder; }

private:
  Function &body() { return graph.module.function(function); }
  void readValues(llvm::StringRef key, ValueKind kind, bool gradient);
  std::optional<TypeId> readType(const ConfigNode &node, bool gradient);
  void readInputNames();
  void readBoundaries(const ConfigNode *node);
  void addBoundary(const Located<std::string> &value, const ConfigNode &node);
  void moduleBoundaries();
  void applyBoundaries(size_t firstValue);
  void applyBoundary(ValueId value, const ConfigNode &node);
  void readOps();
  void readOp(const ConfigNode &node);
  void readTypes();
  void readOutputs();
  std::optional<ValueId> known(const Located<std::string> &name);

  struct Boundary {
    const ConfigNode *node = nullptr;
    SourceRange range; // of its key
    bool used = false;
  };

  GraphReader &graph;
  DictReader &reader;
  FunctionId function;
  bool isRoot;
  llvm::StringMap<uint32_t> uses; // of the functions that it calls
  BodyBuilder builder;
  llvm::StringMap<Boundary> boundaries; // by the value's name
  std::vector<std::string> boundaryOrder;
  std::vector<const ConfigNode *> outBoundaries; // one per result
};

} // namespace shardc
