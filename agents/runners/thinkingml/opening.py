"""The text before `<thinking>`, held back until it is known whether the reply has structure.

Stray words before or between the blocks go into the block before them, or into a `<think>` of their
own. A ``` fence right before the structure is dropped.
"""

from __future__ import annotations

import re
from typing import Final, Self
from xml.sax.saxutils import escape

from agents.runners.thinkingml import queries
from agents.runners.thinkingml.output import Output
from agents.runners.thinkingml.part import Part, TextPart
from agents.runners.thinkingml.tags import LONGEST_GAP, Tag
from agents.runners.thinkingml.thinking import Thinking

LONGEST_PREAMBLE: Final = LONGEST_GAP
WRAP_HEAD: Final = (
    '<thinking>\n<phase id="1">\n<title>格式修复</title>\n</phase>\n</thinking>\n<final>\n'
)
WRAP_TAIL: Final = f"\n{queries.EMPTY}\n</final>"
_FENCE: Final = re.compile(r"(?<!`)`{3,}[A-Za-z]*\s*\Z")


class Opening(Part):
    """The part before `<thinking>`."""

    drops_broken_tag = False

    def __init__(self, output: Output) -> None:
        self._output = output
        self._buffer: list[str] = []
        self._length = 0
        self._close = ""
        self._seen: set[str] = set()

    def text(self, text: str) -> Part:
        self._buffer.append(text)
        self._length += len(text)
        return self if self._length <= LONGEST_PREAMBLE else self._wrap()

    def tag(self, tag: Tag) -> Part:
        match tag.name:
            case "thinking" | "phase" | "final":
                self._let_go()
                return Thinking.opened_by(tag, self._output)
            case "think" | "serp" if tag.name not in self._seen:
                return self._open(tag.name)
            case "/think" if not self._seen:  # some models leave the opening tag to their template
                self._open("think")
                self.closes("think")
                return self
        return self.text(tag.text)

    def end(self) -> None:
        if "".join(self._buffer).strip():
            self._wrap().end()
        elif self._seen:
            self._let_go()
            Thinking.opened(self._output).end()

    def closes(self, name: str) -> None:
        """Note the end of the block; its closing tag waits, because stray words may still go into it."""
        self._close = f"</{name}>"

    def _open(self, name: str) -> Part:
        stray = self._stray()
        if stray and name == "think" and not self._close:
            self._output.write(f"<think>{escape(stray)}")
            self._forget()
        else:
            self._let_go()
            self._output.write(f"<{name}>")
        self._seen.add(name)
        return _Block(self._output, self, name)

    def _let_go(self) -> None:
        """Write the text that was held back, now that structure follows it."""
        text, stray = "".join(self._buffer), self._stray()
        if not stray:
            self._output.write(self._close + ("" if text.strip() else text))
        elif self._close:
            self._output.write(escape(stray) + self._close)
        else:
            self._output.write(f"<think>{escape(stray)}</think>")
            self._seen.add("think")
        self._forget()

    def _stray(self) -> str:
        """Return the words held back, without a fence; "" if there are none."""
        words = _FENCE.sub("", "".join(self._buffer))
        return words if words.strip() else ""

    def _forget(self) -> None:
        self._buffer, self._length, self._close = [], 0, ""

    def _wrap(self) -> Part:
        self._output.write(self._close + WRAP_HEAD + escape("".join(self._buffer)))
        return _Wrapped(self._output)


class _Block(TextPart):
    """The part inside `<think>` or `<serp>`."""

    def __init__(self, output: Output, opening: Opening, name: str) -> None:
        super().__init__(output)
        self._opening = opening
        self._name = name

    def tag(self, tag: Tag) -> Part:
        if tag.name != f"/{self._name}":
            return self.quote(tag)
        self._opening.closes(self._name)
        return self._opening

    def end(self) -> None:
        self._opening.closes(self._name)
        self._opening.end()


class _Wrapped(Part):
    """The rest of a reply without structure."""

    drops_broken_tag = False

    def __init__(self, output: Output) -> None:
        self._output = output

    def text(self, text: str) -> Self:
        self._output.write(escape(text))
        return self

    def tag(self, tag: Tag) -> Self:
        return self.text(tag.text)

    def end(self) -> None:
        self._output.write(WRAP_TAIL)
