"""The identity provider's key set: fetched when it is needed, kept for a quarter of an hour.

Fetching happens on a thread of its own, one at a time for the whole process, so no event loop waits
for it; a request waits only when it cannot be judged otherwise. An unknown `kid` fetches anew, but
never sooner than COOLDOWN_S after the last try, so that invented names cannot hammer the provider.
While the provider is away the keys that are held serve on, for a day.
"""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FetchTimeout
from contextlib import suppress
from time import monotonic
from typing import Final

import aiohttp
import structlog

from config.auth.public_keys import KeySet, PublicKey, parse_set

log = structlog.get_logger(__name__)

FRESH_S: Final = 900.0
AHEAD_S: Final = 720.0  # from this age on they are fetched while the old ones still serve
STALE_S: Final = 86_400.0
COOLDOWN_S = 10.0
FETCH_S: Final = 3.0
_WAIT_S: Final = FETCH_S + 1
_LARGEST: Final = 1024 * 1024

Arrival = Future[None]


class Jwks:
    """The key set at one address."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._keys = KeySet(())
        self._fetched_at = float("-inf")
        self._tried_at = float("-inf")
        self._failed = False
        self._fetching: Arrival | None = None
        self._lock = threading.Lock()

    def find(self, algorithm: str, kid: str | None) -> PublicKey | None:
        """The key among those that are held; asks nobody."""
        if monotonic() - self._fetched_at > STALE_S:
            return None
        return self._keys.find(algorithm, kid)

    def wanted(self, algorithm: str, kid: str | None) -> Arrival | None:
        """The fetch to wait for before `find`; None when what is held has to do."""
        age = monotonic() - self._fetched_at
        if self.find(algorithm, kid) is None:
            return self._fetch()
        if age > FRESH_S and not self._failed:
            return self._fetch()
        if age > AHEAD_S:
            self._fetch()
        return None

    def _fetch(self) -> Arrival | None:
        """The fetch that is going on, or a new one; None when the last try was a moment ago."""
        with self._lock:
            if self._fetching is None and monotonic() - self._tried_at >= COOLDOWN_S:
                self._tried_at = monotonic()
                self._fetching = Future()
                threading.Thread(target=self._run, name="jwks", daemon=True).start()
            return self._fetching

    def _run(self) -> None:
        asyncio.run(self._refresh())

    async def _refresh(self) -> None:
        try:
            async with asyncio.timeout(FETCH_S):
                self._keys = parse_set(json.loads(await _download(self._url)))
            self._fetched_at, self._failed = monotonic(), False
        except Exception as error:  # away, slow or talking nonsense: the keys we hold serve on
            self._failed = True
            log.warning("fetching the JWKS failed", error=type(error).__name__)
        finally:
            with self._lock:
                done, self._fetching = self._fetching, None
            if done is not None:
                done.set_result(None)


async def _download(url: str) -> bytes:
    body = bytearray()
    async with (
        aiohttp.ClientSession() as session,
        session.get(url, allow_redirects=False, raise_for_status=True) as response,
    ):
        async for some in response.content.iter_chunked(65_536):
            body += some
            if len(body) > _LARGEST:
                raise ValueError("the JWKS is too large")
    return bytes(body)


async def arrived(arrival: Arrival) -> None:
    """Wait for a fetch, however it ends, for a few seconds at most."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_WAIT_S):
            await asyncio.shield(asyncio.wrap_future(arrival))


def arrived_sync(arrival: Arrival) -> None:
    """`arrived`, for code that is not async."""
    with suppress(FetchTimeout):
        arrival.result(_WAIT_S)


_held: Final[dict[str, Jwks]] = {}


def at(url: str) -> Jwks:
    """The key set at this address, one for the whole process."""
    return _held.setdefault(url, Jwks(url))
