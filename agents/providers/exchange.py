"""Exchange with a provider over one wire: send the request, read the stream, yield its events.

A wire is a value: the address, the way to write the request, and a reader of the stream's events. The
wires are in `registry`.
This module has what is the same for all of them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any, Final

import aiohttp
import msgspec
from msgspec import Struct

from agents.providers import http
from agents.providers.base import (
    ModelEvent,
    ModelRequest,
    Opened,
    ProviderError,
    RawChunk,
)
from agents.providers.reader import Reader
from agents.providers.redaction import Redactor
from agents.providers.refusals import invalid_response_error
from agents.providers.sse import EventSplitter
from agents.providers.tool_names import ToolNames
from prompts.endpoints.routing import Candidate

DONE: Final = b"[DONE]"
_MOST_REMEMBERED: Final = 1024
_MOST_UNSAID: Final = 16 * 1024 * 1024  # bytes of calls, seals and comments between two pieces of text

Body = dict[str, Any]


class Wire(Struct, frozen=True):
    """One provider wire, ready for requests.

    `path` is the place of a model below the base URL; `headers` hold the key. `forms` are the possible
    bodies of a request, the richest first: models of one wire accept different parameters and do not
    declare which, so if one refuses a form as malformed, the next form is sent. A `version` comes before
    each path; base URLs may already end with it.
    """

    name: str
    path: Callable[[str], str]
    headers: Callable[[str], dict[str, str]]
    forms: Callable[[str, ModelRequest, ToolNames], Sequence[Body]]
    reader: Callable[[ToolNames], Reader]
    version: str = ""

    def url(self, base_url: str, path: str) -> str:
        """Return the address of a path below an endpoint's base URL."""
        return f"{base_url.rstrip('/').removesuffix(self.version)}{self.version}{path}"

    def models_url(self, base_url: str) -> str:
        """Return the address at which a provider lists its models."""
        return self.url(base_url, "/models")

    async def __call__(
        self, target: Candidate, request: ModelRequest
    ) -> AsyncGenerator[Sequence[ModelEvent]]:
        """Stream one answer, by what arrived together; no group is empty.

        With `request.raw` each SSE event is also yielded unchanged, after the events read from it. Raise
        ProviderError if the provider refuses, hangs, breaks off or rambles.
        """
        names = ToolNames.of(request)
        reader, redactor = self.reader(names), Redactor(target.key)
        incoming = _Incoming(reader, self.name if request.raw else "")
        # the forms, which hold the conversation twice, are gone once one of them is sent
        response = await _opened(
            self, target, _forms(self, target.model, request, names), _manner(request)
        )
        try:
            opened = Opened(target.endpoint_id, target.provider, target.model, _request_id(response))
            yield (redactor.redact_whole(opened),)
            async with aclosing(http.read(response)) as body:
                async for some in body:
                    if shown := redactor.redact(incoming.feed(some)):
                        yield shown
                    incoming.check()
                    if reader.done:
                        await http.let_end(response)
                        break
            if not incoming.heard:
                raise invalid_response_error()
            if rest := redactor.flush():
                yield rest
            yield (redactor.redact_whole(reader.end()),)
        finally:
            response.close()
            if request.on_usage is not None:
                request.on_usage(reader.usage)


class _Incoming:
    """One answer's bytes on their way to its events; with a `raw_wire` its pieces are events too."""

    def __init__(self, reader: Reader, raw_wire: str) -> None:
        self.heard = False
        self._reader = reader
        self._raw_wire = raw_wire
        self._splitter = EventSplitter()
        self._unsaid = 0
        self._failure: ProviderError | None = None

    def feed(self, some: bytes) -> list[ModelEvent]:
        """Return the events that these bytes complete, up to the first that is an error."""
        found: list[ModelEvent] = []
        reader, raw_wire = self._reader, self._raw_wire
        self._unsaid += len(some)
        try:
            for data in self._splitter.feed(some):
                self.heard = True
                if said := reader.read(data):
                    self._unsaid = 0
                    found += said
                if raw_wire and data != DONE:
                    found.append(RawChunk(raw_wire, data.decode(errors="replace"), reader.kind))
                if reader.done:
                    break
        except ProviderError as error:
            self._failure = error
        return found

    def check(self) -> None:
        """Raise ProviderError for the error that came after these events, or if nothing is ever said."""
        if self._failure is not None:
            raise self._failure
        if self._unsaid > _MOST_UNSAID and not self._reader.done:
            raise invalid_response_error()


def _forms(wire: Wire, model: str, request: ModelRequest, names: ToolNames) -> list[Body]:
    """Return the distinct forms of the request; last, without options that not every server accepts."""
    relaxed = request.relaxed
    more = () if relaxed is request else wire.forms(model, relaxed, names)
    forms = [*wire.forms(model, request, names), *more]
    return [form for place, form in enumerate(forms) if form not in forms[:place]]


def _request_id(response: aiohttp.ClientResponse) -> str | None:
    return response.headers.get("x-request-id") or response.headers.get("request-id")


_forms_taken: dict[tuple[str | int, ...], int] = {}


def _manner(request: ModelRequest) -> int:
    """Return what determines the forms of a request; two requests of one manner have the same forms."""
    thinks = request.reasoning is not None or request.reasoning_budget is not None
    forced = request.must_call is not None
    return thinks + 2 * (request.json_schema is not None) + 4 * bool(request.tools) + 8 * forced


async def _opened(
    wire: Wire, target: Candidate, forms: Sequence[Body], manner: int
) -> aiohttp.ClientResponse:
    """Return the answer to the first form that the model accepts, and remember which one it was."""
    url, headers = wire.url(target.base_url, wire.path(target.model)), wire.headers(target.key)
    about = (wire.name, target.base_url, target.model, len(forms), manner)
    for place in range(_forms_taken.get(about, 0), len(forms)):
        try:
            response = await http.post(url, headers=headers, body=msgspec.json.encode(forms[place]))
        except ProviderError as error:
            if error.code != "provider_bad_request" or place == len(forms) - 1:
                raise
        else:
            if place:
                _remember(about, place)
            return response
    raise AssertionError("a wire has at least one form")


def _remember(about: tuple[str | int, ...], place: int) -> None:
    if len(_forms_taken) >= _MOST_REMEMBERED:
        _forms_taken.clear()
    _forms_taken[about] = place
