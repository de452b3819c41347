"""Tool names as providers accept them: letters, digits, `_` and `-`, at most 64 of them.

Ours may hold dots (`gymbro.exercise.search`). A name that fits is sent unchanged, any other in a
form made from it alone if that is free, so that the same tool has the same name in every request
and a provider's cache of the prompt stays valid.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b
from typing import Final, Self

from agents.providers.base import ModelRequest

ANSWER: Final = "parley.answer"  # the tool whose call is the answer, on wires without structured output
_LONGEST: Final = 64
_FITS: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_-]")


class ToolNames:
    """The names of one request, in both directions."""

    def __init__(self, names: Iterable[str]) -> None:
        self._sent: dict[str, str] = {}
        self._ours: dict[str, str] = {}
        for name in sorted(set(names), key=lambda name: (not _FITS.fullmatch(name), name)):
            sent = _made(name)
            if sent in self._ours:
                sent = _marked(sent, name)
            self._sent[name], self._ours[sent] = sent, name

    @classmethod
    def of(cls, request: ModelRequest) -> Self:
        """Return the names of the tools that the request offers and that its messages called."""
        called = (call.name for message in request.messages for call in message.tool_calls)
        answer = () if request.json_schema is None else (ANSWER,)
        return cls((*(tool.name for tool in request.tools), *called, *answer))

    @property
    def answer(self) -> str:
        """The provider's name of the answer's tool; "" if the answer needs no form."""
        return self._sent.get(ANSWER, "")

    def to_provider(self, name: str) -> str:
        """Return the provider's name for `name`."""
        return self._sent[name]

    def from_provider(self, name: str) -> str:
        """Return our name for a provider's; a name that we did not send stays."""
        return self._ours.get(name, name)


def _made(name: str) -> str:
    if _FITS.fullmatch(name):
        return name
    plain = _UNFIT.sub("_", name)
    plain = plain if plain[:1].isalpha() or plain[:1] == "_" else f"_{plain}"
    readable = len(plain) <= _LONGEST and plain.strip("_")
    return plain if readable else _marked(plain, name)


def _marked(plain: str, name: str) -> str:
    """Return the name with a hash of the whole, if its plain form is too long, empty or taken."""
    mark = blake2b(name.encode("utf-8", "replace"), digest_size=5).hexdigest()
    return f"{plain[: _LONGEST - len(mark) - 1]}_{mark}"
