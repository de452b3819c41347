"""Any reader, any time, any transport: what they get is the log (promises P3 and P4)."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import websocket

from conversations.events import RunEvent
from tests.support.client import FRAME, Client, Seen, reply


def sockets_frames(client: Client, run_id: str, query: str = "", **options: Any) -> list[Seen]:
    """All frames that a WebSocket gives, to its normal close."""
    url = client.url.replace("http", "ws") + f"/ws/agent/runs/{run_id}{query}"
    options.setdefault("header", [f"Authorization: Bearer {client.token}"])
    socket = websocket.create_connection(url, timeout=30, **options)
    seen: list[Seen] = []
    try:
        while True:
            opcode, body = socket.recv_data()
            if opcode == websocket.ABNF.OPCODE_CLOSE:
                assert int.from_bytes(body[:2]) == 1000, body
                return [frame for frame in seen if frame.event != "heartbeat"]
            frame = json.loads(body)
            FRAME.validate({"event": frame["event"], "data": frame["data"]})
            seen.append(Seen(frame["event"], frame["data"], frame.get("id")))
    finally:
        socket.shutdown()  # type: ignore[no-untyped-call]


def polled_frames(client: Client, run_id: str, after: int = 0) -> list[Seen]:
    """All frames that repeated long-polls give."""
    seen: list[Seen] = []
    while True:
        answer = client.poll(run_id, after=after)
        seen += [Seen(f["event"], f["data"], f.get("id")) for f in answer["events"]]
        after = answer["last_event_id"]
        if answer["done"]:
            return seen


def test_three_readers_of_a_live_run_on_three_transports_get_the_same(client: Client) -> None:
    run_id = client.start("Which exercises train my chest?")["run_id"]
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(client.watch, run_id)
        second = pool.submit(client.watch, run_id)
        third = pool.submit(sockets_frames, client, run_id)
        fourth = pool.submit(polled_frames, client, run_id)
    frames = first.result()
    assert frames[-1].event == "completed"
    assert second.result() == third.result() == fourth.result() == frames


def test_a_reader_cut_at_any_frame_resumes_without_gap_or_repeat(client: Client) -> None:
    run_id = client.start()["run_id"]
    whole = client.watch(run_id)
    ids = [frame.id for frame in whole if frame.id is not None]
    assert ids == sorted(set(ids))
    for place, frame in list(enumerate(whole))[::7]:
        if frame.id is not None:
            assert client.watch(run_id, after=frame.id, validate=False) == whole[place + 1 :]


def test_a_live_stream_cut_in_the_middle_goes_on_where_it_stopped(client: Client) -> None:
    run_id = client.start("深蹲怎么做？")["run_id"]
    begun = client.watch(run_id, stop_after=9)
    rest = client.watch(run_id, after=begun[-1].id)
    assert begun + rest == client.watch(run_id)
    assert sockets_frames(client, run_id, f"?after={begun[-1].id}") == rest
    assert polled_frames(client, run_id, begun[-1].id or 0) == rest


def test_a_reader_past_the_end_of_an_ended_run_gets_nothing_and_is_let_go(client: Client) -> None:
    run_id = client.start()["run_id"]
    last = client.watch(run_id)[-1].id or 0
    assert client.watch(run_id, after=last) == []
    assert client.watch(run_id, after=last + 1000) == []
    assert client.poll(run_id, after=last) == {"events": [], "last_event_id": last, "done": True}


def test_a_socket_takes_its_token_from_query_or_subprotocol(client: Client) -> None:
    run_id = client.start()["run_id"]
    frames = client.watch(run_id)
    assert sockets_frames(client, run_id, f"?token={client.token}", header=[]) == frames
    assert sockets_frames(client, run_id, header=[], subprotocols=["bearer", client.token]) == frames


@pytest.mark.parametrize(
    ("query", "header", "code", "reason"),
    [
        ("", [], 4401, "token_missing"),
        ("?token=nonsense", [], 4401, "invalid_token_header"),
        ("?after=abc", None, 4422, "invalid_last_event_id"),
        ("?dialect=klingon", None, 4422, "unknown_dialect"),
    ],
)
def test_a_socket_that_is_refused_says_why(
    client: Client, query: str, header: list[str] | None, code: int, reason: str
) -> None:
    run_id = client.start()["run_id"]
    url = client.url.replace("http", "ws") + f"/ws/agent/runs/{run_id}{query}"
    sent = [f"Authorization: Bearer {client.token}"] if header is None else header
    socket = websocket.create_connection(url, timeout=10, header=sent)
    refused = json.loads(socket.recv())
    assert refused["event"] == "refused"
    assert refused["data"]["code"] == reason
    opcode, body = socket.recv_data()
    assert (opcode, int.from_bytes(body[:2])) == (websocket.ABNF.OPCODE_CLOSE, code)
    socket.shutdown()  # type: ignore[no-untyped-call]


def test_the_stream_has_the_padding_and_headers_that_open_proxies(client: Client) -> None:
    run_id = client.start()["run_id"]
    response = client.http.get(f"/api/v1/agent/runs/{run_id}/events")
    assert response.text.startswith(":" + " " * 2048 + "\n\n")
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["cache-control"] == "no-cache, no-transform"
    assert response.headers["x-accel-buffering"] == "no"


def test_silence_is_filled_with_heartbeats_that_carry_no_id(
    client: Client, scripted: Callable[..., Any], settings: Any
) -> None:
    settings.HEARTBEAT_S = 0.1
    settings.PROVIDER_CONNECT_S = settings.PROVIDER_FIRST_TOKEN_S = 0.5
    run_id = client.start("hello", model=scripted("hang").name)["run_id"]
    with client.http.stream("GET", f"/api/v1/agent/runs/{run_id}/events") as response:
        text = "".join(response.iter_text())
    beats = [block for block in text.split("\n\n") if block.startswith("event: heartbeat")]
    assert beats
    assert not any("id:" in beat for beat in beats)


def test_what_was_streamed_is_the_log_and_the_fold_is_what_is_stored(client: Client) -> None:
    from config.database import run_sync
    from conversations.log import event_log
    from conversations.log.transcript import fold
    from conversations.models import Message, Run

    accepted = client.start("Plan a push day")
    frames = client.watch(accepted["run_id"])
    run = Run.objects.get(pk=accepted["run_id"])

    async def stored() -> list[RunEvent]:
        return [event async for batch in event_log.read(run.id) for event in batch.events]

    events = run_sync(stored())
    assert [event.seq for event in events] == list(range(1, run.last_seq + 1))
    assert [event.type for event in events if event.type.startswith("run.")] == [
        "run.queued", "run.started", "run.completed",
    ]  # fmt: skip
    assert events[-1].type == "run.completed"
    assert [frame.id for frame in frames if frame.id] == [
        event.seq for event in events if not event.type.startswith(("stage.", "message.completed"))
    ]
    kept = Message.objects.filter(run=run).exclude(role="user").order_by("seq")
    folded = fold(run.id, events).messages()
    assert [(m.role, m.content, m.metadata) for m in kept] == [
        (m.role, m.content, json.loads(m.metadata)) for m in folded
    ]
    answer = [message.content for message in folded if message.role == "assistant"]
    assert answer == [reply(frames)]


def test_many_short_runs_at_once_each_give_their_own_words(client: Client, settings: Any) -> None:
    settings.STREAMS_PER_USER = 0
    texts = [f"bench press {number}" for number in range(24)]
    with ThreadPoolExecutor(24) as pool:
        accepted = list(pool.map(client.start, texts))
        replies = list(pool.map(lambda a: reply(client.watch(a["run_id"])), accepted))
    for text, said in zip(texts, replies, strict=True):
        assert f"“{text}”" in said


def test_what_a_notification_does_not_carry_is_read_at_once(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from config.coordination import notifications
    from conversations.log import follow

    async def never_looks(hub: follow.Hub) -> None:
        pass

    monkeypatch.setattr(notifications, "carries", lambda _: False)
    monkeypatch.setattr(follow.Hub, "_check_silent_runs", never_looks)
    frames = client.watch(client.start("bench press")["run_id"])
    assert frames[-1].event == "completed"
    assert "“bench press”" in reply(frames)


def test_the_hub_reads_the_log_when_rings_are_lost(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from config.coordination import notifications

    monkeypatch.setattr(notifications, "notify", lambda *_: None)
    run_id = client.start()["run_id"]
    frames = client.watch(run_id)
    assert frames[-1].event == "completed"
