"""What a process holds when it is ready is not looked at again; what it makes and drops later goes."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest


def can_collapse() -> bool:
    """Whether a process may ask for huge pages: Linux 6.1, and not switched off."""
    enabled = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not enabled.exists() or "[never]" in enabled.read_text():
        return False
    major, minor = platform.release().split(".")[:2]
    return (int(major), int(minor)) >= (6, 1)


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


_HUGE = """
import multiprocessing, os, threading
from pathlib import Path
from config.process import memory

def held(name):
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) >> 10 for line in lines if line.startswith(name))

def look():
    memory.use_huge_pages()
    os._exit(held("AnonHugePages"))

heap = [bytes([number % 250]) * 2_000 for number in range(50_000)]
idle = [threading.Thread(target=threading.Event().wait, daemon=True) for _ in range(8)]
for thread in idle:
    thread.start()
child = multiprocessing.get_context("fork").Process(target=look)
child.start()
child.join()
assert child.exitcode == 0, "a forked process has copied what it shares"
before = held("Rss")
memory.use_huge_pages()
assert held("AnonHugePages") >= 32, "the heap is in small pages"
assert held("Rss") - before < 8, "what was not in use has become memory"
assert heap[499] == bytes([249]) * 2_000
"""


@pytest.mark.skipif(not can_collapse(), reason="this kernel cannot move a heap to huge pages")
def test_the_heap_moves_to_huge_pages_unless_it_is_shared() -> None:
    command = [sys.executable, "-W", "ignore", "-c", _HUGE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
