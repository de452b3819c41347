"""Structured logs: one JSON object a line on stderr, with the request id, without secrets.

Values under a secret-sounding key and anything that looks like a bearer token or an API key are
replaced before a line is rendered, tracebacks included (promise P12).
"""

from __future__ import annotations

import logging
import logging.config
import re
from collections.abc import MutableMapping
from typing import Any, Final

import structlog

_SECRET_NAMES: Final = re.compile(
    r"authorization|password|secret|api_?key|x-api-key|cookie|credential|(^|_)token$", re.IGNORECASE
)
_SECRET_TEXT: Final = re.compile(
    r"(?i:bearer)\s+[\w.~+/=-]{8,}"
    r"|eyJ[\w-]{8,}\.[\w-]+\.[\w-]*"
    r"|\b(?:sk|parley|xai|AIza)[-_][\w-]{12,}"
    r"|(?<=token=)[^&\s\"']+"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
)
_MASK: Final = "***"


def redact(
    _logger: Any, _method: str, line: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Mask what must not be read in a log; the last step before rendering."""
    for name, value in line.items():
        line[name] = _MASK if _SECRET_NAMES.search(name) and value else _masked(value)
    return line


def _masked(value: Any) -> Any:
    match value:
        case str():
            return _SECRET_TEXT.sub(_MASK, value)
        case dict():
            return {k: _MASK if _SECRET_NAMES.search(str(k)) and v else _masked(v) for k, v in value.items()}
        case list() | tuple():
            return [_masked(item) for item in value]
        case bool() | int() | float() | None:
            return value
    return _SECRET_TEXT.sub(_MASK, str(value))


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
        else structlog.dev.ConsoleRenderer()
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
            "handlers": {
                "stderr": {"class": "logging.StreamHandler", "formatter": "parley"},
            },
            "root": {"handlers": ["stderr"], "level": options["level"]},
            "loggers": {
                "httpx": {"level": "WARNING"},
                "httpcore": {"level": "WARNING"},
                "django.request": {"level": "ERROR"},
                "asyncio": {"level": "WARNING"},
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
