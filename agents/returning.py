"""A client that comes back: what it missed as snapshots, then the live run (specs/ag-ui.md §4, §7).

An unmodified AG-UI client cannot say where it stopped; it sends the same run again, or opens the
thread. Either way it is given the whole as it stands, and from there on what happens.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any
from uuid import UUID

from django.conf import settings

from agents import streaming
from agents.dialects import ag_ui
from agents.dialects.agui import snapshots
from agents.dialects.agui.messages import messages, with_reasoning
from agents.dialects.agui.thoughts import outline, with_thoughts
from agents.dialects.base import Frame
from config.errors import NotFound
from conversations import attachments, log, said, thoughts
from conversations.follow import follow
from conversations.models import LIVE
from conversations.reads import RunRow
from conversations.said import ThreadHead

Wire = dict[str, Any]


async def run_again(run: RunRow, known: Sequence[Wire]) -> AsyncGenerator[list[Frame]]:
    """The run's frames for a client that has the messages `known`, in its order."""
    head = streaming.head(run)
    try:
        before, state = await _before(run, known)
    except NotFound:  # deleted a moment ago
        yield [*ag_ui.encoder(head).feed(streaming.deleted(0))]
        return
    encoder, fed, ended = ag_ui.returning(head), 0, False
    async with aclosing(log.read(run.run_id)) as batches:
        async for batch in batches:
            for event in batch.after(fed):
                encoder.feed(event)
            fed, ended = batch.last_seq, batch.ends
    yield encoder.prelude(before, known=[message["id"] for message in known], state=state)
    if ended:
        return
    silence_s, live = settings.HEARTBEAT_S, run.status in LIVE
    async with aclosing(follow(run.run_id, after=fed, silence_s=silence_s, live=live)) as tail:
        async for found in tail:
            events = found.after(fed) if found is not None else []
            some = [frame for event in events for frame in encoder.feed(event)]
            if found is not None:
                fed, ended = found.last_seq, found.ends
            if some or found is None:
                yield some
    if not ended:
        yield [*encoder.feed(streaming.deleted(fed))]


async def _before(run: RunRow, known: Sequence[Wire]) -> tuple[list[Wire], Any]:
    """The thread's messages up to the run's own input, and its state. NotFound once it is deleted."""
    head = await said.thread_head(run.thread_id, owner_id=run.owner_id)
    rows = await said.before(
        run.run_id,
        thread_id=run.thread_id,
        owner_id=run.owner_id,
        branched=head.branch is not None,
    )
    reasoned = [message for message in known if run.run_id.hex not in message["id"]]
    return with_reasoning(messages(rows, sign=attachments.sign), reasoned), head.state


async def thread_at_rest(
    thread_id: UUID, owner_id: UUID, client_thread_id: str, head: ThreadHead
) -> AsyncGenerator[list[Frame]]:
    """A thread whose newest run can no longer be replayed, or that never had one."""
    shown = await thread_messages(thread_id, owner_id, head.branch)
    yield snapshots.at_rest(client_thread_id, shown, head.state)


async def thread_messages(thread_id: UUID, owner_id: UUID, branch: UUID | None) -> list[Wire]:
    """The newest messages of the thread, or of its branch that ends with this run, in AG-UI's shape.

    Files have fresh URLs.
    """
    rows = await said.whole(thread_id, owner_id=owner_id, branch=branch)
    return messages(rows, sign=attachments.sign)


async def thread_with_thoughts(thread_id: UUID, owner_id: UUID, branch: UUID | None) -> list[Wire]:
    """The same with the reasoning of the newest runs, as far as their events are kept."""
    reasoned = await thoughts.of_thread(thread_id, owner_id=owner_id, branch=branch)
    told = {run: outline(run, some) for run, some in reasoned.items()}
    return with_thoughts(await thread_messages(thread_id, owner_id, branch), told)


def known_messages(body: Wire) -> list[Wire]:
    """The client's messages as it has them: of reasoning all, of the others what tells them apart."""
    given = body.get("messages")
    found = given if isinstance(given, list) else []
    return [kept for message in found if isinstance(message, dict) and (kept := _kept(message))]


def _kept(message: Wire) -> Wire | None:
    match message:
        case {"id": str(message_id), "role": "reasoning", "content": str(content)}:
            return {"id": message_id, "role": "reasoning", "content": content}
        case {"id": str(message_id), "role": str(role)}:
            return {"id": message_id, "role": role}
    return None
