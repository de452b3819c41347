"""Wrong passwords for one account, from however many addresses, and who is let in meanwhile."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_network
from typing import Any
from uuid import uuid4

import httpx
import pytest
import structlog
from asgiref.sync import sync_to_async
from django.contrib.auth import aauthenticate, get_user_model
from django.contrib.auth.hashers import MD5PasswordHasher
from django.db import DatabaseError, connections
from pytest_django import Settings

from config.audit.models import AuditEntry
from config.auth import passwords
from config.coordination import rate_limits
from config.errors import TooManyRequests
from tests.conftest import Server

PASSWORD = "a long enough passphrase"
MOST = 3
DOORS = ("/admin/login/", "/chat/login/", "/api/v1/auth/token")
SENTENCE = re.compile(
    r"Too many wrong passwords for this username\. Try again in \d+ (minutes|seconds?)\."
)


@pytest.fixture(autouse=True)
def few(settings: Settings) -> None:
    settings.RATE_WRONG_PASSWORDS_PER_10_MINUTES = MOST
    settings.TRUSTED_PROXIES = [ip_network("127.0.0.0/8")]


@pytest.fixture
def account() -> Any:
    """A member of staff, whom every door takes."""
    return get_user_model().objects.create_superuser(f"admin-{uuid4().hex}", password=PASSWORD)


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The passwords that are looked at from now on."""
    seen: list[str] = []
    encode = MD5PasswordHasher.encode

    def noted(self: Any, password: str, salt: str) -> str:
        seen.append(password)
        return encode(self, password, salt)

    monkeypatch.setattr(MD5PasswordHasher, "encode", noted)
    return seen


class Browser:
    """A browser with its cookies; each of its requests comes from another address, as a proxy says."""

    def __init__(self, server: Server) -> None:
        self.web = httpx.Client(base_url=server.url, trust_env=False, timeout=30)

    def sign_in(self, door: str, username: str, password: str) -> httpx.Response:
        headers = {"X-Forwarded-For": f"2001:db8:{uuid4().hex[:4]}:{uuid4().hex[:4]}::1"}
        given = {"username": username, "password": password}
        if door.startswith("/api/"):
            return self.web.post(door, json=given, headers=headers)
        page = self.web.get(door, headers=headers)
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)
        assert token, page.text
        return self.web.post(door, data=given | {"csrfmiddlewaretoken": token[1]}, headers=headers)


@pytest.fixture
def browser(server: Server) -> Any:
    """Open browsers that nobody has used."""
    opened: list[Browser] = []

    def make() -> Browser:
        opened.append(Browser(server))
        return opened[-1]

    yield make
    for one in opened:
        one.web.close()


def guess(browser: Callable[[], Browser], username: str, times: int) -> list[httpx.Response]:
    """Wrong passwords, each from a browser and an address of its own, through all doors in turn."""
    return [browser().sign_in(DOORS[n % 3], username, f"wrong {n}") for n in range(times)]


def check_refused(answer: httpx.Response) -> None:
    assert answer.status_code == 429
    assert 1 <= int(answer.headers["Retry-After"]) <= 1_200
    assert SENTENCE.search(answer.text), answer.text
    assert not [name for name in answer.cookies if name.startswith("known_")]


@pytest.mark.parametrize("door", DOORS)
def test_after_too_many_from_anywhere_strangers_are_refused_unchecked(
    browser: Callable[[], Browser], account: Any, hashed: list[str], door: str
) -> None:
    for answer in guess(browser, account.username, MOST):
        assert answer.status_code in (200, 401)
        assert not SENTENCE.search(answer.text)
    hashed.clear()
    check_refused(browser().sign_in(door, account.username, "wrong"))
    check_refused(browser().sign_in(door, account.username, PASSWORD))
    assert hashed == []


@pytest.mark.parametrize("door", DOORS)
def test_a_name_that_is_nobodys_gets_the_same_words(browser: Callable[[], Browser], door: str) -> None:
    name = uuid4().hex
    guess(browser, name, MOST)
    check_refused(browser().sign_in(door, name, "wrong"))


@pytest.mark.parametrize("first", DOORS)
def test_the_browser_that_signed_in_before_is_let_in_while_strangers_are_not(
    browser: Callable[[], Browser], account: Any, first: str
) -> None:
    known = browser()
    assert known.sign_in(first, account.username, PASSWORD).status_code in (200, 302)
    cookies = {name: value for name, value in known.web.cookies.items() if name.startswith("known_")}
    guess(browser, account.username, MOST)
    for door in DOORS:
        check_refused(browser().sign_in(door, account.username, PASSWORD))
        known.web.cookies.clear()
        known.web.cookies.update(cookies)
        assert known.sign_in(door, account.username, PASSWORD).status_code in (200, 302)


def test_a_known_browser_has_a_count_of_its_own(browser: Callable[[], Browser], account: Any) -> None:
    known, other = browser(), browser()
    for one in (known, other):
        assert one.sign_in(DOORS[2], account.username, PASSWORD).status_code == 200
    for _ in range(MOST):
        assert known.sign_in(DOORS[2], account.username, "wrong").status_code == 401
    check_refused(known.sign_in(DOORS[2], account.username, PASSWORD))
    assert other.sign_in(DOORS[2], account.username, PASSWORD).status_code == 200
    assert browser().sign_in(DOORS[2], account.username, PASSWORD).status_code == 200


def test_the_cookie_of_one_account_opens_no_other_and_cannot_be_made(
    browser: Callable[[], Browser], account: Any
) -> None:
    mine = get_user_model().objects.create_user(f"user-{uuid4().hex}", password=PASSWORD)
    thief = browser()
    assert thief.sign_in(DOORS[2], mine.username, PASSWORD).status_code == 200
    [signed] = [value for name, value in thief.web.cookies.items() if name.startswith("known_")]
    guess(browser, account.username, MOST)
    name = passwords._cookie(passwords._key(account.username))
    for value in (signed, "me", "me:1abc:x", ""):
        thief.web.cookies.set(name, value, domain="127.0.0.1")
        check_refused(thief.sign_in(DOORS[2], account.username, PASSWORD))


def test_another_account_is_not_touched(browser: Callable[[], Browser], account: Any) -> None:
    other = get_user_model().objects.create_superuser(f"admin-{uuid4().hex}", password=PASSWORD)
    guess(browser, account.username, MOST + 1)
    for door in DOORS:
        assert browser().sign_in(door, other.username, PASSWORD).status_code in (200, 302)


def test_right_passwords_use_up_nothing(browser: Callable[[], Browser], account: Any) -> None:
    for _ in range(MOST + 2):
        assert browser().sign_in(DOORS[2], account.username, PASSWORD).status_code == 200
    assert browser().sign_in(DOORS[2], account.username, "wrong").status_code == 401


def test_guesses_at_once_are_counted_before_they_are_checked(
    browser: Callable[[], Browser], account: Any, hashed: list[str]
) -> None:
    strangers = [browser() for _ in range(4 * MOST)]
    with ThreadPoolExecutor(len(strangers)) as pool:
        answers = pool.map(lambda one: one.sign_in(DOORS[2], account.username, "wrong"), strangers)
    statuses = sorted(answer.status_code for answer in answers)
    assert statuses == [401] * MOST + [429] * (3 * MOST)
    assert hashed == ["wrong"] * MOST


def test_forms_find_the_account_and_its_count_by_the_same_name(
    browser: Callable[[], Browser], account: Any
) -> None:
    wide = account.username.replace("a", "\uff41")  # as a form takes it for `a` (NFKC)
    for n in range(MOST):
        assert browser().sign_in(DOORS[n % 2], wide, "wrong").status_code == 200
    check_refused(browser().sign_in(DOORS[2], account.username, PASSWORD))


def test_zero_is_no_limit(browser: Callable[[], Browser], account: Any, settings: Settings) -> None:
    settings.RATE_WRONG_PASSWORDS_PER_10_MINUTES = 0
    assert {answer.status_code for answer in guess(browser, account.username, 9)} == {200, 401}
    assert browser().sign_in(DOORS[1], account.username, PASSWORD).status_code == 302


def test_a_refusal_is_one_entry_a_minute_and_a_line_each(
    browser: Callable[[], Browser], account: Any
) -> None:
    guess(browser, account.username, MOST)
    entries = AuditEntry.objects.filter(object_id=str(account.pk), action="sign-in refused")
    before = entries.count()
    assert before == MOST  # each from an address of its own
    with structlog.testing.capture_logs() as lines:
        for door in DOORS:
            check_refused(browser().sign_in(door, account.username, PASSWORD))
    refused = [line for line in lines if line["event"] == "sign-in refused"]
    assert [(line["account"], line["unchecked"]) for line in refused] == [(str(account.pk), True)] * 3
    assert entries.count() == before + 1


def test_what_is_typed_is_kept_in_no_name_of_a_count(browser: Callable[[], Browser]) -> None:
    limiter = rate_limits.limiter
    typed = f"my-password-{uuid4().hex}"
    guess(browser, typed, MOST + 1)
    names = [name for name in limiter._counts if name.startswith("password:")]
    assert len(names) == 1
    assert typed not in str(list(limiter._counts))


def test_who_signs_in_asynchronously_is_limited_too(account: Any) -> None:
    async def ask(password: str) -> Any:
        try:
            return await aauthenticate(username=account.username, password=password)
        finally:
            await sync_to_async(connections.close_all)()  # of the thread that looked

    assert asyncio.run(ask(PASSWORD)) == account
    for _ in range(MOST):
        assert asyncio.run(ask("wrong")) is None
    with pytest.raises(TooManyRequests):
        asyncio.run(ask(PASSWORD))


def test_while_the_database_is_away_nothing_is_counted(
    account: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = passwords.PasswordBackend()

    def away(*_: Any, **__: Any) -> None:
        raise DatabaseError

    with monkeypatch.context() as patch:
        patch.setattr("django.contrib.auth.backends.ModelBackend.authenticate", away)
        for _ in range(MOST + 1):
            with pytest.raises(DatabaseError):
                backend.authenticate(None, account.username, PASSWORD)
    assert backend.authenticate(None, account.username, PASSWORD) == account
