"""Files stay small enough to read at once: headers under 250 lines, sources and scripts under 500. Tables (.def) may be longer."""
from repo import conclude, files, read

LIMITS = {".h": 250, ".cpp": 500, ".cu": 500, ".py": 500, ".sh": 250}

findings = []
for path in files():
    for ending, limit in LIMITS.items():
        if path.endswith(ending):
            lines = read(path).count("\n")
            if lines > limit:
                findings.append(f"{path}: {lines} lines, at most {limit}")
conclude("files that are too long", findings)
