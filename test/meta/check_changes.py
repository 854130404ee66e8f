"""Every change of Changes.def is made or named in a test: `I@tp -> R@tp` in a graph, `P -> R` in an expectation,
`findChange(State::P, State::R)` in a unit test."""
import re

from repo import conclude_coverage, files, read, rows

STATE = r"P\((?:avg|max|min)\)|[A-Za-z]\w*(?:\(\w+\))?"
AXES = r"(?:@(?:\w+|\([\w, ]+\)))?"


def state(text):
    """A dimension's name, or S(d), stands for S."""
    return text if text in ("R", "I", "V", "P", "P(avg)", "P(max)", "P(min)") else "S"


NAMES = {"PAvg": "P(avg)", "PMax": "P(max)", "PMin": "P(min)"}
seen = set()
for path in files("test", "examples"):
    if "/corpus/" in path:
        continue
    text = read(path)
    if path.endswith(".cpp"):
        pairs = re.findall(r"\bState::(\w+),\s*State::(\w+)", text)
        seen |= {(NAMES.get(a, a), NAMES.get(b, b)) for a, b in pairs}
    elif path.endswith((".yaml", ".test")):
        pairs = re.findall(rf"({STATE}){AXES}\s*->\s*({STATE}){AXES}", text)
        seen |= {(state(a), state(b)) for a, b in pairs}

missing = {}
for source, target, *_ in rows("include/shardc/IR/Changes.def", "CHANGE"):
    source, target = NAMES.get(source, source), NAMES.get(target, target)
    if (source, target) not in seen:
        missing[f"{source} -> {target}"] = "no test makes this change"
conclude_coverage("changes", "changes without a test", missing)
