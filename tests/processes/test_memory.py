"""What a process holds when it is ready is not looked at again; what it makes and drops later is."""

from __future__ import annotations

import subprocess
import sys

_SETTLES = """
import gc, weakref
from config import memory

class Node:
    def __init__(self):
        self.me = self

def dropped():
    return weakref.ref(Node())

early = dropped()
memory.settle()
assert early() is None, "garbage was kept"
assert gc.get_freeze_count() > len(gc.get_objects()), "full collections still look at everything"
late = dropped()
gc.collect()
assert late() is None, "garbage is no longer collected"
"""


def test_a_settled_process_collects_only_what_came_later() -> None:
    done = subprocess.run([sys.executable, "-c", _SETTLES], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
