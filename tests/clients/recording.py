"""What a client sent once, kept as a fixture, and sent again: for clients too heavy to install always.

A recording says from which version it comes. It holds no secret, no address and no long text. What a
request repeats of an earlier answer (an id, mostly) stands there as `«place»`, the answer's number and
the place in it; what the client was given as `«name»`; what it made up (a UUID) as `«new N»`. All are
filled in anew when it is replayed.
"""

from __future__ import annotations

import http.client
import json
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlsplit
from uuid import uuid4

from tests.clients.environments import CLIENTS, version
from tests.support.client import Client

FOLDER: Final = Path(__file__).with_name("recorded")
_LONGEST_PROSE: Final = 160
_ID: Final = re.compile(r"(?=.{12})(?=[\w:.-]*\d)[\w:.-]+")
_UUID: Final = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_PLACE: Final = re.compile("«([^»]+)»")
_UNKEPT: Final = re.compile(
    r"authorization|api-key|x-api-key|cookie|host|content-length|connection|accept-encoding"
    r"|transfer-encoding|x-stainless-.*|traceparent|sec-.*",
    re.IGNORECASE,
)
Wire = dict[str, Any]


@dataclass
class Exchange:
    """A request of the client's, and Parley's answer to it."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    status: int = 0
    answer: str = ""

    def asked(self) -> Wire:
        return {
            "method": self.method,
            "path": self.path,
            "headers": self.headers,
            "body": self.body,
            "status": self.status,
        }


class Recording:
    """The stories of one client, as a file."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.path = FOLDER / f"{name}.json"

    @property
    def is_kept(self) -> bool:
        return CLIENTS[self.name].heavy

    def story(self, story: str) -> Wire:
        recorded = self._read()
        here = version(self.name)
        assert recorded["version"] == here, (
            f"make clients CLIENTS=record: this is of {recorded['version']}"
        )
        assert story in recorded["stories"], f"make clients CLIENTS=record: nothing of {story} yet"
        found: Wire = recorded["stories"][story]
        return found

    def keep(self, story: str, exchanges: list[Exchange], got: Any, given: dict[str, str]) -> None:
        stories = self._read()["stories"] if self.path.exists() else {}
        stories[story] = {"requests": neutral(exchanges, given), "got": got}
        whole = {"client": CLIENTS[self.name].package, "version": version(self.name)}
        told = whole | {"stories": dict(sorted(stories.items()))}
        FOLDER.mkdir(exist_ok=True)
        self.path.write_text(json.dumps(told, ensure_ascii=False, indent=1) + "\n")

    def _read(self) -> Wire:
        found: Wire = json.loads(self.path.read_text())
        return found


def is_uuid(value: Any) -> bool:
    return isinstance(value, str) and _UUID.fullmatch(value) is not None


def neutral(exchanges: list[Exchange], given: dict[str, str]) -> list[Wire]:
    """The requests without what is true of one session only."""
    known = {value: f"«{name}»" for name, value in given.items()}
    made: list[Wire] = []
    for number, exchange in enumerate(exchanges):
        text = json.dumps(_without_prose(exchange.asked()), ensure_ascii=False)
        for value in sorted(known, key=len, reverse=True):
            text = text.replace(value, known[value])
        for new in dict.fromkeys(_UUID.findall(text)):
            known[new] = f"«new {len(known)}»"
            text = text.replace(new, known[new])
        made.append(json.loads(text))
        for place, value in places(number, exchange.answer):
            if _ID.fullmatch(value):
                known.setdefault(value, f"«{place}»")
    return made


def _without_prose(value: Any) -> Any:
    """The value without the long texts that a client's makers wrote for a model."""
    match value:
        case dict():
            return {key: _without_prose(inner) for key, inner in value.items()}
        case list():
            return [_without_prose(inner) for inner in value]
        case str() if len(value) > _LONGEST_PROSE and " " in value and not value.startswith("{"):
            return "…"
    return value


def replay(story: Wire, client: Client, given: dict[str, str]) -> Any:
    """Send a story's requests; what the client made of the answers when it was recorded."""
    values = dict(given)
    for number, recorded in enumerate(story["requests"]):
        asked = json.loads(_filled(json.dumps(recorded, ensure_ascii=False), values))
        response = client.http.request(
            asked["method"],
            asked["path"],
            headers=asked["headers"],
            json=asked["body"],
        )
        assert response.status_code == asked["status"], response.text
        values |= dict(places(number, response.text))
    return story["got"]


def _filled(text: str, values: dict[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        place = found[1]
        if place.startswith("new "):
            values.setdefault(place, str(uuid4()))
        assert place in values, f"no answer has {place}"
        return json.dumps(values[place], ensure_ascii=False)[1:-1]

    return _PLACE.sub(value, text)


def places(number: int, answer: str) -> Iterator[tuple[str, str]]:
    """The texts of an answer, JSON or events, each with its place."""
    seen: dict[str, int] = {}
    for name, document in _documents(answer):
        seen[name] = seen.get(name, -1) + 1
        for path, value in _leaves(document, ""):
            yield f"{number} {name} {seen[name]}{path}", value


def _documents(answer: str) -> Iterator[tuple[str, Any]]:
    if not re.match(r"\s*(event|data|id|:)", answer):
        yield "body", _json(answer)
        return
    for block in answer.replace("\r\n", "\n").split("\n\n"):
        for line in block.split("\n"):
            if line.startswith("data:"):
                document = _json(line[5:])
                kind = document.get("type") if isinstance(document, dict) else None
                yield str(kind or "event"), document


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{path}.{index}")


class Recorder:
    """Stands before Parley on loopback and keeps what goes through."""

    def __init__(self, target: str) -> None:
        self.exchanges: list[Exchange] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(target, self.exchanges))
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


def _handler(target: str, exchanges: list[Exchange]) -> type[BaseHTTPRequestHandler]:
    address = urlsplit(target).netloc

    class Handler(BaseHTTPRequestHandler):
        def pass_on(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = dict(self.headers.items())
            kept = {
                name.lower(): value for name, value in headers.items() if not _UNKEPT.fullmatch(name)
            }
            exchange = Exchange(self.command, self.path, kept, json.loads(raw) if raw else None)
            exchanges.append(exchange)
            upstream = http.client.HTTPConnection(address, timeout=60)
            passed = {k: v for k, v in headers.items() if k.lower() not in {"host", "accept-encoding"}}
            upstream.request(self.command, self.path, raw or None, passed | {"Host": address})
            response = upstream.getresponse()
            exchange.status = response.status
            self.send_response(response.status)
            for name, value in response.getheaders():
                if name.lower() not in {"transfer-encoding", "connection", "date", "server"}:
                    self.send_header(name, value)
            self.end_headers()
            said = bytearray()
            while piece := response.read1():
                said += piece
                self.wfile.write(piece)
                self.wfile.flush()
            exchange.answer = said.decode()
            upstream.close()

        do_GET = do_POST = do_PUT = do_DELETE = pass_on  # noqa: N815 (as http.server names them)

        def log_message(self, *_: object) -> None:
            pass

    return Handler
