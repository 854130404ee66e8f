"""Every diagnostic of Diagnostics.def is shown by a test: `[its-name]` in what a lit test expects, its name in a unit test."""
import re

from repo import conclude_coverage, files, kebab, read, rows

shown = set()
for path in files("test", "examples"):
    if "/corpus/" in path or "/meta/" in path:
        continue
    if path.endswith(".cpp"):
        text = read(path)
        shown |= {kebab(name) for name in re.findall(r"\bDiag::(\w+)", text)}
        shown |= set(re.findall(r'"([a-z0-9]+(?:-[a-z0-9]+)*)"', text))
    else:
        for line in read(path).splitlines():
            if ("CHECK" in line or re.search(r"# *[A-Z][A-Z0-9_-]*:", line)) and "RUN:" not in line:  # any prefix of FileCheck
                shown |= set(re.findall(r"\[([a-z0-9]+(?:-[a-z0-9]+)*)\]", line))
                shown |= set(re.findall(r'"name": *"([a-z0-9-]+)"', line))

missing = {}
for enumerator, *_ in rows("include/shardc/Support/Diagnostics.def", "DIAG"):
    if kebab(enumerator) not in shown:
        missing[kebab(enumerator)] = "no test shows this diagnostic"
conclude_coverage("diagnostics", "diagnostics without a test", missing)
