"""The headers of requests and responses: each is declared once, as a component of its own name."""

from __future__ import annotations

from typing import Any, Final

from config.http.documentation.schema_builders import COUNT, TEXT, Schema


def _requested(name: str, description: str, **schema: Any) -> dict[str, Any]:
    return {"name": name, "in": "header", "description": description, "schema": TEXT | schema}


_REQUESTED: Final = (
    _requested(
        "Idempotency-Key",
        "Requests with the same key and body start one run.",
        pattern=r"^[\x21-\x7e]{1,128}$",
    ),
    _requested(
        "X-Run-Deadline",
        "The run's time limit in seconds, 1 or more.",
        pattern="^0*[1-9][0-9]*$",
        maxLength=9,
    ),
    _requested(
        "X-On-Disconnect", "The same as the parameter `on_disconnect`.", enum=["continue", "cancel"]
    ),
    _requested(
        "X-Prompt-Version",
        "For staff who may view prompts: the id of a prompt version, or a label, that replaces the "
        "active versions in this run.",
        pattern="^([1-9][0-9]{0,8}|label:[a-z0-9][a-z0-9_-]{0,31})$",
    ),
    _requested(
        "Last-Event-ID",
        "The id of the last event received: the stream goes on after it.",
        pattern="^[0-9]{1,9}$",
    ),
    _requested("If-None-Match", "The ETag of the caller's copy."),
    _requested("Range", "One range of bytes, such as `bytes=0-1023`; several are answered as none."),
    _requested(
        "X-Request-Id",
        "1 to 128 visible ASCII characters that find the request in the logs. Other values are "
        "replaced, and the response has the header `X-Request-Id-Replaced: true`.",
    ),
)
PARAMETERS: Final = {one["name"]: one for one in _REQUESTED}


def _sent(description: str, schema: Schema = TEXT, *, required: bool = True) -> dict[str, Any]:
    return {"description": description, "required": required, "schema": schema}


HEADERS: Final[dict[str, dict[str, Any]]] = {
    "X-Request-Id": _sent("The id of the request, the caller's or a new one."),
    "X-Request-Id-Replaced": _sent(
        "Sent if the caller's X-Request-Id was not accepted.", {"const": "true"}, required=False
    ),
    "Location": _sent("The address of what was made: of the run, for one.", TEXT | {"minLength": 1}),
    "WWW-Authenticate": _sent("The scheme of authentication: Bearer."),
    "Allow": _sent("The methods that the address supports."),
    "Retry-After": _sent("The number of seconds after which to try again.", COUNT),
    "Content-Range": _sent("The range of the file, or its size."),
    "ETag": _sent("The version of the content, for If-None-Match."),
}
_ALL: Final = ("X-Request-Id", "X-Request-Id-Replaced")
_OF_STATUS: Final[dict[str, tuple[str, ...]]] = {
    "201": ("Location",),
    "202": ("Location",),
    "206": ("Content-Range", "ETag"),
    "302": ("Location",),
    "304": ("ETag",),
    "401": ("WWW-Authenticate",),
    "405": ("Allow",),
    "416": ("Content-Range",),
    "429": ("Retry-After",),
    "503": ("Retry-After",),
}


def sends(*names: str) -> list[dict[str, str]]:
    """Return the parameters of an operation that reads these headers."""
    return [{"$ref": f"#/components/parameters/{name}"} for name in names]


def of_status(status: str) -> dict[str, dict[str, str]]:
    """Return the headers of every response with this status."""
    return named(*_ALL, *_OF_STATUS.get(status, ()))


def named(*names: str) -> dict[str, dict[str, str]]:
    """Return these headers of a response."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}
