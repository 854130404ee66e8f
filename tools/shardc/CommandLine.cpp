// CommandLine: joins the arguments into one text and decides on colour. See the header.
#include "CommandLine.h"
#include <cstdlib>

namespace shardc {

CommandLine::CommandLine(int argc, const char *const *argv) : text("shardc") {
  for (int i = 1; i < argc; ++i) {
    text += ' ';
    Word word{argv[i], static_cast<uint32_t>(text.size()), 0};
    text += word.text;
    word.end = static_cast<uint32_t>(text.size());
    words.push_back(std::move(word));
  }
  dashes = words.size();
  for (size_t i = words.size(); i-- > 0;) {
    if (words[i].text == "--") {
      dashes = i;
    }
  }
}

// Set, not empty and not "0".
static bool isOn(const char *name) {
  const char *value = std::getenv(name);
  return value && *value && llvm::StringRef(value) != "0";
}

bool wantsColour(When when, bool isTerminal) {
  switch (when) {
  case When::Always:
    return true;
  case When::Never:
    return false;
  case When::Auto:
    break;
  }
  const char *noColour = std::getenv("NO_COLOR");
  if (noColour && *noColour) {
    return false;
  }
  if (isOn("CLICOLOR_FORCE") || isOn("FORCE_COLOR")) {
    return true;
  }
  const char *term = std::getenv("TERM");
  return isTerminal && !(term && llvm::StringRef(term) == "dumb");
}

} // namespace shardc
