// CommandLine: the arguments as a source text with places, and what they ask for.
//
// The command line is a source like a file, so that a message about a flag can point at it. Main.cpp fills `Options`; the
// verbs read them. Nothing here opens a file.
#pragma once

#include "shardc/Infer/Infer.h"
#include "shardc/Plan/Search.h"
#include "shardc/Support/Diagnostics.h"
#include <optional>

namespace shardc {

// An argument, or the part of one after `=`, with its bytes in the text of the command line.
struct Word {
  std::string text;
  uint32_t begin = 0;
  uint32_t end = 0;
};

struct CommandLine {
  std::string text;        // "shardc check --world 8 ...", joined by spaces
  std::vector<Word> words; // without the program's name
  size_t dashes = 0;       // index of the first `--`, or the number of words: flags of the framework follow

  CommandLine(int argc, const char *const *argv);
};

enum class Format : uint8_t { Text, Json };
enum class FailOn : uint8_t { Error, Warning, Incomplete };
enum class When : uint8_t { Auto, Always, Never };

struct Options {
  std::string commandLine;       // the text that words refer to
  size_t flagsBegin = 0;         // where in it the framework's flags begin; its length if there are none
  std::vector<Word> positionals; // files, or names
  std::vector<Word> flags;       // after `--`
  std::optional<Word> model, world, framework, config, strategy, phase, module, view, seed, programs, mesh, machine, resume;
  bool mutate = false;
  Format format = Format::Text;
  FailOn failOn = FailOn::Error;
  When colour = When::Auto;
  Reshard reshard = Reshard::Refuse;
  SearchOptions search; // plan
};

// Exit codes (docs/cli.md).
constexpr int ExitOk = 0;
constexpr int ExitFindings = 1;
constexpr int ExitUnreadable = 2;
constexpr int ExitBug = 3;

// Whether a stream's output is to be coloured: the option, then NO_COLOR, then CLICOLOR_FORCE and FORCE_COLOR, then
// whether it is a terminal.
bool wantsColour(When when, bool isTerminal);

} // namespace shardc
