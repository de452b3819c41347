"""Tuning of the garbage collector and the allocator for a serving process.

A serving process has some hundred thousand objects of Django, packages and Parley from start to end.
Each full collection scans all of them, which stops an event loop for a tenth of a second or more.
Therefore the objects that exist when the process is ready are frozen.

glibc's allocator returns a large block to the system on release, but takes the next block of that size
from its heap, where a small block above it retains it. So one body of 16 MiB would increase the memory
of a process for ever, unless the limit is fixed. Fixing one limit fixes all: without the second, of
128 KiB, each burst of frames would take pages from the system and return them, which costs a tenth of
the total cost of a stream.

A run touches objects all over the heap, in more pages of 4 KiB than a processor's TLB holds. Of huge
pages, of 2 MiB, there are fewer: a run of one token costs a fourteenth less (16 clients, ten turns each
of `shared/bench`'s load, 29 November 2026: 2.98 ms of CPU in place of 3.22, 483 runs a second and 449).
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import psutil

_YOUNG: Final = 5_000  # surplus of allocations over releases that starts a collection of the youngest
_LARGE: Final = 512 * 1024  # bytes of a block that is returned to the system on its own
_KEPT_FREE: Final = 8 * 1024 * 1024  # free bytes at the end of the heap that are kept
_TRIM_THRESHOLD: Final = -1  # values of <malloc.h>
_MMAP_THRESHOLD: Final = -3
_HUGE_PAGE: Final = 2 * 1024 * 1024  # bytes
_MADV_HUGEPAGE: Final = 14  # values of <linux/mman.h>
_MADV_COLLAPSE: Final = 25


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
    """Move the heap to huge pages, where the kernel can (Linux 6.1 and later; about 0.1 seconds).

    No effect in a forked process: it shares its pages, and a copy would cost more memory than it saves
    time.
    """
    if multiprocessing.parent_process() is not None:
        return
    with suppress(AttributeError, OSError, psutil.Error):  # other systems lack them
        madvise = ctypes.CDLL(None).madvise
        madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        for start, size in _full_regions():
            madvise(start, size, _MADV_HUGEPAGE)
            madvise(start, size, _MADV_COLLAPSE)


def _full_regions() -> Iterator[tuple[int, int]]:
    """Yield start and size of each region of the heap whose pages are in use, but for its two ends.

    The stack of a thread is not: most of it is never touched.
    """
    for found in psutil.Process().memory_maps(grouped=False):
        start, end = (int(place, 16) for place in found.addr.split("-"))
        is_full = found.path in ("[heap]", "[anon]") and 4 * found.rss >= 3 * found.size
        start, end = -(-start // _HUGE_PAGE) * _HUGE_PAGE, end // _HUGE_PAGE * _HUGE_PAGE
        if is_full and end > start and found.perms == "rw-p":
            yield start, end - start
