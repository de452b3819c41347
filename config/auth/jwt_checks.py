"""Verification of JWTs, and the JWTs that Parley issues itself.

The key is chosen by the family of the algorithm and never by the token alone, so a public key cannot
be used as an HMAC secret (RFC 8725 §3.1); the token's own key claims (`jku`, `x5u`, `jwk`) are ignored.
Keys of other parties are valid only for JWT_ISSUERS and never for JWT_LOCAL_ISSUER, whose signer can
impersonate every local user.
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

from config.auth import jwks_cache, public_keys
from config.auth.jwks_cache import Fetch
from config.errors import Unauthorized

LONGEST_NAME: Final = 500  # characters of `iss` and of `sub`: the size of their columns
LONGEST_NAME_BYTES: Final = 1_000  # one index row has both, and PostgreSQL limits it to 2,704 bytes


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of a verified token."""

    issuer: str
    subject: str
    is_guest: bool
    scopes: frozenset[str] | None = None  # None: the token has no claim scope
    epoch: str | None = None  # which password of a local user the token belongs to


@dataclass(frozen=True, slots=True)
class Family:
    """Algorithms with a common type of key: the function that finds the key."""

    key: Callable[[Mapping[str, Any]], Any]
    is_ours: bool


def _shared_secret(_parse_header: Mapping[str, Any]) -> str:
    if not settings.JWT_SECRET:
        raise Unauthorized(
            "This server has no secret for HMAC tokens: set JWT_SECRET.", code="hmac_key_not_found"
        )
    return str(settings.JWT_SECRET)


def _public_key(header: Mapping[str, Any]) -> Any:
    algorithm, kid = header["alg"], header.get("kid")
    found = public_keys.parse_setting(settings.JWT_JWK).find(algorithm, kid)
    if found is None and settings.JWT_JWKS_URL:
        found = jwks_cache.get_key_set(settings.JWT_JWKS_URL).find(algorithm, kid)
    if found is None:
        raise Unauthorized(
            "This server knows no public key for the token: get a new one from its issuer.",
            code="jwks_key_not_found",
        )
    return found.key


_FAMILY_OF: Final = {
    "HS256": Family(_shared_secret, is_ours=True),
    **dict.fromkeys(public_keys.ALGORITHMS, Family(_public_key, is_ours=False)),
}

_ERRORS: Final[tuple[tuple[type[jwt.PyJWTError], str, str], ...]] = (
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


def pending_keys(token: str) -> Fetch | None:
    """Return the fetch of public keys that this token has to wait for; None for most tokens."""
    if not settings.JWT_JWKS_URL:
        return None
    header = _parse_header(token)
    algorithm, kid = header.get("alg"), header.get("kid")
    if algorithm not in public_keys.ALGORITHMS or public_keys.parse_setting(settings.JWT_JWK).find(
        algorithm, kid
    ):
        return None
    return jwks_cache.get_key_set(settings.JWT_JWKS_URL).request(algorithm, kid)


def verify(token: str) -> Claims:
    """Return the claims of an ASCII token after checking signature, times, audience and issuer.

    Raise Unauthorized with the code of the error (specs/text-run.md §6).
    """
    header = _parse_header(token)
    family = _find_family(header)
    audiences = list(settings.JWT_AUDIENCES)
    try:
        claims = _JWT.decode(
            token,
            family.key(header),
            algorithms=[header["alg"]],  # the key was found by it
            audience=audiences or None,
            leeway=settings.JWT_CLOCK_SKEW_S,
            options={
                "require": ["iss", "sub", "exp", "iat", *(["aud"] if audiences else [])],
                "verify_aud": bool(audiences),
                "verify_iat": False,  # PyJWT would call a future iat "not yet valid"
            },
        )
    except jwt.PyJWTError as error:
        raise _to_error(error) from None
    _check_issued_at(claims["iat"])
    return Claims(
        issuer=_check_issuer(claims["iss"], family),
        subject=_check_subject(claims["sub"]),
        is_guest=claims.get("is_anonymous") is True,
        scopes=_parse_scopes(claims.get("scope")),
        epoch=_parse_epoch(claims.get("epoch")),
    )


def _parse_scopes(claim: object) -> frozenset[str] | None:
    """Return the token's scopes (RFC 8693 §4.2); used only for tokens that Parley issued."""
    return frozenset(claim.split()) if isinstance(claim, str) else None


def _parse_epoch(claim: object) -> str | None:
    """Return any value of the claim as text that PostgreSQL can compare."""
    return None if claim is None else ascii(claim).strip("'")


class _Strict(jwt.PyJWT):
    """PyJWT that refuses duplicate claims, which two parsers could read differently."""

    def _decode_payload(self, decoded: dict[str, Any]) -> dict[str, Any]:
        try:
            payload = json.loads(decoded["payload"], object_pairs_hook=_unique_members)
        except (ValueError, RecursionError):
            raise jwt.DecodeError("not JSON, or a claim twice") from None
        if not isinstance(payload, dict):
            raise jwt.DecodeError("not a JSON object")
        return payload


_JWT: Final = _Strict()


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a duplicate name")
    return members


def issue(
    subject: str, *, epoch: str, scopes: Iterable[str] | None = None, lifetime_s: int | None = None
) -> tuple[str, int]:
    """Return a JWT for a local user's id and its lifetime; without `scopes` it has every scope."""
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


def _parse_header(token: str) -> Mapping[str, Any]:
    """Return the unverified header of a JWT."""
    part = token.partition(".")[0]
    try:
        raw = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
        header = json.loads(raw, object_pairs_hook=_unique_members)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or token.count(".") != 2:
        raise Unauthorized(
            "The token is neither a JWT nor an API token of this server. Staff make API tokens in "
            "Django admin.",
            code="invalid_token_header",
        )
    if not isinstance(header.get("kid"), str | None):
        raise Unauthorized("The token's key name (kid) must be text.", code="invalid_token")
    return header


def _find_family(header: Mapping[str, Any]) -> Family:
    algorithm = header.get("alg")
    if not algorithm:
        raise Unauthorized("The token must name its algorithm (alg).", code="algorithm_missing")
    family = _FAMILY_OF.get(algorithm) if isinstance(algorithm, str) else None
    if family is None:
        raise Unauthorized(
            f"Tokens must be signed with {', '.join(_FAMILY_OF)}.", code="unsupported_alg"
        )
    return family


def _to_error(error: jwt.PyJWTError) -> Unauthorized:
    if isinstance(error, jwt.MissingRequiredClaimError):
        code, sentence = _MISSING[error.claim]
    else:
        code, sentence = next(rest for kind, *rest in _ERRORS if isinstance(error, kind))
    return Unauthorized(sentence, code=code)


def _check_issued_at(issued_at: object) -> None:
    try:
        moment = int(issued_at)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        raise Unauthorized("The token's claim iat must be a number.", code="invalid_token") from None
    if moment > time.time() + settings.JWT_CLOCK_SKEW_S:
        raise Unauthorized("The token comes from the future: check the clocks.", code="iat_too_future")


def _check_issuer(value: object, family: Family) -> str:
    if not isinstance(value, str) or not value:
        raise Unauthorized("The token's issuer (iss) must be a string.", code="invalid_issuer")
    local = value == settings.JWT_LOCAL_ISSUER
    known = value in settings.JWT_ISSUERS
    if not (known or local or not settings.JWT_ISSUERS if family.is_ours else known and not local):
        raise Unauthorized(
            "This server does not know the token's issuer: add it to JWT_ISSUERS.",
            code="issuer_not_allowed",
        )
    return _check_name(value)


def _check_subject(value: str) -> str:
    if not value:
        raise Unauthorized("The token names nobody: its claim sub is empty.", code="subject_missing")
    return _check_name(value)


def _check_name(value: str) -> str:
    """Return the text if PostgreSQL can store and index it; raise Unauthorized."""
    try:
        size = len(value.encode())
    except UnicodeEncodeError:  # a lone surrogate, which JSON can express and UTF-8 cannot
        size = LONGEST_NAME_BYTES + 1
    if len(value) > LONGEST_NAME or size > LONGEST_NAME_BYTES or "\0" in value:
        raise Unauthorized(
            f"The token's iss and sub must be plain text of at most {LONGEST_NAME} characters.",
            code="invalid_token",
        )
    return value
