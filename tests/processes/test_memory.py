"""What a process holds when it is ready is not looked at again; what it makes and drops later goes."""

from __future__ import annotations

import subprocess
import sys

_SETTLES = """
import gc, weakref
from config.process import memory

class Node:
    def __init__(self):
        self.me = self

def dropped():
    return weakref.ref(Node())

early = dropped()
memory.freeze_heap()
assert early() is None, "garbage was kept"
assert gc.get_freeze_count() > len(gc.get_objects()), "full collections still look at everything"
late = dropped()
gc.collect()
assert late() is None, "garbage is no longer collected"
"""


def test_a_settled_process_collects_only_what_came_later() -> None:
    done = subprocess.run([sys.executable, "-c", _SETTLES], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


_GIVES_BACK = """
import psutil
from config.process import memory

memory.freeze_heap()
before, small = psutil.Process().memory_info().rss, []
bytes(31 * 2**20)
for size in range(4, 30, 2):  # no hole that one left holds the next
    large = b"x" * (size * 2**20)
    small += [bytes(1_000) for _ in range(3_000)]  # above it on the heap
    del large
grown = psutil.Process().memory_info().rss - before
assert grown < 60 * 2**20, f"{grown >> 20} MiB stay, of which the small ones are 39"
"""


def test_a_large_block_goes_back_to_the_system_when_it_is_released() -> None:
    command = [sys.executable, "-c", _GIVES_BACK]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
