"""Imported by Python at its start where PYTHONPATH says so: the wall clock is what a file says.

The monotonic clock does not jump, as on a real machine.
"""

from __future__ import annotations

import os
import time

_FILE = os.environ["TEST_CLOCK_FILE"]
_LOOK_S = 0.005
_real_ns = time.time_ns
_seen = (0.0, 0)


def _ahead_ns() -> int:
    global _seen
    now = time.monotonic()
    if now >= _seen[0]:
        with open(_FILE) as file:
            _seen = (now + _LOOK_S, int(float(file.read()) * 1e9))
    return _seen[1]


def time_ns() -> int:
    return _real_ns() + _ahead_ns()


def seconds() -> float:
    return time_ns() / 1e9


time.time_ns, time.time = time_ns, seconds
