"""Evaluate JSON against a JSON Schema; run as a program, this module is a helper process that does so.

The program imports nothing else of Parley, so it starts in a few hundredths of a second. Patterns are
matched in linear time (no look-around, no back-references), and references to other addresses are never
fetched.
"""

from __future__ import annotations

import ctypes
import functools
import os
import resource
import signal
import sys
from contextlib import suppress
from itertools import islice
from typing import IO, Any, Final

import jsonschema_rs
import msgspec
from msgspec import Struct

MOST_FAULTS: Final = 3
LONGEST_FAULT: Final = 300
NO_JSON: Final = "it is no JSON"
_CPU_S: Final = 10  # per question; the parent process, while it lives, ends a helper sooner
_MEMORY: Final = 512 * 1024 * 1024
_NICENESS: Final = 5
_PR_SET_PDEATHSIG: Final = 1  # from <sys/prctl.h>; for the parent's OS thread, which lives on
_LINEAR: Final = jsonschema_rs.RegexOptions()
_UNUSABLE: Final = (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError)


class Question(Struct, frozen=True, array_like=True):
    """A schema and an instance, as JSON; without an instance, only the schema is checked."""

    schema: bytes
    instance: bytes | None = None
    listed: bool = False


class Verdict(Struct, frozen=True, array_like=True):
    """The result of an evaluation; it has faults if they were required, or cost little to find."""

    fits: bool = True
    faults: tuple[str, ...] = ()
    unusable: str = ""


def evaluate(question: Question) -> Verdict:
    """Return the verdict on a question; raise nothing, whatever the schema and the instance are."""
    try:
        validator = _validator(question.schema)
    except _UNUSABLE as error:
        return Verdict(False, unusable=str(error).partition("\n")[0][:LONGEST_FAULT] or "it is none")
    if question.instance is None:
        return Verdict()
    try:
        instance = msgspec.json.decode(question.instance)
        if validator.is_valid(instance):
            return Verdict()
        return Verdict(False, _faults(validator, instance) if question.listed else ())
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Verdict(False, (NO_JSON,))
    except (RecursionError, ValueError):
        return Verdict(False, ("it is nested too deeply",))


def _faults(validator: Any, instance: object) -> tuple[str, ...]:
    found = islice(validator.iter_errors(instance), MOST_FAULTS)
    return tuple(f"{_place(one.instance_path)}: {one.message[:LONGEST_FAULT]}" for one in found)


def _place(path: list[str | int]) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


@functools.lru_cache(maxsize=64)
def _validator(schema: bytes) -> Any:
    whole = msgspec.json.decode(schema)
    return jsonschema_rs.Draft202012Validator(whole, pattern_options=_LINEAR, retriever=_refuse)


def _refuse(address: str) -> Any:
    raise ValueError("references to elsewhere are not followed")


def send(pipe: IO[bytes], message: bytes) -> None:
    """Write a message after its length."""
    pipe.write(len(message).to_bytes(4, "big") + message)
    pipe.flush()


def receive(pipe: IO[bytes]) -> bytes:
    """Read a message; raise EOFError at the end of the pipe, also in the middle of a message."""
    size = int.from_bytes(_exactly(pipe, 4), "big")
    return _exactly(pipe, size)


def _exactly(pipe: IO[bytes], size: int) -> bytes:
    found = pipe.read(size)
    if len(found) < size:
        raise EOFError
    return found


def main() -> None:
    """Answer questions until stdin ends; on Linux also end with the parent process, even during work."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.nice(_NICENESS)
    with suppress(ValueError, OSError):  # macOS has no such limit
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    decoder = msgspec.msgpack.Decoder(Question)
    while True:
        try:
            question = decoder.decode(receive(sys.stdin.buffer))
        except EOFError:
            return
        _limit_cpu()
        send(sys.stdout.buffer, msgspec.msgpack.encode(evaluate(question)))


def _limit_cpu() -> None:
    """Let the system end this process if one question takes too long and no parent is left to end it."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime) + _CPU_S
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))


if __name__ == "__main__":
    main()
