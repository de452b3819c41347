"""Ports for programs that must be told one before they listen.

Between the choice and the listening nobody else may take the port. So none is chosen that the operating
system gives to outgoing connections (from 32,768 on Linux, from 49,152 elsewhere), and each process of a
parallel test run has a stretch of its own.
"""

from __future__ import annotations

import os
import random
import socket

_FIRST, _STRETCH, _STRETCHES = 20_000, 500, 24


def _own_stretch() -> list[int]:
    """The ports of this process, from a random one on; pytest-xdist calls its processes gw0, gw1, …."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % _STRETCHES
    first, start = _FIRST + number * _STRETCH, random.randrange(_STRETCH)
    return [first + (start + step) % _STRETCH for step in range(_STRETCH)]


_left: list[int] = []


def free_port() -> int:
    """A port that is free now on every address; one given before comes again only after all others."""
    for _ in range(2 * _STRETCH):
        if not _left:
            _left.extend(_own_stretch())
        port = _left.pop()
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
            return port
    raise OSError(f"No port is free from {_FIRST} to {_FIRST + _STRETCH * _STRETCHES}.")
