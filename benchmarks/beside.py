"""Measure Parley with a peerbench checkout: its load client, its fake model, beside its peers.

    .venv/bin/python -m benchmarks.beside PEERBENCH [PEER …] [--serve]

PEERBENCH is a folder that holds `load.py`, `bench.py` and the peers' environments (`./venvs.sh`), with
its services and its fake model running: `./services.sh start && ./peer.sh start mock`. Parley is
started in the one-host shape (with `--serve` by `manage.py serve`, else by a command for each process)
against that model and measured as `platform`, three times a cell; then
`bench.py --only run` measures the named peers. Everything lands in its `results/results.jsonl`, which
its `report.py` makes tables of. All in the same sitting, so figures compare; to that end Parley's
processes and the load client get the priority that `first.sh` gives to the peers and the model.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.measure import Tree
from benchmarks.stack import Stack, running

MODEL = "http://127.0.0.1:9100/v1"
TIMES = 3
FIRST = -10  # `first.sh`: NICE
# clients, least number of runs each, tokens, delay in ms: as bench.py has them
CELLS = ((8, 3, 200, 0), (200, 1, 200, 10), (1, 5, 200, 10), (50, 1, 200, 10))
SHOWN = ("deltas_per_s", "accept_ms", "ttft_ms", "total_ms", "peer_cpu_s_per_1000")
ALSO = ("errors", "lost", "duplicated", "other_cpu_s")


def measure(folder: Path, stack: Stack, cell: tuple[int, int, int, int]) -> dict[str, Any]:
    """One line of the load client about Parley."""
    clients, runs, tokens, delay_ms = cell
    command = ["setsid", "-w", "./first.sh", str(folder / "venvs/base/bin/python")]
    command += ["load.py", "run", "--peer", "platform"]
    command += ["--clients", str(clients), "--runs", str(runs), "--tokens", str(tokens)]
    command += ["--delay-ms", str(delay_ms), "--seconds", "4", "--out", "results/results.jsonl"]
    env = {"BENCH_PORT": str(stack.web_port), "BENCH_TOKEN": stack.token, "BENCH_MODEL": "bench"}
    done = subprocess.run(
        command, cwd=folder, env=os.environ | env, capture_output=True, text=True, timeout=300
    )
    if done.returncode:
        sys.exit(f"beside: load.py failed:\n{done.stderr[-2000:]}")
    line: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return line


def put_first(pids: Iterable[int]) -> None:
    """Give the processes and their sessions the priority of the peers; nothing without the right to."""
    with suppress(PermissionError, FileNotFoundError):
        for pid in pids:
            os.setpriority(os.PRIO_PROCESS, pid, FIRST)
            Path(f"/proc/{pid}/autogroup").write_text(f"{FIRST}\n")


def middle(lines: list[dict[str, Any]], name: str) -> Any:
    """The median of a figure, or of its p50 where it is a spread; sums of what must be zero."""
    values = [line.get(name, 0) for line in lines]
    flat = [value.get("p50", 0) if isinstance(value, dict) else value for value in values]
    return sum(flat) if name in ALSO[:-1] else round(statistics.median(flat), 3)


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
    with running(say=lambda _: None, model_url=MODEL, together=options.serve) as stack:
        pids = [process.pid for process in Tree(stack.pids).processes()]
        put_first(pids)
        (folder / "run/platform.pid").write_text("".join(f"{pid}\n" for pid in pids))
        for cell in CELLS:
            lines = [measure(folder, stack, cell) for _ in range(TIMES)]
            figures = ", ".join(f"{name} {middle(lines, name)}" for name in (*SHOWN, *ALSO))
            print(f"Parley {cell[0]} × {cell[3]} ms: {figures}", flush=True)
    if options.peers:
        command = [str(folder / "venvs/base/bin/python"), "bench.py", "--only", "run", *options.peers]
        subprocess.run(command, cwd=folder, check=True)


if __name__ == "__main__":
    main()
