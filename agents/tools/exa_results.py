"""Exa's results as short plain texts, with only those addresses that a browser may open."""

from __future__ import annotations

import json
import math
from typing import Any, Final
from urllib.parse import urlsplit

LONGEST_TITLE: Final = 200
LONGEST_SNIPPET: Final = 240
_LONGEST_URL: Final = 2_000
_LONGEST_NAME: Final = 200


class NoResults(Exception):
    """The body is not a reply of Exa."""


def parse_results(body: bytes, *, top_k: int) -> list[dict[str, Any]]:
    """Return the first `top_k` results (specs/text-run.md §3); raise NoResults."""
    try:
        document = json.loads(body.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        raise NoResults from None
    found = document.get("results") if isinstance(document, dict) else None
    if not isinstance(found, list):
        raise NoResults
    usable = [made for item in found if isinstance(item, dict) and (made := _result(item))]
    return usable[:top_k]


def _result(item: dict[str, Any]) -> dict[str, Any] | None:
    url = item.get("url")
    if not _is_web_address(url):
        return None
    return {
        "title": _text(item.get("title"), LONGEST_TITLE) or _text(url, LONGEST_TITLE),
        "url": url,
        "published_date": _text(item.get("publishedDate"), 40) or None,
        "author": _text(item.get("author"), _LONGEST_NAME) or None,
        "score": _number(item.get("score")),
        "snippet": _text(item.get("text") or item.get("snippet"), LONGEST_SNIPPET),
    }


def _is_web_address(url: object) -> bool:
    if not isinstance(url, str) or len(url) > _LONGEST_URL or not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.netloc)


def _text(value: object, longest: int) -> str:
    """Return one line of at most so many characters, which any row and any client can store."""
    if not isinstance(value, str):
        return ""
    whole = value[: longest * 20].replace("\x00", " ").encode("utf-16", "surrogatepass")
    line = " ".join(whole.decode("utf-16", "replace").split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None
