"""What the meta tests share: the files of the repository, and how a finding is reported. No packages beyond Python's own."""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def files(*folders):
    """Paths relative to the root, sorted: what git would take, or, outside a git checkout, everything but build folders."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True)
    if listed.returncode == 0:
        names = [n for n in listed.stdout.decode().split("\0") if n and os.path.isfile(os.path.join(ROOT, n))]
    else:
        names = []
        for folder, subfolders, here in os.walk(ROOT):
            subfolders[:] = [s for s in subfolders if not s.startswith(("build", ".git", "__pycache__"))]
            names += [os.path.relpath(os.path.join(folder, n), ROOT) for n in here]
    return sorted(n for n in set(names) if not folders or n.startswith(tuple(f + "/" for f in folders)))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def kebab(enumerator):
    """AddMixesLayouts -> add-mixes-layouts, as diagnostics are named."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", enumerator).lower()


def rows(table, macro):
    """The first arguments of each row of a .def file, quotes removed; comments are not rows."""
    found = []
    for line in read(table).splitlines():
        match = re.match(rf"{macro}\((.*)\)\s*(?://.*)?$", line)
        if match:
            found.append([a.strip().strip('"') for a in re.findall(r'"(?:[^"\\]|\\.)*"|[^,"]+', match.group(1)) if a.strip()])
    return found


def exemptions(name):
    """Lines `thing: reason` of test/meta/NAME.exempt; nothing where there is no such file."""
    path = f"test/meta/{name}.exempt"
    if not os.path.exists(os.path.join(ROOT, path)):
        return {}
    entries = {}
    for line in read(path).splitlines():
        if line.strip() and not line.startswith("#"):
            thing, _, reason = line.partition(":")
            entries[thing.strip()] = reason.strip()
    return entries


def conclude(what, findings):
    """Prints the findings and ends the program: 1 if there are any."""
    for finding in findings:
        print(finding)
    print(f"{what}: {len(findings)} finding{'' if len(findings) == 1 else 's'}")
    sys.exit(1 if findings else 0)


def conclude_coverage(name, what, missing):
    """As conclude, for things that no test shows; an exemption must have a reason and must still be needed."""
    exempt = exemptions(name)
    findings = [f"{thing}: {where}" for thing, where in missing.items() if thing not in exempt]
    findings += [f"{thing}: exempt without a reason (test/meta/{name}.exempt)" for thing, reason in exempt.items() if not reason]
    findings += [f"{thing}: exempt, but no longer without a test (test/meta/{name}.exempt)" for thing in exempt if thing not in missing]
    conclude(what, findings)
