"""Who gets in and who does not: JWTs, API tokens, signing in, admin (specs/text-run.md §6)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import jwt
import psycopg
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from django.contrib.messages import get_messages
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import HealthCheck, given
from hypothesis import settings as effort
from hypothesis import strategies as some
from pytest_django import Settings

from config import database
from config.auth import bearer
from config.auth.bearer import Caller, create_api_token, issue_token, revoke
from config.auth.models import ApiToken, User
from config.errors import Forbidden, Unauthorized
from tests.support import pooler
from tests.support.properties.effort import examples

pytestmark = pytest.mark.once

Authenticate = Callable[[str | None], Caller]
ISSUER = "https://issuer.example"
EVERY_SCOPE = frozenset({"run", "read", "admin"})
HS256 = {"alg": "HS256", "typ": "JWT"}


@pytest.fixture(params=["coroutine", "sync"])
def authenticate(request: pytest.FixtureRequest) -> Authenticate:
    """Both doors, which must be the same door."""
    if request.param == "sync":
        return bearer.authenticate_sync
    return lambda header: database.run_sync(bearer.authenticate(header))


@pytest.fixture
def user() -> User:
    return make_user()


def make_user(**fields: Any) -> User:
    return User.objects.create_user(username=f"someone-{uuid4().hex}", **fields)


def caller_of(user: User, **more: Any) -> Caller:
    """The caller that this user is, with every scope unless told otherwise."""
    fields: dict[str, Any] = {"is_staff": False, "is_guest": False, "scopes": EVERY_SCOPE} | more
    return Caller(user.id, namespace=user.namespace, named_by_id=user.named_by_id, **fields)


def claims(**changed: Any) -> dict[str, Any]:
    """Good claims of a new person, changed; a change to `...` leaves the claim out."""
    now = int(time.time())
    whole = {"iss": ISSUER, "sub": uuid4().hex, "iat": now, "exp": now + 600} | changed
    return {name: value for name, value in whole.items() if value is not ...}


def forge(header: Any, payload: Any, key: str | bytes | None = None) -> str:
    """An Authorization header with any JWT, signed with our secret unless told another key."""
    from django.conf import settings

    signed = f"{_part(header)}.{_part(payload)}"
    secret = settings.JWT_SECRET if key is None else key
    secret = secret.encode() if isinstance(secret, str) else secret
    digest = hmac.new(secret, signed.encode(), hashlib.sha256).digest()
    return f"Bearer {signed}.{_part(digest)}"


def _part(value: Any) -> str:
    content = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def good(**changed: Any) -> str:
    return forge(HS256, claims(**changed))


def code_of(authenticate: Authenticate, header: str | None) -> str:
    with pytest.raises(Unauthorized) as refused:
        authenticate(header)
    assert refused.value.detail.endswith(".")
    return refused.value.error_code


# --- JWTs ---------------------------------------------------------------------------------------


def test_a_good_token_makes_its_user_once(authenticate: Authenticate) -> None:
    header = good(sub="first-" + uuid4().hex)
    caller = authenticate(header)
    made = User.objects.get(pk=caller.user_id)
    assert caller == caller_of(made)
    assert (made.issuer, made.is_active, made.is_superuser) == (ISSUER, True, False)
    assert not made.has_usable_password()
    made.full_clean()
    assert authenticate(header) == caller
    assert bearer.authenticate_sync(header) == caller


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: None, "token_missing"),
        (lambda: "", "token_missing"),
        (lambda: " ", "token_missing"),
        (lambda: "Bearer", "token_missing"),
        (lambda: "Bearer ", "token_missing"),
        (lambda: "Basic dTpw", "invalid_token_header"),
        (lambda: "Bearer a b", "invalid_token_header"),
        (lambda: good().removeprefix("Bearer "), "invalid_token_header"),
        (lambda: "Bearer nonsense", "invalid_token_header"),
        (lambda: "Bearer a.b.c", "invalid_token_header"),
        (lambda: forge([], claims()), "invalid_token_header"),
        (lambda: forge(b"{", claims()), "invalid_token_header"),
        (lambda: forge(b"[" * 5_000, claims()), "invalid_token_header"),
        (lambda: good() + ".more", "invalid_token_header"),
        (lambda: forge(HS256 | {"kid": 7}, claims()), "invalid_token"),
        (lambda: forge(HS256 | {"crit": ["exp"], "exp": 1}, claims()), "invalid_token"),
        (lambda: forge(HS256 | {"crit": ["b64"], "b64": False}, claims()), "invalid_token"),
        (lambda: forge({"typ": "JWT"}, claims()), "algorithm_missing"),
        (lambda: forge({"alg": ""}, claims()), "algorithm_missing"),
        (lambda: forge({"alg": None}, claims()), "algorithm_missing"),
        (lambda: forge({"alg": "none"}, claims()), "unsupported_alg"),
        (lambda: forge({"alg": "None"}, claims()), "unsupported_alg"),
        (lambda: forge({"alg": "none"}, claims()).rpartition(".")[0] + ".", "unsupported_alg"),
        (lambda: forge({"alg": "hs256"}, claims()), "unsupported_alg"),
        (lambda: forge({"alg": "HS384"}, claims()), "unsupported_alg"),
        (lambda: forge({"alg": ["HS256"]}, claims()), "unsupported_alg"),
        (lambda: good(exp=int(time.time()) - 121), "token_expired"),
        (lambda: good(exp=0), "token_expired"),
        (lambda: good(nbf=int(time.time()) + 130), "token_not_yet_valid"),
        (lambda: good(iat=int(time.time()) + 130), "iat_too_future"),
        (lambda: good(iss=...), "invalid_issuer"),
        (lambda: good(iss=""), "invalid_issuer"),
        (lambda: good(iss=["parley"]), "invalid_issuer"),
        (lambda: good(sub=...), "subject_missing"),
        (lambda: good(sub=None), "subject_missing"),
        (lambda: good(sub=""), "subject_missing"),
        (lambda: good(sub=7), "invalid_token"),
        (lambda: good(exp=...), "invalid_token"),
        (lambda: good(iat=...), "invalid_token"),
        (lambda: good(exp="soon"), "invalid_token"),
        (lambda: good(iat=[]), "invalid_token"),
        (lambda: good(iat=float("inf")), "invalid_token"),
        (lambda: good(exp=float("nan")), "invalid_token"),
        (lambda: good(nbf={}), "invalid_token"),
        (lambda: forge(HS256, []), "invalid_token"),
        (lambda: forge(HS256, b"{"), "invalid_token"),
        (lambda: forge(HS256, b"[" * 5_000), "invalid_token"),
        (lambda: forge(HS256, b'{"exp": ' + b"9" * 5_000 + b"}"), "invalid_token"),
        (lambda: forge(HS256, claims(), key="another secret of thirty-two bytes"), "invalid_token"),
        (lambda: forge(HS256, claims(), key=b""), "invalid_token"),
        (lambda: good()[:-10], "invalid_token"),
        (lambda: good(sub="a\0b"), "invalid_token"),
        (lambda: good(sub="\ud800"), "invalid_token"),
        (lambda: good(sub="s" * 501), "invalid_token"),
        (lambda: good(iss="i" * 501), "invalid_token"),
        (lambda: good(sub="\N{GRINNING FACE}" * 300), "invalid_token"),
        (lambda: good(padding="x" * 8_192), "invalid_token"),
        (lambda: "Bearer " + "\xe9" * 20, "invalid_token"),
        (lambda: good(iss="parley", sub="nobody"), "invalid_token"),
        (lambda: good(iss="parley", sub=str(uuid4())), "invalid_token"),
        (lambda: f"Bearer parley_{uuid4().hex}", "invalid_token"),
    ],
)
def test_every_refusal_has_its_code(
    authenticate: Authenticate, make: Callable[[], str | None], code: str
) -> None:
    assert code_of(authenticate, make()) == code


def test_clocks_may_differ_by_the_skew(authenticate: Authenticate) -> None:
    now = int(time.time())
    authenticate(good(iat=now + 110, nbf=now + 110, exp=now + 600))
    authenticate(good(exp=now - 110))


def test_names_up_to_the_longest_are_stored(authenticate: Authenticate) -> None:
    subject, issuer = (
        "".join(random.choices("abcdefghijklmnopqrstuvwxyz0123456789é", k=480)) for _ in range(2)
    )
    made = User.objects.get(pk=authenticate(good(iss=issuer, sub=subject)).user_id)
    assert (made.issuer, made.subject) == (issuer, subject)


def test_a_public_key_is_no_hmac_secret(authenticate: Authenticate, settings: Settings) -> None:
    """The old confusion: a token signed by HMAC with a key that everybody may know."""
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    signed = jwt.encode(claims(), private, algorithm="RS256")
    assert code_of(authenticate, f"Bearer {signed}") == "jwks_key_not_found"
    assert code_of(authenticate, forge({"alg": "RS256"}, claims(), key=public)) == "jwks_key_not_found"
    assert code_of(authenticate, forge(HS256, claims(), key=public)) == "invalid_token"
    settings.JWT_SECRET = public.decode()
    assert code_of(authenticate, forge(HS256, claims(), key=public)) == "hmac_key_not_found"


def test_without_a_secret_no_jwt_is_accepted(authenticate: Authenticate, settings: Settings) -> None:
    settings.JWT_SECRET = ""
    assert code_of(authenticate, forge(HS256, claims(), key=b"")) == "hmac_key_not_found"


def test_audiences_count_when_they_are_set(
    authenticate: Authenticate, settings: Settings, user: User
) -> None:
    authenticate(good(aud="elsewhere"))
    settings.JWT_AUDIENCES = ["parley", "other"]
    assert code_of(authenticate, good(aud="elsewhere")) == "invalid_audience"
    assert code_of(authenticate, good(aud=7)) == "invalid_audience"
    assert code_of(authenticate, good()) == "invalid_audience"
    authenticate(good(aud=["elsewhere", "other"]))
    assert authenticate(f"Bearer {issue_token(user)[0]}").user_id == user.id


def test_other_issuers_are_refused_when_some_are_set(
    authenticate: Authenticate, settings: Settings, user: User
) -> None:
    settings.JWT_ISSUERS = ["https://known.example"]
    assert code_of(authenticate, good()) == "issuer_not_allowed"
    authenticate(good(iss="https://known.example"))
    assert authenticate(f"Bearer {issue_token(user)[0]}").user_id == user.id


def test_the_same_subject_of_two_issuers_is_two_users(authenticate: Authenticate) -> None:
    subject = uuid4().hex
    first, second = (
        authenticate(good(iss=issuer, sub=subject)) for issuer in ("https://a", "https://b")
    )
    assert first.user_id != second.user_id


def test_a_guest_stops_being_one_by_signing_up(authenticate: Authenticate) -> None:
    subject = uuid4().hex
    guest = authenticate(good(sub=subject, is_anonymous=True))
    assert guest.is_guest
    assert User.objects.get(pk=guest.user_id).is_guest
    with pytest.raises(Forbidden) as refused:
        bearer.require_not_guest(guest)
    assert refused.value.error_code == "ANONYMOUS_ACCESS_DENIED"

    member = authenticate(good(sub=subject, is_anonymous=False))
    assert member == replace(guest, is_guest=False)
    assert not User.objects.get(pk=guest.user_id).is_guest
    bearer.require_not_guest(member)
    assert authenticate(good(sub=subject, is_anonymous=True)).is_guest  # the old token stays a guest's


def test_staff_surfaces_need_staff_with_the_scope(user: User) -> None:
    staff = caller_of(user, is_staff=True)
    bearer.require_staff(staff)
    refused = [
        (caller_of(user, is_staff=True, is_guest=True), "ANONYMOUS_ACCESS_DENIED"),
        (caller_of(user), "forbidden"),
        (caller_of(user, is_staff=True, scopes=frozenset({"run"})), "scope_missing"),
    ]
    for caller, code in refused:
        with pytest.raises(Forbidden) as error:
            bearer.require_staff(caller)
        assert error.value.error_code == code


def test_a_local_token_is_its_user_until_that_is_switched_off(authenticate: Authenticate) -> None:
    staff = make_user(is_staff=True)
    token, lifetime = issue_token(staff)
    assert lifetime == 86_400
    assert authenticate(f"bearer  {token} ") == caller_of(staff, is_staff=True)
    User.objects.filter(pk=staff.pk).update(is_active=False)
    assert code_of(authenticate, f"Bearer {token}") == "unauthorized"
    staff.delete()
    assert code_of(authenticate, f"Bearer {token}") == "invalid_token"


def test_an_inactive_identity_is_refused_and_stays_so(authenticate: Authenticate) -> None:
    header = good()
    caller = authenticate(header)
    User.objects.filter(pk=caller.user_id).update(is_active=False)
    assert code_of(authenticate, header) == "unauthorized"
    assert not User.objects.get(pk=caller.user_id).is_active


# --- one statement, one user ----------------------------------------------------------------------


def test_a_known_caller_costs_one_statement(user: User) -> None:
    _, text = create_api_token(user, "ci")
    for header in (good(), f"Bearer {issue_token(user)[0]}", f"Bearer {text}"):
        for _ in range(2):  # the first sight of an identity too
            with CaptureQueriesContext(connection) as asked:
                bearer.authenticate_sync(header)
            assert len(asked) == 1


def test_parallel_first_sights_make_one_user() -> None:
    for _ in range(5):
        subject = uuid4().hex
        header = good(sub=subject)
        found = _in_threads(16, partial(bearer.authenticate_sync, header))
        made = User.objects.get(issuer=ISSUER, subject=subject)
        assert [caller.user_id for caller in found] == [made.id] * 16


@pooler.needs_session
def test_a_first_sight_waits_for_the_one_before_it(authenticate: Authenticate) -> None:
    """The narrow place, held open: another session has made the user and not yet committed."""
    subject = uuid4().hex
    parameters = {
        "issuer": ISSUER,
        "subject": subject,
        "username": bearer._username(ISSUER, subject),
        "is_guest": False,
    }
    found: list[Caller] = []
    first_sight = partial(authenticate, good(sub=subject))
    with psycopg.connect(**_address()) as other, psycopg.connect(**_address(), autocommit=True) as watch:
        row = other.execute(bearer._IDENTITY, parameters).fetchone()
        assert row is not None
        second = threading.Thread(target=lambda: found.extend(_in_threads(1, first_sight)))
        second.start()
        _until(lambda: _is_waiting_for(watch, other.info.backend_pid))
        other.commit()
        second.join(10)
    assert [caller.user_id for caller in found] == [row[0]]


def _address() -> dict[str, Any]:
    wanted = ("dbname", "user", "password", "host", "port")
    return {name: value for name, value in connection.get_connection_params().items() if name in wanted}


def _is_waiting_for(watch: psycopg.Connection[Any], pid: int) -> bool:
    blocked = "SELECT count(*) FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))"
    row = watch.execute(blocked, [pid]).fetchone()
    return row is not None and row[0] > 0


def _until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < deadline, "it never came to that"


def _in_threads(count: int, work: Callable[[], Any]) -> list[Any]:
    """What `work` returns in that many threads that start together."""
    barrier = threading.Barrier(count)
    results: list[Any] = []

    def run() -> None:
        try:
            barrier.wait(10)
            results.append(work())
        finally:
            connection.close()

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return results


# --- API tokens -----------------------------------------------------------------------------------


def test_an_api_token_has_its_scopes_and_only_its_hash_is_stored(
    authenticate: Authenticate, user: User
) -> None:
    token, text = create_api_token(user, "ci", scopes=["read"])
    caller = authenticate(f"Bearer {text}")
    assert caller == caller_of(user, scopes=frozenset({"read"}))
    caller.require("read")
    with pytest.raises(Forbidden) as refused:
        caller.require("run")
    assert refused.value.error_code == "scope_missing"

    stored = ApiToken.objects.filter(pk=token.pk).values().get()
    assert stored["digest"] == hashlib.sha256(text.encode()).hexdigest()
    assert text.startswith(stored["prefix"])
    assert text not in repr(stored)
    assert len(text) - len(stored["prefix"]) > 32  # what the list shows helps nobody to guess


def test_a_token_revoked_expired_or_of_a_switched_off_user_is_refused_at_once(
    authenticate: Authenticate, user: User
) -> None:
    token, text = create_api_token(user, "ci", expires_at=timezone.now() + timedelta(hours=1))
    header = f"Bearer {text}"
    authenticate(header)
    User.objects.filter(pk=user.pk).update(is_active=False)
    assert code_of(authenticate, header) == "unauthorized"
    ApiToken.objects.filter(pk=token.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert code_of(authenticate, header) == "token_expired"
    revoke(token)
    assert code_of(authenticate, header) == "invalid_token"
    first = token.revoked_at
    revoke(token)
    assert token.revoked_at == first


def test_the_last_use_is_noted_once_a_minute(authenticate: Authenticate, user: User) -> None:
    token, text = create_api_token(user, "ci")
    header = f"Bearer {text}"
    authenticate(header)
    first = ApiToken.objects.get(pk=token.pk).last_used_at
    assert first is not None
    authenticate(header)
    assert ApiToken.objects.get(pk=token.pk).last_used_at == first
    ApiToken.objects.filter(pk=token.pk).update(last_used_at=first - timedelta(seconds=61))
    authenticate(header)
    assert ApiToken.objects.filter(pk=token.pk, last_used_at__gte=first).exists()


def test_a_refused_token_leaves_no_last_use(authenticate: Authenticate, user: User) -> None:
    token, text = create_api_token(user, "ci")
    revoke(token)
    code_of(authenticate, f"Bearer {text}")
    assert ApiToken.objects.get(pk=token.pk).last_used_at is None


def test_nobody_waits_for_a_locked_token_row(authenticate: Authenticate, user: User) -> None:
    token, text = create_api_token(user, "ci")
    with psycopg.connect(**_address()) as other:
        other.execute("SELECT 1 FROM accounts_apitoken WHERE id = %s FOR UPDATE", [token.pk])
        assert authenticate(f"Bearer {text}").user_id == user.id


# --- whatever the bytes are -----------------------------------------------------------------------

_LATIN: some.SearchStrategy[str] = some.text(some.characters(max_codepoint=255), max_size=60)
_JSON: some.SearchStrategy[Any] = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=20),
    lambda inner: (
        some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
_CLAIM = some.sampled_from(["iss", "sub", "exp", "iat", "nbf", "aud", "jti", "is_anonymous"])


def _survives(header: str) -> None:
    """Anything may come out but an exception of another kind."""
    with suppress(Unauthorized):
        assert isinstance(bearer.authenticate_sync(header), Caller)


_thorough = effort(
    max_examples=examples(1_000), deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


@_thorough
@given(_LATIN | _LATIN.map("Bearer {}".format) | some.text(max_size=40).map("Bearer parley_{}".format))
def test_no_header_breaks_it(header: str) -> None:
    _survives(header)


@_thorough
@given(
    some.dictionaries(some.sampled_from(["alg", "kid", "crit", "b64", "typ"]), _JSON), some.booleans()
)
def test_no_jwt_header_breaks_it(header: dict[str, Any], named: bool) -> None:
    _survives(forge(header | HS256 if named else header, claims()))


@_thorough
@given(some.dictionaries(_CLAIM, _JSON | some.sampled_from(["parley", "\0", "\ud800"])))
def test_no_claims_break_it(changed: dict[str, Any]) -> None:
    _survives(forge(HS256, claims() | changed))


def test_no_damage_to_a_good_token_breaks_it(user: User) -> None:
    chance = random.Random(7)
    whole = [f"Bearer {issue_token(user)[0]}", f"Bearer {create_api_token(user, 'ci')[1]}", good()]
    for _ in range(3_000):
        text = list(chance.choice(whole))
        for _ in range(chance.randint(1, 4)):
            text[chance.randrange(len(text))] = chr(chance.randrange(256))
        _survives("".join(text[: chance.choice([None, chance.randrange(len(text))])]))


# --- signing in -----------------------------------------------------------------------------------


@pytest.fixture
def web() -> Client:
    """A client with an address of its own, so that no other test has used up its attempts."""
    return Client(REMOTE_ADDR=f"2001:db8:{uuid4().hex[:4]}:{uuid4().hex[:4]}::1")


def sign_in(web: Client, body: Any, **headers: str) -> Any:
    return web.post("/api/v1/auth/token", body, content_type="application/json", headers=headers)


def test_a_password_buys_a_token(web: Client) -> None:
    user = make_user(password="correct horse")
    answer = sign_in(web, {"username": user.username, "password": "correct horse"})
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    token = answer.json()["access_token"]
    assert answer.json() == {"access_token": token, "token_type": "Bearer", "expires_in": 86_400}
    assert bearer.authenticate_sync(f"Bearer {token}").user_id == user.id
    user.refresh_from_db()
    assert user.last_login is not None


def test_a_changed_password_ends_the_tokens_it_bought(authenticate: Authenticate) -> None:
    user = make_user(password="correct horse")
    first, _ = issue_token(user)
    _, kept = create_api_token(user, "ci")
    assert authenticate(f"Bearer {first}").user_id == user.id
    user.set_password("battery staple")
    user.save()
    assert code_of(authenticate, f"Bearer {first}") == "invalid_token"
    assert authenticate(f"Bearer {issue_token(user)[0]}").user_id == user.id
    assert authenticate(f"Bearer {kept}").user_id == user.id


@pytest.mark.parametrize("epoch", ["", "other", "\0", "\ud800", 7, [], {}])
def test_a_strange_epoch_is_refused(authenticate: Authenticate, user: User, epoch: Any) -> None:
    header = good(iss=settings_issuer(), sub=str(user.pk), epoch=epoch)
    assert code_of(authenticate, header) == "invalid_token"


def settings_issuer() -> str:
    from django.conf import settings

    return str(settings.JWT_LOCAL_ISSUER)


def test_whoever_may_not_sign_in_gets_the_same_answer(web: Client) -> None:
    user = make_user(password="correct horse")
    inactive = make_user(password="correct horse", is_active=False)
    external = User.objects.get(pk=bearer.authenticate_sync(good()).user_id)
    answers = [
        sign_in(web, {"username": name, "password": password})
        for name, password in [
            (user.username, "wrong"),
            (user.username, "correct horse "),
            (uuid4().hex, "correct horse"),
            (inactive.username, "correct horse"),
            (external.username, "!"),
        ]
    ]
    assert {answer.status_code for answer in answers} == {401}
    assert {answer.headers["WWW-Authenticate"] for answer in answers} == {"Bearer"}
    bodies = [answer.json() | {"request_id": ""} for answer in answers]
    assert bodies == [
        {
            "status": 401,
            "code": "invalid_credentials",
            "msg": "invalid_credentials",
            "message": "The username or the password is wrong.",
            "detail": "The username or the password is wrong.",
            "request_id": "",
        }
    ] * len(answers)


def test_an_unknown_name_costs_a_hash_too(web: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []
    monkeypatch.setattr(User, "set_password", lambda self, raw: hashed.append(raw))
    assert sign_in(web, {"username": uuid4().hex, "password": "pw"}).status_code == 401
    assert hashed == ["pw"]


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, {"username", "password"}),
        ({"username": "a"}, {"password"}),
        ({"username": "", "password": "p"}, {"username"}),
        ({"username": "a" * 151, "password": "p" * 1_001}, {"username", "password"}),
        ({"username": ["a"], "password": {"b": 1}}, {"username", "password"}),
        ({"username": "a\0", "password": "p\0"}, {"username", "password"}),
        ({"username": "\ud800", "password": "p"}, {"username"}),
        ([], {"non_field_errors"}),
        ("", {"non_field_errors"}),
    ],
)
def test_a_bad_body_names_its_fields(web: Client, body: Any, fields: set[str]) -> None:
    answer = sign_in(web, json.dumps(body))
    assert answer.status_code == 422
    assert answer.json()["code"] == "invalid_request"
    assert set(answer.json()["errors"]) == fields


def test_what_is_no_json_or_too_large_is_refused(web: Client) -> None:
    broken = sign_in(web, "{")
    assert (broken.status_code, broken.json()["code"]) == (422, "invalid_json")
    large = sign_in(web, {"username": "a", "password": "p" * 9_000})
    assert (large.status_code, large.json()["code"]) == (413, "payload_too_large")
    form = web.post("/api/v1/auth/token", {"username": "a", "password": "p"})
    assert form.status_code == 415
    assert web.get("/api/v1/auth/token").status_code == 405


def test_a_guesser_is_slowed_down_whatever_it_forges(web: Client, settings: Settings) -> None:
    settings.RATE_SIGN_IN_PER_MINUTE = 3
    statuses = [sign_in(web, {}, **{"X-Forwarded-For": f"10.0.0.{n}"}).status_code for n in range(5)]
    assert statuses == [422, 422, 422, 429, 429]
    answer = sign_in(web, {})
    assert answer.json()["code"] == "too_many_requests"
    assert 1 <= int(answer.headers["Retry-After"]) <= 60


def test_behind_a_proxy_the_address_it_appended_counts(web: Client, settings: Settings) -> None:
    settings.BEHIND_TLS = True
    settings.RATE_SIGN_IN_PER_MINUTE = 1
    mine, other = (f"2001:db8:{uuid4().hex[:4]}:{uuid4().hex[:4]}::1" for _ in range(2))
    forwarded = [f"1.1.1.1, {mine}", f"2.2.2.2,{mine}", f"1.1.1.1, {other}"]
    statuses = [sign_in(web, {}, **{"X-Forwarded-For": chain}).status_code for chain in forwarded]
    assert statuses == [422, 429, 422]


def test_admin_s_login_counts_the_same_attempts(web: Client, settings: Settings) -> None:
    settings.RATE_SIGN_IN_PER_MINUTE = 2
    form = {"username": "nobody", "password": "guess"}
    statuses = [web.post("/admin/login/", form).status_code for _ in range(2)]
    refused = web.post("/admin/login/", form)
    assert [*statuses, refused.status_code] == [200, 200, 429]
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert sign_in(web, {}).status_code == 429
    assert web.get("/admin/login/").status_code == 200


# --- admin ----------------------------------------------------------------------------------------


def admin_of(**fields: Any) -> tuple[Client, User]:
    staff = make_user(is_staff=True, **fields)
    web = Client()
    web.force_login(staff)
    return web, staff


def test_admin_shows_a_new_token_once_and_stores_only_its_hash() -> None:
    web, staff = admin_of(is_superuser=True)
    empty = web.get("/admin/accounts/apitoken/add/").content.decode()
    assert all(f'value="{scope}"' in empty for scope in EVERY_SCOPE)
    form = {"user": str(staff.pk), "name": "laptop", "expires_at_0": "", "expires_at_1": ""}
    assert web.post("/admin/accounts/apitoken/add/", form).status_code == 200  # no scopes, no token
    answer = web.post("/admin/accounts/apitoken/add/", form | {"scopes": ["run", "read"]})
    assert answer.status_code == 302
    shown = " ".join(str(message) for message in get_messages(answer.wsgi_request))
    text = shown.partition("<code>")[2].partition("</code>")[0]
    token = ApiToken.objects.get(user=staff)
    assert (token.name, token.scopes, token.expires_at) == ("laptop", ["run", "read"], None)
    assert token.digest == hashlib.sha256(text.encode()).hexdigest()
    assert bearer.authenticate_sync(f"Bearer {text}").user_id == staff.id

    first = web.get(answer.headers["Location"]).content.decode()
    assert text in first
    for path in ("", f"{token.pk}/change/", f"{token.pk}/history/"):
        page = web.get(f"/admin/accounts/apitoken/{path}")
        assert page.status_code == 200
        assert text not in page.content.decode()
        assert token.digest not in page.content.decode()
    assert _rows_with(text) == []


def _rows_with(text: str) -> list[str]:
    """Every table that holds this text anywhere."""
    with connection.cursor() as cursor:
        found = []
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT count(*) FROM "{table}" t WHERE strpos(t::text, %s) > 0', [text])
            if cursor.fetchone()[0]:
                found.append(table)
    return found


def test_of_a_token_that_exists_admin_changes_the_name_only() -> None:
    web, staff = admin_of(is_superuser=True)
    token, _ = create_api_token(make_user(), "old", scopes=["read"])
    before = ApiToken.objects.filter(pk=token.pk).values().get()
    forged = {
        "name": "new",
        "user": str(staff.pk),
        "scopes": ["admin"],
        "digest": "0" * 64,
        "prefix": "parley_x",
        "revoked_at": "",
    }
    assert web.post(f"/admin/accounts/apitoken/{token.pk}/change/", forged).status_code == 302
    assert ApiToken.objects.filter(pk=token.pk).values().get() == before | {"name": "new"}


def test_admin_revokes_tokens() -> None:
    web, _ = admin_of(is_superuser=True)
    token, text = create_api_token(make_user(), "ci")
    chosen = {"action": "revoke_tokens", "_selected_action": [token.pk]}
    page = web.post("/admin/accounts/apitoken/", chosen, follow=True)
    assert "refused from now on" in page.content.decode()
    assert code_of(bearer.authenticate_sync, f"Bearer {text}") == "invalid_token"


def test_staff_may_not_make_a_token_that_acts_as_somebody_else() -> None:
    from django.contrib.auth.models import Permission

    web, staff = admin_of()
    staff.user_permissions.set(Permission.objects.filter(codename__in=["add_apitoken", "view_user"]))
    superuser = make_user(is_staff=True, is_superuser=True)
    form = {"name": "up", "scopes": ["admin"], "expires_at_0": "", "expires_at_1": ""}
    assert (
        web.post("/admin/accounts/apitoken/add/", form | {"user": str(superuser.pk)}).status_code == 200
    )
    assert not ApiToken.objects.filter(user=superuser).exists()
    web.post("/admin/accounts/apitoken/add/", form | {"user": str(staff.pk)})
    assert ApiToken.objects.filter(user=staff).count() == 1


def test_admin_makes_and_shows_users() -> None:
    web, _ = admin_of(is_superuser=True)
    name = f"new-{uuid4().hex}"
    form = {
        "username": name,
        "usable_password": "true",
        "password1": "k8#Lq0!zz",
        "password2": "k8#Lq0!zz",
    }
    assert web.post("/admin/accounts/user/add/", form).status_code == 302
    made = User.objects.get(username=name)
    assert made.check_password("k8#Lq0!zz")
    external = bearer.authenticate_sync(good()).user_id
    for path in ("", "add/", f"{made.pk}/change/", f"{made.pk}/password/", f"{external}/change/"):
        assert web.get(f"/admin/accounts/user/{path}").status_code == 200
    assert web.get("/admin/auth/group/add/").status_code == 200
    assert web.get(f"/admin/accounts/user/?q={name}").status_code == 200
