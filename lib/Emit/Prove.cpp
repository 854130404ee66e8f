// Prove: text and JSON of a proof and of random programs. See the header.
#include "shardc/Emit/Prove.h"
#include "shardc/Emit/Json.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <set>

namespace shardc {

namespace {

constexpr size_t MostShown = 20; // refutations in text; JSON has all

const char *verdictOf(const Proof &proof) {
  return !proof.refutations.empty() ? "refuted" : !proof.unable.empty() ? "unable" : proof.gradientsRight() ? "proved" : "refuted";
}

// Parameters of modules alike are one line: their numbers become `*`.
std::string starred(llvm::StringRef path) {
  llvm::SmallVector<llvm::StringRef, 8> parts;
  path.split(parts, '.');
  for (llvm::StringRef &part : parts) {
    part = !part.empty() && llvm::all_of(part, llvm::isDigit) ? llvm::StringRef("*") : part;
  }
  return llvm::join(parts, ".");
}

std::string placeOf(SourceRange range, const SourceManager &sources) {
  if (!range.valid()) {
    return "";
  }
  const LineColumn at = sources.lineColumn(range.file, range.begin);
  return llvm::formatv("{0}:{1}:{2}", sources.name(range.file), at.line, at.column).str();
}

std::string ratioText(const ParameterProof &p) {
  if (p.none) {
    return "no gradient";
  }
  if (p.synced) {
    return (p.claimed.empty() ? p.synced->text() : p.claimed) + " of the true gradient";
  }
  return p.mean ? "each rank wrong, their mean " + p.mean->text() + " of the true gradient" : "no multiple of the true gradient";
}

// The factor that the checker gives in the job's own sizes, where they are others.
std::string realText(const ParameterProof &p) {
  return p.claimed.empty() || p.real.empty() || p.real == p.claimed ? "" : "; in the job's sizes " + p.real;
}

// A polynomial identity of low degree that does not hold passes with at most degree / 2^61 per element; keyed functions
// collide with at most q^2 / 2^62 over q evaluations.
std::string chance(int64_t elements) {
  const double q = static_cast<double>(std::max<int64_t>(elements, 1));
  return llvm::formatv("{0:e1}", q * q / 4.611686018427388e18).str();
}

} // namespace

void writeProofText(llvm::raw_ostream &out, llvm::StringRef job, const Proof &proof, const SourceManager &sources) {
  size_t shown = 0;
  for (const Refutation &r : proof.refutations) {
    if (++shown > MostShown) {
      out << "... and " << proof.refutations.size() - MostShown << " more\n";
      break;
    }
    out << "refuted: " << (r.gradient ? "the gradient of " : "") << '`' << r.value << "`: " << r.text << '\n';
    if (const std::string place = placeOf(r.range, sources); !place.empty()) {
      out << "  --> " << place << '\n';
    }
  }
  if (!proof.unable.empty()) {
    out << "cannot run: " << proof.unable << '\n';
    if (const std::string place = placeOf(proof.where, sources); !place.empty()) {
      out << "  --> " << place << '\n';
    }
  }
  std::set<std::string> said;
  for (const ParameterProof &p : proof.parameters) {
    if (proof.synchronised && (p.judged || p.none) && (!p.synced || !p.synced->isOne())) {
      std::string line = "gradient: `" + starred(p.path) + "`: " + ratioText(p) + " after synchronisation" + realText(p) + "\n";
      if (said.insert(line).second) {
        out << line;
      }
    }
    if (p.normTaken && (!p.norm || !p.norm->isOne())) {
      const std::string how = p.norm ? "its squares are counted " + p.norm->text() + " times" : "not all of its squares are counted";
      std::string line = "clip norm: `" + starred(p.path) + "`: " + how + "\n";
      if (said.insert(line).second) {
        out << line;
      }
    }
  }
  if (!proof.shrunk.empty()) {
    out << "shrunk: ";
    for (const ShrunkSize &s : proof.shrunk) {
      out << (&s == &proof.shrunk.front() ? "" : ", ") << s.name << ' ' << s.from << " -> " << s.to;
    }
    out << '\n';
  }
  out << job << ": " << verdictOf(proof) << ": " << proof.compared << " values on " << proof.ranks << " ranks, " << proof.elements
      << " elements; a wrong one passes with probability at most " << chance(proof.elements) << '\n';
}

void writeProofJson(llvm::raw_ostream &out, llvm::StringRef job, const Proof &proof, const SourceManager &sources) {
  llvm::json::OStream json(out, 2);
  json.object([&] {
    writeJsonHead(json);
    json.attribute("job", jsonText(job));
    json.attribute("verdict", verdictOf(proof));
    json.attribute("ranks", proof.ranks);
    json.attribute("values", proof.compared);
    json.attribute("elements", proof.elements);
    json.attribute("unable", jsonText(proof.unable));
    json.attributeArray("shrunk", [&] {
      for (const ShrunkSize &s : proof.shrunk) {
        json.object([&] {
          json.attribute("name", jsonText(s.name));
          json.attribute("from", s.from);
          json.attribute("to", s.to);
        });
      }
    });
    json.attributeArray("refutations", [&] {
      for (const Refutation &r : proof.refutations) {
        json.object([&] {
          json.attribute("value", jsonText(r.value));
          json.attribute("gradient", r.gradient);
          json.attribute("text", jsonText(r.text));
          json.attribute("place", jsonText(placeOf(r.range, sources)));
        });
      }
    });
    json.attributeArray("parameters", [&] {
      for (const ParameterProof &p : proof.parameters) {
        json.object([&] {
          json.attribute("name", jsonText(p.path));
          json.attribute("scale", p.ratio ? llvm::json::Value(p.ratio->text()) : llvm::json::Value(nullptr));
          json.attribute("synchronised", p.synced ? llvm::json::Value(p.synced->text()) : llvm::json::Value(nullptr));
          json.attribute("checker", verdictName(p.verdict));
          json.attribute("formula", p.claimed.empty() ? llvm::json::Value(nullptr) : llvm::json::Value(p.claimed));
          json.attribute("real", p.real.empty() ? llvm::json::Value(nullptr) : llvm::json::Value(p.real));
          json.attribute("norm", p.norm ? llvm::json::Value(p.norm->text()) : llvm::json::Value(nullptr));
          json.attribute("mean", p.mean ? llvm::json::Value(p.mean->text()) : llvm::json::Value(nullptr));
        });
      }
    });
  });
  out << '\n';
}

// What the checker did not notice: holes, and what could not be run to see whether there was something to notice.
static void writeMutant(llvm::raw_ostream &out, const Mutant &mutant, const SourceManager &sources) {
  out << (mutant.fate == Fate::Hole ? "hole: " : "not run: ") << mutant.what << ": " << mutant.why << '\n';
  if (const std::string place = placeOf(mutant.range, sources); !place.empty()) {
    out << "  --> " << place << '\n';
  }
}

void writeMutationsText(llvm::raw_ostream &out, llvm::StringRef job, const MutationReport &report, const SourceManager &sources) {
  if (report.job.fate != Fate::Equal) {
    out << job << ": not proved, so that mistakes in it say nothing: " << report.job.why << '\n';
    return;
  }
  std::map<std::string, int64_t> findings;
  for (const Mutant &mutant : report.mutants) {
    if (mutant.fate == Fate::Refused) {
      ++findings[mutant.why];
    } else if (mutant.fate != Fate::Equal) {
      writeMutant(out, mutant, sources);
    }
  }
  for (const auto &[finding, n] : findings) {
    out << "refused: " << finding << ": " << n << '\n';
  }
  const Rational rate = report.rate();
  out << job << ": " << report.mutants.size() << " mistakes: " << report.count(Fate::Refused) << " refused, " << report.count(Fate::Equal)
      << " proved harmless, " << report.count(Fate::NotRun) << " not run, " << report.count(Fate::Hole) << " not noticed; rate "
      << llvm::formatv("{0:f1} %\n", 100.0 * static_cast<double>(rate.num) / static_cast<double>(rate.den));
}

void writeMutationsJson(llvm::raw_ostream &out, llvm::StringRef job, const MutationReport &report, const SourceManager &sources) {
  const char *const fates[] = {"refused", "harmless", "hole", "not run"};
  llvm::json::OStream json(out, 2);
  json.object([&] {
    writeJsonHead(json);
    json.attribute("job", jsonText(job));
    json.attribute("proved", report.job.fate == Fate::Equal);
    json.attribute("why", jsonText(report.job.why));
    json.attributeArray("mistakes", [&] {
      for (const Mutant &mutant : report.mutants) {
        json.object([&] {
          json.attribute("what", jsonText(mutant.what));
          json.attribute("fate", fates[static_cast<size_t>(mutant.fate)]);
          json.attribute("why", jsonText(mutant.why));
          json.attribute("place", jsonText(placeOf(mutant.range, sources)));
        });
      }
    });
  });
  out << '\n';
}

static void writeCounts(llvm::raw_ostream &out, llvm::StringRef title,
                        const std::map<std::pair<std::string, std::string>, int64_t> &counts) {
  for (const auto &[key, n] : counts) {
    out << title << ": " << key.first << ", " << key.second << ": " << n << '\n';
  }
}

void writeProgramsText(llvm::raw_ostream &out, const ProgramsReport &report) {
  for (const ProgramFailure &f : report.failures) {
    out << "unsound: `" << f.operation << "` is accepted, but " << f.why << '\n' << f.graph << '\n';
  }
  for (const ProgramFailure &f : report.alarms) {
    out << "suspected false alarm: `" << f.operation << "` is refused [" << f.finding << "], but its result is always `" << f.why << "`\n"
        << f.graph << '\n';
  }
  writeCounts(out, "unsound", report.unsound);
  writeCounts(out, "suspected false alarms", report.falseAlarms);
  for (const auto &[reason, n] : report.reasons) {
    out << "not run: " << reason << ": " << n << '\n';
  }
  int64_t unsound = 0;
  for (const auto &[key, n] : report.unsound) {
    unsound += n;
  }
  out << report.programs << " programs: " << report.accepted << " accepted, of them " << report.proved << " proved, " << report.unable
      << " not run to the end, unsound " << unsound << "; " << report.rejected << " refused, of them " << report.judged << " judged\n";
}

static void writeFailures(llvm::json::OStream &json, llvm::StringRef name, llvm::ArrayRef<ProgramFailure> failures) {
  json.attributeArray(name, [&] {
    for (const ProgramFailure &f : failures) {
      json.object([&] {
        json.attribute("operation", jsonText(f.operation));
        json.attribute("finding", jsonText(f.finding));
        json.attribute("why", jsonText(f.why));
        json.attribute("graph", jsonText(f.graph));
      });
    }
  });
}

void writeProgramsJson(llvm::raw_ostream &out, const ProgramsReport &report) {
  llvm::json::OStream json(out, 2);
  json.object([&] {
    writeJsonHead(json);
    json.attribute("programs", report.programs);
    json.attribute("accepted", report.accepted);
    json.attribute("proved", report.proved);
    json.attribute("unable", report.unable);
    json.attribute("rejected", report.rejected);
    json.attribute("judged", report.judged);
    json.attributeArray("unsound", [&] {
      for (const auto &entry : report.unsound) {
        json.object([&] {
          const auto &[key, n] = entry;
          json.attribute("operation", key.first);
          json.attribute("of", key.second);
          json.attribute("programs", n);
        });
      }
    });
    json.attributeArray("false_alarms", [&] {
      for (const auto &entry : report.falseAlarms) {
        json.object([&] {
          const auto &[key, n] = entry;
          json.attribute("finding", key.first);
          json.attribute("operation", key.second);
          json.attribute("programs", n);
        });
      }
    });
    writeFailures(json, "failures", report.failures);
    writeFailures(json, "alarms", report.alarms);
  });
  out << '\n';
}

} // namespace shardc
