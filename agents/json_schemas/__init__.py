"""Check JSON against JSON Schemas, without blocking the event loop.

Schemas come from clients and packages; the JSON comes from models and clients. A schema without
references is a tree, and each of its parts meets each part of the instance at most once per level: the
time grows with the product of their sizes, so a small pair is evaluated at once. Every other pair goes
to a helper process with a time limit, as does a schema with patterns (their automata can be large),
`multipleOf` (its numbers can be large) or `unevaluated…` (it visits each part again on each level).
"""

from __future__ import annotations

import asyncio
import re
from typing import Any, Final

import msgspec

from agents.json_schemas.evaluation import Question, Verdict, evaluate
from agents.json_schemas.helpers import Undecided, evaluate_in_helper

__all__ = ["Undecided", "UnusableSchema", "check", "find_faults"]

_SMALL: Final = 4_000_000  # bytes of the schema times bytes of the instance: at most 10 ms
_SMALL_TO_LIST: Final = 50_000  # jsonschema_rs computes all faults, even unread ones: at most 40 ms
_EXPENSIVE: Final = re.compile(
    rb'"(?:\$ref|\$dynamicRef|\$recursiveRef|unevaluated\w+|pattern\w*|multipleOf)":'
)


class UnusableSchema(Exception):
    """The schema is no schema, or needs what is not supported; the message has the details."""


async def check(schema: dict[str, Any]) -> None:
    """Raise UnusableSchema or Undecided for a schema that cannot be used for checks."""
    await _verdict(Question(msgspec.json.encode(schema)))


async def find_faults(instance: bytes, schema: dict[str, Any]) -> tuple[str, ...]:
    """Return the faults of JSON that must fit the schema: up to three, none if it fits."""
    question = Question(msgspec.json.encode(schema), instance)
    verdict = await _verdict(question)
    if verdict.fits or verdict.faults:
        return verdict.faults
    try:
        return (await _verdict(msgspec.structs.replace(question, listed=True))).faults
    except Undecided:  # it is already known that the instance does not fit
        return ("it does not fit, and to find out where takes too long",)


async def _verdict(question: Question) -> Verdict:
    verdict = (
        evaluate(question)
        if _is_cheap(question)
        else await asyncio.wrap_future(evaluate_in_helper(question))
    )
    if verdict.unusable:
        raise UnusableSchema(verdict.unusable)
    return verdict


def _is_cheap(question: Question) -> bool:
    size = len(question.schema) * len(question.instance or b"-")
    limit = _SMALL_TO_LIST if question.listed else _SMALL
    return size <= limit and not _EXPENSIVE.search(question.schema)
