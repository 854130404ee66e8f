#!/usr/bin/env python3
"""Writes a graph file of N operations in as many layouts as there are moves: chains of 1000 operations, each a walk over the
layouts of a matrix on six axes. Every second operation moves one axis, the others compute. The same N gives the same file.

usage: make_graph.py N > graph.yaml
"""
import random
import sys

AXES = "abcdef"
CHAIN = 1000


def dimension(name, axes):
    if not axes:
        return name
    return f"{name}@{axes[0]}" if len(axes) == 1 else f"{name}@({','.join(axes)})"


def chain(group, length, pick):
    """One chain: the type it starts from and its operations. `axes[d]` are the axes on dimension d, outermost first."""
    names = (f"A{group}", f"B{group}")
    order = list(AXES)
    pick.shuffle(order)
    cut = pick.randrange(len(order) + 1)
    axes = [order[:cut], order[cut:]]
    start = f"f32[{dimension(names[0], axes[0])}, {dimension(names[1], axes[1])}]"
    value, operations, back = f"x{group}", [], None
    for step in range(length):
        result = f"v{group}_{step}"
        if step % 2:
            operations.append(f"{result} = silu({value})")
        else:
            # The innermost axis of one dimension becomes the innermost of the other. The axis that moved last stays, unless
            # nothing else can move: otherwise the walk would turn back at once.
            source = pick.choice([d for d in (0, 1) if axes[d] and axes[d][-1] != back] or [d for d in (0, 1) if axes[d]])
            back = axes[source].pop()
            axes[1 - source].append(back)
            operations.append(f"{result} = redistribute({value}, {names[source]}@{back} -> {names[1 - source]}@{back})")
        value = result
    return start, operations


def main():
    total = int(sys.argv[1])
    pick = random.Random(1)
    groups = [chain(g, min(CHAIN, total - g * CHAIN), pick) for g in range((total + CHAIN - 1) // CHAIN)]
    out = sys.stdout
    out.write(f"graph: {total} operations\nworld: {2 ** len(AXES)}\nmesh: {{dense: {{{', '.join(f'{a}: 2' for a in AXES)}}}}}\nsizes:\n")
    for g in range(len(groups)):
        # Extents differ, so that no two chains share a type; 64 divides them, so that any layout is even.
        out.write(f"  A{g}: {64 * (g + 1)}\n  B{g}: {64 * (g + 2)}\n")
    out.write("inputs:\n")
    for g, (start, _) in enumerate(groups):
        out.write(f"  x{g}: {start}\n")
    out.write("ops:\n")
    for _, operations in groups:
        for operation in operations:
            out.write(f"  - {operation}\n")


main()
