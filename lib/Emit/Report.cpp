// Report: the text and the JSON of `check`. See the header. Not here: how a finding is drawn (Diagnostics.cpp).
#include "shardc/Emit/Report.h"
#include "shardc/Emit/Diagnostics.h"
#include "shardc/Emit/Json.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

namespace shardc {

std::string bytesText(int64_t bytes) {
  static constexpr const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) {
    return std::to_string(bytes) + " B";
  }
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  return llvm::formatv("{0:f1} {1}", value, units[unit]).str();
}

namespace {

// "1 error", "2 errors".
std::string counted(uint64_t n, llvm::StringRef noun) { return (std::to_string(n) + " " + noun + (n == 1 ? "" : "s")).str(); }

// A name from outside on one line, whatever bytes are in it.
std::string printable(llvm::StringRef text) {
  std::string shown;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    shown += byte < 0x20 || byte == 0x7f ? "\\x" + llvm::utohexstr(byte, true, 2) : std::string(1, c);
  }
  return shown;
}

struct Counts {
  uint64_t errors = 0;
  uint64_t warnings = 0;
};

Counts countFindings(const DiagnosticEngine &diags) {
  Counts counts;
  for (const Diagnostic &d : diags.all()) {
    counts.errors += d.severity == Severity::Error;
    counts.warnings += d.severity == Severity::Warning;
  }
  return counts;
}

// Sizes of the program as it runs, from the instances and how often each is used; nothing is expanded.
std::string programText(const TypedModule &typed) {
  uint64_t operations = 0;
  uint64_t collectives = 0;
  for (const Instance &instance : typed.instances) {
    const Function &function = typed.module.function(instance.function);
    uint64_t local = 0;
    for (const Op &op : function.ops) {
      local += op.kind != OpKind::Call;
    }
    uint64_t moves = 0;
    for (const Move &move : instance.moves) {
      moves += communicates(move.forward);
    }
    const auto uses = static_cast<uint64_t>(instance.uses);
    operations = llvm::SaturatingMultiplyAdd(local, uses, operations);
    collectives = llvm::SaturatingMultiplyAdd(moves, uses, collectives);
  }
  return counted(static_cast<uint64_t>(typed.module.axes.world()), "rank") + ", " + counted(operations, "operation") + ", " +
         counted(collectives, "collective") + " forward";
}

llvm::raw_ostream::Colors verdictColour(Verdict v) {
  switch (v) {
  case Verdict::Ok:
    return llvm::raw_ostream::GREEN;
  case Verdict::Incomplete:
    return llvm::raw_ostream::YELLOW;
  case Verdict::Findings:
  case Verdict::Unreadable:
    return llvm::raw_ostream::RED;
  }
  return llvm::raw_ostream::RED;
}

} // namespace

void writeCheckText(llvm::raw_ostream &out, const JobReport &job, bool colour) {
  renderText(out, job.diags, colour);
  out << (job.diags.all().empty() ? "" : "\n") << printable(job.job) << ": ";
  if (colour) {
    out.enable_colors(true);
    out.changeColor(verdictColour(job.report.verdict), true);
  }
  out << verdictName(job.report.verdict);
  if (colour) {
    out.resetColor();
  }
  const Counts counts = countFindings(job.diags);
  std::string separator = " (";
  if (counts.errors) {
    out << separator << counted(counts.errors, "error");
    separator = ", ";
  }
  if (counts.warnings) {
    out << separator << counted(counts.warnings, "warning");
    separator = ", ";
  }
  if (job.typed) {
    out << separator << programText(*job.typed);
    separator = ", ";
  }
  out << (separator == ", " ? ")\n" : "\n");
  for (const std::string &text : job.report.assumes) {
    out << "  assumed: " << text << '\n';
  }
  for (const Unchecked &part : job.report.unchecked) {
    out << "  not checked: " << part.what << " (" << part.why << ")\n";
  }
}

void writeJsonHead(llvm::json::OStream &json) {
  json.attribute("shardc", SHARDC_VERSION);
  json.attribute("schema", JsonSchema);
}

void writeJsonFindings(llvm::json::OStream &json, const DiagnosticEngine &diags) {
  const SourceManager &sources = diags.sources();
  json.attributeArray("findings", [&] {
    for (const Diagnostic &d : diags.all()) {
      json.object([&] {
        json.attribute("name", diagName(d.id));
        json.attribute("severity", severityName(d.severity));
        json.attribute("message", jsonText(d.message));
        const bool placed = d.range.valid();
        const LineColumn at = placed ? sources.lineColumn(d.range.file, d.range.begin) : LineColumn{};
        json.attribute("file", placed ? jsonText(sources.name(d.range.file)) : llvm::json::Value(nullptr));
        json.attribute("line", placed ? llvm::json::Value(at.line) : llvm::json::Value(nullptr));
        json.attribute("column", placed ? llvm::json::Value(at.column) : llvm::json::Value(nullptr));
        json.attribute("count", d.count);
        json.attribute("help", d.helps.empty() ? llvm::json::Value(nullptr) : jsonText(llvm::join(d.helps, "\n")));
      });
    }
  });
}

static void writeJob(llvm::json::OStream &json, const JobReport &job) {
  json.object([&] {
    json.attribute("job", jsonText(job.job));
    json.attribute("verdict", verdictName(job.report.verdict));
    json.attributeArray("assumes", [&] {
      for (const std::string &text : job.report.assumes) {
        json.value(jsonText(text));
      }
    });
    json.attributeArray("unchecked", [&] {
      for (const Unchecked &part : job.report.unchecked) {
        json.object([&] {
          json.attribute("what", jsonText(part.what));
          json.attribute("why", jsonText(part.why));
        });
      }
    });
    writeJsonFindings(json, job.diags);
  });
}

void writeCheckJson(llvm::raw_ostream &out, llvm::ArrayRef<JobReport> jobs) {
  llvm::json::OStream json(out, 2);
  json.object([&] {
    writeJsonHead(json);
    json.attributeArray("jobs", [&] {
      for (const JobReport &job : jobs) {
        writeJob(json, job);
      }
    });
  });
  out << '\n';
}

} // namespace shardc
