"""Tokens of an identity provider: key sets that change, and whoever tries to bring keys of their own."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from pytest_django import Settings

from config import database
from config.auth import bearer, jwks_cache
from config.auth.bearer import Caller
from config.auth.models import User
from config.auth.public_keys import InvalidKey, parse_key, parse_set, parse_setting
from config.errors import Forbidden, Unauthorized
from tests.conftest import Server
from tests.support.fakes.issuer import EC, ISSUER, RSA, Issuer, Key

pytestmark = pytest.mark.once

Authenticate = Callable[[str | None], Caller]
OTHER, P384 = Key("ES256"), Key("ES384")


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown key may be asked for again at once."""
    monkeypatch.setattr(jwks_cache, "COOLDOWN_S", 0.0)


@pytest.fixture(params=["coroutine", "sync"])
def authenticate(request: pytest.FixtureRequest) -> Authenticate:
    if request.param == "sync":
        return bearer.authenticate_sync
    return lambda header: database.run_sync(bearer.authenticate(header))


def code_of(authenticate: Authenticate, header: str | None) -> str:
    with pytest.raises(Unauthorized) as refused:
        authenticate(header)
    return refused.value.error_code


def forge(header: Any, payload: Any, secret: bytes) -> str:
    signed = f"{_part(header)}.{_part(payload)}"
    return f"Bearer {signed}.{_part(hmac.new(secret, signed.encode(), hashlib.sha256).digest())}"


def _part(value: Any) -> str:
    content = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def claims() -> dict[str, Any]:
    now = int(time.time())
    return {"iss": ISSUER, "sub": uuid4().hex, "iat": now, "exp": now + 600}


# --- who gets in ----------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [EC, RSA], ids=["ES256", "RS256"])
def test_a_token_of_a_published_key_makes_its_user(
    issuer: Issuer, authenticate: Authenticate, key: Key
) -> None:
    header = key.sign(sub="someone", iss=ISSUER)
    caller = authenticate(header)
    made = User.objects.get(pk=caller.user_id)
    assert (made.issuer, made.subject) == (ISSUER, "someone")
    assert authenticate(header) == caller
    assert issuer.asked == 1


def test_a_static_key_needs_nobody(settings: Settings, authenticate: Authenticate) -> None:
    settings.JWT_ISSUERS = [ISSUER]
    settings.JWT_JWK = json.dumps(EC.jwk(kid=""))
    authenticate(EC.sign())
    authenticate(EC.sign(headers={"kid": ...}))
    assert code_of(authenticate, OTHER.sign()) == "invalid_token"
    assert code_of(authenticate, RSA.sign()) == "jwks_key_not_found"
    settings.JWT_JWK = json.dumps({"keys": [EC.jwk(), RSA.jwk(), P384.jwk()]})
    for key in (EC, RSA, P384):
        authenticate(key.sign())
    assert code_of(authenticate, EC.sign(headers={"kid": "another"})) == "jwks_key_not_found"


def test_keys_rotate_while_tokens_come(issuer: Issuer, authenticate: Authenticate, soon: None) -> None:
    authenticate(EC.sign())
    issuer.publish(OTHER)
    authenticate(OTHER.sign())
    assert code_of(authenticate, EC.sign()) == "jwks_key_not_found"
    issuer.publish(EC, OTHER)
    authenticate(EC.sign())


def test_invented_key_names_cannot_hammer_the_provider(
    issuer: Issuer, authenticate: Authenticate
) -> None:
    authenticate(EC.sign())
    for _ in range(50):
        header = EC.sign(headers={"kid": uuid4().hex})
        assert code_of(authenticate, header) == "jwks_key_not_found"
    assert issuer.asked == 1


def test_a_crowd_at_the_start_asks_once(issuer: Issuer) -> None:
    issuer.delay_s = 0.2
    headers = [EC.sign() for _ in range(16)]

    async def crowd() -> list[Caller]:
        return await asyncio.gather(*map(bearer.authenticate, headers))

    assert len(database.run_sync(crowd())) == 16
    assert issuer.asked == 1


def test_a_provider_that_is_away_does_no_harm_to_keys_that_are_known(
    issuer: Issuer, authenticate: Authenticate, soon: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    authenticate(EC.sign())
    issuer.fails = True
    monkeypatch.setattr(jwks_cache, "FRESH_S", -1.0)
    monkeypatch.setattr(jwks_cache, "AHEAD_S", -1.0)
    authenticate(EC.sign())
    answered = issuer.answered
    assert answered >= 2
    issuer.delay_s = 2
    authenticate(EC.sign())  # the last try failed: nobody waits for the next
    assert issuer.answered == answered
    assert code_of(authenticate, OTHER.sign()) == "jwks_key_not_found"
    monkeypatch.setattr(jwks_cache, "STALE_S", -1.0)
    issuer.delay_s = 0
    assert code_of(authenticate, EC.sign()) == "jwks_key_not_found"


@pytest.mark.parametrize(
    "document", [[], {}, {"keys": []}, {"keys": {"a": 1}}, {"keys": [7, None]}, "x"]
)
def test_a_provider_that_talks_nonsense_takes_no_key_away(
    issuer: Issuer, authenticate: Authenticate, soon: None, document: Any
) -> None:
    authenticate(EC.sign())
    issuer.document = document
    assert code_of(authenticate, OTHER.sign()) == "jwks_key_not_found"
    authenticate(EC.sign())


def test_the_loop_goes_on_while_keys_are_fetched(issuer: Issuer) -> None:
    issuer.delay_s = 0.5

    async def turns() -> int:
        waiting = asyncio.create_task(bearer.authenticate(EC.sign()))
        turns = 0
        while not waiting.done():
            await asyncio.sleep(0.005)
            turns += 1
        await waiting
        return turns

    assert database.run_sync(turns()) > 10  # of a hundred; a loop that waits for the keys has two


# --- who does not ---------------------------------------------------------------------------------


def test_a_public_key_never_is_an_hmac_secret(issuer: Issuer, authenticate: Authenticate) -> None:
    authenticate(RSA.sign())
    forms = [
        RSA.private.public_key().public_bytes(encoding, shape)
        for encoding in (serialization.Encoding.PEM, serialization.Encoding.DER)
        for shape in (
            serialization.PublicFormat.SubjectPublicKeyInfo,
            serialization.PublicFormat.PKCS1,
        )
    ]
    forms += [json.dumps(RSA.jwk()).encode(), RSA.jwk()["n"].encode(), RSA.kid.encode(), b""]
    for algorithm in ("HS256", "RS256", "ES256", "HS384", "none"):
        for secret in forms:
            header = forge({"alg": algorithm, "kid": RSA.kid}, claims(), secret)
            assert code_of(authenticate, header) in {
                "invalid_token",
                "unsupported_alg",
                "jwks_key_not_found",
            }


@pytest.mark.parametrize(
    "alg", ["none", "None", "NONE", "", None, 0, [], {}, ["RS256"], "RS256 ", "rs256"]
)
def test_no_other_algorithm_is_taken(issuer: Issuer, authenticate: Authenticate, alg: Any) -> None:
    _, payload, signature = RSA.sign().removeprefix("Bearer ").split(".")
    for tail in ("", signature):
        header = f"Bearer {_part({'alg': alg, 'kid': RSA.kid})}.{payload}.{tail}"
        assert code_of(authenticate, header) in {"unsupported_alg", "algorithm_missing"}


def test_a_key_verifies_its_own_algorithm_only(issuer: Issuer, authenticate: Authenticate) -> None:
    header = EC.sign(headers={"kid": RSA.kid})
    assert code_of(authenticate, header) == "jwks_key_not_found"
    narrow = Key("RS256")
    issuer.document = {"keys": [narrow.jwk(alg="RS512")]}
    assert code_of(authenticate, narrow.sign()) == "jwks_key_not_found"


@pytest.mark.parametrize(
    "kid",
    [
        "../../../../etc/passwd",
        "/dev/null",
        "' OR 1=1 --",
        "x' UNION SELECT 'secret' --",
        "| curl http://127.0.0.1/",
        "http://127.0.0.1:1/jwks.json",
        "k" * 4_000,
        "\0",
        "\ud800",
        "",
    ],
)
def test_a_key_name_is_a_name_and_nothing_else(
    issuer: Issuer, authenticate: Authenticate, kid: str
) -> None:
    header = forge({"alg": "ES256", "kid": kid}, claims(), b"")
    assert code_of(authenticate, header) == "jwks_key_not_found"


@pytest.mark.parametrize("kid", [7, 1.5, True, [], {}, ["a"], {"a": 1}])
def test_a_key_name_must_be_text(issuer: Issuer, authenticate: Authenticate, kid: Any) -> None:
    assert code_of(authenticate, forge({"alg": "ES256", "kid": kid}, claims(), b"")) == "invalid_token"


def test_keys_that_a_token_brings_are_not_looked_at(issuer: Issuer, authenticate: Authenticate) -> None:
    with Issuer(OTHER) as evil:
        brought = {"jku": evil.url, "x5u": evil.url, "jwk": OTHER.jwk(), "x5c": ["MIIB"]}
        assert code_of(authenticate, OTHER.sign(headers=brought)) == "jwks_key_not_found"
        assert code_of(authenticate, OTHER.sign(headers=brought | {"kid": EC.kid})) == "invalid_token"
        assert evil.asked == 0
    assert issuer.asked == 1


def test_names_written_twice_are_refused(issuer: Issuer, authenticate: Authenticate) -> None:
    from django.conf import settings

    now = int(time.time())
    twice = b'{"iss":"%b","sub":"a","sub":"b","iat":%d,"exp":%d}' % (ISSUER.encode(), now, now + 60)
    header = forge({"alg": "HS256"}, twice, settings.JWT_SECRET.encode())
    assert code_of(authenticate, header) == "invalid_token"
    header = forge(b'{"alg":"none","alg":"HS256"}', claims(), settings.JWT_SECRET.encode())
    assert code_of(authenticate, header) == "invalid_token_header"


def test_a_provider_speaks_for_its_issuers_only(
    issuer: Issuer, authenticate: Authenticate, settings: Settings
) -> None:
    assert code_of(authenticate, EC.sign(iss="https://other.example")) == "issuer_not_allowed"
    settings.JWT_ISSUERS = [ISSUER, settings.JWT_LOCAL_ISSUER]
    staff = User.objects.create_user(username=uuid4().hex, is_staff=True)
    header = EC.sign(iss=settings.JWT_LOCAL_ISSUER, sub=str(staff.pk))
    assert code_of(authenticate, header) == "issuer_not_allowed"


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"exp": 1}, "token_expired"),
        ({"nbf": int(time.time()) + 9_999}, "token_not_yet_valid"),
        ({"iat": int(time.time()) + 9_999}, "iat_too_future"),
        ({"aud": "elsewhere"}, "invalid_audience"),
        ({"aud": ...}, "invalid_audience"),
        ({"iss": ...}, "invalid_issuer"),
        ({"sub": ...}, "subject_missing"),
        ({"exp": ...}, "invalid_token"),
    ],
)
def test_the_claims_count_as_they_do_for_our_own(
    issuer: Issuer, authenticate: Authenticate, settings: Settings, changed: dict[str, Any], code: str
) -> None:
    settings.JWT_AUDIENCES = ["parley"]
    authenticate(EC.sign(aud=["x", "parley"]))
    assert code_of(authenticate, EC.sign(**{"aud": "parley"} | changed)) == code


# --- guests ---------------------------------------------------------------------------------------


def test_guests_may_run_and_read_but_not_administer(issuer: Issuer, server: Server) -> None:
    headers = {"Authorization": EC.sign(is_anonymous=True)}
    with httpx.Client(base_url=server.url, headers=headers, trust_env=False) as guest:
        started = guest.post("/api/v1/agent/runs", json={"model": "demo", "text": "hi"})
        assert started.status_code == 202
        assert guest.get(f"/api/v1/agent/runs/{started.json()['run_id']}").status_code == 200
        assert guest.get("/api/v1/llm/models").status_code == 200
        refused = [
            guest.get("/api/v1/llm/models?view=endpoints"),
            guest.get("/api/v1/stats/dashboard"),
            guest.post("/api/v1/llm/sse/force-disconnect"),
        ]
    assert [(r.status_code, r.json()["code"]) for r in refused] == [(403, "ANONYMOUS_ACCESS_DENIED")] * 3


def test_guests_can_be_kept_out(issuer: Issuer, authenticate: Authenticate, settings: Settings) -> None:
    subject = uuid4().hex
    settings.GUESTS_ALLOWED = False
    with pytest.raises(Forbidden) as refused:
        authenticate(EC.sign(sub=subject, is_anonymous=True))
    assert refused.value.error_code == "ANONYMOUS_ACCESS_DENIED"
    assert not User.objects.filter(subject=subject).exists()
    authenticate(EC.sign(sub=subject))


# --- over the wire --------------------------------------------------------------------------------


def test_every_401_has_the_shape_that_clients_know(
    issuer: Issuer, server: Server, settings: Settings
) -> None:
    settings.JWT_AUDIENCES = ["parley"]
    far = int(time.time()) + 9_999
    off = User.objects.create_user(username=uuid4().hex, is_active=False)
    off_token, _ = bearer.issue_token(off)
    wanted = {
        "token_missing": None,
        "invalid_token_header": "Bearer nonsense",
        "algorithm_missing": forge({"typ": "JWT"}, claims(), b""),
        "unsupported_alg": forge({"alg": "none"}, claims(), b""),
        "jwks_key_not_found": OTHER.sign(),
        "token_expired": EC.sign(aud="parley", exp=1),
        "token_not_yet_valid": EC.sign(aud="parley", nbf=far),
        "invalid_audience": EC.sign(aud="elsewhere"),
        "invalid_issuer": EC.sign(aud="parley", iss=...),
        "issuer_not_allowed": EC.sign(aud="parley", iss="https://other.example"),
        "invalid_token": EC.sign(aud="parley")[:-9] + "AAAAAAAAA",
        "iat_too_future": EC.sign(aud="parley", iat=far),
        "subject_missing": EC.sign(aud="parley", sub=...),
        "unauthorized": f"Bearer {off_token}",
    }
    for path in ("/api/v1/agent/runs/0", "/api/v1/llm/models"):  # the async door and DRF's
        for code, header in wanted.items():
            sent = {"X-Request-Id": f"id-{code}"} | ({"Authorization": header} if header else {})
            answer = httpx.get(server.url + path, headers=sent, trust_env=False)
            body = answer.json()
            assert (answer.status_code, body["status"], body["code"]) == (401, 401, code)
            assert (body["msg"], body["message"]) == (code, body["detail"])
            assert body["request_id"] == f"id-{code}"
            assert answer.headers["WWW-Authenticate"] == "Bearer"
    settings.JWT_SECRET = ""
    answer = httpx.get(
        f"{server.url}/api/v1/llm/models",
        headers={"Authorization": forge({"alg": "HS256"}, claims(), b"")},
        trust_env=False,
    )
    assert (answer.status_code, answer.json()["code"]) == (401, "hmac_key_not_found")


def test_ten_thousand_damaged_tokens_open_nothing(issuer: Issuer) -> None:
    """A changed token never authenticates, and whatever happens is a refusal."""
    chance = random.Random(11)
    whole = [EC.sign(), RSA.sign(), forge({"alg": "HS256"}, claims(), _secret())]
    whole = [token.removeprefix("Bearer ") for token in whole]

    async def judge() -> int:
        refused = 0
        for _ in range(10_000):
            damaged = _damage(chance, whole)
            try:
                await bearer.authenticate(f"Bearer {damaged}")
            except Unauthorized:
                refused += 1
        return refused

    assert database.run_sync(judge()) == 10_000
    assert issuer.asked <= 5


def _secret() -> bytes:
    from django.conf import settings

    return str(settings.JWT_SECRET).encode()


def _damage(chance: random.Random, whole: list[str]) -> str:
    """One of the good tokens with something changed that its signature covers."""
    parts = chance.choice(whole).split(".")
    match chance.randrange(6):
        case 0:  # one character of the header or the claims
            where = chance.randrange(2)
            at = chance.randrange(len(parts[where]) - 1)
            new = chance.choice([c for c in "Aa0-_%/=." if c != parts[where][at]])
            parts[where] = parts[where][:at] + new + parts[where][at + 1 :]
        case 1:  # the signature of another one
            other = chance.choice([one for one in whole if not one.endswith(parts[2])])
            parts[2] = other.split(".")[2]
        case 2:
            parts[2] = parts[2][: chance.randrange(len(parts[2]) - 4)]
        case 3:  # another header over the same claims
            header: dict[str, Any] = {"alg": chance.choice(["none", "HS256", "RS256", "ES256", "ES384"])}
            kid = chance.choice([None, EC.kid, RSA.kid, "x", 1])
            parts[0] = _part(header | {"kid": kid, "n": chance.random()})
        case 4:  # other claims under the same signature
            parts[1] = _part(claims() | {"sub": "admin", "n": chance.random()})
        case 5:
            parts.insert(chance.randrange(4), chance.choice(["", "e30", "AAAA"]))
    return ".".join(parts)


def test_the_same_fuzz_over_http_never_gets_a_500(
    issuer: Issuer, server: Server, settings: Settings
) -> None:
    settings.RATE_IP_PER_MINUTE = 0
    chance = random.Random(12)
    whole = [token.removeprefix("Bearer ") for token in (EC.sign(), RSA.sign())]
    with httpx.Client(base_url=server.url, trust_env=False) as web, ThreadPoolExecutor(4) as pool:

        def ask(token: str) -> int:
            headers = {"Authorization": f"Bearer {token}"}
            return web.get("/api/v1/agent/runs/0", headers=headers).status_code

        tokens = [token for token in (_damage(chance, whole) for _ in range(600)) if token.isprintable()]
        assert set(pool.map(ask, tokens)) == {401}


# --- keys as they are written ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "changed",
    [
        {"d": "AQAB"},
        {"kty": "oct", "k": "c2VjcmV0"},
        {"kty": "OKP"},
        {"crv": "P-521"},
        {"crv": ["P-256"]},
        {"alg": "HS256"},
        {"alg": "RS256"},
        {"use": "enc"},
        {"key_ops": ["sign"]},
        {"kid": 7},
        {"x": "AAAA"},
        {"x": 7},
    ],
)
def test_keys_that_fit_nothing_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(InvalidKey):
        parse_key(EC.jwk() | changed)
    assert len(parse_set({"keys": [EC.jwk() | changed, RSA.jwk()]}).keys) == 1


def test_short_rsa_keys_are_refused() -> None:
    from cryptography.hazmat.primitives.asymmetric import rsa

    small = rsa.generate_private_key(public_exponent=65537, key_size=1024).public_key()
    with pytest.raises(InvalidKey, match="2048"):
        parse_key(json.loads(jwt.get_algorithm_by_name("RS256").to_jwk(small)))


@pytest.mark.parametrize("text", ["{", "7", "[]", '"x"', '{"keys": [{}]}', "{}"])
def test_a_setting_that_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(InvalidKey):
        parse_setting(text)
