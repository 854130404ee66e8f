// bench_Phases: seconds that one graph file costs in each phase, so that reading and inferring can be told apart.
//
// usage: bench_Phases graph.yaml. Prints one line `phase seconds` each, of processor time; not a test: the runner compares the numbers.
#include "shardc/Frontend/Dialect.h"
#include "shardc/Infer/Infer.h"
#include "shardc/Verify/Verify.h"
#include "llvm/Support/raw_ostream.h"
#include <ctime>

using namespace shardc;

namespace {

// Runs one phase and prints how long it took.
template <class F> auto timed(const char *phase, F &&run) {
  const std::clock_t start = std::clock();
  auto result = run();
  const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  llvm::outs() << llvm::formatv("{0} {1:f6}\n", phase, took);
  return result;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    llvm::errs() << "usage: bench_Phases graph.yaml\n";
    return 2;
  }
  SourceManager sources;
  DiagnosticEngine diags(sources);
  const std::optional<ConfigNode> root = timed("parse", [&] { return readConfig(argv[1], diags); });
  if (!root) {
    llvm::errs() << "the file cannot be read\n";
    return 2;
  }
  std::optional<Module> module = timed("graph", [&] { return readGraph(*root, diags); });
  if (!module || diags.hasErrors()) {
    llvm::errs() << (diags.hasErrors() ? diags.all().front().message : std::string("no graph")) << '\n';
    return 2;
  }
  const TypedModule typed = timed("infer", [&] { return infer(std::move(*module), {}, diags); });
  timed("verify", [&] { return verify(typed, {}, diags); });
  for (const Diagnostic &d : diags.all()) {
    llvm::errs() << d.message << '\n';
    return 1;
  }
  return 0;
}
