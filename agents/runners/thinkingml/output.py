"""What the repair has written, and the one danger in editing tags.

`<a ` is plain text as long as a `<` follows. When that tag is rewritten into text without brackets,
`<a ` and what comes later could become a tag that nobody wrote. So such *stubs* wait for what
follows them, and are escaped before an edit; one that is too far away to become a tag goes.
"""

from __future__ import annotations

from agents.runners.thinkingml.tags import LONGEST_TAG, Tag


class Output:
    """Collects what goes out."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._stubs = 0  # how many of the last pieces wait, and how long they are
        self._waiting = 0

    def say(self, text: str) -> None:
        """Write text as it is."""
        if text:
            self._pieces.append(text)
            self._stubs = self._waiting = 0

    def say_stub(self, text: str) -> None:
        """Write a stub; what follows decides what becomes of it."""
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
        self.say(text)

    def take(self, *, everything: bool = False) -> str:
        """What is certain and has not been taken yet."""
        certain = len(self._pieces) - (0 if everything else self._stubs)
        taken = "".join(self._pieces[:certain])
        del self._pieces[:certain]
        return taken


def escape(text: str) -> str:
    """The text without anything that could be a tag or an entity."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def as_text(tag: Tag) -> str:
    """What a tag becomes where it may not stand: Markdown if it has a like, else itself, escaped."""
    match tag.name:
        case "b" | "/b":
            return "**"
        case "br" | "/br":
            return "\n"
    return escape(tag.text)
