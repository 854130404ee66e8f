"""Every diagnostic of the sections below has a text of its own for `shardc explain`: what was seen and what to do about it. A text
is about a diagnostic that exists. Those of a framework's config say it all in their message and are explained by it alone."""
import re

from repo import conclude, kebab, read

TABLE = "include/shardc/Support/Diagnostics.def"
TEXTS = "lib/Catalog/explain/diagnostics.yaml"
EXPLAINED = {"Support and config files", "Axes", "Names and text", "Bodies, graph files and job files", "torchtitan", "Command line",
             "Inference: operations", "Inference: changes of layout", "Models and strategies"}

sections, section = {}, None
for line in read(TABLE).splitlines():
    if line.startswith("// "):
        section = line[3:]
    elif match := re.match(r"DIAG\((\w+),", line):
        sections[kebab(match.group(1))] = section

parts, name = {}, None
for line in read(TEXTS).splitlines():
    if match := re.match(r"([a-z0-9-]+):$", line):
        name = match.group(1)
        parts[name] = set()
    elif match := re.match(r"  (\w+): *(\S.*)$", line):
        parts[name].add(match.group(1))

findings = [f"{TABLE}: there is no section `{s}`" for s in EXPLAINED - set(sections.values())]
findings += [f"{TEXTS}: `{n}` is no diagnostic" for n in parts if n not in sections]
findings += [f"{TEXTS}: `{n}` does not say `{part}`" for n, s in sections.items() if s in EXPLAINED
             for part in ("what", "mend") if part not in parts.get(n, set())]
conclude("explanations of diagnostics", findings)
