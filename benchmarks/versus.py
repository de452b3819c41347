"""This checkout against another one, turn by turn in one sitting: `python -m benchmarks.versus OTHER`.

OTHER is a checkout of Parley with a `.venv` of its own (`make .venv/.dev`). Both run at once, one idle
while the other is loaded, and take their turns in the order A B B A, so that what the machine does
meanwhile (its clock, its neighbours) meets both alike.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import uvloop

from benchmarks import load
from benchmarks.measure import Cell, Result, Tree, measure
from benchmarks.stack import ROOT

# Said to an interpreter of the checkout that is measured, which may be older than this file.
_SERVE: Final = """
import dataclasses, json, sys
from benchmarks.stack import running
with running(say=lambda _: None) as stack:
    print(json.dumps(dataclasses.asdict(stack)), flush=True)
    sys.stdin.read()
"""
_LIMIT_S: Final = 60.0
_FIGURES: Final[dict[str, Callable[[Result], float]]] = {
    "deltas/s": lambda result: result.deltas_per_s,
    "CPU s per 1,000": lambda result: result.cpu_s_per_1000,
    "first delta ms": lambda result: result.first.p50,
}
_Turns = tuple[list[Result], list[Result]]


@contextmanager
def _served(checkout: Path) -> Iterator[dict[str, Any]]:
    """The facts of this checkout's stack, which runs inside the block."""
    with subprocess.Popen(
        [str(checkout / ".venv/bin/python"), "-c", _SERVE],
        cwd=checkout,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            sys.exit(f"versus: {checkout} did not start")
        yield json.loads(line)  # closing its input ends it


async def _turns(stacks: Sequence[dict[str, Any]], cell: Cell, count: int, seconds: float) -> _Turns:
    targets = [
        (load.parley(stack["web_port"], stack["token"], "bench"), Tree(stack["pids"]))
        for stack in stacks
    ]
    nothing = Tree([])
    found: _Turns = ([], [])
    for number in range(2 * count):
        side = (number + number // 2) % 2
        target, tree = targets[side]
        result = await measure(target, cell, tree, nothing, seconds=seconds, limit_s=_LIMIT_S)
        if result.errors or any(vars(result.faults).values()):
            sys.exit(f"versus: {result.errors or result.faults}")
        found[side].append(result)
    return found


def _line(cell: Cell, turns: _Turns) -> str:
    """Medians of both sides; the mean ratio of neighbouring turns, with its standard error."""
    said = [f"{cell.name:>8}"]
    for name, figure in _FIGURES.items():
        theirs, ours = ([figure(one) for one in side] for side in turns)
        logs = [math.log(b / a) for a, b in zip(theirs, ours, strict=True)]
        change, error = statistics.mean(logs), statistics.stdev(logs) / len(logs) ** 0.5
        said.append(
            f"{name} {statistics.median(theirs):,.6g} → {statistics.median(ours):,.6g} "
            f"({100 * math.expm1(change):+.1f} % ± {100 * error:.1f})"
        )
    return "  ".join(said)


def main() -> None:
    """Measure both and print a line a cell: theirs → ours, the change, and its standard error."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.versus", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("other", type=Path, help="the other checkout")
    parser.add_argument("--cells", default="8x0,64x0,200x10", help="clients × delay in ms, × tokens")
    parser.add_argument("--turns", type=int, default=8, help="how many each takes of a cell (8)")
    parser.add_argument("--seconds", type=float, default=2, help="how long a turn loads (2)")
    options = parser.parse_args()
    cells = [Cell(*map(int, name.split("x"))) for name in options.cells.split(",")]
    with ExitStack() as opened:
        stacks = [opened.enter_context(_served(path)) for path in (options.other.resolve(), ROOT)]
        for cell in cells:
            turns = uvloop.run(_turns(stacks, cell, options.turns, options.seconds))
            print(_line(cell, turns), flush=True)


if __name__ == "__main__":
    main()
