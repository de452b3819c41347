"""Run blocking work off the event loop: files and S3 on a few operating-system threads, decoding on two.

asyncio's own executor is shared with everything, so a slow disk there would delay other work.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Final, ParamSpec, TypeVar

from config.errors import StorageFull, Unavailable

P = ParamSpec("P")
T = TypeVar("T")
_FILES: Final = ThreadPoolExecutor(8, "files")
_DECODERS: Final = ThreadPoolExecutor(2, "decode")
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


async def run_file_io(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run file or S3 work. Raise StorageFull or Unavailable when the disk refuses."""
    return await _run_on(_FILES, partial(work, *args, **kwargs))


async def run_decoding(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run work that is heavy on CPU and memory, at most two at once."""
    return await _run_on(_DECODERS, partial(work, *args, **kwargs))


@contextmanager
def translate_disk_errors() -> Iterator[None]:
    """Translate the operating system's errors into ours."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise StorageFull from error
        raise storage_unavailable() from error


def storage_unavailable() -> Unavailable:
    return Unavailable("The file storage is away: try again.", code="storage_unavailable", retry_after=5)


async def _run_on(pool: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    guarded = translate_disk_errors()(work)
    return await asyncio.get_running_loop().run_in_executor(pool, guarded)
