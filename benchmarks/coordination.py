"""Parley with Redis beside Parley with PostgreSQL alone, in one sitting.

    .venv/bin/python -m benchmarks.coordination [SECONDS] [TURNS]

Both run at once, each with a PostgreSQL of its own, one idle while the other is loaded for SECONDS (2);
they take TURNS (3) each, in the order A B B A. Medians are printed: the first token of one client, runs
of one token a second, tokens a second, and the CPU of all processes with their PostgreSQL and Redis.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Final

import uvloop

from benchmarks import load
from benchmarks.measure import Cell, Result, Tree, measure
from benchmarks.stack import CannotStart, Stack, running

LIMIT_S: Final = 30.0
ALONE: Final = Cell(1, 10, least_runs=5)
SHORT: Final = Cell(16, 0, tokens=1)
CROWD: Final = Cell(50, 10)
FULL: Final = Cell(8, 0)
CELLS: Final = (ALONE, SHORT, CROWD, FULL)
Value = Callable[[Result], float]
FIGURES: Final[tuple[tuple[str, Cell, Value], ...]] = (
    ("accept p50 ms, one client", ALONE, lambda result: result.accept.p50),
    ("first token p50 ms, one client", ALONE, lambda result: result.first.p50),
    ("runs of one token a second, 16 clients", SHORT, lambda result: result.runs_per_s),
    ("CPU ms a run of one token", SHORT, lambda result: sum(result.cpu_ms_of.values())),
    ("first token p50 ms, 50 clients at once", CROWD, lambda result: result.first.p50),
    ("tokens a second, 50 clients, one each 10 ms", CROWD, lambda result: result.deltas_per_s),
    ("CPU s per 1,000 tokens, 50 clients, 10 ms", CROWD, lambda result: result.cpu_s_per_1000),
    ("tokens a second, 8 clients, no pauses", FULL, lambda result: result.deltas_per_s),
)


def main(seconds: float = 2.0, turns: int = 3) -> None:
    """Measure both shapes and print a table."""
    with ExitStack() as opened:
        stacks = [
            opened.enter_context(running(say=lambda _: None, with_redis=with_redis))
            for with_redis in (True, False)
        ]
        found = uvloop.run(_measure(stacks, seconds, turns))
    print("| | " + " | ".join(stack.shape for stack in stacks) + " |\n|---|---|---|")
    for words, cell, value in FIGURES:
        both = (statistics.median(map(value, results[cell])) for results in found)
        print(f"| {words} | " + " | ".join(f"{figure:,.4g}" for figure in both) + " |")


async def _measure(
    stacks: Sequence[Stack], seconds: float, turns: int
) -> tuple[dict[Cell, list[Result]], dict[Cell, list[Result]]]:
    targets = [(load.parley(stack.web_port, stack.token, "bench"), Tree(stack.pids)) for stack in stacks]
    nothing = Tree([])
    found: tuple[dict[Cell, list[Result]], dict[Cell, list[Result]]] = ({}, {})
    for cell in CELLS:
        for number in range(2 * turns):
            side = (number + number // 2) % 2
            target, tree = targets[side]
            result = await measure(target, cell, tree, nothing, seconds=seconds, limit_s=LIMIT_S)
            if result.errors or any(vars(result.faults).values()):
                raise CannotStart(f"{stacks[side].shape}: {result.errors or result.faults}")
            found[side].setdefault(cell, []).append(result)
    return found


if __name__ == "__main__":
    try:
        main(*map(int, sys.argv[1:3]))
    except CannotStart as error:
        sys.exit(f"benchmark: {error}")
