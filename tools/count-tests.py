#!/usr/bin/env python3
"""Counts the tests in a JUnit file that ctest wrote and prints `passed failed skipped`.

A unit program and a lit run are one entry for ctest but many tests: their own closing summaries, kept in the entry's
output, say how many. An entry without such a summary counts as one test. Not a reporter: ctest has shown the failures.
"""
import re
import sys
import xml.etree.ElementTree as ElementTree


def from_catch(output):
    """Catch2's closing line, versions 2 and 3."""
    found = re.findall(r"All tests passed \([^)]* in (\d+) test cases?\)", output)
    if found:
        return int(found[-1]), 0, 0
    found = re.findall(r"test cases:\s*(\d+)((?:\s*\|\s*\d+ \w[\w ]*)*)", output)
    if not found:
        return None
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (\w+)", found[-1][1])}
    failed = counts.get("failed", 0)
    skipped = counts.get("skipped", 0)
    return int(found[-1][0]) - failed - skipped, failed, skipped


def from_lit(output):
    """The table that lit prints last."""
    if "Total Discovered Tests:" not in output:
        return None
    table = output[output.rindex("Total Discovered Tests:"):]
    counts = {name.strip(): int(number) for name, number in re.findall(r"^\s+([A-Z][A-Za-z ]*?)\s*:\s*(\d+)", table, re.M)}
    passed = counts.pop("Passed", 0)
    skipped = counts.pop("Unsupported", 0) + counts.pop("Skipped", 0) + counts.pop("Excluded", 0)
    return passed, sum(counts.values()), skipped


def count(case):
    status = case.get("status", "")
    if case.find("skipped") is not None or status in ("notrun", "disabled"):
        # A program that could not be started is no skipped test.
        reason = case.find("skipped")
        if status == "notrun" and reason is not None and "SKIP" not in reason.get("message", ""):
            return 0, 1, 0
        return 0, 0, 1
    ok = case.find("failure") is None and status != "fail"
    output = case.findtext("system-out") or ""
    parts = from_lit(output) or from_catch(output)
    if parts is None:
        return (1, 0, 0) if ok else (0, 1, 0)
    passed, failed, skipped = parts
    if not ok and failed == 0:
        failed = 1  # it ended badly after its tests, or did not reach all of them
    return passed, failed, skipped


def main():
    totals = [0, 0, 0]
    for case in ElementTree.parse(sys.argv[1]).getroot().iter("testcase"):
        totals = [a + b for a, b in zip(totals, count(case))]
    print(*totals)


main()
