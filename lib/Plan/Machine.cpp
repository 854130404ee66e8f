// Machine: descriptions and prices. See the header.
//
// A collective takes the cheapest protocol's base, a latency per message and its bytes over the bandwidth: NCCL's own model of a
// ring (NVIDIA/nccl, src/graph/tuning.cc). A ring crosses between two nodes once, and as many rings run side by side as the
// group has ranks in a node, so that all their network cards work; what goes straight from rank to rank has its own card only.
#include "shardc/Plan/Machine.h"
#include "shardc/Frontend/Catalog.h"
#include "shardc/Frontend/Config.h"
#include "llvm/Support/FileSystem.h"
#include <algorithm>
#include <limits>

namespace shardc {
namespace {

// The ranks of a group that share a node.
int64_t together(const Grid &grid, DigitSet group, int64_t node) {
  if (grid.world <= node) {
    return grid.product(group);
  }
  int64_t ranks = 1;
  for (unsigned i = 0; i < grid.digits.size(); ++i) {
    for (const auto &[size, stride] : grid.digits[i].parts) {
      ranks *= (group >> i & 1) && stride <= node / size && node % (size * stride) == 0 ? size : 1;
    }
  }
  return ranks;
}

double positive(DictReader &reader, llvm::StringRef key, bool zero, DiagnosticEngine &diags) {
  if (!reader.require(key)) {
    return 1;
  }
  const std::optional<Located<double>> value = reader.number(key);
  if (value && (value->value < 0 || (value->value == 0 && !zero))) {
    diags.emit<Diag::OutOfRange>(value->range, key, zero ? "0 or more" : "more than 0", "`" + std::to_string(value->value) + "`");
  }
  return value ? value->value : 1;
}

double bandwidth(DictReader &root, llvm::StringRef key, DiagnosticEngine &diags) {
  if (!root.require(key)) {
    return 1;
  }
  const ConfigNode *node = root.mapping(key);
  if (!node) {
    return 1;
  }
  DictReader reader(*node, ("`" + key + "`").str(), diags);
  reader.string("name");
  const double gigabytes = positive(reader, "bandwidth", false, diags);
  reader.finish();
  return gigabytes * 1000;
}

Machine readNode(const ConfigNode &node, DiagnosticEngine &diags) {
  DictReader reader(node, "a machine", diags);
  Machine m;
  reader.require("machine");
  m.name = reader.string("machine").value_or(Located<std::string>()).value;
  if (reader.require("node")) {
    m.node = reader.integer("node", 1, 1 << 20).value_or(Located<int64_t>{1, {}}).value;
  }
  m.linkBandwidth = bandwidth(reader, "link", diags);
  m.netBandwidth = bandwidth(reader, "net", diags);
  const ConfigNode *protocols = reader.require("protocols") ? reader.mapping("protocols") : nullptr;
  for (size_t i = 0; protocols && i < protocols->entries.size(); ++i) {
    const auto &[name, entry] = protocols->entries[i];
    DictReader inner(entry, "the protocol `" + name.value + "`", diags);
    Protocol p;
    p.base = positive(inner, "base", true, diags);
    p.link = positive(inner, "link", true, diags);
    p.net = positive(inner, "net", true, diags);
    p.share = positive(inner, "share", false, diags);
    inner.finish();
    m.protocols.push_back(p);
  }
  if (protocols && protocols->entries.empty()) {
    diags.emit<Diag::OutOfRange>(protocols->range, "protocols", "at least one", "none");
  }
  reader.finish();
  return m;
}

} // namespace

DigitSet Machine::far(const Grid &grid) const {
  DigitSet set = 0;
  for (unsigned i = 0; i < grid.digits.size(); ++i) {
    set |= together(grid, DigitSet(1) << i, node) < grid.digits[i].size ? DigitSet(1) << i : 0;
  }
  return set;
}

double Machine::ring(const Grid &grid, DigitSet group, int64_t rounds, int64_t bytes) const {
  const int64_t ranks = grid.product(group);
  const int64_t local = together(grid, group, node);
  const int64_t nodes = ranks / local;
  const auto between = static_cast<double>(ranks > 1 ? rounds / (ranks - 1) * (nodes - 1) : 0);
  const double width = nodes > 1 ? std::min(linkBandwidth, netBandwidth * static_cast<double>(local)) : linkBandwidth;
  double best = std::numeric_limits<double>::infinity();
  for (const Protocol &p : protocols) {
    best = std::min(best, p.base + (static_cast<double>(rounds) - between) * p.link + between * p.net +
                              static_cast<double>(bytes) / (width * p.share));
  }
  return best;
}

double Machine::pairwise(const Grid &grid, DigitSet group, int64_t messages, int64_t bytes) const {
  const bool far = together(grid, group, node) < grid.product(group);
  double best = std::numeric_limits<double>::infinity();
  for (const Protocol &p : protocols) {
    const double width = (far ? netBandwidth : linkBandwidth) * p.share;
    best = std::min(best, p.base + static_cast<double>(messages) * (far ? p.net : p.link) + static_cast<double>(bytes) / width);
  }
  return best;
}

std::optional<Machine> readMachine(const Located<std::string> &name, DiagnosticEngine &diags) {
  const size_t before = diags.errorCount();
  std::optional<ConfigNode> root;
  if (const CatalogFile *file = catalogFile("machines/" + name.value + ".yaml")) {
    root = parseConfig(diags.sources().add("catalog:" + file->path.str(), file->text.str()), diags, ConfigFormat::Yaml);
  } else if (llvm::sys::fs::exists(name.value)) {
    root = readConfig(name.value, diags, ConfigFormat::Yaml, name.range);
  } else {
    std::string known;
    for (const CatalogFile &shipped : catalogFiles()) {
      llvm::StringRef path = shipped.path;
      if (path.consume_front("machines/") && path.consume_back(".yaml")) {
        known += (known.empty() ? "" : ", ") + path.str();
      }
    }
    diags.emit<Diag::UnknownName>(name.range, name.value, "a machine or a file").help("shipped are " + known);
  }
  if (!root) {
    return std::nullopt;
  }
  Machine machine = readNode(*root, diags);
  return diags.errorCount() == before ? std::optional(std::move(machine)) : std::nullopt;
}

} // namespace shardc
