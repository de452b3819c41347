"""How throughput grows from one worker process to two and four, the web process staying one.

    .venv/bin/python -m benchmarks.growth [SECONDS]

The machine's cores are the limit: with few of them more workers only share what there is, and the
CPU seconds per 1,000 deltas tell what an additional worker costs.
"""

from __future__ import annotations

import sys

import uvloop

from benchmarks import load
from benchmarks.measure import Cell, Result, Tree, measure
from benchmarks.stack import Stack, running

WORKERS = (1, 2, 4)
CELLS = (Cell(64, 0), Cell(200, 10))


async def grow(stack: Stack, seconds: float) -> list[Result]:
    target = load.parley(stack.web_port, stack.token, "bench")
    server, bench = Tree(stack.pids), Tree(stack.all_pids)
    return [await measure(target, cell, server, bench, seconds=seconds, limit_s=60) for cell in CELLS]


def main(seconds: float) -> None:
    print("| workers | cell | deltas/s | first delta p50 / p99 ms | CPU s per 1,000 | errors | faults |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for workers in WORKERS:
        with running(say=lambda _: None, workers=workers) as stack:
            for result in uvloop.run(grow(stack, seconds)):
                print(
                    f"| {workers} | {result.cell.name} | {result.deltas_per_s:,.0f} | "
                    f"{result.first.p50:g} / {result.first.p99:g} | {result.cpu_s_per_1000:.3f} | "
                    f"{result.errors or 0} | {result.faults} |",
                    flush=True,
                )


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 6.0)
