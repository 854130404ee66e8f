// Diagnostics: the table of messages as data, and the list of what was found.
//
// Exists so that a message is a row of Diagnostics.def and nothing else. It prints nothing: rendering is Emit's. A finding
// made twice (a block inferred under two callers, a value reached over two paths) is one entry with a count.
#include "shardc/Support/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <array>

namespace shardc {

namespace {
constexpr DiagInfo Rows[] = {
#define DIAG(Name, Sev, Text) {#Name, Severity::Sev, Text},
#include "shardc/Support/Diagnostics.def"
};

// What makes two findings the same.
std::string identity(Diag id, SourceRange range, llvm::StringRef message) {
  const std::array<uint32_t, 4> numbers = {static_cast<uint32_t>(id), range.file.index, range.begin, range.end};
  std::string key(reinterpret_cast<const char *>(numbers.data()), sizeof(numbers));
  return key.append(message.data(), message.size());
}
} // namespace

const DiagInfo &diagInfo(Diag id) { return Rows[static_cast<size_t>(id)]; }

llvm::ArrayRef<DiagInfo> allDiags() { return Rows; }

std::string diagName(Diag id) { return kebabCase(diagInfo(id).enumerator); }

std::string kebabCase(llvm::StringRef camelCase) {
  std::string out;
  for (const char c : camelCase) {
    if (llvm::isUpper(c) && !out.empty()) {
      out += '-';
    }
    out += llvm::toLower(c);
  }
  return out;
}

DiagnosticBuilder DiagnosticEngine::add(Diag id, SourceRange range, std::string message) {
  const auto [it, isNew] = seen.try_emplace(identity(id, range, message), diagnostics.size());
  if (!isNew) {
    // What is chained onto the repetition was said the first time; it goes to a copy that nobody reads.
    ++diagnostics[it->second].count;
    repeated = Diagnostic();
    return DiagnosticBuilder(&repeated);
  }
  Diagnostic &made = diagnostics.emplace_back();
  made.id = id;
  made.severity = diagInfo(id).severity;
  made.message = std::move(message);
  made.range = range;
  errors += made.severity == Severity::Error;
  return DiagnosticBuilder(&made);
}

bool DiagnosticEngine::atLeast(Severity s) const {
  return std::any_of(diagnostics.begin(), diagnostics.end(), [&](const Diagnostic &d) { return d.severity >= s; });
}

llvm::StringRef nearest(llvm::StringRef written, llvm::ArrayRef<llvm::StringRef> candidates) {
  // One more than the largest distance still accepted.
  unsigned best = static_cast<unsigned>(std::max<size_t>(1, written.size() / 3)) + 1;
  llvm::StringRef found;
  for (const llvm::StringRef candidate : candidates) {
    const unsigned distance = written.edit_distance(candidate, /*AllowReplacements=*/true, /*MaxEditDistance=*/best - 1);
    if (distance < best && distance < written.size()) {
      best = distance;
      found = candidate;
    }
  }
  return found;
}

} // namespace shardc
