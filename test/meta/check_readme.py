"""The README's commands run and print what it shows, its links lead somewhere, and it fits a screen."""
import os
import re
import shlex
import subprocess
import sys

from repo import ROOT, conclude, read

LINES = 70

findings = []
text = read("README.md")
if text.count("\n") > LINES:
    findings.append(f"README.md: {text.count(chr(10))} lines, at most {LINES}")
for link in re.findall(r"\]\(([^)#:]+)\)", text):
    if not os.path.exists(os.path.join(ROOT, link)):
        findings.append(f"README.md: {link} is not there")
for path in re.findall(r"`((?:examples|docs|tools|test|lib|include)/[\w./-]*)`", text):
    if not os.path.exists(os.path.join(ROOT, path)):
        findings.append(f"README.md: {path} is not there")

commands = 0
for block in re.findall(r"```console\n(.*?)```", text, re.S):
    for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M):
        commands += 1
        words = shlex.split(command)
        if words[0] != "build/bin/shardc":
            findings.append(f"README.md: `{command}` is not a command that this test knows")
            continue
        words[0] = os.path.join(sys.argv[1], "bin", "shardc")
        ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
        if ran.returncode not in (0, 1):
            findings.append(f"README.md: `{command}` ended with {ran.returncode}: {ran.stderr}")
        if shown not in ran.stdout + ran.stderr:
            findings.append(f"README.md: `{command}` prints something else:\n{ran.stdout}{ran.stderr}")
if commands == 0:
    findings.append("README.md: shows no command")
conclude("README findings", findings)
