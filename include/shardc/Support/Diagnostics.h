// Diagnostics: what shardc has to say about what a person wrote.
//
// Every message is a row of Diagnostics.def: a name, a severity and a text with holes `{0}`, `{1}`. `emit<Diag::X>(range,
// args...)` records one; labels, notes and helps are chained onto it. Nothing is printed here: Emit renders the list.
#pragma once

#include "shardc/Support/Source.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"
#include <string>
#include <utility>
#include <vector>

namespace shardc {

enum class Severity : uint8_t { Note, Warning, Error };

enum class Diag : uint16_t {
#define DIAG(Name, Sev, Text) Name,
#include "shardc/Support/Diagnostics.def"
};

struct DiagInfo {
  const char *enumerator; // "AddMixesLayouts"
  Severity severity;
  const char *text; // with holes {0}, {1}, ...
};

// The row of a diagnostic, and all rows in the order of the table.
const DiagInfo &diagInfo(Diag id);
llvm::ArrayRef<DiagInfo> allDiags();
// "AddMixesLayouts" -> "add-mixes-layouts".
std::string diagName(Diag id);
std::string kebabCase(llvm::StringRef camelCase);

struct Diagnostic {
  Diag id{};
  Severity severity{};
  std::string message;                                     // holes filled
  SourceRange range;                                       // the place; may be invalid for findings about the whole job
  std::vector<std::pair<SourceRange, std::string>> labels; // other places that matter
  std::vector<std::string> notes;                          // "= ..." lines
  std::vector<std::string> helps;                          // "= help: ..."; further lines of one help follow after '\n'
  int64_t count = 1;                                       // equal places (layers alike)
  std::string countNoun = "places";                        // what is counted: "layers"
};

// Chains further parts onto the diagnostic just emitted. Valid until the next emit.
class DiagnosticBuilder {
public:
  explicit DiagnosticBuilder(Diagnostic *d) : diag(d) {}
  DiagnosticBuilder &label(SourceRange range, std::string text) {
    diag->labels.emplace_back(range, std::move(text));
    return *this;
  }
  DiagnosticBuilder &note(std::string text) {
    diag->notes.push_back(std::move(text));
    return *this;
  }
  DiagnosticBuilder &help(std::string text) {
    diag->helps.push_back(std::move(text));
    return *this;
  }
  DiagnosticBuilder &count(int64_t n, std::string noun) {
    diag->count = n;
    diag->countNoun = std::move(noun);
    return *this;
  }

private:
  Diagnostic *diag;
};

class DiagnosticEngine {
public:
  explicit DiagnosticEngine(SourceManager &sources) : sourceManager(sources) {}

  template <Diag id, class... Args> DiagnosticBuilder emit(SourceRange range, Args &&...args) {
    const DiagInfo &info = diagInfo(id);
    return add(id, range, llvm::formatv(info.text, std::forward<Args>(args)...).str());
  }

  SourceManager &sources() { return sourceManager; }
  const SourceManager &sources() const { return sourceManager; }
  // In the order in which they were emitted. A finding with the same id, message and place as an earlier one is
  // counted there and not repeated.
  llvm::ArrayRef<Diagnostic> all() const { return diagnostics; }
  bool hasErrors() const { return errors != 0; }
  size_t errorCount() const { return errors; }
  bool atLeast(Severity s) const;

private:
  DiagnosticBuilder add(Diag id, SourceRange range, std::string message);

  SourceManager &sourceManager;
  std::vector<Diagnostic> diagnostics;
  llvm::StringMap<size_t> seen; // what identifies a finding -> its index
  Diagnostic repeated;          // takes what is chained onto a repetition
  size_t errors = 0;
};

// The nearest of `candidates` to what was written, "" if none is near enough to be meant (edit distance at most a third
// of the length, at least 1, and less than the length). Ties go to the first.
llvm::StringRef nearest(llvm::StringRef written, llvm::ArrayRef<llvm::StringRef> candidates);

} // namespace shardc
