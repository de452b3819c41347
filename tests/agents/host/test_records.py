"""Events and artifacts for runners: what is in scope, ranges, what is never told (H12, H13, H19)."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from agents.host.actions import artifacts
from agents.host.call_audit import delete_old
from agents.host_protocol import parameters, results
from agents.host_protocol.errors import HostRefusal
from agents.host_protocol.host_api import HostApi
from agents.host_protocol.results import ArtifactCreatedData, RunResult
from agents.host_protocol.run_context import AgentRunContext
from agents.models import HostArtifact, HostCall
from conversations import events
from conversations.events import RunEvent
from conversations.models import EventBatch
from tests.support.client import Client
from tests.support.fakes.mcp_host import wait_until
from tests.support.host.hosted_runs import bound, finished
from tests.support.host.stage import Stage, run

Make = Callable[..., Stage]


def refused(session: Any, action: str, ask: Any) -> str:
    with pytest.raises(HostRefusal) as caught:
        run(session.call(action, ask))
    return caught.value.message


def log(run_id: UUID, *facts: events.Fact) -> None:
    made = [RunEvent(seq, 1_000 + seq, fact) for seq, fact in enumerate(facts, 1)]
    EventBatch.objects.create(
        run_id=run_id, first_seq=1, last_seq=len(made), events=events.encode(made).decode()
    )


def test_events_are_told_without_their_large_parts(make_stage: Make) -> None:
    stage = make_stage()
    log(
        stage.run.pk,
        events.RunQueued(0),
        events.MessageDelta("m", "He"),
        events.ToolCallStarted("c", "search", {"secret": "x"}),
        events.MessageCompleted(events.MessageBody("m", "assistant", "H" * 5_000)),
    )
    host = HostApi(stage.session())
    run_id = stage.run.pk.hex
    page = run(host.events.page(limit=2))
    assert [(one.event_type, one.event_id) for one in page.items] == [
        ("message.completed", f"{run_id}-4"),
        ("tool.call.started", f"{run_id}-3"),
    ]
    assert len(page.items[0].input_summary or "") == 1_000
    assert "secret" not in repr(page)
    rest = run(host.events.page(before_cursor=page.next_cursor))
    assert [(one.event_type, one.source) for one in rest.items] == [("message.received", "api")]
    only = run(host.events.page(event_types=["tool.call.started"]))
    assert [one.input_summary for one in only.items] == ["search"]
    assert run(host.events.get(f"{run_id}-3")).seq == 3


def test_events_page_back_through_the_conversations_runs(make_stage: Make) -> None:
    stage = make_stage(said=(("user", "earlier"),))
    from conversations.models import Run

    earlier = Run.objects.get(thread=stage.thread, thread_seq=1)
    log(earlier.pk, events.RunQueued(0), events.RunCompleted("stop"))
    log(stage.run.pk, events.RunQueued(0))
    page = run(HostApi(stage.session()).events.page())
    assert [one.event_type for one in page.items] == [
        "message.received",
        "run.completed",
        "message.received",
    ]
    assert page.items[2].input_summary == "earlier"


def test_an_event_of_another_conversation_is_refused(make_stage: Make) -> None:
    stage, other = make_stage(), make_stage()
    log(other.run.pk, events.RunQueued(0))
    session = stage.session()
    theirs = f"{other.run.pk.hex}-1"
    for odd in (
        theirs,
        f"{uuid4().hex}-1",
        "rubbish",
        f"{stage.run.pk.hex}-99",
        f"{stage.run.pk.hex}--1",
    ):
        assert refused(session, "event_get", parameters.GetEvent(odd)) == f"Event {odd} not found"
    cursor = parameters.PageEvents(before_cursor=theirs)
    assert refused(session, "event_page", cursor) == "A cursor must be one that this API gave."


def made(stage: Stage, content: bytes = b"0123456789", **more: Any) -> str:
    said = ArtifactCreatedData(
        artifact_type="file", mime_type="text/plain", name="a.txt", content=content, **more
    )
    created = run(artifacts.store(stage.session().scene, said))
    return created.artifact_id


def test_an_artifact_is_read_by_ranges_and_streamed(make_stage: Make) -> None:
    stage = make_stage()
    artifact_id = made(stage, metadata={"page": 1})
    host = HostApi(stage.session())
    about = run(host.artifacts.metadata(artifact_id))
    assert (about.size_bytes, about.mime_type, about.metadata) == (10, "text/plain", {"page": 1})
    assert about.run_id == stage.run.pk.hex
    ranges = [(0, 4), (4, 100), (10, 5), (2**40, 5)]
    read = [run(host.artifacts.read_range(artifact_id, offset=at, length=n)) for at, n in ranges]
    assert [(one.content, one.has_more) for one in read] == [
        (b"0123", True),
        (b"456789", False),
        (b"", False),
        (b"", False),
    ]

    async def whole() -> bytes:
        return b"".join([piece async for piece in host.artifacts.open_stream(artifact_id)])

    assert run(whole()) == b"0123456789"


def test_artifacts_are_in_scope_by_run_or_conversation_and_user(make_stage: Make) -> None:
    stage, other = make_stage(), make_stage()
    mine, theirs = made(stage), made(other)
    session = stage.session()
    for nobodys in (theirs, uuid4().hex):
        words = f"Artifact {nobodys} not found"
        assert refused(session, "artifact_read", parameters.ReadArtifact(artifact_id=nobodys)) == words
        assert refused(session, "artifact_metadata", parameters.GetArtifact(nobodys)) == words
    nowhere = stage.session(thread_id=None)
    assert run(nowhere.call("artifact_metadata", parameters.GetArtifact(mine))).artifact_id == mine
    HostArtifact.objects.filter(pk=mine).update(run_id=uuid4())
    assert "not found" in refused(nowhere, "artifact_metadata", parameters.GetArtifact(mine))
    assert run(session.call("artifact_metadata", parameters.GetArtifact(mine))).artifact_id == mine


def test_a_runners_file_is_its_owners_to_download_until_the_thread_is_erased(
    make_client: Callable[..., Client],
) -> None:
    """Seed §6.2 `artifact.created`, on the wire that announces it and by the id that it tells."""
    client, other = make_client(), make_client()

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        yield results.artifact(context.run_id, b"%PDF-1.7 plan", name="plan.pdf", metadata={"page": 1})
        yield results.message(context.run_id, "Here it is.")

    with bound(client.user, says):
        first, _ = finished(client)
    path = f"/api/v1/agent/runs/{first['run_id']}/events"
    stream = client.http.get(path, params={"dialect": "ag-ui"}).text
    artifact_id = re.findall(r'"artifact_id":"([0-9a-f]{32})"', stream)[0]
    address = f"/api/v1/agent/artifacts/{artifact_id}"
    assert client.http.get(address).json() == {
        "artifact_id": artifact_id,
        "mime_type": "application/pdf",
        "size_bytes": 13,
        "url": f"data:application/pdf;base64,{b64encode(b'%PDF-1.7 plan').decode()}",
    }
    foreign = other.http.get(address)
    assert (foreign.status_code, foreign.json()["code"]) == (404, "artifact_not_found")
    HostArtifact.objects.filter(pk=artifact_id).update(expires_at=datetime.now(UTC))
    assert client.http.get(address).status_code == 404
    HostArtifact.objects.filter(pk=artifact_id).update(expires_at=None)
    erased = client.http.delete(f"/api/v1/agent/threads/{first['conversation_id']}")
    assert erased.status_code == 204
    wait_until(lambda: not HostArtifact.objects.filter(pk=artifact_id).exists())
    assert client.http.get(address).status_code == 404


def test_an_artifact_past_its_time_is_gone(make_stage: Make) -> None:
    stage = make_stage()
    mine = made(stage)
    HostArtifact.objects.filter(pk=mine).update(expires_at=datetime.now(UTC) - timedelta(seconds=1))
    assert "not found" in refused(stage.session(), "artifact_metadata", parameters.GetArtifact(mine))
    old = HostCall.objects.create(runner_id="r", action="a", result="ok", elapsed_us=1)
    HostCall.objects.filter(pk=old.pk).update(at=datetime.now(UTC) - timedelta(days=100))
    run(delete_old())
    assert not HostCall.objects.filter(pk=old.pk).exists()
    assert not HostArtifact.objects.filter(pk=mine).exists()


def test_a_type_is_what_the_bytes_show(make_stage: Make) -> None:
    stage = make_stage()
    pairs = {
        (b"%PDF-1.7", "image/png"): "application/pdf",
        (b"hello", "image/png"): "application/octet-stream",
        (b"hello", "text/csv"): "text/csv",
        (b"MZ\x90", "text/plain"): "application/octet-stream",
        (b"hello", None): "application/octet-stream",
    }
    for (content, said), shown in pairs.items():
        given = ArtifactCreatedData(artifact_type="f", mime_type=said, content=content)
        assert run(artifacts.store(stage.session().scene, given)).mime_type == shown
    wrong = ArtifactCreatedData(artifact_type="f", content=b"x", sha256="0" * 64)
    with pytest.raises(HostRefusal, match="sha256"):
        run(artifacts.store(stage.session().scene, wrong))
