// Verbs: what `shardc VERB` does, one row each. Main.cpp reads the arguments, a verb does the work and answers the exit
// code.
#pragma once

#include "CommandLine.h"
#include "llvm/Support/raw_ostream.h"

namespace shardc {

struct Streams {
  llvm::raw_ostream &out;
  llvm::raw_ostream &err;
  bool outColour = false;
  bool errColour = false;
};

// Which options a verb takes, as bits.
enum OptionGroup : uint8_t {
  NoOptions = 0,
  JobOptions = 1,
  FailOptions = 2,
  TypesOnly = 4,
  ViewOptions = 8,
  ProveOnly = 16,
  PlanOnly = 32,
  CheckOnly = 64
};

struct Verb {
  llvm::StringRef name;
  llvm::StringRef brief;
  llvm::StringRef positional; // what its positional arguments are: "FILE..."
  llvm::StringRef positionalHelp;
  uint8_t options;
  int (*run)(const Options &options, Streams &streams);
};
llvm::ArrayRef<Verb> allVerbs();

// In files of their own.
int gradsVerb(const Options &options, Streams &streams);
int groupsVerb(const Options &options, Streams &streams);
int proveVerb(const Options &options, Streams &streams);
int planVerb(const Options &options, Streams &streams);

// Prints a mistake in the call itself; answers the exit code.
int reportCall(const Options &options, const Streams &streams, llvm::function_ref<void(DiagnosticEngine &diags, FileId commandLine)> emit);

} // namespace shardc
