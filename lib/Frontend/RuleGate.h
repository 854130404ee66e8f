// RuleGate: when a part of a catalogue file applies to a job: its `version:` and `if:`.
#pragma once

#include "CatalogTerms.h"

namespace shardc {

class RuleGate {
public:
  RuleGate(const Job &j, DiagnosticEngine &d) : job(j), diags(d) {}

  // Reads `versions` (oldest first) and `defaults` of a file. False if the job's version is none of them; a job without a
  // version is of the newest.
  bool read(DictReader &file, llvm::StringRef what);
  // Reads `if` and `version` of one entry; nothing if they are wrong, which is reported.
  std::optional<bool> applies(DictReader &entry) const;
  TermScope scope() const { return TermScope(job, defaults); }
  const std::string &version() const { return chosen; } // "" for a file without versions

private:
  std::optional<bool> inRange(const Located<std::string> &range) const;
  std::optional<size_t> place(llvm::StringRef name, const Located<std::string> &range) const;

  const Job &job;
  DiagnosticEngine &diags;
  std::map<std::string, std::string> defaults;
  std::vector<Located<std::string>> versions;
  std::optional<size_t> index;
  std::string chosen;
};

} // namespace shardc
