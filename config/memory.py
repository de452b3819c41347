"""The garbage collector and the allocator, told what a process that serves is like.

A process that serves holds some hundred thousand objects of Django, of its packages and of ours from
its start to its end. Each full collection looks at all of them, which stops an event loop for a tenth
of a second and more, at any moment. So what a process holds when it is ready is set aside.

The allocator (glibc's) gives a large block back to the system when it is released, but takes the next
one of that size from its heap, where a small block above it keeps it. One body of 16 MiB so raises for
ever what a process holds; with a fixed limit it does not. Who fixes one limit fixes all: without the
second, of 128 KiB, each burst of frames would take pages from the system and give them back, which
costs a tenth of all that a stream costs.
"""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress
from typing import Final

_YOUNG: Final = 5_000  # allocations that outnumber releases until the youngest objects are looked at
_LARGE: Final = 512 * 1024  # bytes of a block that goes back to the system by itself
_KEPT_FREE: Final = 8 * 1024 * 1024  # bytes free at the end of the heap that stay for the next ones
_TRIM_THRESHOLD: Final = -1  # as <malloc.h> has them
_MMAP_THRESHOLD: Final = -3


def settle() -> None:
    """Collect what is garbage now and never look at the rest again; takes about 0.2 seconds.

    From now on large blocks go back to the system when they are released.
    """
    with suppress(AttributeError, OSError):  # another C library has no such thing
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, _LARGE)
        mallopt(_TRIM_THRESHOLD, _KEPT_FREE)
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, *gc.get_threshold()[1:])
