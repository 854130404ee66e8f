// Fuzzes the reading of config files in all three formats: no text may crash it, hang it or be refused without a message.
#include "shardc/Frontend/Config.h"
#include <cstdlib>

using namespace shardc;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) {
    return 0;
  }
  constexpr ConfigFormat formats[] = {ConfigFormat::Auto, ConfigFormat::Yaml, ConfigFormat::Json, ConfigFormat::Toml};
  const ConfigFormat format = formats[data[0] % 4];
  SourceManager sources;
  DiagnosticEngine diags(sources);
  const FileId file = sources.add("input", std::string(reinterpret_cast<const char *>(data + 1), size - 1));
  const std::optional<ConfigNode> root = parseConfig(file, diags, format);
  if (!root && !diags.hasErrors()) {
    std::abort(); // refused in silence
  }
  for (const Diagnostic &d : diags.all()) {
    if (d.range.valid() && (d.range.begin > d.range.end || d.range.end > size - 1)) {
      std::abort(); // points outside the text
    }
  }
  if (root && root->kind == ConfigNode::Kind::Mapping) {
    DictReader reader(*root, "the file", diags);
    reader.string("a");
    reader.integer("b", 0, 10);
    reader.number("c");
    reader.boolean("d");
    reader.strings("e");
    reader.finish();
  }
  return 0;
}
