"""Structured logs: one JSON object a line on stderr, with the request id, without secrets.

Three nets, because a secret may arrive in any shape (promise P12): a value under a telling name is
masked whole; in any text, tracebacks included, the value after a telling name is masked; and so is
what looks like a token, a provider's key or the password in a URL, whatever it is called.
"""

from __future__ import annotations

import logging
import logging.config
import re
import time
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

import structlog

_NAME: Final = (
    r"authorization|passw(?:or)?d|passphrase|secret|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|sealing[_-]?key|cookie|credential|signature|session[_-]?(?:id|key)"
)
_SECRET_NAMES: Final = re.compile(rf"{_NAME}|(?:^|[_-])(?:pwd|sig|dsn)$|tokens?$", re.IGNORECASE)
_SECRET_PAIRS: Final = re.compile(
    rf"((?:(?:{_NAME})[\w-]{{0,40}}|\bpwd|tokens?|[?&](?:key|sig|code))"  # the name, and then = : or ',
    r"(?:\\{0,8}[\"']?\s{0,8}(?:[:=]|%3A|%3D)|[\"']\s{0,8},)\s{0,8}(?:b(?=[\"']))?)"
    r"(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'"  # a quoted value, to its end
    r"|\\{0,8}[\"']?(?:(?:basic|bearer|digest|token)\s{1,8})?[^\s\"'\\&,;)}\]]+)",
    re.IGNORECASE,
)
_COOKIES: Final = re.compile(r"(cookie:)[^\n\"']+", re.IGNORECASE)
_SECRET_TEXT: Final = re.compile(
    r"\b[Bb](?:earer|EARER)\s{1,8}[^\s\"'<>]{8,}"
    r"|(?<![A-Za-z0-9])(?:"
    r"ey[AJ][\w-]{8,300}(?:\.[\w-]*){1,4}"  # a JWT or JWE
    r"|(?:sk|pk|rk|gsk|csk|xai|parley|hf|gh[opsu]|github_pat|glpat|pplx|tvly|nvapi|whsec|xox[a-z])"
    r"[-_][\w-]{12,}"
    r"|AIza[\w-]{20,})"
    r"|(?<=://)(?:"  # user:password@, :password@ and token@, but not host:port
    r"[^\s/:@\"']{0,200}:(?!\d{1,5}(?:[/?#\s\"']|$))[^\s\"']{1,200}|[^\s/:@\"'?#]{1,200})(?=@)"
)
_HINTS: Final = re.compile(r"auth|pass|pwd|secret|key|sig|cookie|cred|session|token|code=")
_MASK: Final = "***"
_DEEPEST: Final = 8
_SELDOM_S: Final = 10.0


def redact(_logger: Any, _method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Mask what must not be read in a log; the last step before rendering."""
    for name, value in line.items():
        line[name] = _field(name, value, 0)
    return line


def mask(text: str) -> str:
    """The text without what looks like a secret."""
    text = _SECRET_TEXT.sub(_MASK, text)
    if not _HINTS.search(text.lower()):  # most lines, which saves them half of the time
        return text
    return _SECRET_PAIRS.sub(rf"\1{_MASK}", _COOKIES.sub(rf"\1 {_MASK}", text))


@lru_cache(maxsize=2048)
def _is_secret(name: str) -> bool:
    return _SECRET_NAMES.search(name) is not None


def _field(name: object, value: Any, depth: int) -> Any:
    return _MASK if value and _is_secret(_text(name)) else _masked(value, depth)


def _masked(value: Any, depth: int) -> Any:
    match value:
        case str():
            return mask(value)
        case bool() | int() | float() | None:
            return value
        case Mapping() if depth < _DEEPEST:
            return {mask(_text(k)): _field(k, v, depth + 1) for k, v in value.items()}
        case (str() | bytes() as name, str() | bytes() as text) if _is_secret(_text(name)):
            return [_text(name), text and _MASK]  # a header, as ASGI has them
        case list() | tuple() | set() | frozenset() if depth < _DEEPEST:
            return [_masked(item, depth + 1) for item in value]
    return mask(_text(value))


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


class Stderr(logging.StreamHandler[Any]):
    """Standard error, where even a line that cannot be rendered does not show its arguments."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Say where the line comes from, not what is in it (the standard library prints both).

        Nothing is said where standard error has gone: who writes a log line must not fail for it.
        """
        with suppress(OSError, ValueError):
            print(f"log line lost: {record.name} {record.filename}:{record.lineno}", file=self.stream)


class Seldom(logging.Filter):
    """One line of a kind in ten seconds: an outage is a line now and then, not eight a second.

    A kind is a message before its arguments are filled in.
    """

    def __init__(self) -> None:
        super().__init__()
        self._next: dict[object, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether none of its kind was let through in the last ten seconds."""
        now = time.monotonic()
        if now < self._next.get(record.msg, 0.0):
            return False
        self._next[record.msg] = now + _SELDOM_S
        return True


def configure(options: dict[str, str]) -> None:
    """Send structlog and the standard library's loggers through one set of processors."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
        structlog.processors.UnicodeDecoder(),
    ]
    renderer: Any = (
        structlog.processors.JSONRenderer(ensure_ascii=False)
        if options["format"] == "json"
        else structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    )
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {
                "parley": {
                    "()": structlog.stdlib.ProcessorFormatter,
                    "foreign_pre_chain": shared,
                    "processors": [
                        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                        redact,
                        renderer,
                    ],
                }
            },
            "filters": {"seldom": {"()": Seldom}},
            "handlers": {"stderr": {"()": Stderr, "formatter": "parley"}},
            "root": {"handlers": ["stderr"], "level": options["level"]},
            "loggers": {
                "httpx": {"level": "WARNING"},
                "httpcore": {"level": "WARNING"},
                "httpx2": {"level": "CRITICAL"},  # their lines hold addresses, messages and headers
                "httpcore2": {"level": "CRITICAL"},
                "mcp": {"level": "CRITICAL"},
                "client": {"level": "CRITICAL"},  # what the MCP SDK calls its session
                "django.request": {"level": "ERROR"},
                "asyncio": {"level": "WARNING"},
                "psycopg.pool": {"filters": ["seldom"], "level": "WARNING"},
            },
        }
    )
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared[:3],
            *shared[4:],
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
