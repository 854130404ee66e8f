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

// Sizes that follow from others by a term of the model file (`r: N / G`), in its order, as far as the job's values do follow.
struct DerivedSize {
  std::string name;
  Located<std::string> term;
  std::vector<std::string> from;
};
std::vector<DerivedSize> derivedSizes(const Job &job, DiagnosticEngine &diags);
// What the term is with the job's sizes now; nothing where it has no whole value. Nothing is reported.
std::optional<int64_t> valueOf(const DerivedSize &size, const Job &job);

// The job's model as a program, with the strategy's layouts and boundaries in it. Nothing if reported errors prevent it.
std::optional<Module> buildModule(const Job &job, DiagnosticEngine &diags);

// Number of parameters of the whole model on one device; tied ones once.
int64_t countParameters(const Module &module);

} // namespace shardc
