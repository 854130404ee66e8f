// Verify: what a verdict on a typed program says, and what it rests on (design: types, section 8).
//
// Inference has typed every value or said why not. Verify runs the checks that need the whole program, and writes down
// what the verdict assumed and what nobody checked. It changes nothing and prints nothing.
#pragma once

#include "shardc/Frontend/Job.h"
#include "shardc/Verify/Slices.h"

namespace shardc {

enum class Verdict : uint8_t { Ok, Findings, Incomplete, Unreadable };
llvm::StringRef verdictName(Verdict v); // "ok", "findings", "incomplete", "unreadable"

struct Report {
  Verdict verdict = Verdict::Unreadable;
  std::vector<std::string> assumes;
  std::vector<Unchecked> unchecked;
  std::vector<SyncRow> gradients;  // of trained parameters; empty where the program has none, or has values without a type
  std::vector<StoredParam> slices; // what ranks keep of them; empty where nobody says so
};

// One check over the whole program; it emits diagnostics, or adds to what is assumed or unchecked.
struct Check {
  llvm::StringRef name;
  llvm::StringRef brief;
  void (*run)(const TypedModule &typed, Report &report, DiagnosticEngine &diags);
};
llvm::ArrayRef<Check> allChecks();

// Runs all checks. `known` brings what the phases before assumed and left out. The verdict is `findings` if an error was
// emitted by any phase, else `incomplete` if something was not checked, else `ok`.
Report verify(const TypedModule &typed, Report known, DiagnosticEngine &diags);

} // namespace shardc
