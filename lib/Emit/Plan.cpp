// Plan: text and JSON of the plan of one change of layout. See the header.
//
// The JSON names no rank: a group is the digits in which its ranks differ, a layout the digits that cut each dimension. Its size
// does not grow with the world.
#include "shardc/Emit/Plan.h"
#include "shardc/Emit/Json.h"
#include "shardc/IR/Text.h"
#include "llvm/Support/Format.h"

namespace shardc {
namespace {

constexpr llvm::StringRef CostNames[] = {"time", "bytes", "steps"};

std::string ratio(int64_t elements, int64_t bound) {
  if (bound == 0) {
    return elements == 0 ? "1.000" : "";
  }
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.3f", static_cast<double>(elements) / static_cast<double>(bound));
  return text;
}

// `reducer`: how addends are written.
std::string layoutText(const Grid &grid, const Layout &l, llvm::StringRef reducer) {
  const auto at = [](const std::string &digits) {
    return digits.empty() ? "" : llvm::StringRef(digits).contains(',') ? "@(" + digits + ")" : "@" + digits;
  };
  std::string text = "[";
  for (unsigned d = 0; d < grid.dims(); ++d) {
    text += (d ? ", " : "") + std::to_string(grid.extents[d]) + at(grid.describe(l.dim(d)));
  }
  return text + "]" + (l.partial ? " " + reducer.str() + at(grid.describe(l.partial)) : "");
}

std::string scaleText(const Step &s) {
  return std::to_string(s.numerator) + (s.denominator == 1 ? "" : "/" + std::to_string(s.denominator));
}

using Json = llvm::json::OStream;

void writeDigit(Json &json, const Digit &digit) {
  json.object([&] {
    json.attribute("size", digit.size);
    json.attributeArray("parts", [&] {
      for (const auto &part : digit.parts) {
        json.array([&] {
          json.value(part.first);
          json.value(part.second);
        });
      }
    });
    json.attribute("split", digit.balanced ? "balanced" : "chunks");
  });
}

void writeSet(Json &json, llvm::StringRef key, const Grid &grid, DigitSet set) {
  json.attributeArray(key, [&] {
    for (unsigned i = 0; i < grid.digits.size(); ++i) {
      if (set >> i & 1) {
        json.value(i);
      }
    }
  });
}

void writeLayout(Json &json, llvm::StringRef key, const Grid &grid, const Layout &l) {
  json.attributeObject(key, [&] {
    json.attributeArray("dims", [&] {
      for (unsigned d = 0; d < grid.dims(); ++d) {
        json.array([&] {
          for (uint8_t i : l.dim(d)) {
            json.value(i);
          }
        });
      }
    });
    writeSet(json, "partial", grid, l.partial);
  });
}

void writeStep(Json &json, const Redistribution &plan, const Step &s) {
  json.object([&] {
    json.attribute("kind", stepName(s.kind));
    writeSet(json, "group", plan.grid, s.group);
    json.attribute("ranks", plan.grid.product(s.group));
    json.attribute("elements", s.elements);
    json.attribute("microseconds", s.time);
    if (s.kind == StepKind::Scale) {
      json.attribute("factor", scaleText(s));
    }
    writeLayout(json, "after", plan.grid, s.after);
  });
}

} // namespace

void writePlanText(llvm::raw_ostream &out, const PlanReport &report) {
  const Redistribution &p = report.plan;
  out << print(report.from, report.module) << " -> " << print(report.to, report.module) << "  over " << p.grid.world << " ranks\n";
  llvm::StringRef reducer = "P";
  for (const Type *type : {&report.from, &report.to}) {
    for (const auto &[atom, state] : type->states) {
      reducer = state == State::PMax || state == State::PMin ? stateName(state) : reducer;
    }
  }
  Layout before = p.from;
  for (const Step &s : p.steps) {
    out << "  " << stepName(s.kind);
    if (s.kind == StepKind::Scale) {
      out << " by " << scaleText(s) << '\n';
      continue;
    }
    out << " over " << p.grid.describe(s.group) << " (" << p.grid.product(s.group) << " ranks)";
    if (communicates(s.kind)) {
      out << ": " << s.elements * p.elementBytes << " bytes, " << llvm::format("%.1f us", s.time);
    }
    out << "\n    " << layoutText(p.grid, before, reducer) << " -> " << layoutText(p.grid, s.after, reducer) << '\n';
    before = s.after;
  }
  if (p.steps.empty()) {
    out << "  nothing moves\n";
  }
  out << "each rank receives at most " << p.elements * p.elementBytes << " bytes; no plan less than " << p.bound * p.elementBytes;
  const std::string over = ratio(p.elements, p.bound);
  out << (over.empty() ? "" : " (ratio " + over + ")") << '\n';
  out << "memory: at most " << p.peak * p.elementBytes << " bytes between steps, the larger end has " << p.allowed * p.elementBytes << '\n';
  out << "time: " << llvm::format("%.1f us", p.time) << " on " << report.machine.name << "; "
      << (p.best ? "no cheaper sequence of these steps exists" : "a cheaper sequence may exist: not all were tried")
      << " (cost: " << CostNames[static_cast<size_t>(report.options.cost)] << ")\n";
}

void writePlanJson(llvm::raw_ostream &out, const PlanReport &report) {
  const Redistribution &p = report.plan;
  Json json(out, 2);
  json.object([&] {
    writeJsonHead(json);
    json.attributeObject("plan", [&] {
      json.attribute("from", jsonText(print(report.from, report.module)));
      json.attribute("to", jsonText(print(report.to, report.module)));
      json.attribute("world", p.grid.world);
      json.attribute("dtype", dtypeName(report.from.dtype));
      json.attributeArray("extents", [&] {
        for (int64_t e : p.grid.extents) {
          json.value(e);
        }
      });
      json.attributeArray("digits", [&] {
        for (const Digit &digit : p.grid.digits) {
          writeDigit(json, digit);
        }
      });
      writeLayout(json, "source", p.grid, p.from);
      writeLayout(json, "target", p.grid, p.to);
      json.attributeArray("steps", [&] {
        for (const Step &s : p.steps) {
          writeStep(json, p, s);
        }
      });
      json.attribute("elements", p.elements);
      json.attribute("bound", p.bound);
      json.attribute("peak", p.peak);
      json.attribute("microseconds", p.time);
      json.attribute("machine", jsonText(report.machine.name));
      json.attribute("cost", CostNames[static_cast<size_t>(report.options.cost)]);
      json.attribute("best", p.best);
    });
  });
  out << '\n';
}

} // namespace shardc
