"""Tuning of the garbage collector and the allocator for a serving process.

A serving process has some hundred thousand objects of Django, packages and Parley from start to end.
Each full collection scans all of them, which stops an event loop for a tenth of a second or more.
Therefore the objects that exist when the process is ready are frozen.

glibc's allocator returns a large block to the system on release, but takes the next block of that size
from its heap, where a small block above it retains it. So one body of 16 MiB would increase the memory
of a process for ever, unless the limit is fixed. Fixing one limit fixes all: without the second, of
128 KiB, each burst of frames would take pages from the system and return them, which costs a tenth of
the total cost of a stream.

A run touches objects all over the heap, in more pages of 4 KiB than a processor remembers the place of.
Pages of 2 MiB are fewer: a run of one token costs a fourteenth less (16 clients, ten turns each of
`shared/bench`'s load, 29 November 2026: 2.98 ms of CPU in place of 3.22, 483 runs a second and 449).
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

_YOUNG: Final = 5_000  # surplus of allocations over releases that starts a collection of the youngest
_LARGE: Final = 512 * 1024  # bytes of a block that is returned to the system on its own
_KEPT_FREE: Final = 8 * 1024 * 1024  # free bytes at the end of the heap that are kept
_TRIM_THRESHOLD: Final = -1  # values of <malloc.h>
_MMAP_THRESHOLD: Final = -3
_HUGE: Final = 2 * 1024 * 1024
_HUGE_PAGES: Final = 14  # values of <linux/mman.h>: MADV_HUGEPAGE
_COLLAPSE: Final = 25
_REGION: Final = re.compile(
    r"^([0-9a-f]+)-([0-9a-f]+) rw-p 0+ 00:00 0 *(?:\[heap\])?\nSize: .*\n(?:\w+: .*\n)*?Rss: +(\d+) kB$",
    re.MULTILINE,
)


def freeze_heap() -> None:
    """Collect garbage and freeze all other objects (about 0.2 seconds); fix the allocator's limits."""
    with suppress(AttributeError, OSError):  # other C libraries lack it
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, _LARGE)
        mallopt(_TRIM_THRESHOLD, _KEPT_FREE)
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, *gc.get_threshold()[1:])


def use_huge_pages() -> None:
    """Move the heap to pages of 2 MiB, where the kernel can (Linux 6.1 and later; about 0.1 seconds).

    No effect in a forked process: it shares its pages, and a copy would cost more memory than it saves
    time.
    """
    if multiprocessing.parent_process() is not None:
        return
    with suppress(AttributeError, OSError):  # other systems lack them
        madvise = ctypes.CDLL(None).madvise
        madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        for start, size in _full_regions():
            madvise(start, size, _HUGE_PAGES)
            madvise(start, size, _COLLAPSE)


def _full_regions() -> Iterator[tuple[int, int]]:
    """Yield start and size of each region of the heap whose pages are in use, but for its two ends.

    The stack of a thread is not: most of it is never touched.
    """
    for found in _REGION.finditer(Path("/proc/self/smaps").read_text()):
        start, end = int(found[1], 16), int(found[2], 16)
        is_full = 4 * 1024 * int(found[3]) >= 3 * (end - start)
        start, end = -(-start // _HUGE) * _HUGE, end // _HUGE * _HUGE
        if is_full and end > start:
            yield start, end - start
