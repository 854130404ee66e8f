"""The generated pages equal what the tables print now."""
import os
import subprocess
import sys

from repo import ROOT, conclude, read

findings = []
for page in ("operations", "changes", "diagnostics"):
    printed = subprocess.run([os.path.join(sys.argv[1], "bin", "shardc-docs"), page], capture_output=True, text=True, check=True).stdout
    path = f"docs/{page}.md"
    if not os.path.exists(os.path.join(ROOT, path)) or read(path) != printed:
        findings.append(f"{path} differs from its table: run tools/gen-docs")
conclude("generated pages that differ", findings)
