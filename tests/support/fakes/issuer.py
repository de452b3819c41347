"""A loopback identity provider: it signs tokens and serves its key set, which it can change."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from uuid import uuid4

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

ISSUER = "https://issuer.example"


class Key:
    """A private key with a name."""

    def __init__(self, algorithm: str, *, kid: str | None = None) -> None:
        self.algorithm = algorithm
        self.kid = kid or uuid4().hex
        self.private: Any = _make(algorithm)

    def jwk(self, **more: Any) -> dict[str, Any]:
        """The public half, as providers publish it."""
        library = jwt.get_algorithm_by_name(self.algorithm)
        made: dict[str, Any] = json.loads(library.to_jwk(self.private.public_key()))
        made.pop("key_ops", None)
        return {name: value for name, value in (made | {"kid": self.kid} | more).items() if value != ""}

    def sign(self, *, headers: dict[str, Any] | None = None, **changed: Any) -> str:
        """An Authorization header; a claim or header that is `...` is left out."""
        now = int(time.time())
        claims = {"iss": ISSUER, "sub": uuid4().hex, "iat": now, "exp": now + 600} | changed
        whole = {name: value for name, value in claims.items() if value is not ...}
        named = {"kid": self.kid} | (headers or {})
        left = {name: value for name, value in named.items() if value is not ...}
        return "Bearer " + jwt.encode(whole, self.private, algorithm=self.algorithm, headers=left)


def _make(algorithm: str) -> Any:
    if algorithm.startswith("RS"):
        return rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return ec.generate_private_key({"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1()}[algorithm])


class Issuer:
    """Serves `keys` as a JWKS; `fails` makes it answer 500, `delay_s` makes it slow."""

    def __init__(self, *keys: Key) -> None:
        self.document: Any = {"keys": [key.jwk() for key in keys]}
        self.fails = False
        self.delay_s = 0.0
        self.asked = self.answered = 0
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked += 1
                time.sleep(issuer.delay_s)
                issuer.answered += 1  # before the last byte, after which the asker goes on
                body = json.dumps(issuer.document).encode()
                self.send_response(500 if issuer.fails else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        # An address of its own, as keys are kept by address and a port may come again.
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/{uuid4().hex}/jwks.json"

    def publish(self, *keys: Key) -> None:
        self.document = {"keys": [key.jwk() for key in keys]}

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


EC, RSA = Key("ES256"), Key("RS256")
"""The keys of the issuer that tests of callers start."""
