// SyncReader: reads sync files, one over another, into the parts of a plan. SyncFile.cpp finds the files and puts the plan
// together; SyncReader.cpp reads families and rules.
#pragma once

#include "RuleGate.h"
#include "shardc/Frontend/Sync.h"

namespace shardc {

class SyncReader {
public:
  SyncReader(const Job &j, const Module &m, DiagnosticEngine &d) : job(j), module(m), diags(d) {}

  // Reads the mapping of one file, whose families and rules stand behind those read before and so yield to them. `written`:
  // the user wrote it. What it `extends` is left to the caller.
  void read(const ConfigNode &root, llvm::StringRef what, bool written);
  // What the last mapping read extends; nothing if it does not say.
  const std::optional<Located<std::string>> &extended() const { return extends; }
  const std::string &version() const { return lastVersion; }
  SyncPlan plan();

private:
  struct Rule {
    SyncRule rule;
    std::vector<Located<std::string>> families; // empty: all
  };

  void family(const ConfigNode &node, const RuleGate &gate);
  void unit(const ConfigNode &node);
  void rules(const ConfigNode &node, const RuleGate &gate, unsigned depth);
  void rule(const ConfigNode &node, const RuleGate &gate);
  void readReduction(DictReader &reader, SyncRule &r);
  void readShard(const ConfigNode *node, const RuleGate &gate, SyncRule &r);
  SourceRange decidedAt(DictReader &reader);
  std::optional<SyncNorm> norm(const ConfigNode &node, const RuleGate &gate);
  std::optional<Scale> scale(const Located<std::string> &text, const RuleGate &gate);
  bool factor(llvm::StringRef word, SourceRange range, bool under, const RuleGate &gate, Scale &scale);
  template <class Atoms> void axes(llvm::ArrayRef<Located<std::string>> names, Atoms &atoms, std::string *text = nullptr);
  // The word at a key as the index of a choice; nothing if it is absent or wrong.
  std::optional<size_t> choice(DictReader &reader, llvm::StringRef key, llvm::ArrayRef<llvm::StringRef> words);

  const Job &job;
  const Module &module;
  DiagnosticEngine &diags;
  std::vector<SyncFamily> families;
  std::vector<std::string> familyNames; // also of those that do not apply
  std::vector<bool> ownNorm;            // per family: it says something about the norm
  std::vector<Rule> ruleList;
  std::vector<std::vector<std::string>> stepLists; // per file
  std::vector<SyncUnit> units;
  std::optional<SyncNorm> defaultNorm;
  std::optional<int64_t> microSteps;
  std::string sameBits;
  std::optional<Located<std::string>> extends;
  std::string lastVersion;
  bool userWrote = false; // the mapping that is read
};

} // namespace shardc
