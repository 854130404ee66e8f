# The lit suites: a file with a RUN line is a test of the command line, checked with FileCheck.
#
# Files that only serve others (corpora, Inputs/, unit tests) are no tests; neither is a config file without a RUN line,
# so that a job and the files it names can lie side by side.
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(config.source_root, "test"))
from litfiles import FilesThatRun

config.name = "shardc-" + config.suite_name
config.test_format = FilesThatRun(execute_external=False)
config.suffixes = [".yaml", ".test", ".toml", ".json"]
config.excludes = ["unit", "fuzz", "Inputs", "meta", "bench", "CMakeLists.txt"]
config.test_source_root = config.suite_root
config.test_exec_root = config.suite_exec_root

# The same output on every machine: no colour, no variable of the user's that the tool reads.
for name in ("NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR"):
    config.environment.pop(name, None)
config.environment["PATH"] = os.pathsep.join([config.llvm_tools, os.path.dirname(config.shardc), config.environment["PATH"]])

config.substitutions.append(("%examples", os.path.join(config.source_root, "examples")))
config.substitutions.append(("%inputs", os.path.join(config.source_root, "test", "Inputs")))
# `shardc` as a word of a command, not as part of a path or name.
config.substitutions.append((r"(?<![\w/.%-])shardc(?![\w/.-])", config.shardc))

# Data that is not part of the repository; tests that read it say `REQUIRES: shared`.
shared = os.path.join(os.path.dirname(config.source_root), "shared")
config.substitutions.append(("%shared", shared))
if os.path.isdir(shared):
    config.available_features.add("shared")
