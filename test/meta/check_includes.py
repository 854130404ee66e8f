"""Includes follow the arrows: a folder includes itself and the folders before it. A heavy header is in one source, and in
no header under include/."""
import re

from repo import conclude, files, read

ORDER = ["Support", "IR", "Frontend", "Infer", "Verify", "Prove", "Plan", "Emit"]
HEAVY = {
    "toml++": r"toml(\+\+|\.hpp)",
    "nlohmann/json": r"nlohmann/",
    "CLI11": r"CLI/",
    "graphviz": r"graphviz/",
    "MPI": r"mpi\.h",
    "CUDA": r"cuda|nccl",
}


def folder_of(path):
    """The layer that a file belongs to; None for what may include everything."""
    match = re.match(r"(?:include/shardc|lib|test/unit)/(\w+)/", path)
    return match.group(1) if match and match.group(1) in ORDER else None


findings = []
heavy_users = {name: [] for name in HEAVY}
for path in files("include", "lib", "tools", "test", "runtime"):
    if not path.endswith((".h", ".cpp", ".cu", ".def")):
        continue
    folder = folder_of(path)
    for number, line in enumerate(read(path).splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
        if not match:
            continue
        included = match.group(1)
        for name, pattern in HEAVY.items():
            if re.match(pattern, included):
                heavy_users[name].append(f"{path}:{number}")
                if path.startswith("include/") or path.endswith(".h"):
                    findings.append(f"{path}:{number}: a header includes {name}")
        layer = re.match(r"shardc/(\w+)/", included)
        if folder and layer and layer.group(1) in ORDER and ORDER.index(layer.group(1)) > ORDER.index(folder):
            findings.append(f"{path}:{number}: {folder} includes {layer.group(1)}, which comes after it")
        if path.startswith("runtime/") and (layer or included.startswith("llvm/")):
            findings.append(f"{path}:{number}: the runtime links neither the compiler nor LLVM")
for name, users in heavy_users.items():
    if len(set(u.split(":")[0] for u in users)) > 1:
        findings.append(f"{name} is included in more than one file: {', '.join(users)}")
conclude("includes against the arrows", findings)
