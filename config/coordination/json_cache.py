"""The cache in Redis, its values as JSON: a pickle, Django's form, runs code of whoever wrote it."""

from __future__ import annotations

from typing import Any

import msgspec
from django.core.cache.backends.redis import RedisCache


class JsonSerializer:
    """Values as JSON; what is none counts as not there."""

    def dumps(self, value: Any) -> bytes:
        return msgspec.json.encode(value)

    def loads(self, stored: bytes) -> Any:
        try:
            return msgspec.json.decode(stored)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None


class JsonRedisCache(RedisCache):
    """Django's cache in Redis, whose values are JSON."""

    def __init__(self, server: str, params: dict[str, Any]) -> None:
        options = params.get("OPTIONS", {}) | {"serializer": JsonSerializer}
        super().__init__(server, params | {"OPTIONS": options})
