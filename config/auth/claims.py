"""What a JWT says, once it is verified; and the JWTs that Parley issues itself.

The key is chosen by the family of the algorithm and never by the token alone, so a public key can
never be used as an HMAC secret (RFC 8725 §3.1); what a token says of keys (`jku`, `x5u`, `jwk`) is
never read. Keys that belong to somebody else speak for JWT_ISSUERS only and never for
JWT_LOCAL_ISSUER, because whoever signs for that issuer can be every local user.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import jwt
from django.conf import settings

from config.auth import jwks, public_keys
from config.auth.jwks import Arrival
from config.errors import Unauthorized

LONGEST_NAME: Final = 500  # characters of `iss` and of `sub`, as their columns have it
LONGEST_NAME_BYTES: Final = 1_000  # both are in one index row, of which PostgreSQL takes 2,704 bytes


@dataclass(frozen=True, slots=True)
class Claims:
    """Who a verified token speaks of."""

    issuer: str
    subject: str
    is_guest: bool
    scopes: frozenset[str] | None = None  # None: the token does not say
    epoch: str | None = None  # which password of a local user the token belongs to


@dataclass(frozen=True, slots=True)
class Family:
    """Algorithms that share a kind of key, and where the key for a JWT header is found."""

    algorithms: tuple[str, ...]
    key: Callable[[Mapping[str, Any]], Any]
    is_ours: bool


def _shared_secret(_header: Mapping[str, Any]) -> str:
    if not settings.JWT_SECRET:
        raise Unauthorized(
            "This server has no secret for HMAC tokens: set JWT_SECRET.", code="hmac_key_not_found"
        )
    return str(settings.JWT_SECRET)


def _public_key(header: Mapping[str, Any]) -> Any:
    algorithm, kid = header["alg"], header.get("kid")
    found = public_keys.static(settings.JWT_JWK).find(algorithm, kid)
    if found is None and settings.JWT_JWKS_URL:
        found = jwks.at(settings.JWT_JWKS_URL).find(algorithm, kid)
    if found is None:
        raise Unauthorized(
            "This server knows no public key for the token: get a new one from its issuer.",
            code="jwks_key_not_found",
        )
    return found.key


FAMILIES: Final = (
    Family(("HS256",), _shared_secret, is_ours=True),
    Family(public_keys.ALGORITHMS, _public_key, is_ours=False),
)
_FAMILY_OF: Final = {name: family for family in FAMILIES for name in family.algorithms}

_REFUSALS: Final[tuple[tuple[type[jwt.PyJWTError], str, str], ...]] = (
    (jwt.ExpiredSignatureError, "token_expired", "The token has expired: get a new one."),
    (jwt.ImmatureSignatureError, "token_not_yet_valid", "The token is not valid yet: check the clocks."),
    (jwt.InvalidAudienceError, "invalid_audience", "The token is meant for another audience (aud)."),
    (jwt.InvalidKeyError, "hmac_key_not_found", "JWT_SECRET is no HMAC secret: set another."),
    (jwt.PyJWTError, "invalid_token", "The token is not valid: get a new one from its issuer."),
)
_MISSING: Final = {
    "iss": ("invalid_issuer", "The token has no issuer: its claim iss must be a string."),
    "sub": ("subject_missing", "The token names nobody: it needs the claim sub."),
    "exp": ("invalid_token", "The token never expires: it needs the claim exp."),
    "iat": ("invalid_token", "The token does not say when it was issued: it needs the claim iat."),
    "aud": ("invalid_audience", "The token has no audience: it needs the claim aud."),
}


def keys_to_wait_for(token: str) -> Arrival | None:
    """The fetch of public keys without which this token cannot be judged; None for most tokens."""
    if not settings.JWT_JWKS_URL:
        return None
    header = _header(token)
    algorithm, kid = header.get("alg"), header.get("kid")
    if algorithm not in public_keys.ALGORITHMS or public_keys.static(settings.JWT_JWK).find(
        algorithm, kid
    ):
        return None
    return jwks.at(settings.JWT_JWKS_URL).wanted(algorithm, kid)


def verify(token: str) -> Claims:
    """The claims of an ASCII token whose signature, times, audience and issuer are right.

    Raises Unauthorized, with the code that says what is wrong (specs/text-run.md §6).
    """
    header = _header(token)
    family = _family(header)
    audiences = list(settings.JWT_AUDIENCES)
    try:
        claims = _JWT.decode(
            token,
            family.key(header),
            algorithms=[header["alg"]],  # which the key fits: it was found by it
            audience=audiences or None,
            leeway=settings.JWT_CLOCK_SKEW_S,
            options={
                "require": ["iss", "sub", "exp", "iat", *(["aud"] if audiences else [])],
                "verify_aud": bool(audiences),
                "verify_iat": False,  # PyJWT would call a future iat "not yet valid"
            },
        )
    except jwt.PyJWTError as error:
        raise _refusal(error) from None
    _refuse_future(claims["iat"])
    return Claims(
        issuer=_issuer(claims["iss"], family),
        subject=_subject(claims["sub"]),
        is_guest=claims.get("is_anonymous") is True,
        scopes=_scopes(claims.get("scope")),
        epoch=_epoch(claims.get("epoch")),
    )


def _scopes(claim: object) -> frozenset[str] | None:
    """What a token is limited to (RFC 8693 §4.2); only of our own tokens anybody asks."""
    return frozenset(claim.split()) if isinstance(claim, str) else None


def _epoch(claim: object) -> str | None:
    """The claim as text that PostgreSQL can compare, whatever the token holds there."""
    return None if claim is None else ascii(claim).strip("'")


class _Strict(jwt.PyJWT):
    """PyJWT that takes no claim twice: two readers of one token could believe different ones."""

    def _decode_payload(self, decoded: dict[str, Any]) -> dict[str, Any]:
        try:
            payload = json.loads(decoded["payload"], object_pairs_hook=_once_each)
        except (ValueError, RecursionError):
            raise jwt.DecodeError("not JSON, or a claim twice") from None
        if not isinstance(payload, dict):
            raise jwt.DecodeError("not a JSON object")
        return payload


_JWT: Final = _Strict()


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a name twice")
    return made


def issue(
    subject: str, *, epoch: str, scopes: Iterable[str] | None = None, lifetime_s: int | None = None
) -> tuple[str, int]:
    """A JWT for a local user's key, and the seconds it lives; for every scope if none are named."""
    now = int(time.time())
    lifetime = min(lifetime_s or settings.JWT_LOCAL_TTL_S, settings.JWT_LOCAL_TTL_S)
    claims: dict[str, Any] = {
        "iss": settings.JWT_LOCAL_ISSUER,
        "sub": subject,
        "epoch": epoch,
        "iat": now,
        "exp": now + lifetime,
    }
    if scopes is not None:
        claims["scope"] = " ".join(scopes)
    if settings.JWT_AUDIENCES:
        claims["aud"] = settings.JWT_AUDIENCES[0]
    return jwt.encode(claims, settings.JWT_SECRET, algorithm="HS256"), lifetime


def _header(token: str) -> Mapping[str, Any]:
    """The first part of a JWT, of which nothing is proven yet."""
    part = token.partition(".")[0]
    try:
        raw = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
        header = json.loads(raw, object_pairs_hook=_once_each)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or token.count(".") != 2:
        raise Unauthorized(
            "The token is neither a JWT nor an API token of this server.", code="invalid_token_header"
        )
    if not isinstance(header.get("kid"), str | None):
        raise Unauthorized("The token's key name (kid) must be text.", code="invalid_token")
    return header


def _family(header: Mapping[str, Any]) -> Family:
    algorithm = header.get("alg")
    if not algorithm:
        raise Unauthorized("The token must name its algorithm (alg).", code="algorithm_missing")
    family = _FAMILY_OF.get(algorithm) if isinstance(algorithm, str) else None
    if family is None:
        raise Unauthorized(
            f"Tokens must be signed with {', '.join(_FAMILY_OF)}.", code="unsupported_alg"
        )
    return family


def _refusal(error: jwt.PyJWTError) -> Unauthorized:
    if isinstance(error, jwt.MissingRequiredClaimError):
        code, sentence = _MISSING[error.claim]
    else:
        code, sentence = next(rest for kind, *rest in _REFUSALS if isinstance(error, kind))
    return Unauthorized(sentence, code=code)


def _refuse_future(issued_at: object) -> None:
    try:
        moment = int(issued_at)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        raise Unauthorized("The token's claim iat must be a number.", code="invalid_token") from None
    if moment > time.time() + settings.JWT_CLOCK_SKEW_S:
        raise Unauthorized("The token comes from the future: check the clocks.", code="iat_too_future")


def _issuer(value: object, family: Family) -> str:
    if not isinstance(value, str) or not value:
        raise Unauthorized("The token's issuer (iss) must be a string.", code="invalid_issuer")
    local = value == settings.JWT_LOCAL_ISSUER
    known = value in settings.JWT_ISSUERS
    if not (known or local or not settings.JWT_ISSUERS if family.is_ours else known and not local):
        raise Unauthorized(
            "This server does not know the token's issuer: add it to JWT_ISSUERS.",
            code="issuer_not_allowed",
        )
    return _name(value)


def _subject(value: str) -> str:
    if not value:
        raise Unauthorized("The token names nobody: its claim sub is empty.", code="subject_missing")
    return _name(value)


def _name(value: str) -> str:
    """A text that PostgreSQL can store in a column and an index."""
    try:
        size = len(value.encode())
    except UnicodeEncodeError:  # half a surrogate pair, which JSON can write and UTF-8 cannot
        size = LONGEST_NAME_BYTES + 1
    if len(value) > LONGEST_NAME or size > LONGEST_NAME_BYTES or "\0" in value:
        raise Unauthorized(
            f"The token's iss and sub must be plain text of at most {LONGEST_NAME} characters.",
            code="invalid_token",
        )
    return value
