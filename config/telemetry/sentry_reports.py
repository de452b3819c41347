"""Reports of unexpected errors to Sentry, if SENTRY_DSN is set: one per line of the log at ERROR.

The log is the one place that every error passes, also those of handlers that never reach Django's
signals, of sockets, workers, threads and beat; so nothing is patched and nothing reported twice. A
report has the type of the error, the lines of code that it passed, and ids. It has no message of an
exception, no variables, no request and no arguments: each may hold a prompt or a key (promise P12).
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, MutableMapping
from types import TracebackType
from typing import Any, Final

import sentry_sdk
from django.conf import settings
from sentry_sdk.integrations import Integration
from sentry_sdk.integrations.atexit import AtexitIntegration
from sentry_sdk.integrations.dedupe import DedupeIntegration
from sentry_sdk.integrations.excepthook import ExcepthookIntegration
from sentry_sdk.integrations.threading import ThreadingIntegration
from sentry_sdk.transport import HttpTransport
from sentry_sdk.types import Event, Hint
from sentry_sdk.utils import event_from_exception

from config import __version__
from config.outgoing import proxy

_LEVELS: Final = frozenset(("error", "critical"))
_TAGS: Final = ("request_id", "run_id", "trace_id")
_KEPT: Final = (  # of an event; all else may hold what somebody said
    "contexts",
    "environment",
    "event_id",
    "exception",
    "level",
    "logentry",
    "logger",
    "platform",
    "release",
    "sdk",
    "server_name",
    "tags",
    "timestamp",
)
_OF_A_FRAME: Final = ("filename", "function", "in_app", "lineno", "module")
_OWN: Final = ("opentelemetry", "sentry_sdk", "urllib3")  # their lines are about reports that fail
_AGAIN_S: Final = 1.0
_MOST_KINDS: Final = 1_000

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]
_mask: Callable[[str], str] = str
_reported: Final[dict[tuple[str, str], float]] = {}


class _Transport(HttpTransport):
    """Trusts OUTGOING_CA_FILE too."""

    def _get_pool_options(self) -> dict[str, Any]:
        options = super()._get_pool_options()
        context = proxy.tls_context()
        return options if context is None else options | {"ssl_context": context, "ca_certs": None}


def start(mask: Callable[[str], str]) -> None:
    """Begin to report to SENTRY_DSN; `mask` is what hides secrets in the log."""
    global _mask
    _mask = mask
    server = proxy.proxy_for(settings.SENTRY_DSN)
    through = server.signed_url if server is not None else ""  # "": not the environment's proxy
    integrations: list[Integration] = [
        AtexitIntegration(callback=lambda pending, timeout: None),
        DedupeIntegration(),
        ExcepthookIntegration(),
        ThreadingIntegration(propagate_hub=False),
    ]
    sentry_sdk.init(
        dsn=settings.SENTRY_DSN,
        environment=settings.SENTRY_ENVIRONMENT,
        release=f"parley@{__version__}",
        transport=_Transport,
        http_proxy=through,
        https_proxy=through,
        default_integrations=False,
        auto_enabling_integrations=False,
        integrations=integrations,
        include_local_variables=False,
        include_source_context=False,
        max_request_body_size="never",
        max_breadcrumbs=0,
        auto_session_tracking=False,
        send_client_reports=False,
        before_send=_cleaned,
        shutdown_timeout=2,
    )


def report(_logger: Any, _method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Report a log line at ERROR; a processor of structlog, before tracebacks become text."""
    if line.get("level") not in _LEVELS:
        return line
    found = _exception_of(line.get("exc_info"))
    if str(line.get("logger", "")).startswith(_OWN) or _is_answer(line, found):
        return line
    name = _name_of(line)
    if _is_new(name, found):
        event, hint = _event_of(found)
        event["level"] = "error" if line["level"] == "error" else "fatal"
        event["logger"] = str(line.get("logger", ""))
        event["logentry"] = {"message": name}
        event["tags"] = {tag: str(line[tag]) for tag in _TAGS if line.get(tag)}
        sentry_sdk.capture_event(event, hint)
    return line


def _is_answer(line: MutableMapping[str, Any], found: ExcInfo | None) -> bool:
    """Return whether Django says that an answer was a 5xx: its error, if any, has its own line."""
    return found is None and line.get("logger") == "django.request"


def _exception_of(given: Any) -> ExcInfo | None:
    """Return the exception in any form that `exc_info` has."""
    if isinstance(given, BaseException):
        return type(given), given, given.__traceback__
    current = sys.exc_info() if given else (None, None, None)
    kind, error, traceback = given if isinstance(given, tuple) else current
    return (kind, error, traceback) if kind is not None and error is not None else None


def _name_of(line: MutableMapping[str, Any]) -> str:
    """Return the line's constant part."""
    record, text = line.get("_record"), str(line.get("event", ""))
    if isinstance(record, logging.LogRecord):
        text = _template(record, text)
    return _mask(text)[:200]


def _template(record: logging.LogRecord, text: str) -> str:
    """Return a foreign line without its arguments.

    A line that has none may have been put together before. asyncio's are so: their kind, then perhaps a
    callback. `Exception in callback f('a prompt')` becomes `Exception in callback f`. Of others only the
    place is known to be constant.
    """
    template = str(record.msg)
    if template != text:
        return template
    if record.name == "asyncio":
        return template.partition("\n")[0].partition("(")[0]
    return f"line {record.lineno} of {record.filename}"


def _is_new(name: str, found: ExcInfo | None) -> bool:
    """Return whether there was no report of this kind within the last second: outages repeat."""
    now, kind = time.monotonic(), (name, found[0].__name__ if found else "")
    if now - _reported.get(kind, -_AGAIN_S) < _AGAIN_S:
        return False
    if len(_reported) >= _MOST_KINDS:
        _reported.clear()
    _reported[kind] = now
    return True


def _event_of(found: ExcInfo | None) -> tuple[Event, Hint]:
    if found is None:
        return {}, {}
    options = sentry_sdk.get_client().options
    return event_from_exception(found, options, {"type": "logging", "handled": True})


def _cleaned(event: Event, _hint: Hint) -> Event:
    """Return the event with nothing that somebody said; also for what an extension reports."""
    kept: dict[str, Any] = {name: event[name] for name in _KEPT if name in event}
    kept["contexts"] = {
        name: value for name, value in kept.get("contexts", {}).items() if name in ("runtime", "os")
    }
    message = str(kept.get("logentry", {}).get("message", "uncaught"))
    kept["logentry"] = {"message": _mask(message)}
    for one in kept.get("exception", {}).get("values", ()):
        one["value"] = ""
        one.pop("mechanism", None)
        for frame in (one.get("stacktrace") or {}).get("frames", ()):
            for name in frame.keys() - set(_OF_A_FRAME):
                del frame[name]
    return kept  # type: ignore[return-value]
