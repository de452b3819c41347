"""The text of an uploaded document: plain text, Markdown, HTML, CSV or JSON, in UTF-8 or UTF-16."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Final

from conversations.log.storable_text import clean_text

LARGEST: Final = 5 * 1024 * 1024
MIME_TYPES: Final = {
    "txt": "text/plain",
    "md": "text/markdown",
    "markdown": "text/markdown",
    "html": "text/html",
    "htm": "text/html",
    "csv": "text/csv",
    "json": "application/json",
}
_SILENT: Final = frozenset(("script", "style", "template", "noscript", "head"))
_BLOCKS: Final = frozenset(
    ("p", "div", "section", "article", "li", "ul", "ol", "tr", "table", "br", "pre", "blockquote")
)
_HEADINGS: Final = {f"h{level}": "#" * level for level in range(1, 7)}


class Unreadable(ValueError):
    """The upload is no text that Parley reads; the message names the fix."""


def text_of(name: str, content: bytes) -> tuple[str, str]:
    """Return the text of an upload, and the MIME type by its name; raise Unreadable."""
    mime_type = MIME_TYPES.get(name.rpartition(".")[2].lower())
    if mime_type is None:
        raise Unreadable(f"Upload a file that ends in one of: {', '.join(MIME_TYPES)}.")
    if len(content) > LARGEST:
        raise Unreadable("A document has at most 5 MiB: upload it in parts.")
    text = _decode(content)
    if mime_type == "text/html":
        text = _without_tags(text)
    text = clean_text(text.replace("\r\n", "\n")).strip()
    if not text:
        raise Unreadable("The document holds no text.")
    return text, mime_type


def _decode(content: bytes) -> str:
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        raise Unreadable("Save the document as UTF-8 and upload it again.") from None
    if text.count("\x00"):
        raise Unreadable("This is no text file.")
    return text


class _Text(HTMLParser):
    """The visible text of a page, with Markdown headings."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SILENT:
            self._silent += 1
        elif tag in _HEADINGS:
            self.pieces.append(f"\n\n{_HEADINGS[tag]} ")
        elif tag in _BLOCKS:
            self.pieces.append("\n\n" if tag == "p" else "\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in _SILENT:
            self._silent = max(0, self._silent - 1)
        elif tag in _HEADINGS or tag == "p":
            self.pieces.append("\n\n")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.pieces.append(" ".join(data.split()) + " " if data.strip() else " ")


def _without_tags(page: str) -> str:
    parser = _Text()
    parser.feed(page)
    parser.close()
    return "\n".join(line.strip() for line in "".join(parser.pieces).splitlines())
