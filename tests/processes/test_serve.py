"""A server that is asked to end does: late requests are sent away, deaf tasks are asked again."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest

from config.process import cancellation
from config.process.server import _Requests

HTTP = {"type": "http", "path": "/v1/responses"}
SOCKET = {"type": "websocket"}
DEAF = """
import asyncio
from config.process import server

async def deaf():
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            break
    await asyncio.sleep(60)

async def main(stop):
    asyncio.create_task(deaf())
    await asyncio.sleep(0.01)

server.run(main)
"""

SIGNALLED = """
import asyncio, os, signal, sys
from config.process import server

async def drain(stop):
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGINT)
    await stop.wait()
    await asyncio.sleep(0.2)
    print("drained")
    await asyncio.sleep(1.0)
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.sleep(60)
    print("never")

server.run(drain)
"""


class Sent(list[dict[str, Any]]):
    """What an application sends; nothing is ever received."""

    async def send(self, frame: dict[str, Any]) -> None:
        self.append(frame)


async def _nothing() -> dict[str, Any]:
    return await asyncio.Event().wait() and {}


async def _slow(scope: Any, receive: Any, send: Any) -> None:
    await asyncio.sleep(0.2 if scope["type"] == "http" else 60)
    await send({"type": "http.response.body", "body": b"whole", "more_body": False})


def test_a_request_that_comes_late_is_waited_for_and_a_later_one_told_to_come_back() -> None:
    async def play() -> tuple[Sent, Sent, Sent, Sent]:
        requests = _Requests(_slow)
        first, late, stuck, after = Sent(), Sent(), Sent(), Sent()
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            group.create_task(requests(HTTP, _nothing, first.send))
            await asyncio.sleep(0.1)
            ending = group.create_task(requests.finish(1.0))
            await asyncio.sleep(0)
            group.create_task(requests(HTTP, _nothing, late.send))
            group.create_task(requests(SOCKET, _nothing, stuck.send))
            await ending
            await requests(HTTP, _nothing, after.send)
        return first, late, stuck, after

    first, late, stuck, after = asyncio.run(play())
    assert first == late == [{"type": "http.response.body", "body": b"whole", "more_body": False}]
    assert stuck == [{"type": "websocket.close", "code": 1012}]
    assert after[0]["status"] == 503
    assert (b"retry-after", b"1") in after[0]["headers"]


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/v1/responses", {"message", "type", "param", "code"}),
        ("/process", {"code", "message"}),
        ("/api/v1/agent/runs", None),
    ],
)
def test_who_is_sent_away_is_told_so_in_the_words_of_the_address(path: str, error: Any) -> None:
    async def play() -> Sent:
        requests, after = _Requests(_slow), Sent()
        await requests.finish(0.1)
        await requests(HTTP | {"path": path}, _nothing, after.send)
        return after

    start, last = asyncio.run(play())
    headers = dict(start["headers"])
    told = json.loads(last["body"])
    assert (start["status"], last["more_body"]) == (503, False)
    assert headers[b"content-length"] == str(len(last["body"])).encode()
    assert headers[b"content-type"] == b"application/json"
    assert headers[b"x-request-id"] == told["request_id"].encode()
    assert (told["code"], told["detail"]) == (
        "unavailable",
        "This process is being restarted: try again.",
    )
    assert (told["error"].keys() if "error" in told else None) == error


def test_nothing_is_put_into_an_answer_that_has_begun() -> None:
    sent: list[dict[str, Any]] = []

    async def send(frame: dict[str, Any]) -> None:
        if frame["type"] == "http.response.start" and sent:
            raise RuntimeError("begun")
        sent.append(frame)

    async def stream(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"data: 1", "more_body": True})
        await asyncio.sleep(60)

    async def play() -> None:
        requests = _Requests(stream)
        answering = asyncio.create_task(requests(HTTP, _nothing, send))
        await asyncio.sleep(0.01)
        await requests.finish(0.1)
        await answering

    asyncio.run(play())
    assert [frame.get("body") for frame in sent] == [None, b"data: 1", b""]


def test_a_task_that_swallows_a_cancellation_is_cancelled_again() -> None:
    async def deaf() -> None:
        for _ in range(3):
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue
        await asyncio.sleep(60)

    async def play() -> bool:
        task = asyncio.create_task(deaf())
        await asyncio.sleep(0)
        await cancellation.cancel_all([task])
        return task.cancelled()

    assert asyncio.run(play())


def test_a_process_ends_whatever_is_left_on_its_loop() -> None:
    subprocess.run([sys.executable, "-c", DEAF], check=True, timeout=20)


def test_signals_of_one_moment_are_one_and_a_later_one_ends_the_process_at_once() -> None:
    command = [sys.executable, "-c", SIGNALLED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout == "drained\n"
