"""Structured logs: one JSON object per line on stderr, with the request id and without secrets.

Three rules mask secrets in any form (promise P12): values under a secret's name; values after such a
name in any text, including tracebacks; and text that looks like a token, a provider's key or the
password of a URL.
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
_BEFORE_TRACEBACKS: Final = 6  # the place among the processors where exceptions become text


def redact(_logger: Any, _method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Mask secrets in a log line; the last step before rendering."""
    for name, value in line.items():
        line[name] = _redact_field(name, value, 0)
    return line


def mask(text: str) -> str:
    """Return the text with everything masked that looks like a secret."""
    text = _SECRET_TEXT.sub(_MASK, text)
    if not _HINTS.search(text.lower()):  # most lines, for which this halves the time
        return text
    return _SECRET_PAIRS.sub(rf"\1{_MASK}", _COOKIES.sub(rf"\1 {_MASK}", text))


@lru_cache(maxsize=2048)
def _is_secret(name: str) -> bool:
    return _SECRET_NAMES.search(name) is not None


def _redact_field(name: object, value: Any, depth: int) -> Any:
    return _MASK if value and _is_secret(_text(name)) else _redact_value(value, depth)


def _redact_value(value: Any, depth: int) -> Any:
    match value:
        case str():
            return mask(value)
        case bool() | int() | float() | None:
            return value
        case Mapping() if depth < _DEEPEST:
            return {mask(_text(k)): _redact_field(k, v, depth + 1) for k, v in value.items()}
        case (str() | bytes() as name, str() | bytes() as text) if _is_secret(_text(name)):
            return [_text(name), text and _MASK]  # a header of ASGI
        case list() | tuple() | set() | frozenset() if depth < _DEEPEST:
            return [_redact_value(item, depth + 1) for item in value]
    return mask(_text(value))


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


class Stderr(logging.StreamHandler[Any]):
    """Standard error, without the arguments of a line that cannot be rendered."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Print the origin of the line without its content (the standard library prints both).

        Print nothing if standard error is closed: logging must not fail.
        """
        with suppress(OSError, ValueError):
            print(f"log line lost: {record.name} {record.filename}:{record.lineno}", file=self.stream)


class RateLimitFilter(logging.Filter):
    """A filter that passes each message template once in ten seconds, to shorten logs of outages."""

    def __init__(self) -> None:
        super().__init__()
        self._next: dict[object, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the same template did not pass in the last ten seconds."""
        now = time.monotonic()
        if now < self._next.get(record.msg, 0.0):
            return False
        self._next[record.msg] = now + _SELDOM_S
        return True


def configure(options: dict[str, Any]) -> None:
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
    if options.get("sentry"):
        from config.telemetry import sentry_reports

        sentry_reports.start(mask)
        shared.insert(_BEFORE_TRACEBACKS, sentry_reports.report)
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
            "filters": {"seldom": {"()": RateLimitFilter}},
            "handlers": {"stderr": {"()": Stderr, "formatter": "parley"}},
            "root": {"handlers": ["stderr"], "level": options["level"]},
            "loggers": {
                "httpx": {"level": "WARNING"},
                "httpcore": {"level": "WARNING"},
                "httpx2": {"level": "CRITICAL"},  # their lines contain addresses, messages and headers
                "httpcore2": {"level": "CRITICAL"},
                "mcp": {"level": "CRITICAL"},
                "client": {"level": "CRITICAL"},  # the MCP SDK's name for its session
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
