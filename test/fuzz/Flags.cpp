// Fuzzes a framework's flags: the first line chooses model, world and version, each further line is one argument.
//
// Models are chosen from the shipped ones and no file is named, so that nothing outside the input is read.
#include "shardc/Frontend/Dialect.h"
#include "llvm/ADT/StringExtras.h"
#include <cstdlib>

using namespace shardc;

namespace {

constexpr const char *models[] = {"deepseek_v3/debugmodel", "llama3/debugmodel", "qwen3/debugmodel", "mixtral/8x7B",
                                  "nothing/of_that_name"};
constexpr const char *frameworks[] = {"torchtitan", "torchtitan@2026-08-05", "torchtitan@2026-08-10", "torchtitan@2026-08-20",
                                      "torchtitan@1"};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  SourceManager sources;
  DiagnosticEngine diags(sources);
  const FileId file = sources.add("command line", std::string(reinterpret_cast<const char *>(data), size));
  const llvm::StringRef text = sources.text(file);
  const SourceRange whole{file, 0, static_cast<uint32_t>(text.size())};

  auto [choice, rest] = text.split('\n');
  const SourceRange chosen = whole.slice(0, choice.size());
  const auto pick = [digits = choice](size_t i) { return i < digits.size() ? static_cast<uint8_t>(digits[i] - '0') : 0u; };
  JobRequest request;
  request.name = "fuzzed";
  request.range = whole;
  request.model = Located<std::string>{models[pick(0) % std::size(models)], chosen};
  request.framework = Located<std::string>{frameworks[pick(1) % std::size(frameworks)], chosen};
  if (const std::optional<int64_t> world = parseInteger(choice.drop_front(std::min<size_t>(2, choice.size())))) {
    request.world = Located<int64_t>{*world, chosen};
  }
  while (!rest.empty()) {
    const size_t begin = rest.begin() - text.begin();
    auto [flag, after] = rest.split('\n');
    request.flags.push_back({flag.str(), whole.slice(begin, begin + flag.size())});
    rest = after;
  }
  const std::optional<Job> job = buildJob(request, diags);
  if (!job && !diags.hasErrors()) {
    std::abort(); // refused in silence
  }
  return 0;
}
