"""Frames of real plugin runtimes, recorded once, and whether a fake of ours could have sent them.

    python -m tests.agents.runtimes.plugins.frames \\
        PORT ws://127.0.0.1:5400/control/ws FILE "langbot-plugin 0.7.18"

stands between Parley and a runtime, and keeps one frame of each kind and shape that the runtime sends.
Texts that only people read are left out. A frame's kind is what it answers (`answers run_agent
message.delta`) or asks for (`asks history_page`).
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).with_name("recorded")
_LONGEST_KEPT: Final = 48
_MIB: Final = 1024 * 1024
Frame = dict[str, Any]


def recorded(name: str) -> list[Frame]:
    """The frames of one peer, each with its kind."""
    found: list[Frame] = json.loads((FOLDER / f"{name}.json").read_text())["frames"]
    return found


def shape(value: Any, path: str = "") -> Iterator[str]:
    """Where a frame has what: `data.runners[].config[].label.zh_Hant null`."""
    match value:
        case dict():
            yield f"{path} object"
            for key, inner in value.items():
                yield from shape(inner, f"{path}.{key}")
        case list():
            yield f"{path} array"
            for inner in value:
                yield from shape(inner, f"{path}[]")
        case bool():
            yield f"{path} boolean"
        case None:
            yield f"{path} null"
        case str():
            yield f"{path} string"
        case _:
            yield f"{path} number"


class Kinds:
    """Tells the kind of each frame of a connection; the Host's requests say what an answer answers."""

    def __init__(self) -> None:
        self._asked: dict[Any, str] = {}

    def note(self, request: Frame) -> None:
        if "action" in request:
            self._asked[request.get("seq_id")] = request["action"]

    def kind(self, frame: Frame) -> str:
        if "action" in frame:
            return f"asks {frame['action']}"
        data = frame.get("data")
        result = data.get("type") if isinstance(data, dict) else None
        asked = self._asked.get(frame.get("seq_id"), "nothing")
        told = f"answers {asked} {result or ''}".strip()
        return f"{told} end" if frame.get("chunk_status") == "end" else told


class Kept:
    """One frame of each kind and shape."""

    def __init__(self) -> None:
        self._kinds = Kinds()
        self.frames: dict[tuple[str, frozenset[str]], Frame] = {}

    def host(self, document: Frame) -> None:
        self._kinds.note(document)

    def runtime(self, document: Frame) -> None:
        key = self._kinds.kind(document), frozenset(shape(document))
        kept = _without_prose(document)
        if len(json.dumps(kept)) > len(json.dumps(self.frames.get(key, ""))):  # as of a longer list
            self.frames[key] = kept

    def write(self, path: Path, peer: str) -> None:
        told = [{"kind": kind, "frame": frame} for (kind, _), frame in self.frames.items()]
        told.sort(key=lambda one: str(one["kind"]))
        whole = {"peer": peer, "frames": told}
        path.write_text(json.dumps(whole, ensure_ascii=False, indent=1) + "\n")


def _without_prose(value: Any) -> Any:
    match value:
        case dict():
            return {key: _without_prose(inner) for key, inner in value.items()}
        case list():
            return [_without_prose(inner) for inner in value]
        case str() if len(value) > _LONGEST_KEPT or " " in value:
            return "…"
    return value


async def between(port: int, target: str, kept: Kept, then: Callable[[], None]) -> None:
    """Pass everything on, both ways, until killed; `then` is called for every whole frame."""
    from websockets.asyncio.client import connect
    from websockets.asyncio.server import serve

    async def passing(source: Any, sink: Any, take: Any) -> None:
        held = ""
        async for message in source:
            await sink.send(message)
            held += message if isinstance(message, str) else message.decode()
            try:
                document = json.loads(held)
            except ValueError:  # a document may come in pieces
                continue
            held = ""
            if isinstance(document, dict):
                take(document)
                then()

    async def connected(host: Any) -> None:
        headers = {
            k: v for k, v in host.request.headers.raw_items() if k.lower().startswith(("auth", "x-"))
        }
        async with connect(target, additional_headers=headers, max_size=16 * _MIB) as runtime:
            both = (passing(host, runtime, kept.host), passing(runtime, host, kept.runtime))
            tasks = [asyncio.ensure_future(one) for one in both]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()

    async with serve(connected, "127.0.0.1", port, max_size=16 * _MIB) as server:
        await server.serve_forever()


def _record(port: int, target: str, path: Path, peer: str) -> None:
    kept = Kept()
    asyncio.run(between(port, target, kept, lambda: kept.write(path, peer)))


if __name__ == "__main__":
    _record(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), sys.argv[4])
