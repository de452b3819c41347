"""From `</thinking>` to the end: the answer, the search queries that close it, and nothing after.

The queries are held back until it is known that they are last; if they are not, or are not valid,
they are written anew at the end. A missing `<final>` is added before the first words; if it comes
later nevertheless, it is left out.
"""

from __future__ import annotations

from typing import Self
from xml.sax.saxutils import escape

from agents.runners.thinkingml import queries
from agents.runners.thinkingml.output import Output
from agents.runners.thinkingml.part import Part, TextPart
from agents.runners.thinkingml.tags import LONGEST_GAP, LONGEST_QUERIES, Tag

_APART = "<!-- -->"  # in place of a removed block, so that the text around it does not become one tag
_OURS = f"\n{queries.EMPTY}\n"


class Interval(TextPart):
    """The part between `</thinking>` and `<final>`."""

    def text(self, text: str) -> Part:
        words = text.lstrip()
        self.output.write(text[: len(text) - len(words)])
        return Answer.implied(self.output).text(words) if words else self

    def tag(self, tag: Tag) -> Part:
        match tag.name:
            case "final":
                return Answer.opened(self.output)
            case "/thinking" | "/phase" | "/title" | "/final":
                return self
        return Answer.implied(self.output).tag(tag)

    def end(self) -> None:
        Answer.opened(self.output).end()


class Answer(TextPart):
    """The answer."""

    def __init__(self, output: Output) -> None:
        super().__init__(output)
        self._awaits_tag = False
        self._queries = ""
        self._after: str | None = None  # the white space after the queries; None once words followed

    @classmethod
    def opened(cls, output: Output) -> Self:
        """Return an answer that begins here."""
        output.write("<final>")
        return cls(output)

    @classmethod
    def implied(cls, output: Output) -> Self:
        """Return an answer whose tag is missing so far."""
        answer = cls.opened(output)
        answer._awaits_tag = True
        return answer

    @property
    def entered(self) -> bool:
        return self._after is None

    def gap(self, blank: str) -> None:
        self._after = ((self._after or "") + blank)[:LONGEST_GAP]

    def enter(self) -> None:
        self.output.write(_APART + (self._after or ""))
        self._after = None

    def tag(self, tag: Tag) -> Part:
        match tag.name:
            case "/final":
                self.end()
                return _After(self.output)
            case "queries":
                return _Queries(self, tag.text)
            case "/queries":
                return self._instead(escape(tag.text))
            case "final" if self._awaits_tag:
                self._awaits_tag = False
                return self._instead("\n")
        return self.quote(tag)

    def keep(self, block: str) -> Self:
        """Hold a block of queries back for the end."""
        self._queries, self._after = block, ""
        return self

    def show(self, text: str) -> Self:
        """Write as words a text that looked like queries."""
        self.enter()
        self.output.write(escape(text))
        return self

    def _instead(self, text: str) -> Self:
        if not self.entered:
            self.enter()
        self.output.put(text)
        return self

    def end(self) -> None:
        if self._queries and self._after is not None:
            self.output.write(self._queries + self._after)
        else:
            self.output.write(f"\n{self._queries}\n" if self._queries else _OURS)
        self.output.write("</final>")


class _Queries(Part):
    """The part inside `<serp_queries>`, at most `LONGEST_QUERIES` characters."""

    def __init__(self, answer: Answer, opened_by: str) -> None:
        self._answer = answer
        self._opened_by = opened_by
        self._buffer: list[str] = []
        self._room = LONGEST_QUERIES

    def text(self, text: str) -> Part:
        if len(text) <= self._room:
            self._hold(text)
            return self
        self._buffer.append(text[: self._room])
        return self._give_up().text(text[self._room :])

    def tag(self, tag: Tag) -> Part:
        match tag.name:
            case "/queries":
                return self._answer.keep(self._block(tag.text))
            case "/final":
                return self._answer.keep(self._block("")).tag(tag)
        if len(tag.text) > self._room:
            return self._give_up().tag(tag)
        self._hold(tag.text)
        return self

    def end(self) -> None:
        self._answer.keep(self._block("")).end()

    def _hold(self, text: str) -> None:
        self._buffer.append(text)
        self._room -= len(text)

    def _block(self, closed_by: str) -> str:
        body = "".join(self._buffer)
        commented = self._opened_by.startswith("<!--") and closed_by.endswith("-->")
        if commented and queries.is_clean(body):
            return self._opened_by + body + closed_by
        return queries.render_block(body)

    def _give_up(self) -> Answer:
        return self._answer.show(self._opened_by + "".join(self._buffer))


class _After(TextPart):
    """The part after `</final>`: white space stays if nothing else comes."""

    def __init__(self, output: Output) -> None:
        super().__init__(output)
        self._blank: str | None = ""

    def text(self, text: str) -> Part:
        if self._blank is not None:
            blank = self._blank + text
            self._blank = None if blank.strip() or len(blank) > LONGEST_GAP else blank
        return self

    def tag(self, tag: Tag) -> Self:
        self._blank = None
        return self

    def end(self) -> None:
        self.output.write(self._blank or "")
