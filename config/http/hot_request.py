"""Requests of the hot endpoints: Django copies every header to find one, here one is looked up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.core.handlers.asgi import ASGIRequest
from django.http.request import HttpHeaders
from django.utils.functional import cached_property


class HotRequest(ASGIRequest):
    """Django's request, whose headers are looked up instead of copied, by any spelling of a name."""

    @cached_property
    def headers(self) -> HeadersOnDemand:  # type: ignore[override]
        return HeadersOnDemand(self.META)


class HeadersOnDemand(Mapping[str, str]):
    """The headers in a request's META: they read as Django's `HttpHeaders` do."""

    def __init__(self, meta: Mapping[str, Any]) -> None:
        self._meta = meta

    def __getitem__(self, name: str) -> str:
        return str(self._meta[HttpHeaders.to_wsgi_name(name)])

    def get(self, name: str, default: Any = None) -> Any:
        """Return the header, or `default`; without an exception, as most headers are not sent."""
        return self._meta.get(HttpHeaders.to_wsgi_name(name), default)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and HttpHeaders.to_wsgi_name(name) in self._meta

    def __iter__(self) -> Iterator[str]:
        return filter(None, map(HttpHeaders.parse_header_name, self._meta))

    def __len__(self) -> int:
        return sum(1 for _ in self)
