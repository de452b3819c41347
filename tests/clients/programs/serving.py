"""Plays stories with a client in its own environment: a JSON object a line in, one a line out.

{"story", "url", "token", "model", …} is answered by {"got": what the story returned}, or by
{"broken": the traceback}. Nothing of Parley can be imported here.
"""

import asyncio
import inspect
import json
import sys
import traceback
from collections.abc import Callable
from typing import Any


class Given(dict[str, Any]):
    """What a story is given, as attributes."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


def serve(stories: dict[str, Callable[[Given], Any]]) -> None:
    """Play what is asked for: the functions of the module."""
    answers, sys.stdout = sys.stdout, sys.stderr  # so that nobody else's print is taken for an answer
    for line in sys.stdin:
        given = Given(json.loads(line))
        try:
            got = stories[given.story](given)
            answer = {"got": asyncio.run(got) if inspect.iscoroutine(got) else got}
        except Exception:
            answer = {"broken": traceback.format_exc()}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


WEATHER = {
    "name": "get_weather",
    "description": "The weather of a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
}
