// Machine: what messages cost, read from lib/Catalog/machines/.
//
// Ranks fill one node after the other. A group within a node uses its links, one across nodes the network. Times in
// microseconds, bandwidths in bytes per microsecond (MB/s), per rank and direction.
#pragma once

#include "shardc/Plan/Layout.h"
#include "shardc/Support/Diagnostics.h"

namespace shardc {

struct Protocol {
  double base = 0;  // once per collective
  double link = 0;  // per message within a node
  double net = 0;   // per message between nodes
  double share = 1; // of the bandwidth
};

struct Machine {
  std::string name;
  int64_t node = 1; // ranks
  double linkBandwidth = 1;
  double netBandwidth = 1;
  llvm::SmallVector<Protocol, 3> protocols;

  // Digits whose ranks are not all in one node.
  DigitSet far(const Grid &grid) const;
  // Messages one after the other around a group, `bytes` received by each rank.
  double ring(const Grid &grid, DigitSet group, int64_t rounds, int64_t bytes) const;
  // `messages` straight from rank to rank.
  double pairwise(const Grid &grid, DigitSet group, int64_t messages, int64_t bytes) const;
};

// A shipped machine, or a file of the user's own; mistakes are reported at `name`'s place or in the file.
std::optional<Machine> readMachine(const Located<std::string> &name, DiagnosticEngine &diags);

} // namespace shardc
