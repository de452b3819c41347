"""The published OpenAPI document, and what it says of an answer."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from typing import Any, Final

import jsonschema_rs

from tests.schema_true.recording import Exchange, frames_of

READS: Final = frozenset({"GET", "HEAD"})
_NAME: Final = re.compile(r"\\\{(\w+)\\\}")
_MORE: Final = frozenset({"path", "model_id", "runner_id"})  # what may hold a slash
_ADDRESS: Final = "urn:parley:openapi"
_ALIASES: Final = {"/compatible-mode/v1/": "/v1/"}


class Document:
    """The document, with a validator for each of its schemas that is met."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw
        self._routes = [(re.compile(_pattern(path)), path) for path in raw["paths"]]
        self._registry = jsonschema_rs.Registry([(_ADDRESS, raw)], draft=jsonschema_rs.Draft202012)
        self._validators: dict[str, jsonschema_rs.Draft202012Validator] = {}

    @functools.lru_cache(maxsize=4096)  # noqa: B019 (there is one document a session)
    def route(self, path: str) -> str | None:
        """The documented path that this address belongs to; the one with the fewest names."""
        for alias, meant in _ALIASES.items():
            path = path.replace(alias, meant, 1) if path.startswith(alias) else path
        found = [route for pattern, route in self._routes if pattern.fullmatch(path)]
        return min(found, key=lambda route: route.count("{"), default=None)

    def faults(self, exchange: Exchange) -> Iterator[str]:
        """What of an answer is not as the document says."""
        route = self.route(exchange.path)
        if route is None or exchange.method in ("SOCKET", "OPTIONS"):
            return
        at, declared = self._declared(route, exchange)
        if declared is None:
            yield f"{exchange.method} {route}: status {exchange.status} is not declared"
            return
        for name in declared.get("headers", {}):
            header = self.raw["components"]["headers"][name]
            if header["required"] and name.lower() not in exchange.headers:
                yield f"{exchange.method} {route} {exchange.status}: the header {name} is missing"
        if exchange.method != "HEAD":
            yield from self._faults_of_body(f"{exchange.method} {route}", exchange, at, declared)

    def _declared(self, route: str, exchange: Exchange) -> tuple[str, dict[str, Any] | None]:
        methods = self.raw["paths"][route]
        method = "get" if exchange.method == "HEAD" else exchange.method.lower()
        if method not in methods:  # which every other method of the address answers
            method = next(iter(methods))
            if exchange.status != 405:
                return "", None
        at = f"/paths/{_escaped(route)}/{method}/responses/{exchange.status}"
        return at, methods[method]["responses"].get(str(exchange.status))

    def _faults_of_body(
        self, where: str, exchange: Exchange, at: str, declared: dict[str, Any]
    ) -> Iterator[str]:
        content = declared.get("content", {})
        where = f"{where} {exchange.status}"
        if not content:
            if exchange.size:
                yield f"{where}: has a body, and none is declared"
            return
        kind = exchange.kind
        said = next(
            (one for one in (kind, f"{kind.partition('/')[0]}/*", "*/*") if one in content), None
        )
        if said is None:
            yield f"{where}: {kind or 'no content type'} is not declared"
        elif exchange.is_read and (exchange.is_whole or exchange.is_stream):
            at = f"{at}/content/{_escaped(said)}/schema"
            if exchange.is_stream:
                place = f"{at}{_place_of_frame(content[said]['schema'])}"
                for number, (_, frame) in enumerate(frames_of(exchange)):
                    yield from self.misfits(f"{where}: frame {number}", frame, place)
            elif "json" in said:
                yield from self.misfits(where, exchange.json(), at)

    def misfits(self, where: str, value: Any, at: str) -> Iterator[str]:
        """Where a value that must fit the schema at this place of the document does not."""
        validator = self._validators.get(at)
        if validator is None:
            validator = jsonschema_rs.Draft202012Validator(
                {"$ref": f"{_ADDRESS}#{at}"}, registry=self._registry, validate_formats=True
            )
            self._validators[at] = validator
        if validator.is_valid(value):
            return
        error = next(iter(validator.iter_errors(value)))
        place = "/".join(map(str, error.instance_path)) or "the body"
        yield f"{where}: {place}: {error.message[:300]}"


def _place_of_frame(schema: dict[str, Any]) -> str:
    """Where in the schema of one item of a stream that of the frame is: an event has it in `data`."""
    data = schema.get("properties", {}).get("data")
    if data is None:
        return ""
    return f"/properties/data{'/anyOf/1' if 'anyOf' in data else ''}/contentSchema"


def _pattern(path: str) -> str:
    return _NAME.sub(lambda found: r".+" if found[1] in _MORE else r"[^/]+", re.escape(path))


def _escaped(key: str) -> str:
    """A key as JSON Pointer writes it in the fragment of an address."""
    pointed = key.replace("~", "~0").replace("/", "~1")
    return pointed.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")


@functools.cache
def published() -> Document:
    """The document as clients fetch it."""
    from drf_spectacular.generators import SchemaGenerator

    raw = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return Document(json.loads(json.dumps(raw)))
