"""The exchanges on the pages of docs/protocols/ are real: each is made again and compared.

On a page a block `http` that begins with a method is a request, and the next block `http`, which begins
with `HTTP/1.1`, is its answer. The requests of a page are sent in their order by an account of its own
(`$STAFF_TOKEN`: by one of the owner's role); before each request the runs of that account have ended.

    RECORD=1 python -m pytest tests/docs/test_golden_exchanges.py -n0

writes the answers anew. A block is compared as a whole text. Only what differs from run to run is
written in the same way each time (`Names`): ids, numbered in the order in which they appear, times,
durations, the tokens of signed URLs and the server's address. The log keeps each piece of a text as it
came, so the pieces and the numbers of frames are the same, too. Of many frames of one shape after each
other (the deltas of an answer) a page has the first two and the last; `…` stands for the rest. A JSON
body is laid out for its reader; heartbeats, pings and the blanks that fill silence are left out.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from itertools import groupby
from typing import Any, Final
from uuid import uuid4

import httpx
import jwt
import pytest
from django.conf import settings

from conversations.models import LIVE, Run
from tests.support.client import Client
from tests.support.doc_pages import DOCS
from tests.support.pictures import small_png

pytestmark = pytest.mark.once

PROTOCOLS: Final = DOCS / "protocols"
WITHOUT: Final = {"conformance.md"}
PAGES: Final = sorted(path.name for path in PROTOCOLS.glob("*.md") if path.name not in WITHOUT)
RECORDS: Final = os.environ.get("RECORD") == "1"

EXCHANGE: Final = re.compile(
    r"^```http\n(?P<request>(?:GET|POST|PATCH|DELETE) .*?\n)```\n"
    r"(?P<between>(?:(?!```).)*?)^```http\nHTTP/1\.1.*?^```$",
    re.MULTILINE | re.DOTALL,
)
PICTURE: Final = b"(the bytes of a PNG)"
ADDRESS: Final = "https://parley.example"
SHOWN: Final = ("content-type", "retry-after", "x-request-id-replaced", "x-should-retry")
WIDTH: Final = 100
MANY: Final = 4

Make = Callable[..., Client]


class Names:
    """What the server calls otherwise each time, under the names that it has on a page; and back."""

    IDS: Final = re.compile(
        r"(?<![0-9a-f])(?:[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?![0-9a-f])"
    )
    NOT_YET: Final = re.compile(r'(?<="told_run_id":)"[0-9a-f]{32}"')  # the next run may have begun
    TOKENS: Final = re.compile(r"(?<=token=)[\w-]+\.[\w-]+\.[\w-]+")
    VARYING: Final = (
        (re.compile(r"\b1[789]\d{8}(\d{3})?\b"), lambda found: "1767225600" + "000" * bool(found[1])),
        (re.compile(r"\b\d{4}-\d\d-\d\d(?=\")"), lambda _: "2026-01-01"),
        (
            re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?"),
            lambda found: "2026-01-01T00:00:00" + (f".{'0' * (len(found[1]) - 1)}" if found[1] else ""),
        ),
        (re.compile(r"(?<=_ms\":)(\s*)\d+"), lambda found: f"{found[1]}5"),
    )

    def __init__(self) -> None:
        self._shown: dict[str, str] = {}
        self._meant: dict[str, str] = {}

    def to_page(self, text: str) -> str:
        """Return the server's text as it stands on a page."""
        text = self.NOT_YET.sub("null", text.replace(settings.PUBLIC_URL, ADDRESS))
        text = self.IDS.sub(lambda found: self._as_written(found[0], self._id_on_page(found[0])), text)
        text = self.TOKENS.sub(lambda found: self._token_on_page(found[0]), text)
        for pattern, replacement in self.VARYING:
            text = pattern.sub(replacement, text)
        return text

    def to_server(self, text: str) -> str:
        """Return a page's request as it is sent; an id of the client's own is a new one."""
        text = text.replace(ADDRESS, settings.PUBLIC_URL)
        text = self.IDS.sub(lambda found: self._as_written(found[0], self._id_meant(found[0])), text)
        return self.TOKENS.sub(lambda found: self._meant[found[0]], text)

    def _id_on_page(self, live: str) -> str:
        return self._on_page(live.replace("-", ""), "0199f3a2{0:04}7000a000{0:012}")

    def _token_on_page(self, live: str) -> str:
        """Return a token by its file: two of one second are the same, two of one file need not be."""
        file = jwt.decode(live, options={"verify_signature": False})["url"]
        shown = self._on_page(file, "eyJhbGciOiJIUzI1NiJ9.eyJ1cmwiOiIifQ.{}")
        self._meant[shown] = live
        return shown

    def _id_meant(self, shown: str) -> str:
        shown = shown.replace("-", "")
        if shown not in self._meant:
            self._keep(uuid4().hex, shown)
        return self._meant[shown]

    def _on_page(self, live: str, form: str) -> str:
        if live not in self._shown:
            self._keep(live, form.format(len(self._shown) + 1))
        return self._shown[live]

    def _keep(self, live: str, shown: str) -> None:
        self._shown[live], self._meant[shown] = shown, live

    @staticmethod
    def _as_written(form: str, digits: str) -> str:
        """Return an id of 32 digits, with hyphens if the other form of it has them."""
        if "-" not in form:
            return digits
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


class Page:
    """One page's requests, sent in their order."""

    def __init__(self, make_client: Make) -> None:
        self._names = Names()
        self._make = make_client
        self._clients: dict[bool, Client] = {}

    def repeated(self, found: re.Match[str]) -> str:
        """Return the text of an exchange with the answer that the server gives now."""
        answer = self._answer(self._send(found["request"]))
        return f"```http\n{found['request']}```\n{found['between']}```http\n{answer}\n```"

    def _send(self, request: str) -> httpx.Response:
        head, _, body = self._names.to_server(request).partition("\n\n")
        first, *lines = head.strip().split("\n")
        method, path = first.split(" ")
        headers = dict(line.split(": ", 1) for line in lines)
        client = self._client(is_staff="$STAFF_TOKEN" in headers.pop("Authorization", ""))
        content = body.strip().encode()
        if headers.get("Content-Type", "").startswith("multipart/"):
            content = content.replace(b"\n", b"\r\n").replace(PICTURE, small_png()) + b"\r\n"
        return client.http.request(method, path, headers=headers, content=content)

    def _client(self, *, is_staff: bool) -> Client:
        if is_staff not in self._clients:
            self._clients[is_staff] = self._make(is_staff=is_staff)
        client = self._clients[is_staff]
        until = time.monotonic() + 30
        while Run.objects.filter(owner=client.user, status__in=LIVE).exists():
            assert time.monotonic() < until, "a run of the page does not end"
            time.sleep(0.02)
        return client

    def _answer(self, response: httpx.Response) -> str:
        head = [f"HTTP/1.1 {response.status_code} {HTTPStatus(response.status_code).phrase}"]
        head += [f"{name}: {response.headers[name]}" for name in SHOWN if name in response.headers]
        text, kind = self._names.to_page(response.text), response.headers.get("content-type", "")
        match kind.partition(";")[0]:
            case "text/event-stream":
                body = "\n\n".join(_elided(_frames(text), "…"))
            case "application/x-ndjson":
                body = "\n".join(_elided(filter(None, text.split("\n")), "…"))
            case "application/json":
                body = laid_out(json.loads(text))
            case _:
                body = text
        return "\n".join([*head, "", body] if body else head)


def _frames(text: str) -> Iterator[str]:
    """Yield the events of a stream; of its opening comment the colon, and nothing that fills silence."""
    for frame in text.removesuffix("\n\n").split("\n\n"):
        if frame.startswith(":   "):
            yield ":"
        elif not (frame.startswith((": ", "event: heartbeat")) or '"type":"heartbeat"' in frame):
            yield frame


def _elided(frames: Iterator[str], mark: str) -> Iterator[str]:
    """Yield the frames, of more than MANY of one shape the first two and the last."""
    for _, alike in groupby(frames, _shape):
        some = [*alike]
        yield from some if len(some) <= MANY else (*some[:2], mark, some[-1])


def _shape(frame: str) -> str:
    """Return the form of a frame: its name, and its data with kinds in the place of values."""
    head, _, data = frame.rpartition("data: ")
    name = head.partition("\n")[0] if head.startswith("event: ") else ""
    try:
        return f"{name} {_kinds(json.loads(data))}"
    except ValueError:
        return frame


def _kinds(value: Any, key: str = "") -> Any:
    match value:
        case dict():
            return {name: _kinds(one, name) for name, one in value.items()}
        case list():
            return [_kinds(one) for one in value]
        case str() if key in ("type", "state", "status"):
            return value
    return type(value).__name__


def laid_out(value: Any, indent: int = 0, before: int = 0) -> str:
    """Return JSON, each object and list on one line if it fits there."""
    line = json.dumps(value, ensure_ascii=False)
    if indent + before + len(line) <= WIDTH or not (isinstance(value, dict | list) and value):
        return line
    inner, members = indent + 2, []
    for key, one in value.items() if isinstance(value, dict) else ((None, one) for one in value):
        name = "" if key is None else f"{json.dumps(key)}: "
        members.append(" " * inner + name + laid_out(one, inner, len(name) + 1))
    begin, end = "{}" if isinstance(value, dict) else "[]"
    return f"{begin}\n" + ",\n".join(members) + f"\n{' ' * indent}{end}"


@pytest.mark.parametrize("page", PAGES)
def test_the_exchanges_of_a_page_are_real(page: str, make_client: Make) -> None:
    path = PROTOCOLS / page
    written = path.read_text()
    come = EXCHANGE.sub(Page(make_client).repeated, written)
    if RECORDS:
        path.write_text(come)
    else:
        assert come.splitlines() == written.splitlines()


@pytest.mark.parametrize("page", PAGES)
def test_each_page_has_an_exchange(page: str) -> None:
    blocks = re.findall(r"^```http$", (PROTOCOLS / page).read_text(), re.MULTILINE)
    assert blocks
    assert len(blocks) == 2 * len(EXCHANGE.findall((PROTOCOLS / page).read_text()))
