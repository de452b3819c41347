"""The blocks of a user's message, in the order in which they were sent (seed 001, “Flow”).

A message keeps its texts as one `content`, a line each, and its files beside it. Where that loses the
order, the message has a layout: the length of each text, and None for each file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, TypeVar

Layout = tuple[int | None, ...]
File = TypeVar("File")


def layout_of(blocks: Iterable[str | None]) -> Layout:
    """Return the layout of a message's texts and files (None); () for at most one text, then files."""
    made = tuple(None if text is None else len(text) for text in blocks)
    return made if any(size is not None for size in made[1:]) else ()


def arrange(content: str, files: Sequence[File], layout: Any) -> list[str | File]:
    """Return the texts and the files in their order: without a layout that fits, the text first.

    A layout does not fit where a file is gone, or where a client has made one up.
    """
    texts = _texts(content, layout)
    if texts is None or layout.count(None) != len(files):
        return [*([content] if content or not files else []), *files]
    words, rest = iter(texts), iter(files)
    return [next(rest) if size is None else next(words) for size in layout]


def _texts(content: str, layout: Any) -> list[str] | None:
    """Return the texts of which the content was made; None if the layout does not fit."""
    if not isinstance(layout, list | tuple) or not layout:
        return None
    sizes = [size for size in layout if size is not None]
    if not all(type(size) is int and size >= 0 for size in sizes):
        return None
    ends = [*accumulate(size + 1 for size in sizes)]
    texts = [content[end - 1 - size : end - 1] for size, end in zip(sizes, ends, strict=True)]
    return texts if "\n".join(texts) == content else None
