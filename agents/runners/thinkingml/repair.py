"""Repair ThinkingML while it streams (specs/text-run.md §5).

`feed` returns the text that is certain, `finish` the rest. Joined they are valid, whatever the model
wrote and however it was cut; a valid text passes unchanged, and a blank one yields nothing. A reply is
held back until its first tag of ours; one that has none within `LONGEST_PREAMBLE` characters, or at
all, is wrapped whole: it is delivered escaped, as the answer under a phase of ours.
"""

from __future__ import annotations

from agents.runners.thinkingml.opening import Opening
from agents.runners.thinkingml.output import Output
from agents.runners.thinkingml.part import Part
from agents.runners.thinkingml.tags import Scanner, Tag, Token, is_broken


class Repair:
    """One reply on its way from the model to the log."""

    def __init__(self) -> None:
        self._scanner = Scanner()
        self._output = Output()
        self._part: Part = Opening(self._output)

    def feed(self, piece: str) -> str:
        """Return the text that can be delivered after the next piece of the model's text."""
        if "<" not in piece and not self._scanner.rest:
            if piece:
                self._part = self._part.text(piece)
        else:
            self._take(self._scanner.feed(piece))
        return self._output.take()

    def finish(self) -> str:
        """Return the rest at the end: the text held back, and closing tags for open ones."""
        if not (self._part.drops_broken_tag and is_broken(self._scanner.rest)):
            self._take(self._scanner.finish())
        self._part.end()
        return self._output.take(everything=True)

    def _take(self, tokens: list[Token]) -> None:
        for token in tokens:
            if isinstance(token, Tag):
                self._part = self._part.tag(token)
            else:
                self._part = self._part.text(token)
