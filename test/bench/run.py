#!/usr/bin/env python3
"""Measures what shardc promises about speed and prints it, as ratios where that is possible: they hold on any machine.

usage: test/bench/run.py [BUILD] [--strict]     BUILD is `build` by default; --strict: exit 1 if a promise is broken

Each time is the least of several runs, alternating between what is compared, so that a busy machine hits both alike.
"""
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RUNS = 15

# The published size of DeepSeek-V3 under torchtitan. The leftover ranks are data parallel, so the flags fit any world.
JOB = ["--model", "deepseek_v3/671B", "--framework", "torchtitan@2026-08-20"]
FLAGS = ["--parallelism.tensor_parallel_degree", "8", "--parallelism.expert_parallel_degree", "8", "--training.disable_cuda_graphs",
         "activation-checkpoint:full"]


def run(command):
    """Milliseconds, peak MiB and processor milliseconds of one process, and what it printed."""
    with tempfile.TemporaryFile() as output:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        elapsed = (time.perf_counter() - start) * 1e3
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode(errors="replace")
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)}\nended with {process.returncode}:\n{text}")
    return elapsed, usage.ru_maxrss / 1024, (usage.ru_utime + usage.ru_stime) * 1e3, text


def least(*commands):
    """The least of each number of each command over RUNS rounds."""
    best = [(float("inf"),) * 3] * len(commands)
    for _ in range(RUNS):
        for i, command in enumerate(commands):
            best[i] = tuple(map(min, best[i], run(command)[:3]))
    return best


class Promises:
    def __init__(self):
        self.broken = 0

    def line(self, what, measured, unit, limit):
        held = measured <= limit
        self.broken += not held
        print(f"{what:<58} {measured:10.2f} {unit:<4} at most {limit:g} {'' if held else '  BROKEN'}")


def phases(program, operations, folder):
    """Seconds per phase of a generated graph."""
    path = os.path.join(folder, f"graph-{operations}.yaml")
    with open(path, "w") as file:
        subprocess.run([sys.executable, os.path.join(ROOT, "test/bench/make_graph.py"), str(operations)], stdout=file, check=True)
    best = {}
    for _ in range(3):
        for line in run([program, path])[3].splitlines():
            phase, seconds = line.split()
            best[phase] = min(best.get(phase, float("inf")), float(seconds))
    print(f"{operations} operations: " + ", ".join(f"{phase} {seconds:.3f} s" for phase, seconds in best.items()))
    return best["infer"] + best["verify"]


def main():
    arguments = [a for a in sys.argv[1:] if a != "--strict"]
    binaries = os.path.join(os.path.abspath(arguments[0] if arguments else os.path.join(ROOT, "build")), "bin")
    shardc = os.path.join(binaries, "shardc")
    promises = Promises()

    for line in run([os.path.join(binaries, "bench_Field")])[3].splitlines():
        phase, nanoseconds = line.split()
        print(f"field, rows of {phase.removeprefix('dot')}: {1000 / float(nanoseconds):.0f} million multiply-adds a second and core")
        promises.line("  one multiply-add", float(nanoseconds), "ns", 5)

    (help_time, _, _), = least([shardc, "--help"])
    promises.line("shardc --help", help_time, "ms", 10)

    small, large = least(*([shardc, "check", *JOB, "--world", world, "--", *FLAGS] for world in ("64", "16384")))
    promises.line("check of deepseek_v3/671B, 16384 ranks", large[0], "ms", 50)
    promises.line("  its peak memory", large[1], "MiB", 64)
    promises.line("  its processor time, against 64 ranks", large[2] / small[2], "x", 1.1)
    promises.line("  its memory, against 64 ranks", large[1] / small[1], "x", 1.1)

    (table, _, _), = least([shardc, "grads", *JOB, "--world", "2048", "--", *FLAGS])
    promises.line("grads of deepseek_v3/671B, 2048 ranks", table, "ms", 50)

    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(binaries, "bench_Phases")
        tenth = phases(program, 100_000, folder)
        whole = phases(program, 1_000_000, folder)
    promises.line("infer and verify 1000000 operations", whole, "s", 1)
    promises.line("  per operation, against 100000 operations", whole / (10 * tenth), "x", 1.5)

    plans = dict(line.split() for line in run([os.path.join(binaries, "bench_Plans")])[3].splitlines())
    for mesh, limit in {"2x2": 1.04, "2x3": 1.12, "2x4": 1.09, "4x8": 1.09, "2x2x2": 1.05, "2x4x8": 1.09}.items():
        promises.line(f"bytes of plans on {mesh} without all-to-all-v, to the bound", float(plans[mesh + "-ratio"]), "x", limit)
    promises.line("bytes of plans with it, to the bound", float(plans["eight-digits-v-ratio"]), "x", 1)
    promises.line("a plan over 6 digits and 3 dimensions", float(plans["six-digits-v-ms"]), "ms", 1)
    promises.line("a plan over 8 digits and 3 dimensions", float(plans["eight-digits-v-ms"]), "ms", 50)
    promises.line("  without all-to-all-v", float(plans["eight-digits-ms"]), "ms", 50)
    sys.exit(1 if promises.broken and "--strict" in sys.argv else 0)


main()
