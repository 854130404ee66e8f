// CatalogModel: a model file as structures: what loadModel and buildModule read it into. Nothing is evaluated here.
#pragma once

#include "CatalogTerms.h"
#include "shardc/Frontend/Catalog.h"

namespace shardc {

struct ModelTensor {
  Located<std::string> name;
  Condition when;
  DType dtype = DType::BF16;
  bool buffer = false;                    // nothing trains it: not a parameter
  std::vector<Located<std::string>> dims; // names of sizes, arguments of the module, products
  Located<std::string> as;                // another full name, for a parameter that two modules share
};

// One way to make a submodule: `of` is a call such as `linear(D, (G H))`. `repeat`: a term; name.0, name.1, ...
struct ModelChild {
  Condition when;
  Located<std::string> of;
  std::optional<Located<std::string>> repeat;
};

struct ModelLine {
  Condition when;
  Located<std::string> text; // a line of the body, or the name of a value that is returned
  std::string loss;          // of a returned value that is the loss: its kind
};

struct ModelModule {
  Located<std::string> name;
  std::vector<Located<std::string>> args;
  std::vector<ModelTensor> inputs;
  std::vector<ModelTensor> tensors; // params and buffers
  std::vector<std::pair<Located<std::string>, std::vector<ModelChild>>> children;
  std::vector<ModelLine> body;
  std::vector<ModelLine> returns;

  const std::vector<ModelChild> *child(llvm::StringRef name) const;
};

struct ModelModules {
  std::map<std::string, ModelModule> byName;
  const ModelModule *find(llvm::StringRef name) const;
};

// What stands in a model file besides modules. The nodes are parts of `root`.
struct ModelHead {
  std::unique_ptr<ConfigNode> root;
  Located<std::string> family;
  std::vector<Located<std::string>> parts;
  std::vector<std::pair<Located<std::string>, std::string>> switches;       // with their defaults
  std::vector<std::pair<Located<std::string>, Located<std::string>>> sizes; // derived: terms, in order
  std::vector<std::pair<Located<std::string>, const ConfigNode *>> flavours;
  std::vector<std::pair<Located<std::string>, const ConfigNode *>> architectures;
  const ConfigNode *modules = nullptr;
};

// A shipped file ("models/llama3.yaml") or one on disk; nothing if it cannot be read (reported).
std::optional<ConfigNode> readCatalogNode(llvm::StringRef path, SourceRange from, DiagnosticEngine &diags);
std::optional<ModelHead> readModelHead(ConfigNode root, DiagnosticEngine &diags);
// The entries of a mapping, none of another node or of none.
llvm::ArrayRef<std::pair<Located<std::string>, ConfigNode>> entriesOf(const ConfigNode *node);
// The modules of a file and of the parts that it takes; its own win.
std::optional<ModelModules> readModules(const ModelHead &head, DiagnosticEngine &diags);
// The path of a family's file: shipped ones by name, others are paths already.
std::string familyPath(llvm::StringRef family);
bool isModelFile(llvm::StringRef path); // models/X.yaml

// Adds the sizes and switches that a flavour, or a Hugging Face config, does not say itself. False if one is wrong.
bool addDefaults(const ModelHead &head, Job &job, DiagnosticEngine &diags);
bool readHuggingFace(const Located<std::string> &path, Job &job, DiagnosticEngine &diags);
bool isSwitch(const ModelHead &head, llvm::StringRef name);

} // namespace shardc
