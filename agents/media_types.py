"""The accepted types of files, in words and as declared media types, and the cleaning of file names."""

from __future__ import annotations

import re
from typing import Final

TAKEN: Final = (
    "images (JPEG, PNG, WebP, GIF) and texts (plain, Markdown, CSV, JSON, XML, HTML, source code) "
    "are taken"
)
_LONGEST_NAME: Final = 200
PLAIN: Final = "text/plain"
_TEXTUAL: Final = re.compile(
    r"text/[a-z0-9.+-]{1,80}|application/(?:json|xml|yaml|x-yaml|toml|sql|graphql|javascript|"
    r"x-javascript|typescript|csv|x-ndjson|jsonl|x-sh|rtf|[a-z0-9.-]{1,80}\+(?:json|xml|yaml))"
)


def is_textual(mime_type: str) -> bool:
    """Return whether the declared type is that of a text; an empty type counts as one."""
    plain = _plain(mime_type)
    return not plain or _TEXTUAL.fullmatch(plain) is not None


def of_text(*declared: str) -> str:
    """Return the type of a text: the first declared one that is textual, else `text/plain`."""
    fit = (_plain(one) for one in declared if one and is_textual(one))
    return next(fit, PLAIN)


def clean_name(name: str) -> str:
    """Return a file's name without a path or control characters, of at most 200 characters."""
    last = name.replace("\\", "/").rpartition("/")[2]
    return "".join(one for one in last if one.isprintable()).strip()[-_LONGEST_NAME:]


def _plain(mime_type: str) -> str:
    return mime_type.partition(";")[0].strip().lower()
