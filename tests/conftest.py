"""One real server and worker for the whole session, on a real port and a real database.

Tests do not clean up after each other: each makes its own user, and rows of another user do not
exist (promise P10), so they cannot disturb each other and run in any order.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import random
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import hypothesis
import pytest
import structlog
import uvicorn
from django.db import connections
from django.test.utils import setup_databases, teardown_databases
from httpx._transports import default
from pytest_django.plugin import DjangoDbBlocker

from config.coordination import rate_limits
from config.process import memory
from tests.schema_true.recording import Recorded
from tests.support.client import Client, ScriptedModel
from tests.support.database import let_go_of, start_postgres
from tests.support.fakes.fake_model import FakeModel

# No deadline: a busy machine is no fault. `make test` asks for thirty examples, others for each tree, a
# lone pytest for a few, `make hostile` for sixty times as many.
hypothesis.settings.register_profile("all", deadline=None, max_examples=30)
hypothesis.settings.register_profile("hostile", deadline=None, max_examples=2_000)
hypothesis.settings.register_profile("few", deadline=None, max_examples=2)
hypothesis.settings.load_profile("few")
structlog.configure(cache_logger_on_first_use=False)  # so that a test can capture any logger's lines


CHEAP_PASSWORDS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # PBKDF2 takes half a second each


def pytest_configure() -> None:
    from django.conf import settings

    settings.PASSWORD_HASHERS = CHEAP_PASSWORDS
    # httpx reads all certificate authorities for each client, 50 ms of CPU: the same are good for all.
    once = functools.cache(default.create_ssl_context)  # type: ignore[attr-defined]
    default.create_ssl_context = once  # type: ignore[attr-defined]
    settings.LOGGING_CONFIG = None  # a second `django.setup()` would let loggers keep their processors


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Nearly all that is made now stays: it is looked through once, at the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    memory.freeze_heap()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of the browser stay together: while its loop runs no test can start its own."""
    items.sort(key=lambda item: "tests/browser/" in item.nodeid)


@dataclass(frozen=True)
class Server:
    """The running server, and its loop for tests that look inside."""

    url: str
    loop: asyncio.AbstractEventLoop


@pytest.fixture(scope="session")
def django_db_setup(
    django_test_environment: None,
    django_db_modify_db_settings: None,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[None]:
    """Always a test database: pytest-django's own makes one only for tests that carry its mark."""
    start_postgres()
    with django_db_blocker.unblock():
        made = setup_databases(verbosity=0, interactive=False)
        yield
        connections.close_all()
        connections["default"].close_pool()  # type: ignore[attr-defined]
        let_go_of(connections["default"].settings_dict["NAME"])
        teardown_databases(made, verbosity=0)


@pytest.fixture(scope="session", autouse=True)
def database(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The test database, open to every test, seeded as a new installation is."""
    from agents.tools.exercises.seed import seed_exercises
    from prompts import app_settings, seeds

    with django_db_blocker.unblock():
        seeds.seed()
        seed_exercises()
        app_settings.change(
            "default_model", "demo", by=None
        )  # else a run that names none meets a test's model
        yield


@pytest.fixture(autouse=True)
def no_window_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit's window that begins in the middle of a test lets one more through: here none does.

    Each test has a moment of its own, because Redis remembers what other tests have used.
    """
    moment = 600 * random.SystemRandom().randrange(10**6) + 30
    monkeypatch.setattr(rate_limits, "limiter", rate_limits.Limiter(lambda: moment))


@pytest.fixture(scope="session")
def server(database: None) -> Iterator[Server]:
    """Web and worker in one process, as `make up` runs them."""
    from agents.worker.loop import serve_worker
    from config.asgi import application
    from config.process.bootstrap import bind
    from config.process.server_protocols import HttpProtocol, SocketProtocol

    listener = bind("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
    web = uvicorn.Server(
        uvicorn.Config(Recorded(application), http=HttpProtocol, ws=SocketProtocol, log_config=None)
    )
    web.capture_signals = nullcontext  # type: ignore[method-assign,assignment]

    async def main() -> None:
        stop = asyncio.Event()
        serving = asyncio.create_task(web.serve(sockets=[listener]))
        started.set_result((asyncio.get_running_loop(), stop))
        await serve_worker(stop)
        web.should_exit = True
        await serving

    thread = threading.Thread(target=asyncio.run, args=(main(),), daemon=True)
    thread.start()
    loop, stop = started.result(10)
    _wait_for_health(url)
    yield Server(url, loop)
    loop.call_soon_threadsafe(stop.set)
    thread.join(30)


def _wait_for_health(url: str) -> None:
    for _ in range(100):
        try:
            if httpx.get(f"{url}/health", timeout=2).status_code == 200:
                return
        except httpx.TransportError:
            threading.Event().wait(0.1)
    raise AssertionError("the server does not answer")


@pytest.fixture
def make_client(server: Server) -> Iterator[Callable[..., Client]]:
    """Make clients, each a user of its own unless told whose."""
    from django.contrib.auth import get_user_model
    from django.contrib.auth.models import Group

    from config.auth.bearer import create_api_token

    made: list[Client] = []

    def make(**fields: bool) -> Client:
        user = get_user_model()(username=f"user-{uuid4().hex}", **fields)
        user.save()
        if user.is_staff:
            user.groups.add(Group.objects.get(name="owner"))
        scopes = ["run", "read", "admin"] if user.is_staff else ["run", "read"]
        _, token = create_api_token(user, "test", scopes=scopes)
        made.append(Client(server.url, token, user))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture
def client(make_client: Callable[..., Client]) -> Client:
    """A client of a plain user."""
    return make_client()


@pytest.fixture(scope="session")
def provider() -> Iterator[FakeModel]:
    """A loopback model provider that speaks OpenAI's wire."""
    with FakeModel() as model:
        yield model


@pytest.fixture
def scripted(server: Server, provider: FakeModel) -> Callable[..., ScriptedModel]:
    """Make a model mapping onto the loopback provider; the provider's model name says what it does."""

    def make(*models: str) -> ScriptedModel:
        return ScriptedModel.make(provider.base_url, models)

    return make
