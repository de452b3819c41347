"""Large bodies are read beside the loop: in a second of parsing there nobody else would be answered.

Threads share Python's lock with the loop, which takes its turn between two steps of Python. A single
call into C keeps the lock to its end; the limits on a body's size and values make each of them short.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

INLINE: Final = 65_536
_AT_ONCE: Final = 2
_threads: Final = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="parsing")
T = TypeVar("T")


async def parsed(raw: bytes, parse: Callable[[bytes], T]) -> T:
    """Return `parse(raw)`, called here for a body of INLINE bytes at most, else in a thread.

    The thread sees the caller's context variables.
    """
    if len(raw) <= INLINE:
        return parse(raw)
    context = contextvars.copy_context()
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_threads, context.run, parse, raw)
