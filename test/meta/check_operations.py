"""Every operation of Ops.def is called in a test or an example."""
import re

from repo import conclude_coverage, files, read, rows

called, kinds = set(), set()
for path in files("test", "examples"):
    text = read(path)
    if path.endswith(".cpp"):
        kinds |= set(re.findall(r"\bOpKind::(\w+)", text))
        text = "\n".join(re.findall(r'"(?:[^"\\]|\\.)*"|R"\((?:.|\n)*?\)"', text))  # a call in a string, not one of C++
    elif not path.endswith((".yaml", ".test")) or "/corpus/" in path:
        continue
    called |= set(re.findall(r"\b([a-z_0-9]+)\(", text))

missing = {}
for enumerator, name, *_ in rows("include/shardc/IR/Ops.def", "OP"):
    if name not in called and enumerator not in kinds:
        missing[name] = "no test calls this operation"
conclude_coverage("operations", "operations without a test", missing)
