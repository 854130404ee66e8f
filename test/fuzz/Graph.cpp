// Fuzzes graph files: reading, inference and verification. A graph that is not understood must have been reported.
#include "shardc/Frontend/Dialect.h"
#include "shardc/Infer/Infer.h"
#include "shardc/Verify/Verify.h"
#include <cstdlib>

using namespace shardc;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  SourceManager sources;
  DiagnosticEngine diags(sources);
  const FileId file = sources.add("graph.yaml", std::string(reinterpret_cast<const char *>(data), size));
  const std::optional<ConfigNode> root = parseConfig(file, diags, ConfigFormat::Yaml);
  if (!root || !isGraph(*root)) {
    return 0;
  }
  std::optional<Module> module = readGraph(*root, diags);
  if (!module) {
    if (!diags.hasErrors()) {
      std::abort(); // refused in silence
    }
    return 0;
  }
  InferOptions options;
  options.reshard = size % 2 ? Reshard::Insert : Reshard::Refuse;
  const TypedModule typed = infer(std::move(*module), options, diags);
  verify(typed, {}, diags);
  return 0;
}
