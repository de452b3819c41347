"""Which kinds of files are taken, in words and by their declared types, and how they are called."""

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
    """Whether what is declared so is a text; so may be what is not declared."""
    plain = _plain(mime_type)
    return not plain or _TEXTUAL.fullmatch(plain) is not None


def of_text(*declared: str) -> str:
    """The type of a text: the first of the declared ones that is one."""
    fit = (_plain(one) for one in declared if one and is_textual(one))
    return next(fit, PLAIN)


def clean_name(name: str) -> str:
    """A file's name as it may be told: no path, no control characters, not too long."""
    last = name.replace("\\", "/").rpartition("/")[2]
    return "".join(one for one in last if one.isprintable()).strip()[-_LONGEST_NAME:]


def _plain(mime_type: str) -> str:
    return mime_type.partition(";")[0].strip().lower()
