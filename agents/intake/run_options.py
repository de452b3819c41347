"""The options of a run in the query and the headers of its POST, in addition to its body."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple, cast, get_args

from agents.requests import OnBusy, OnDisconnect
from config.errors import InvalidRequest

_KEY: Final = re.compile(r"[\x21-\x7e]{1,128}")


class RunOptions(NamedTuple):
    """The options of one POST; None leaves an option to the body.

    `prompt_version` names a version by its id or as `label:staging`; the permission is checked later.
    """

    on_busy: OnBusy = "enqueue"
    on_disconnect: OnDisconnect | None = None
    deadline_s: int | None = None
    prompt_version: str | None = None
    idempotency_key: str | None = None


def read_run_options(query: Mapping[str, str], headers: Mapping[str, str]) -> RunOptions:
    """Return the options of a query and of headers; raise InvalidRequest for a value that is none."""
    return RunOptions(
        on_busy=_on_busy(query.get("on_busy")),
        on_disconnect=_on_disconnect(query.get("on_disconnect") or headers.get("X-On-Disconnect")),
        deadline_s=_deadline(headers.get("X-Run-Deadline")),
        prompt_version=headers.get("X-Prompt-Version"),
        idempotency_key=_idempotency_key(headers.get("Idempotency-Key")),
    )


def _on_busy(value: str | None) -> OnBusy:
    """Return what to do while the conversation has a live run; by default wait behind it."""
    if value and value not in get_args(OnBusy):
        raise InvalidRequest("on_busy must be enqueue, reject or interrupt.", code="invalid_on_busy")
    return cast("OnBusy", value or "enqueue")


def _on_disconnect(value: str | None) -> OnDisconnect | None:
    """Return whether a POST whose stream breaks off ends its run."""
    if value and value not in get_args(OnDisconnect):
        raise InvalidRequest("on_disconnect must be continue or cancel.", code="invalid_on_disconnect")
    return cast("OnDisconnect | None", value or None)


def _deadline(value: str | None) -> int | None:
    """Return whole seconds from the run's start; more than RUN_DEADLINE_S is cut to that later."""
    if value is None:
        return None
    if not (value.isascii() and value.isdigit() and len(value) <= 9 and int(value) > 0):
        raise InvalidRequest(
            "X-Run-Deadline must be a whole number of seconds, 1 or more.", code="invalid_deadline"
        )
    return int(value)


def _idempotency_key(value: str | None) -> str | None:
    """Return the caller's key: the same key and body start one run (promise P5)."""
    if value is not None and not _KEY.fullmatch(value):
        raise InvalidRequest(
            "Idempotency-Key must be 1 to 128 visible ASCII characters.", code="invalid_idempotency_key"
        )
    return value
