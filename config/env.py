"""Typed environment variables with validation at the start.

Every setting is read by one of these functions, so a wrong value stops the start with a sentence that
names the variable and the fix, instead of a traceback during a run.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.core.exceptions import ImproperlyConfigured
from psycopg.conninfo import conninfo_to_dict

read: Final[set[str]] = set()
"""The names of the variables that were looked for, set or not."""
_INTEGER: Final = re.compile(r"-?[0-9]{1,18}")


def text(name: str, default: str = "") -> str:
    """Return the variable without surrounding white space, or the default if unset or empty."""
    read.add(name)
    return os.environ.get(name, "").strip() or default


def integer(name: str, default: int, *, minimum: int, maximum: int) -> int:
    """Return a whole number within bounds."""
    raw = text(name)
    if not raw:
        return default
    if not _INTEGER.fullmatch(raw) or not minimum <= int(raw) <= maximum:
        raise _invalid(name, raw, f"a whole number from {minimum} to {maximum}", str(default))
    return int(raw)


def seconds(name: str, default: float, *, minimum: float, maximum: float) -> float:
    """Return a duration in seconds within bounds; fractions are allowed."""
    raw = text(name)
    if not raw:
        return default
    try:
        value = float(raw)
    except ValueError:
        value = float("nan")
    if not minimum <= value <= maximum:
        raise _invalid(name, raw, f"seconds from {minimum:g} to {maximum:g}", f"{default:g}")
    return value


def flag(name: str, default: bool) -> bool:
    """Return a boolean: 1/0, true/false, yes/no, on/off."""
    raw = text(name).lower()
    if not raw:
        return default
    if raw in {"1", "true", "yes", "on"}:
        return True
    if raw in {"0", "false", "no", "off"}:
        return False
    raise _invalid(name, raw, "true or false", str(default).lower())


def words(name: str, default: Sequence[str] = ()) -> list[str]:
    """Return a comma-separated list without empty items."""
    raw = text(name)
    return [word.strip() for word in raw.split(",") if word.strip()] if raw else list(default)


def networks(name: str) -> list[IPv4Network | IPv6Network]:
    """Return comma-separated addresses and networks, such as 10.0.0.0/8."""
    try:
        return [ip_network(word, strict=False) for word in words(name)]
    except ValueError:
        raise _invalid(
            name, text(name), "addresses or networks, with commas between", "10.0.0.0/8"
        ) from None


def choice(name: str, default: str, options: Sequence[str]) -> str:
    """Return one of the options."""
    raw = text(name, default)
    if raw not in options:
        raise _invalid(name, raw, "one of " + ", ".join(options), default)
    return raw


def time_zone(name: str, default: str) -> str:
    """Return a name of the time zone database."""
    raw = text(name, default)
    try:
        ZoneInfo(raw)
    except (OSError, ValueError, KeyError):  # a directory, an outside path, an unknown name
        raise _invalid(name, raw, "a time zone's name", "Asia/Shanghai") from None
    return raw


def url(name: str, default: str = "", *, schemes: Sequence[str]) -> str:
    """Return an address with one of the schemes, or the default if unset."""
    raw = text(name, default)
    if raw and raw.partition("://")[0] not in schemes:
        shown = raw.partition("://")[0] + "://…"  # an address may contain a password
        raise _invalid(
            name, shown, "an address starting with " + " or ".join(f"{s}://" for s in schemes), ""
        )
    return raw


NOTICE_SILENCE: Final[dict[str, Any]] = {
    "keepalives_idle": 5,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
"""Options of libpq: a server that vanishes without a word counts as gone within 20 s."""


def django_database(name: str, address: str) -> dict[str, Any]:
    """Return what Django calls the parts of a PostgreSQL address, which this variable holds.

    NOTICE_SILENCE counts, unless the address says otherwise.
    """
    try:
        parts: dict[str, Any] = conninfo_to_dict(address)
    except Exception:
        raise ImproperlyConfigured(
            f"{name} cannot be read. Write it like postgresql://user:password@host:5432/parley."
        ) from None
    return {
        "NAME": parts.pop("dbname", "postgres"),
        "USER": parts.pop("user", ""),
        "PASSWORD": parts.pop("password", ""),
        "HOST": parts.pop("host", ""),
        "PORT": parts.pop("port", ""),
        "OPTIONS": NOTICE_SILENCE | parts,
    }


def is_installed(module: str) -> bool:
    """Return whether a module can be found; it is not imported, but the packages above it are."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _invalid(name: str, raw: str, expected: str, example: str) -> ImproperlyConfigured:
    fix = f" Set it like {name}={example}, or leave it unset." if example else " Or leave it unset."
    return ImproperlyConfigured(f"{name} must be {expected}, not {raw!r}.{fix}")
