"""What the processes of one host hold in memory when nobody asks for anything.

    .venv/bin/python -m benchmarks.at_rest [SECONDS]

Starts web, worker and beat each by itself, then web and worker by `manage.py serve`, each beside a
private PostgreSQL and Redis; waits SECONDS (30) and reads PSS, in which processes divide the pages that
they share. What they hold after very many runs is in `benchmarks.short_runs`.
"""

from __future__ import annotations

import argparse
import time

import psutil

from benchmarks.measure import Tree, name_process
from benchmarks.stack import Stack, running


def show(stack: Stack) -> None:
    """Print each process of Parley, PostgreSQL and Redis with its descendants, and the sum."""
    sizes = {name_process(psutil.Process(pid)): Tree([pid]).memory_mib() for pid in stack.pids}
    for name, (_, pss) in sizes.items():
        print(f"  {name:<14} {pss:6.0f} MiB")
    print(f"  {'together':<14} {sum(pss for _, pss in sizes.values()):6.0f} MiB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.at_rest")
    parser.add_argument("seconds", nargs="?", type=float, default=30.0)
    seconds = parser.parse_args().seconds
    for together in (False, True):
        print("manage.py serve" if together else "web, worker, beat")
        with running(say=lambda _: None, together=together) as stack:
            time.sleep(seconds)
            show(stack)


if __name__ == "__main__":
    main()
