"""Measure Parley with a peerbench checkout: its load client, its fake model, in turn with its peers.

    .venv/bin/python -m benchmarks.beside PEERBENCH [PEER …] [--serve]

PEERBENCH is a folder that holds `load.py`, `peer.sh` and the peers' environments (`./venvs.sh`), with
its services and its fake model running: `./services.sh start && ./peer.sh start mock`. Parley is
started in the one-host shape (with `--serve` by `manage.py serve`, else by a command for each process)
against that model and measured as `platform`; the named peers run beside it. Each cell is measured
three times, and each time Parley first and then the peers within the same minute, because a machine
that others use too does not keep its pace for longer: a ratio is the median of those three. Everything
lands in `results/results.jsonl`, which `report.py` there makes tables of. Parley's processes and the
load client get the priority that `first.sh` gives to the peers and the model.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from benchmarks.measure import Tree
from benchmarks.stack import START_S, Stack, running

MODEL = "http://127.0.0.1:9100/v1"
PARLEY = "platform"
TIMES = 3
SECONDS = 4
FIRST = -10  # `first.sh`: NICE
# clients, least number of runs each, tokens, delay in ms
CELLS = ((8, 3, 200, 0), (200, 1, 200, 10), (1, 5, 200, 10), (50, 1, 200, 10))
SHOWN = ("deltas_per_s", "accept_ms", "ttft_ms", "total_ms", "peer_cpu_s_per_1000", "other_cpu_s")
MUST_BE_0 = ("errors", "lost", "duplicated")


Cell = tuple[int, int, int, int]
Line = dict[str, Any]


def measure(folder: Path, peer: str, cell: Cell, *, out: str = "results/results.jsonl") -> Line:
    """Return one line of the load client about a peer."""
    clients, runs, tokens, delay_ms = cell
    command = ["setsid", "-w", "./first.sh", str(folder / "venvs/base/bin/python"), "load.py", "run"]
    command += ["--peer", peer, "--pidfile", server_of(peer), "--out", out]
    command += ["--clients", str(clients), "--runs", str(runs), "--seconds", str(SECONDS)]
    command += ["--tokens", str(tokens), "--delay-ms", str(delay_ms)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(f"beside: load.py failed for {peer}:\n{done.stderr[-2000:]}")
    line: Line = json.loads(done.stdout.splitlines()[-1])
    return line


def server_of(peer: str) -> str:
    """The name under which `peer.sh` starts a peer: one server may be read in two ways."""
    return peer.removesuffix("-bg")


@contextmanager
def serving(folder: Path, peer: str) -> Iterator[None]:
    """Run a peer during the block, from when it answers."""
    subprocess.run(["./peer.sh", "start", server_of(peer)], cwd=folder, check=True)
    try:
        until = time.monotonic() + START_S
        while (line := measure(folder, peer, (1, 1, 1, 0), out=os.devnull))["errors"]:
            if time.monotonic() > until:
                sys.exit(f"beside: {peer} does not answer: {line.get('error_samples')}")
            time.sleep(1)
        yield
    finally:
        subprocess.run(["./peer.sh", "stop", server_of(peer)], cwd=folder, check=True)


def put_first(pids: Iterable[int]) -> None:
    """Give the processes and their sessions the priority of the peers; nothing without the right to."""
    with suppress(PermissionError, FileNotFoundError):
        for pid in pids:
            os.setpriority(os.PRIO_PROCESS, pid, FIRST)
            Path(f"/proc/{pid}/autogroup").write_text(f"{FIRST}\n")


def value(line: Line, name: str) -> float:
    """Return a figure of a line, the p50 of one that is a spread."""
    found = line.get(name, 0)
    return float(found.get("p50", 0) if isinstance(found, dict) else found)


def show(cell: Cell, turns: Sequence[dict[str, Line]]) -> None:
    """Print a cell's medians: Parley's and each peer's figures, and how they compare turn by turn."""
    for peer in turns[0]:
        figures = [
            f"{name} {statistics.median(value(turn[peer], name) for turn in turns):g}" for name in SHOWN
        ]
        figures += [f"{name} {sum(value(turn[peer], name) for turn in turns):g}" for name in MUST_BE_0]
        print(f"{cell[0]} × {cell[3]} ms, {peer}: {', '.join(figures)}", flush=True)
    for peer in list(turns[0])[1:]:
        ratios = [f"{name} {compare(turns, peer, name)}" for name in SHOWN]
        print(f"{cell[0]} × {cell[3]} ms, {PARLEY} / {peer}: {', '.join(ratios)}", flush=True)


def compare(turns: Sequence[dict[str, Line]], peer: str, name: str) -> str:
    """Return the median of Parley's figure by the peer's, and that of each turn."""
    pairs = [(value(turn[PARLEY], name), value(turn[peer], name)) for turn in turns]
    ratios = [mine / theirs for mine, theirs in pairs if theirs]
    if not ratios:
        return "-"
    return f"{statistics.median(ratios):.2f} ({', '.join(f'{ratio:.2f}' for ratio in ratios)})"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.beside", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("peerbench", type=Path)
    parser.add_argument("peers", nargs="*")
    parser.add_argument("--serve", action="store_true")
    options = parser.parse_args()
    folder = options.peerbench.resolve()
    for name in ("run", "results"):
        (folder / name).mkdir(exist_ok=True)
    with ExitStack() as opened:
        stack = opened.enter_context(
            running(say=lambda _: None, model_url=MODEL, together=options.serve)
        )
        introduce(folder, stack)
        for peer in options.peers:
            opened.enter_context(serving(folder, peer))
        for cell in CELLS:
            peers = (PARLEY, *options.peers)
            show(cell, [{peer: measure(folder, peer, cell) for peer in peers} for _ in range(TIMES)])


def introduce(folder: Path, stack: Stack) -> None:
    """Tell the load client where Parley is, and which processes it consists of."""
    os.environ |= {"BENCH_PORT": str(stack.web_port), "BENCH_TOKEN": stack.token, "BENCH_MODEL": "bench"}
    pids = [process.pid for process in Tree(stack.pids).processes()]
    put_first(pids)
    (folder / f"run/{PARLEY}.pid").write_text("".join(f"{pid}\n" for pid in pids))


if __name__ == "__main__":
    main()
