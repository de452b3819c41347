"""The key set of the identity provider: fetched on demand and cached for a quarter of an hour.

One operating-system thread at a time fetches, so no event loop waits for it; a request waits only if
its key is missing or too old. An unknown `kid` causes another fetch, at least COOLDOWN_S after the
last one, so that invented ids cannot flood the provider. During an outage of the provider the cached
keys are used for a day.
"""

from __future__ import annotations

import asyncio
import functools
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
from config.outgoing import proxy

log = structlog.get_logger(__name__)

FRESH_S: Final = 900.0
AHEAD_S: Final = 720.0  # from this age on new keys are fetched while the old ones are used
STALE_S: Final = 86_400.0
COOLDOWN_S = 10.0
FETCH_S: Final = 3.0
_WAIT_S: Final = FETCH_S + 1
_LARGEST: Final = 1024 * 1024

Fetch = Future[None]


class Jwks:
    """The key set of one address."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._keys = KeySet(())
        self._fetched_at = float("-inf")
        self._tried_at = float("-inf")
        self._failed = False
        self._fetching: Fetch | None = None
        self._lock = threading.Lock()

    def find(self, algorithm: str, kid: str | None) -> PublicKey | None:
        """Return the key from the cache, or None."""
        if monotonic() - self._fetched_at > STALE_S:
            return None
        return self._keys.find(algorithm, kid)

    def request(self, algorithm: str, kid: str | None) -> Fetch | None:
        """Return the fetch to wait for before `find`, or None if the cache must suffice."""
        age = monotonic() - self._fetched_at
        if self.find(algorithm, kid) is None:
            return self._fetch()
        if age > FRESH_S and not self._failed:
            return self._fetch()
        if age > AHEAD_S:
            self._fetch()
        return None

    def _fetch(self) -> Fetch | None:
        """Return the running fetch or a new one; None during the cooldown after the last one."""
        with self._lock:
            if self._fetching is None and monotonic() - self._tried_at >= COOLDOWN_S:
                self._tried_at = monotonic()
                self._fetching = Future()
                work = self._refresh()
                threading.Thread(target=asyncio.run, args=(work,), name="jwks", daemon=True).start()
            return self._fetching

    async def _refresh(self) -> None:
        try:
            self._keys = await fetch_keys(self._url)
            self._fetched_at, self._failed = monotonic(), False
        except Exception as error:  # after any failure the cached keys are used
            self._failed = True
            log.warning("fetching the JWKS failed", error=type(error).__name__)
        finally:
            with self._lock:
                done, self._fetching = self._fetching, None
            if done is not None:
                done.set_result(None)


async def fetch_keys(url: str) -> KeySet:
    """Return the keys that stand at the address; raise whatever keeps them away."""
    async with asyncio.timeout(FETCH_S):
        return parse_set(json.loads(await _download(url)))


async def _download(url: str) -> bytes:
    body = bytearray()
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(**proxy.tls_options())) as session,
        session.get(
            url, allow_redirects=False, raise_for_status=True, **proxy.aiohttp_options(url)
        ) as response,
    ):
        async for some in response.content.iter_chunked(65_536):
            body += some
            if len(body) > _LARGEST:
                raise ValueError("the JWKS is too large")
    return bytes(body)


async def wait_for(arrival: Fetch) -> None:
    """Wait for the end of a fetch, for a few seconds at most."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_WAIT_S):
            await asyncio.shield(asyncio.wrap_future(arrival))


def wait_for_sync(arrival: Fetch) -> None:
    """`wait_for`, for code that is not async."""
    with suppress(FetchTimeout):
        arrival.result(_WAIT_S)


@functools.cache
def get_key_set(url: str) -> Jwks:
    """Return the key set of this address, one per process."""
    return Jwks(url)
