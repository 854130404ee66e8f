// bench_Field: how fast products are added up modulo 2^61 - 1, which is nearly all the work of a proof.
//
// Prints one line `phase nanoseconds` each, per multiply-add of processor time on one core: for rows of 1024 elements, and for rows
// of 24, which is what shrunk jobs have.
#include "shardc/Prove/Field.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <ctime>
#include <vector>

using namespace shardc;

int main() {
  constexpr size_t All = 1 << 15;
  std::vector<Element> a(All);
  std::vector<Element> b(All);
  for (size_t i = 0; i < All; ++i) {
    a[i] = keyed(1, i);
    b[i] = keyed(2, i);
  }
  for (const size_t width : {size_t(1024), size_t(24)}) {
    Element sum = 0;
    size_t done = 0;
    const std::clock_t start = std::clock();
    while (std::clock() - start < CLOCKS_PER_SEC / 5) {
      for (size_t at = 0; at + width <= All; at += width) {
        sum = add(sum, dot(a.data() + at, b.data() + at, width));
        done += width;
      }
    }
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    llvm::outs() << llvm::formatv("dot{0} {1:f3}\n", width, seconds * 1e9 / static_cast<double>(done));
    if (sum == Prime) { // never: it is what keeps the sums from being left out
      return 1;
    }
  }
  return 0;
}
