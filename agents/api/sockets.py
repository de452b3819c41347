"""`ws(s)://…/ws/agent/runs/{run_id}`: the run's frames as JSON text messages (DESIGN P4).

The token comes as `Authorization: Bearer …`, or, because browsers cannot set that header, as `?token=…`
or the subprotocol pair `bearer, <token>`. `?after=` resumes, `?dialect=` chooses. A refusal sends its
reason and closes with 4401 (not signed in), 4404 (no such run), 4410 (events no longer kept), 4422 (bad
parameter), 4429 (too many) or 4503 (not now); a stream that staff or a newer stream ended closes with
1013.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final
from urllib.parse import parse_qs
from uuid import UUID

import msgspec
import structlog
from channels.generic.websocket import AsyncWebsocketConsumer

from agents.api import answering, streaming
from agents.api.runs import check_conversation, reader_position
from agents.dialects.base import Dialect, Frame
from agents.dialects.recognition import dialect_named
from agents.intake.stream_slots import StreamSlot
from config import database, errors
from config.coordination import rate_limits
from config.http.async_views import admitted
from config.http.database_errors import REFUSALS, refusal_of
from conversations.runs import client_queries, recent_starts
from conversations.runs.client_queries import RunRow

log = structlog.get_logger(__name__)

_NORMAL: Final = 1000
_BROKEN: Final = 1011
_TRY_AGAIN: Final = 1013


class RunConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """A socket with one reader of one run."""

    _sending: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        protocols = self.scope.get("subprotocols") or []
        await self.accept("bearer" if "bearer" in protocols else None)
        try:
            run, dialect, after, user_id = await self._admit(protocols)
            slot = await answering.admit(user_id, run, after=after)
        except errors.ParleyError as error:
            await self._refuse(error)
            return
        except REFUSALS as error:
            await self._refuse(refusal_of(error))
            return
        frames = streaming.frames(streaming.open_cursor(run, dialect, after=after))
        self._sending = asyncio.create_task(self._send_all(slot, frames))

    async def disconnect(self, code: int) -> None:
        if self._sending is not None:
            self._sending.cancel()

    async def _admit(self, protocols: list[str]) -> tuple[RunRow, Dialect, int, UUID]:
        query = {
            name: values[-1]
            for name, values in parse_qs(self.scope["query_string"].decode("latin-1")).items()
        }
        caller = await admitted(self._meta(self._authorization(query, protocols)))
        caller.require("read")
        run_id = self.scope["url_route"]["kwargs"]["run_id"]
        run = await recent_starts.fetch_run(run_id, user_id=caller.user_id)
        check_conversation(run, query.get("conversation_id"))
        await client_queries.check_events_kept(run)
        last_event_id = dict(self.scope["headers"]).get(b"last-event-id", b"").decode("latin-1")
        after = reader_position(last_event_id, query.get("after"))
        return run, dialect_named(query.get("dialect") or run.dialect), after, caller.user_id

    def _meta(self, authorization: str | None) -> dict[str, Any]:
        """Return the values of a request that limits and authentication read, as Django names them."""
        return {**rate_limits.build_meta(self.scope), "HTTP_AUTHORIZATION": authorization}

    def _authorization(self, query: dict[str, str], protocols: list[str]) -> str | None:
        header: bytes | None = dict(self.scope["headers"]).get(b"authorization")
        if header is not None:
            return header.decode("latin-1")
        if "token" in query:
            return f"Bearer {query['token']}"
        others = [protocol for protocol in protocols if protocol != "bearer"]
        return f"Bearer {others[0]}" if others and "bearer" in protocols else None

    async def _send_all(self, slot: StreamSlot, frames: AsyncGenerator[list[Frame]]) -> None:
        try:
            async with aclosing(slot.hold_during(frames)) as lists:
                async for some in lists:
                    for frame in some:
                        await self.send(text_data=streaming.to_json(frame).decode())
            await self.close(_TRY_AGAIN if slot.was_ended() else _NORMAL)
        except Exception as error:  # the socket or the database broke: the client comes back with after=
            database.log_failure(log, "socket broke", error, stream=slot.name)
            await self._close_quietly()

    async def _close_quietly(self) -> None:
        try:
            await self.close(_BROKEN)
        except Exception:  # it is closed already
            log.debug("socket was closed")

    async def _refuse(self, error: errors.ParleyError) -> None:
        data: dict[str, Any] = errors.body(error)
        if error.retry_after is not None:
            data["retry_after"] = error.retry_after
        await self.send(text_data=msgspec.json.encode({"event": "refused", "data": data}).decode())
        await self.close(4000 + error.status)


class NoSuchSocket(AsyncWebsocketConsumer):  # type: ignore[misc]
    """The consumer of every other path: it closes before it opens, which clients see as 403."""

    async def connect(self) -> None:
        await self.close(4404)
