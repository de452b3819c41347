"""Clients that do not give up: they start runs, and read them over any transport until the end.

A `Reader` keeps what a careful client keeps: frames up to the last id. Whatever came after that on a
broken connection is forgotten, and asked for again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from itertools import repeat
from random import Random
from typing import Any, Final, Literal

import httpx
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from tests.support.client import Seen

Transport = Literal["sse", "websocket", "long-poll"]
TRANSPORTS: Final[tuple[Transport, ...]] = ("sse", "websocket", "long-poll")
ENDS: Final = frozenset({"completed", "error"})
BROKEN: Final = (httpx.TransportError, WebSocketException, OSError, EOFError)
_PAUSE_S: Final = 0.05


class Unexpected(AssertionError):
    """An answer that no fault excuses."""


def session(token: str, *, seconds: float = 30) -> httpx.AsyncClient:
    """An HTTP client with this token; connections are not limited in number."""
    return httpx.AsyncClient(
        headers={"Authorization": f"Bearer {token}"},
        timeout=seconds,
        trust_env=False,
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=100),
    )


@dataclass
class Caller:
    """Starts runs, and says how the server refused."""

    http: httpx.AsyncClient
    url: str
    refusals: list[httpx.Response] = field(default_factory=list)
    broken: int = 0

    async def start(self, text: str, model: str = "bench", **more: Any) -> dict[str, Any]:
        """A run, asked for until it is accepted. A 503 with Retry-After is the only refusal allowed."""
        while True:
            try:
                response = await self.post(text, model, **more)
            except BROKEN:
                self.broken += 1
            else:
                if response.status_code == 202:
                    accepted: dict[str, Any] = response.json()
                    return accepted
                self.refusals.append(response)
                if response.status_code != 503 or "retry-after" not in response.headers:
                    raise Unexpected(f"{response.status_code} {response.text}")
            await asyncio.sleep(_PAUSE_S)

    async def post(
        self,
        text: str,
        model: str = "bench",
        *,
        headers: dict[str, str] | None = None,
        query: dict[str, str] | None = None,
        **more: Any,
    ) -> httpx.Response:
        body = {"model": model, "text": text, "enable_exercise_search": False} | more
        return await self.http.post(
            f"{self.url}/api/v1/agent/runs", json=body, headers=headers, params=query
        )


@dataclass
class Reader:
    """One reader of one run, which comes back after a break, perhaps another way or to another host."""

    http: httpx.AsyncClient
    port: int
    run_id: str
    transports: Iterator[Transport] = field(default_factory=lambda: repeat("sse"))
    hosts: Iterator[str] = field(default_factory=lambda: repeat("127.0.0.1"))
    began_at: int = 0
    after: int = field(init=False)
    frames: list[Seen] = field(default_factory=list)
    connections: int = 0
    repeated: int = 0
    ended: bool = False
    _loose: list[Seen] = field(default_factory=list)
    _host: str = ""

    def __post_init__(self) -> None:
        self.after = self.began_at

    async def read(self, *, within_s: float) -> list[Seen]:
        """All frames past `began_at`, to the last."""
        ways: dict[Transport, Callable[[], Awaitable[None]]] = {
            "sse": self._sse,
            "websocket": self._websocket,
            "long-poll": self._long_poll,
        }
        async with asyncio.timeout(within_s):
            while not self.ended:
                self.connections += 1
                self._loose.clear()
                self._host = next(self.hosts)
                try:
                    await ways[next(self.transports)]()
                except BROKEN:
                    await asyncio.sleep(_PAUSE_S)
        return self.frames

    def _take(self, frame: Seen) -> None:
        """Frames without an id are pieces of the next one that has one; heartbeats are nothing."""
        if frame.event == "heartbeat":
            return
        if frame.id is None:
            self._loose.append(frame)
            return
        if frame.id <= self.after:
            self.repeated += 1
            return
        self.frames += [*self._loose, frame]
        self._loose.clear()
        self.after = frame.id
        self.ended = frame.event in ENDS

    async def _sse(self) -> None:
        headers = {"Last-Event-ID": str(self.after), "Accept": "text/event-stream"}
        async with self.http.stream("GET", self._address, headers=headers) as response:
            if _answered(response):
                await self._events(response)

    async def _events(self, response: httpx.Response) -> None:
        event, data, place = "", "", None
        async for line in response.aiter_lines():
            name, _, value = line.partition(": ")
            match name:
                case "event":
                    event = value
                case "data":
                    data = value
                case "id":
                    place = int(value)
                case "" if data:
                    self._take(Seen(event, json.loads(data), place))
                    event, data, place = "", "", None
                    if self.ended:
                        return

    async def _long_poll(self) -> None:
        response = await self.http.get(
            self._address,
            params={"after": self.after, "wait": 5},
            headers={"Accept": "application/json"},
        )
        if _answered(response):
            for frame in response.json()["events"]:
                self._take(Seen(frame["event"], frame["data"], frame.get("id")))

    async def _websocket(self) -> None:
        url = f"ws://{self._host}:{self.port}/ws/agent/runs/{self.run_id}?after={self.after}"
        headers = {"Authorization": self.http.headers["Authorization"]}
        async with connect(
            url,
            additional_headers=headers,
            compression=None,  # else a cut by bytes would come late
            proxy=None,
            ping_interval=None,
            close_timeout=0.2,
        ) as socket:
            async for message in socket:
                frame = json.loads(message)
                if frame["event"] == "refused":
                    if frame["data"]["code"] == "unavailable":
                        return
                    raise Unexpected(frame["data"])
                self._take(Seen(frame["event"], frame["data"], frame.get("id")))

    @property
    def _address(self) -> str:
        return f"http://{self._host}:{self.port}/api/v1/agent/runs/{self.run_id}/events"


def _answered(response: httpx.Response) -> bool:
    """True for an answer, False for "come back later"."""
    if response.status_code == 503:
        return False
    if response.status_code != 200:
        raise Unexpected(f"{response.status_code} for {response.url}")
    return True


def mixed(random: Random) -> Iterator[Transport]:
    """Another transport by lot for each connection."""
    while True:
        yield random.choice(TRANSPORTS)
