// Catalog: shipped models, strategies and framework data, YAML files built into the binary.
//
// A model file says what one device computes: sizes, modules, parameters, bodies. A strategy file says what a framework
// does to it: parameter layouts and `src -> dst` at module boundaries, per version and switch. A user writes the same
// files for a model or framework of their own.
#pragma once

#include "shardc/Frontend/Body.h"
#include "shardc/Frontend/Job.h"

namespace shardc {

// One shipped file: "models/llama.yaml" and its text.
struct CatalogFile {
  llvm::StringRef path;
  llvm::StringRef text;
};
llvm::ArrayRef<CatalogFile> catalogFiles();
const CatalogFile *catalogFile(llvm::StringRef path);

// family/flavour pairs in order of the files.
struct Flavour {
  std::string family;
  std::string flavour;
};
std::vector<Flavour> allFlavours(DiagnosticEngine &diags);

// Sizes and switches of family/flavour, or of a Hugging Face config.json whose architecture a family reads, are added to
// the job (family, flavour, sizes, switches). False if the model cannot be found or read; reported.
bool loadModel(const Located<std::string> &model, Job &job, DiagnosticEngine &diags);

// The job's model as a program, with the strategy's layouts and boundaries in it. Nothing if reported errors prevent it.
std::optional<Module> buildModule(const Job &job, DiagnosticEngine &diags);

// Number of parameters of the whole model on one device; tied ones once.
int64_t countParameters(const Module &module);

} // namespace shardc
