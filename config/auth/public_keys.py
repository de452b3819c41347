"""Public keys as identity providers publish them: JWKs and sets of them (RFC 7517).

A key says by its type, curve and `alg` which algorithms it may verify; nothing in a token can make
it serve another one. Private and symmetric keys are never taken, so no secret can come this way.
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
_RSA_BITS: Final = range(2048, 8193)  # shorter is weak; longer would cost whoever must verify
_MOST: Final = 100


class Unfit(ValueError):
    """This is no key that tokens could be verified with; the text says why, without the key."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key, its name in the set, and all that it may verify."""

    kid: str | None
    algorithms: tuple[str, ...]
    key: Any


class KeySet:
    """Keys of one issuer, found by algorithm and `kid`."""

    def __init__(self, keys: tuple[PublicKey, ...]) -> None:
        self.keys = keys

    def find(self, algorithm: str, kid: str | None) -> PublicKey | None:
        """The key of that name. Without a name on either side only a single fitting key is meant."""
        fitting = [key for key in self.keys if algorithm in key.algorithms]
        named = [key for key in fitting if kid is not None and key.kid == kid]
        if named:
            return named[0]
        nameless = fitting if kid is None else [key for key in fitting if key.kid is None]
        return nameless[0] if len(nameless) == len(fitting) == 1 else None


def parse_key(jwk: object) -> PublicKey:
    """One JWK; raises Unfit."""
    if not isinstance(jwk, dict):
        raise Unfit("a key must be a JSON object")
    if _PRIVATE & jwk.keys():
        raise Unfit("it holds a private or symmetric key; give the public one")
    kid, algorithms = jwk.get("kid"), _algorithms(jwk)
    if not isinstance(kid, str | None):
        raise Unfit("its kid must be text")
    if jwk.get("use", "sig") != "sig" or "verify" not in jwk.get("key_ops", ["verify"]):
        raise Unfit("it is not meant for signatures")
    try:
        key = jwt.PyJWK({**jwk, "alg": algorithms[0]}).key
    except Exception:  # the library's own errors differ by what is wrong in the numbers
        raise Unfit("its numbers are no key") from None
    if jwk["kty"] == "RSA" and key.key_size not in _RSA_BITS:
        raise Unfit("an RSA key must have 2048 to 8192 bits")
    return PublicKey(kid, algorithms, key)


def _algorithms(jwk: dict[str, Any]) -> tuple[str, ...]:
    kind, curve = jwk.get("kty"), jwk.get("crv")
    possible: tuple[str, ...] = ()
    if kind == "RSA":
        possible = _RSA
    elif kind == "EC" and isinstance(curve, str) and curve in _EC:
        possible = (_EC[curve],)
    wanted = jwk.get("alg")
    found = tuple(name for name in possible if wanted in (None, name))
    if not found:
        raise Unfit(f"it must be for one of {', '.join(ALGORITHMS)}")
    return found


def parse_set(document: object) -> KeySet:
    """The usable keys of a JWKS; others in it are passed over. Raises Unfit when there is none."""
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise Unfit('it must be a JSON object with the list "keys"')
    found = tuple(key for jwk in listed[:_MOST] if (key := _parsed(jwk)) is not None)
    if not found:
        raise Unfit(f"it holds no public key for {', '.join(ALGORITHMS)}")
    return KeySet(found)


def _parsed(jwk: object) -> PublicKey | None:
    try:
        return parse_key(jwk)
    except Unfit:
        return None


@lru_cache(maxsize=8)
def static(text: str) -> KeySet:
    """The keys of a setting that holds one JWK or a whole set; raises Unfit. "" holds none."""
    if not text:
        return KeySet(())
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise Unfit("it is not JSON") from None
    if isinstance(document, dict) and "keys" in document:
        return KeySet(tuple(map(parse_key, document["keys"])))
    return KeySet((parse_key(document),))
