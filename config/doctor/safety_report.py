"""What is unsafe: Django's checks for a deployment, in the names of our settings, and our own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks
from django.http.request import validate_host

from config.doctor.findings import Finding, State

_GROUP: Final = "safety"
_OURS: Final = {  # of which a check below says more
    "security.W004",  # HSTS
    "security.W008",  # the redirect to https
    "security.W010",
    "security.W012",  # cookies over http
    "security.W016",
    "security.W018",  # DEBUG
    "security.W020",  # ALLOWED_HOSTS
}
_SETTINGS: Final = {  # where Django names no fix
    "security.W009": (
        "SECRET_KEY",
        "Unset SECRET_KEY, so that one is made, or take `python -c 'import secrets; "
        "print(secrets.token_urlsafe(48))'`.",
    )
}


def report() -> Iterator[Finding]:
    """Report what a deployment should not have; one line if it has none of it."""
    found = [*_own(), *_djangos()]
    yield from found or [Finding(_GROUP, "check --deploy", "ok", "nothing unsafe found")]


def _djangos() -> Iterator[Finding]:
    """Report Django's messages, but for those that a check of our own says better."""
    for message in checks.run_checks(include_deployment_checks=True):
        if message.is_silenced() or message.id in _OURS or message.level < checks.WARNING:
            continue
        state: State = "fault" if message.level >= checks.ERROR else "warning"
        thing, fix = _SETTINGS.get(message.id or "", (message.id or "check", message.hint or ""))
        yield Finding(_GROUP, thing, state, " ".join(message.msg.split()), " ".join(fix.split()))


def _own() -> Iterator[Finding]:
    if settings.DEBUG:
        text = "DEBUG is on: whoever meets an error reads code and settings."
        yield Finding(_GROUP, "DEBUG", "fault", text, "Unset DEBUG.")
    yield from _hosts()
    yield from _tls()
    yield from _networks("TRUSTED_PROXIES", settings.TRUSTED_PROXIES, "anybody may claim any address")
    yield from _networks("METRICS_NETWORKS", settings.METRICS_NETWORKS, "anybody may read /metrics")
    yield from _networks("FETCH_NETWORKS", settings.FETCH_NETWORKS, "clients may reach your own hosts")
    if (settings.JWT_JWKS_URL or settings.JWT_JWK) and not settings.JWT_AUDIENCES:
        text = "tokens that the issuer made for other services are let in"
        fix = "Set JWT_AUDIENCES to the audience of Parley's tokens."
        yield Finding(_GROUP, "JWT_AUDIENCES", "warning", text, fix)


def _hosts() -> Iterator[Finding]:
    if "*" in settings.ALLOWED_HOSTS:
        text = "any host name is answered, so links can be made to lead elsewhere"
        fix = "Set ALLOWED_HOSTS to the names of PUBLIC_URL."
        yield Finding(_GROUP, "ALLOWED_HOSTS", "warning", text, fix)
    host = urlsplit(settings.PUBLIC_URL).hostname or ""
    shown = f"[{host}]" if ":" in host else host
    if not validate_host(shown, settings.ALLOWED_HOSTS):
        text = f"PUBLIC_URL's host {shown} is not answered: its clients get 400."
        yield Finding(_GROUP, "ALLOWED_HOSTS", "fault", text, f"Add {shown} to ALLOWED_HOSTS.")


def _tls() -> Iterator[Finding]:
    parts = urlsplit(settings.PUBLIC_URL)
    if parts.scheme == "https" and settings.BEHIND_TLS:
        return
    if parts.scheme == "https":
        text = "PUBLIC_URL is https, but cookies are sent by http too."
        yield Finding(_GROUP, "BEHIND_TLS", "warning", text, "Unset BEHIND_TLS, or set it to true.")
    elif not _is_this_machine(parts.hostname or ""):
        text = "PUBLIC_URL is http: passwords, tokens and cookies pass in the clear."
        fix = "Put a proxy with TLS in front, and set PUBLIC_URL=https://…"
        yield Finding(_GROUP, "PUBLIC_URL", "warning", text, fix)


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _networks(
    setting: str, networks: Sequence[IPv4Network | IPv6Network], effect: str
) -> Iterator[Finding]:
    if any(network.prefixlen == 0 for network in networks):
        text = f"it names every address: {effect}"
        yield Finding(_GROUP, setting, "warning", text, f"Name your own networks in {setting}.")
