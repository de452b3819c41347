"""The part inside `<thinking>`: phases that count from 1, each with its title first."""

from __future__ import annotations

from typing import Final, Literal, Self

from agents.runners.thinkingml.answer import Answer, Interval
from agents.runners.thinkingml.output import Output
from agents.runners.thinkingml.part import Part, TextPart
from agents.runners.thinkingml.tags import PHASE, Tag

_ONLY_PHASE: Final = '<phase id="1"><title>格式修复</title></phase>'


class Thinking(TextPart):
    """The phases, as they come."""

    def __init__(self, output: Output) -> None:
        super().__init__(output)
        self._place: Literal["between", "phase", "title"] = "between"
        self._count = 0
        self._titled = False
        self._line_begins = True

    @classmethod
    def opened(cls, output: Output) -> Self:
        """Return a thinking that begins here."""
        output.write("<thinking>")
        return cls(output)

    @classmethod
    def opened_by(cls, tag: Tag, output: Output) -> Part:
        """Return a thinking that begins with this tag, its own or one that belongs into or after it."""
        thinking = cls.opened(output)
        return thinking if tag.name == "thinking" else thinking.tag(tag)

    @property
    def entered(self) -> bool:
        return self._titled

    def enter(self) -> None:
        if self._place == "between":
            self._open_phase()
        if not self._titled:
            self.output.write(self._own_title)
            self._titled = True

    def text(self, text: str) -> Part:
        super().text(text)
        line = text[text.rfind("\n") + 1 :]
        self._line_begins = not line.strip() and (self._line_begins or line != text)
        return self

    def tag(self, tag: Tag) -> Part:
        match tag.name, self._place:
            case "phase", _:
                self._close_phase()
                self._open_phase(tag)
            case "/phase", _:
                self._close_phase()
            case "title", "between" | "phase" if not self._titled:
                self._open_title()
            case "/title", "title":
                self._close_title()
            case "/title", "between":
                pass
            case "/thinking", _:
                self._close()
                return Interval(self.output)
            case "final", "between" | "phase" if self._line_begins:
                self._close()
                return Answer.opened(self.output)
            case _:
                self._line_begins = False
                return self.quote(tag)
        self._line_begins = True
        return self

    def end(self) -> None:
        self._close()
        Interval(self.output).end()

    @property
    def _own_title(self) -> str:
        return f"<title>阶段{self._count}</title>"

    def _open_phase(self, tag: Tag | None = None) -> None:
        self._count += 1
        found = PHASE.fullmatch(tag.text) if tag else None
        kept = found is not None and int(found[1]) == self._count
        self.output.write(tag.text if tag and kept else f'<phase id="{self._count}">')
        self._place, self._titled = "phase", False

    def _open_title(self) -> None:
        if self._place == "between":
            self._open_phase()
        self.output.write("<title>")
        self._place, self._titled = "title", True

    def _close_title(self) -> None:
        self.output.write("</title>")
        self._place = "phase"

    def _close_phase(self) -> None:
        if self._place == "title":
            self._close_title()
        if self._place == "phase":
            self.output.write("</phase>" if self._titled else f"{self._own_title}</phase>")
        self._place, self._titled = "between", False

    def _close(self) -> None:
        self._close_phase()
        if not self._count:
            self.output.write(_ONLY_PHASE)
        self.output.write("</thinking>")
