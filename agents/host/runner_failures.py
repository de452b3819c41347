"""Failures of a run that its runner causes: it breaks the contract, or reports a failure itself."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec

from agents.runners.base import RunFailure

T = TypeVar("T")
MAX_CODE_LENGTH: Final = 64
MAX_MESSAGE_LENGTH: Final = 2_000


def protocol_error(message: str) -> RunFailure:
    """Return the failure of a run whose runner breaks the contract."""
    return RunFailure("runner.protocol_error", message)


def reported_failure(code: str, message: str, *, retryable: bool = False) -> RunFailure:
    """Return the failure that a runner reports, with its code and message cut to their lengths."""
    return RunFailure(
        code[:MAX_CODE_LENGTH] or "runner.error",
        (message or "The runner failed.")[:MAX_MESSAGE_LENGTH],
        retryable=retryable,
    )


def convert(value: Any, kind: type[T], name: str) -> T:
    """Return a runner's data as this kind; raise `protocol_error` with `name` for wrong data."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as problem:
        raise protocol_error(f"{name}: {problem}") from None
