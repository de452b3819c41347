"""The cache in Redis: what anybody writes there is data, and never runs."""

from __future__ import annotations

import asyncio
import pickle
import runpy
from pathlib import Path

import pytest
from django.core.cache.backends.base import BaseCache
from django.utils.module_loading import import_string
from redis import Redis

from tests.support.fakes.redis_server import redis_url as redis_url
from tests.support.paths import ROOT


@pytest.fixture
def cache(redis_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> BaseCache:
    """The cache that the settings name where there is a Redis."""
    monkeypatch.setenv("REDIS_URL", redis_url)
    monkeypatch.setenv("VAR_DIR", str(tmp_path))
    monkeypatch.setenv("DATABASE_URL", "postgresql://127.0.0.1:1/nowhere")
    params = dict(runpy.run_path(str(ROOT / "config" / "settings.py"))["CACHES"]["default"])
    made: BaseCache = import_string(params.pop("BACKEND"))(params.pop("LOCATION"), params)
    return made


class Hostile:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (self.path,)


def test_a_value_comes_back_as_it_was(cache: BaseCache) -> None:
    value = {"provider": "exa", "results": [{"title": "臀", "score": 0.5}], "total": 1}

    async def there_and_back() -> object:
        await cache.aset("search", value, 60)
        return await cache.aget("search")

    assert asyncio.run(there_and_back()) == value
    assert cache.get("other") is None


def test_what_somebody_else_wrote_there_does_not_run(
    cache: BaseCache, redis_url: str, tmp_path: Path
) -> None:
    proof = tmp_path / "it ran"
    with Redis.from_url(redis_url) as redis:
        redis.set(cache.make_and_validate_key("search"), pickle.dumps(Hostile(proof)))
        redis.set(cache.make_and_validate_key("text"), b"\xff\xfe")
    assert cache.get("search") is None
    assert not proof.exists()
    assert cache.get("text") is None
