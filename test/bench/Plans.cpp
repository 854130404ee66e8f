// bench_Plans: how near plans without all-to-all-v come to the bound, and what one costs. Layouts {R, S0, S1} per axis by bytes, of
// all pairs where there are few, of 120 random ones otherwise. Prints one line `what number` each; the runner compares the numbers.
#include "shardc/Plan/Search.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <ctime>
#include <random>

using namespace shardc;

namespace {

Grid gridOf(llvm::ArrayRef<int64_t> mesh, unsigned dims) {
  Grid grid;
  grid.extents.assign(dims, 4096);
  for (int64_t n : mesh) {
    grid.world *= n;
  }
  int64_t stride = grid.world;
  for (size_t i = 0; i < mesh.size(); ++i) {
    int64_t rest = mesh[i];
    for (int64_t p = 2; rest > 1; rest /= p) {
      while (rest % p != 0) {
        ++p;
      }
      Digit digit;
      digit.size = p;
      digit.parts.emplace_back(p, stride /= p);
      digit.axis = std::string(1, static_cast<char>('a' + i));
      grid.digits.push_back(digit);
    }
  }
  return grid;
}

// The number's digits to the base of one more than the dimensions say where each axis goes: 0 nowhere.
Layout layoutOf(const Grid &grid, uint64_t number) {
  Layout l;
  std::string axis = grid.digits[0].axis;
  for (uint8_t i = 0; i < grid.digits.size(); ++i) {
    if (grid.digits[i].axis != axis) {
      axis = grid.digits[i].axis;
      number /= grid.dims() + 1;
    }
    if (const uint64_t place = number % (grid.dims() + 1)) {
      l.append(static_cast<unsigned>(place - 1), i);
    }
  }
  return l;
}

void measure(llvm::StringRef name, llvm::ArrayRef<int64_t> mesh, unsigned dims, uint64_t most, bool exchange = false) {
  Machine machine;
  machine.protocols.push_back({});
  SearchOptions options;
  options.cost = CostKind::Bytes;
  options.exchange = exchange;
  const Grid grid = gridOf(mesh, dims);
  uint64_t layouts = 1;
  for (size_t i = 0; i < mesh.size(); ++i) {
    layouts *= dims + 1;
  }
  std::mt19937_64 random(1);
  const bool all = layouts * layouts <= most;
  double logs = 0;
  double slowest = 0;
  uint64_t moved = 0;
  uint64_t unproved = 0;
  const std::clock_t start = std::clock();
  const uint64_t pairs = all ? layouts * layouts : most;
  for (uint64_t i = 0; i < pairs; ++i) {
    const Layout from = layoutOf(grid, all ? i / layouts : random() % layouts);
    const Layout to = layoutOf(grid, all ? i % layouts : random() % layouts);
    const int64_t bound = grid.bound(from, to);
    const std::clock_t before = std::clock();
    const std::optional<Found> found = findPlan(grid, from, to, 1, machine, options);
    unproved += found && !found->best;
    slowest = std::max(slowest, static_cast<double>(std::clock() - before));
    if (found && bound) {
      logs += std::log(found->price.main / static_cast<double>(bound));
      ++moved;
    }
  }
  const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC * 1e3;
  llvm::outs() << llvm::formatv("{0}-ratio {1:f4}\n{0}-ms {2:f4}\n{0}-slowest-ms {3:f4}\n{0}-unproved {4}\n", name,
                                std::exp(logs / static_cast<double>(moved)), took / static_cast<double>(pairs),
                                slowest / CLOCKS_PER_SEC * 1e3, unproved);
}

} // namespace

int main() {
  measure("2x2", {2, 2}, 2, 1000);
  measure("2x3", {2, 3}, 2, 1000);
  measure("2x4", {2, 4}, 2, 1000);
  measure("4x8", {4, 8}, 2, 1000);
  measure("2x2x2", {2, 2, 2}, 2, 1000);
  measure("2x4x8", {2, 4, 8}, 2, 1000);
  measure("six-digits", {2, 2, 2, 2, 2, 2}, 3, 120);
  measure("eight-digits", {2, 2, 2, 2, 2, 2, 2, 2}, 3, 60);
  measure("six-digits-v", {2, 2, 2, 2, 2, 2}, 3, 120, true);
  measure("eight-digits-v", {2, 2, 2, 2, 2, 2, 2, 2}, 3, 60, true);
  return 0;
}
