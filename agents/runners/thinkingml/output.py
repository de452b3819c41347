"""The text that the repair has written, and the one danger in editing tags.

`<a ` is plain text as long as a `<` follows. If that tag is rewritten into text without brackets,
`<a ` and later text could become a tag that nobody wrote. So such *stubs* wait for the text that
follows them, and are escaped before an edit; a stub too far away to become a tag is written.
"""

from __future__ import annotations

from xml.sax.saxutils import escape

from agents.runners.thinkingml.tags import LONGEST_TAG, Tag


class Output:
    """A collector of the text to deliver."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._stubs = 0  # how many of the last pieces wait, and how long they are
        self._waiting = 0

    def write(self, text: str) -> None:
        """Write text unchanged."""
        if text:
            self._pieces.append(text)
            self._stubs = self._waiting = 0

    def write_stub(self, text: str) -> None:
        """Write a stub; the next text decides whether it is escaped."""
        self._pieces.append(text)
        self._stubs += 1
        self._waiting += len(text)
        while self._waiting - len(oldest := self._pieces[-self._stubs]) >= LONGEST_TAG:
            self._stubs -= 1
            self._waiting -= len(oldest)

    def put(self, text: str) -> None:
        """Write text in the place of a tag."""
        if self._stubs:
            self._pieces[-self._stubs :] = map(escape, self._pieces[-self._stubs :])
        self.write(text)

    def take(self, *, everything: bool = False) -> str:
        """Return the text that is certain and has not been taken yet."""
        certain = len(self._pieces) - (0 if everything else self._stubs)
        taken = "".join(self._pieces[:certain])
        del self._pieces[:certain]
        return taken


def as_text(tag: Tag) -> str:
    """Return the text for a tag that is not allowed: Markdown with the same sense, or it, escaped."""
    match tag.name:
        case "b" | "/b":
            return "**"
        case "br" | "/br":
            return "\n"
    return escape(tag.text)
