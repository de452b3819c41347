"""The states of the repair in a ThinkingML text: a part takes text and returns the next part."""

from __future__ import annotations

from abc import ABC, abstractmethod

from agents.runners.thinkingml.output import Output, as_text
from agents.runners.thinkingml.tags import Tag


class Part(ABC):
    """The place in the text at which the repair is."""

    drops_broken_tag = True
    """Whether a tag that the text breaks off in is left out at the end."""

    @abstractmethod
    def text(self, text: str) -> Part:
        """Take plain text."""

    @abstractmethod
    def tag(self, tag: Tag) -> Part:
        """Take a tag (or a stub)."""

    @abstractmethod
    def end(self) -> None:
        """Write what makes the text complete."""


class TextPart(Part):
    """A part whose text is delivered as it comes, after `enter` has prepared its place."""

    def __init__(self, output: Output) -> None:
        self.output = output

    def enter(self) -> None:
        """Write what must come before words."""

    def gap(self, blank: str) -> None:
        """Write white space before the words."""
        self.output.write(blank)

    @property
    def entered(self) -> bool:
        """Whether words may follow at once."""
        return True

    def text(self, text: str) -> Part:
        if not self.entered:
            words = text.lstrip()
            self.gap(text[: len(text) - len(words)])
            if not words:
                return self
            self.enter()
            text = words
        self.output.write(text)
        return self

    def quote(self, tag: Tag) -> Part:
        """Write a tag that is not allowed here, as text."""
        if not self.entered:
            self.enter()
        if tag.name == "stub":
            self.output.write_stub(tag.text)
        elif tag.name in {"queries", "/queries"}:
            self.output.write(tag.text)
        else:
            self.output.put(as_text(tag))
        return self
