"""Public keys of identity providers: JWKs and JWK sets (RFC 7517).

The type, curve and `alg` of a key determine which algorithms it may verify; a token cannot change
that. Private and symmetric keys are refused.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import jwt

_EC: Final = {"P-256": "ES256", "P-384": "ES384"}
_RSA: Final = ("RS256", "RS384", "RS512")
ALGORITHMS: Final = (*_EC.values(), *_RSA)
_PRIVATE: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
_RSA_BITS: Final = range(2048, 8193)  # shorter keys are weak, and longer ones are slow to verify
_MOST: Final = 100


class InvalidKey(ValueError):
    """The key cannot verify tokens; the text is the reason, without the key."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key, its id in the set, and the algorithms that it may verify."""

    kid: str | None
    algorithms: tuple[str, ...]
    key: Any


@dataclass(frozen=True, slots=True)
class KeySet:
    """The keys of one issuer."""

    keys: tuple[PublicKey, ...]

    def find(self, algorithm: str, kid: str | None) -> PublicKey | None:
        """Return the key with that id; without an id on either side, the only key for the algorithm."""
        fitting = [key for key in self.keys if algorithm in key.algorithms]
        named = [key for key in fitting if kid is not None and key.kid == kid]
        if named:
            return named[0]
        nameless = fitting if kid is None else [key for key in fitting if key.kid is None]
        return nameless[0] if len(nameless) == len(fitting) == 1 else None


def parse_key(jwk: object) -> PublicKey:
    """Parse one JWK; raise InvalidKey."""
    if not isinstance(jwk, dict):
        raise InvalidKey("a key must be a JSON object")
    if _PRIVATE & jwk.keys():
        raise InvalidKey("it holds a private or symmetric key; give the public one")
    kid, algorithms = jwk.get("kid"), _algorithms(jwk)
    if not isinstance(kid, str | None):
        raise InvalidKey("its kid must be text")
    if jwk.get("use", "sig") != "sig" or "verify" not in jwk.get("key_ops", ["verify"]):
        raise InvalidKey("it is not meant for signatures")
    try:
        key = jwt.PyJWK({**jwk, "alg": algorithms[0]}).key
    except Exception:  # the library raises errors of many types
        raise InvalidKey("its numbers are no key") from None
    if jwk["kty"] == "RSA" and key.key_size not in _RSA_BITS:
        raise InvalidKey("an RSA key must have 2048 to 8192 bits")
    return PublicKey(kid, algorithms, key)


def _algorithms(jwk: dict[str, Any]) -> tuple[str, ...]:
    kind, curve = jwk.get("kty"), jwk.get("crv")
    possible: tuple[str, ...] = ()
    if kind == "RSA":
        possible = _RSA
    elif kind == "EC" and isinstance(curve, str) and curve in _EC:
        possible = (_EC[curve],)
    declared = jwk.get("alg")
    found = tuple(name for name in possible if declared in (None, name))
    if not found:
        raise InvalidKey(f"it must be for one of {', '.join(ALGORITHMS)}")
    return found


def parse_set(document: object) -> KeySet:
    """Return the usable keys of a JWKS and ignore others; raise InvalidKey if there is none."""
    keys = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(keys, list):
        raise InvalidKey('it must be a JSON object with the list "keys"')
    found = tuple(key for jwk in keys[:_MOST] if (key := _parse_or_none(jwk)) is not None)
    if not found:
        raise InvalidKey(f"it holds no public key for {', '.join(ALGORITHMS)}")
    return KeySet(found)


def _parse_or_none(jwk: object) -> PublicKey | None:
    try:
        return parse_key(jwk)
    except InvalidKey:
        return None


@lru_cache(maxsize=8)
def parse_setting(text: str) -> KeySet:
    """Return the keys of a setting with a JWK, a set or nothing; raise InvalidKey."""
    if not text:
        return KeySet(())
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidKey("it is not JSON") from None
    if isinstance(document, dict) and "keys" in document:
        return KeySet(tuple(map(parse_key, document["keys"])))
    return KeySet((parse_key(document),))
