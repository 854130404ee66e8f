"""Every source and header opens with what it is; nothing throws; every lit test says in a comment what it shows."""
import re

from repo import conclude, files, read

findings = []
for path in files():
    text = read(path)
    if path.endswith((".h", ".cpp", ".def", ".cu")):
        if not text.startswith("// "):
            findings.append(f"{path}:1: does not open with what it is")
        if path.endswith(".h") and "#pragma once" not in text:
            findings.append(f"{path}:1: no `#pragma once`")
        for number, line in enumerate(text.splitlines(), 1):
            if re.search(r"^\s*(?!//).*\bthrow\b(?!\()", re.sub(r'"(?:[^"\\]|\\.)*"|//.*', "", line)):
                findings.append(f"{path}:{number}: throws")
    if path.startswith("test/") and re.search(r"^# *RUN:", text, re.M):
        prose = [l for l in text.splitlines() if re.match(r"# *[A-Z`\w]", l) and not re.search(r"RUN:|REQUIRES:|CHECK[\w-]*:", l)]
        if not prose:
            findings.append(f"{path}:1: does not say what it shows")
conclude("style", findings)
