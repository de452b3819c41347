"""Run the matrix: `python -m benchmarks [--quick] [--only parley,50x10] [--server uvicorn]`."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uvloop

from benchmarks import coordination, load, statements
from benchmarks.measure import WARM_UP, Cell, Result, Tree, measure
from benchmarks.report import report
from benchmarks.stack import ROOT, CannotStart, Stack, running

CELLS = (
    Cell(1, 0),
    Cell(8, 0),
    Cell(32, 0),
    Cell(64, 0),
    Cell(16, 0, tokens=1),
    Cell(1, 10, least_runs=5),
    Cell(50, 10),
    Cell(200, 10),
)
QUICK = ("16x0x1", "1x10", "8x0", "50x10")
TARGETS = ("model", "proxy", "view", "parley")
RESULTS = ROOT / "benchmarks" / "results"
READY_S = 30


def main() -> None:
    options = _options()
    try:
        with running(server=options.server, say=_say) as stack:
            results = uvloop.run(_matrix(stack, options))
    except CannotStart as error:
        sys.exit(f"benchmark: {error}")
    except KeyboardInterrupt:
        sys.exit("benchmark: stopped")
    facts = _facts(options, stack)
    path = _save(results, facts)
    heading = f"Parley {facts['commit']}, {stack.shape}, {options.server}, {facts['at']}"
    if options.json:
        print("\n".join(_lines(results, facts)))
    else:
        print(f"\n{report(results, heading=heading)}")
    _say(f"saved in {path.relative_to(ROOT)}")
    if not options.only and not options.json and statements.can_count():
        print("\n### What one run asks of PostgreSQL\n")
        statements.main(200, 1)
    if not options.only and not options.json and shutil.which("redis-server"):
        print("\n### With Redis, and with PostgreSQL alone\n")
        coordination.main(turns=1 if options.quick else 3)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Benchmark Parley on this host."
    )
    parser.add_argument("--quick", action="store_true", help="four cells, two seconds each")
    parser.add_argument(
        "--only",
        type=lambda text: set(text.split(",")),
        default=set(),
        help=f"targets ({', '.join(TARGETS)}) and cells ({', '.join(cell.name for cell in CELLS)})",
    )
    parser.add_argument("--seconds", type=float, default=0, help="how long each cell is loaded (4)")
    parser.add_argument("--limit-s", type=float, default=60, help="give a cell up after so long")
    parser.add_argument("--tries", type=int, default=2, help="tries of a cell while strangers are busy")
    parser.add_argument("--server", choices=("uvicorn", "daphne"), default="uvicorn")
    parser.add_argument("--json", action="store_true", help="print JSON lines instead of tables")
    options = parser.parse_args()
    known = {*TARGETS, *(cell.name for cell in CELLS)}
    if unknown := options.only - known:
        parser.error(f"--only knows {', '.join(sorted(known))}, not {', '.join(sorted(unknown))}")
    options.seconds = options.seconds or (2 if options.quick else 4)
    return options


async def _matrix(stack: Stack, options: argparse.Namespace) -> list[Result]:
    targets = [pair for name, pair in _targets(stack).items() if _wanted(name, TARGETS, options.only)]
    for target, _ in targets:
        await _until_it_answers(target)
    bench = Tree(stack.all_pids)
    results: list[Result] = []
    for cell in _cells(options):
        for target, tree in targets:
            _say(f"{cell.clients} clients × {cell.tokens} tokens at {cell.delay_ms} ms: {target.name}")
            results.append(await _quietest(target, cell, tree, bench, options))
            _say(_short(results[-1]))
    return results


async def _quietest(
    target: load.Target, cell: Cell, server: Tree, bench: Tree, options: argparse.Namespace
) -> Result:
    """Measure again while strangers were busy; keep the quietest try, whatever its figures."""
    tries: list[Result] = []
    while not tries or (tries[-1].cost.noisy and len(tries) < options.tries):
        tries.append(
            await measure(target, cell, server, bench, seconds=options.seconds, limit_s=options.limit_s)
        )
    return replace(min(tries, key=lambda tried: tried.cost.strangers_share), tries=len(tries))


def _targets(stack: Stack) -> dict[str, tuple[load.Target, Tree]]:
    return {
        "model": (load.fake_model(stack.model_port), Tree([stack.model_pid])),
        "proxy": (load.json_proxy(stack.proxy_port), Tree([stack.proxy_pid])),
        "view": (load.django_view(stack.view_port), Tree([stack.view_pid])),
        "parley": (load.parley(stack.web_port, stack.token, "bench"), Tree(stack.pids)),
    }


def _cells(options: argparse.Namespace) -> Iterator[Cell]:
    names = [cell.name for cell in CELLS]
    for cell in CELLS:
        named = options.only & set(names)
        if cell.name in named or (not named and (cell.name in QUICK or not options.quick)):
            yield cell


def _wanted(name: str, names: tuple[str, ...], only: set[str]) -> bool:
    return name in only or not only & set(names)


async def _until_it_answers(target: load.Target) -> None:
    deadline = time.monotonic() + READY_S
    while (run := await load.run_once(target, WARM_UP, limit_s=READY_S)).error:
        if time.monotonic() > deadline:
            raise CannotStart(f"{target.name} does not answer: {run.error}")
        await asyncio.sleep(0.5)


def _facts(options: argparse.Namespace, stack: Stack) -> dict[str, Any]:
    """What must be known to compare a result with another."""
    commit = "unknown"
    if git := shutil.which("git"):
        command = (git, "-C", str(ROOT), "describe", "--always", "--dirty")
        commit = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    at = datetime.now(UTC).isoformat(timespec="seconds")
    return {
        "commit": commit,
        "at": at,
        "shape": stack.shape,
        "server": options.server,
        "cores": os.cpu_count(),
    }


def _save(results: list[Result], facts: dict[str, Any]) -> Path:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{facts['at'].replace(':', '').replace('+0000', 'Z')}.jsonl"
    path.write_text("".join(line + "\n" for line in _lines(results, facts)))
    return path


def _lines(results: list[Result], facts: dict[str, Any]) -> list[str]:
    return [json.dumps(facts | asdict(result)) for result in results]


def _short(result: Result) -> str:
    faults = sum(asdict(result.faults).values()) + sum(result.errors.values())
    return (
        f"    {result.deltas_per_s:,.0f} deltas/s, first delta {result.first.p50:g} ms, "
        f"{result.cpu_s_per_1000:.3f} CPU s per 1,000" + (f", {faults} FAULTS" if faults else "")
    )


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
