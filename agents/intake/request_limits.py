"""The limits of a request of any dialect: lengths of names that an index can take, and the state's size.

A dialect may be stricter. Members that a dialect leaves out of the request are not checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
from django.conf import settings

from agents.requests import InputMessage, RunRequest
from config.errors import InvalidRequest, PayloadTooLarge

LONGEST_NAME: Final = 200
LONGEST_ID: Final = 512
_Named = tuple[str, str | None, int]


def check(request: RunRequest, *, size: int) -> None:
    """Check a request whose body has `size` bytes.

    Raise InvalidRequest `name_too_long` or PayloadTooLarge `state_too_large`.
    """
    for field, text, longest in _named(request):
        if text and len(text) > longest:
            raise InvalidRequest(
                f"{field} has {len(text):,} characters: at most {longest} are taken.",
                code="name_too_long",
                field=field,
                limit=longest,
            )
    most = settings.STATE_LIMIT_KB * 1024
    if size > most and len(msgspec.json.encode(request.state)) > most:
        raise PayloadTooLarge(
            f"The state is too large: at most {settings.STATE_LIMIT_KB:,} KiB are kept.",
            code="state_too_large",
        )


def check_stored(request: str) -> None:
    """Raise PayloadTooLarge `request_too_large` if a stored request exceeds REQUEST_LIMIT_KB."""
    if len(request) > settings.REQUEST_LIMIT_KB * 1024:
        raise PayloadTooLarge(
            "The request is too large, without its files: "
            f"at most {settings.REQUEST_LIMIT_KB:,} KiB are kept.",
            code="request_too_large",
        )


def _named(request: RunRequest) -> Iterator[_Named]:
    """Yield the names and ids of a request: the path of each, its text, and its maximal length."""
    yield "model", request.model, LONGEST_NAME
    yield "session", request.session, LONGEST_ID
    yield "parent_run_id", request.parent_run_id, LONGEST_ID
    for place, tool in enumerate(request.tools):
        yield f"tools[{place}].name", tool.name, LONGEST_NAME
    for place, answer in enumerate(request.answers):
        yield f"answers[{place}].interrupt_id", answer.interrupt_id, LONGEST_ID
    for place, message in enumerate(request.shown or request.messages):
        yield from _named_in(message, f"messages[{place}]")


def _named_in(message: InputMessage, where: str) -> Iterator[_Named]:
    yield f"{where}.id", message.client_id, LONGEST_NAME
    yield f"{where}.name", message.name, LONGEST_NAME
    yield f"{where}.activity_type", message.activity_type, LONGEST_NAME
    yield f"{where}.tool_call_id", message.tool_call_id, LONGEST_ID
    for place, call in enumerate(message.tool_calls):
        yield f"{where}.tool_calls[{place}].id", call.id, LONGEST_ID
        yield f"{where}.tool_calls[{place}].name", call.name, LONGEST_NAME
    for place, upload in enumerate(message.uploads):
        yield f"{where}.uploads[{place}].mime_type", upload.mime_type, LONGEST_NAME
