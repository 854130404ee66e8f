// CatalogJob: a job of eight ranks without a framework's config, for tests of models and strategies.
#pragma once

#include "Catch.h"
#include "shardc/Frontend/Catalog.h"

namespace shardc {

// What was reported, one line each with its place.
inline std::string said(const DiagnosticEngine &diags) {
  std::string all;
  for (const Diagnostic &d : diags.all()) {
    LineColumn at = d.range.valid() ? diags.sources().lineColumn(d.range.file, d.range.begin) : LineColumn();
    all += (d.range.valid() ? diags.sources().name(d.range.file).str() : std::string("?")) + ":" + std::to_string(at.line) + ":" +
           std::to_string(at.column) + ": " + d.message + "\n";
  }
  return all;
}

// dp 2, cp 2, tp 2; experts on ep 4, so efsdp 2.
inline Job catalogJob(std::string version = "2026-08-20", bool sp = true, bool ep = true) {
  Job job;
  job.name = "test";
  job.framework = job.strategy = "torchtitan";
  job.version = std::move(version);
  job.world.value = 8;
  auto axis = [](const char *name, int64_t size) {
    AxisSpec spec;
    spec.name = name;
    spec.size = size;
    return spec;
  };
  job.views = {{"dense", {axis("pp", 1), axis("dp", 2), axis("cp", 2), axis("tp", 2)}, {}},
               {"sparse", {axis("pp", 1), axis("efsdp", 2), axis("ep", 4)}, {}}};
  auto text = [](bool value) { return value ? "true" : "false"; };
  job.switches = {{"sp", text(sp)}, {"ep", text(ep)}, {"folded", text(job.version == "2026-08-20")}};
  for (auto [name, size] : {std::pair("B", 2), {"L", 2048}, {"dp", 2}, {"cp", 2}, {"tp", 2}, {"ep", 4}}) {
    job.sizes[name] = {size, {}};
  }
  return job;
}

} // namespace shardc
