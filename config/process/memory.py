"""Tuning of the garbage collector and the allocator for a serving process.

A serving process has some hundred thousand objects of Django, packages and Parley from start to end.
Each full collection scans all of them, which stops an event loop for a tenth of a second or more.
Therefore the objects that exist when the process is ready are frozen.

glibc's allocator returns a large block to the system on release, but takes the next block of that size
from its heap, where a small block above it retains it. So one body of 16 MiB would increase the memory
of a process for ever, unless the limit is fixed. Fixing one limit fixes all: without the second, of
128 KiB, each burst of frames would take pages from the system and return them, which costs a tenth of
the total cost of a stream.
"""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress
from typing import Final

_YOUNG: Final = 5_000  # surplus of allocations over releases that starts a collection of the youngest
_LARGE: Final = 512 * 1024  # bytes of a block that is returned to the system on its own
_KEPT_FREE: Final = 8 * 1024 * 1024  # free bytes at the end of the heap that are kept
_TRIM_THRESHOLD: Final = -1  # values of <malloc.h>
_MMAP_THRESHOLD: Final = -3


def freeze_heap() -> None:
    """Collect garbage and freeze all other objects (about 0.2 seconds); fix the allocator's limits."""
    with suppress(AttributeError, OSError):  # other C libraries lack it
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, _LARGE)
        mallopt(_TRIM_THRESHOLD, _KEPT_FREE)
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, *gc.get_threshold()[1:])
