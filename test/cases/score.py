#!/usr/bin/env python3
"""Prints how the checker does on the public mistakes listed in README.md: found of decidable rows, right files that are refused.

  test/cases/score.py build/bin/shardc

A row is found if each of its wrong files is refused at every place and with every name that the file expects. A row that has no wrong
file is not found. Fails if a file is not what its name says, or if README.md and the files beside it disagree.
"""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDERS = sorted({os.path.basename(folder) for folder, _, files in os.walk(HERE) if any(f.endswith(".yaml") for f in files)})
ROW = re.compile(r"\| (N?\d+) \| (.*?) \| (yes|partly|no) \| (.*) \|$")
CASE = re.compile(rf"\b(?:{'|'.join(FOLDERS)})/[\w-]+")
EXPECTED = re.compile(r"# CHECK: :\[\[@LINE\+(\d+)\]\]:.* error: .*\[([\w-]+)\]$")


def check(shardc, path):
    run = subprocess.run([shardc, "check", "--color", "never", path], capture_output=True, text=True, timeout=60)
    return run.returncode, run.stdout + run.stderr


def expected(path):
    """The (line, name) pairs that a wrong file expects."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    matches = [(number, EXPECTED.search(line)) for number, line in enumerate(lines, 1)]
    return [(number + int(m[1]), m[2]) for number, m in matches if m]


def refused(shardc, path):
    status, output = check(shardc, path)
    places = expected(path)
    return status == 1 and places != [] and all(re.search(rf":{line}:\d+: error: .*\[{name}\]", output) for line, name in places)


def main(shardc):
    found = decidable = accepted = right = 0
    listed, wrong_ones, faults = set(), [], []
    for line in open(os.path.join(HERE, "README.md"), encoding="utf-8"):
        row = ROW.match(line)
        if not row:
            continue
        cases = CASE.findall(row[4])
        wrong = [c for c in cases if os.path.exists(os.path.join(HERE, c + ".wrong.yaml"))]
        for case in cases:
            listed.add(case)
            path = os.path.join(HERE, case + ".right.yaml")
            right += 1
            if os.path.exists(path) and check(shardc, path)[0] == 0:
                accepted += 1
            else:
                faults.append(f"false alarm: {case}.right.yaml")
        hits = [refused(shardc, os.path.join(HERE, c + ".wrong.yaml")) for c in wrong]
        faults += [f"not found: {c}.wrong.yaml" for c, hit in zip(wrong, hits) if not hit]
        # What is decided although it takes more than layouts counts on both sides, what is not decided on none.
        if row[3] == "yes" or wrong:
            decidable += 1
            found += bool(wrong) and all(hits)
            if not wrong:
                wrong_ones.append(f"no wrong file: row {row[1]}, {row[2]}: {row[4]}")
    for folder in FOLDERS:
        for name in sorted(os.listdir(os.path.join(HERE, folder))):
            case = f"{folder}/{re.sub(r'[.](wrong|right)[.]yaml$', '', name)}"
            if name.endswith(".yaml") and case not in listed:
                faults.append(f"not in README.md: {folder}/{name}")
    for text in wrong_ones + faults:
        print(text)
    print(f"found {found} of {decidable} decidable rows; {right - accepted} false alarms in {right} right files")
    return 1 if faults else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
