"""The world outside a company: an HTTP proxy on loopback, and servers with certificates of a private CA.

The proxy knows names that this machine does not. It tunnels by CONNECT (RFC 9110 §9.3.6), forwards
plain http by its absolute form, and notes what it was asked for.
"""

from __future__ import annotations

import base64
import socket
import socketserver
import ssl
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, handle: Any) -> None:
        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with suppress(OSError):
                    handle(self.request)

        super().__init__(("127.0.0.1", 0), Handler)
        self.port = int(self.server_address[1])

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class ProxyDouble(_Server):
    """Enter it to listen; `asked` holds the request lines, `places` the ports of hosts."""

    def __init__(self, *, user: str = "", password: str = "") -> None:
        self.asked: list[str] = []
        self.places: dict[str, int] = {}
        self._login = base64.b64encode(f"{user}:{password}".encode()).decode() if user else ""
        super().__init__(self._serve)
        signed = f"{user}:{password}@" if user else ""
        self.url = f"http://{signed}127.0.0.1:{self.port}"

    def _serve(self, client: socket.socket) -> None:
        head = _read_head(client)
        line, _, fields = head.partition(b"\r\n")
        method, target, _ = line.decode().split(" ", 2)
        self.asked.append(f"{method} {target}")
        if self._login and f"basic {self._login}".lower() not in fields.decode().lower():
            client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            return
        host = target.rpartition(":")[0] if method == "CONNECT" else urlsplit(target).hostname or ""
        if host not in self.places:
            client.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
            return
        with socket.create_connection(("127.0.0.1", self.places[host])) as server:
            if method == "CONNECT":
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                path = urlsplit(target)._replace(scheme="", netloc="").geturl()
                server.sendall(f"{method} {path} HTTP/1.1\r\n".encode() + fields)
            _pump_both(client, server)


class TlsFront(_Server):
    """Takes TLS for one name, by a certificate of the CA, in front of a plain server of this machine."""

    def __init__(self, ca: PrivateCa, name: str, port: int) -> None:
        self._context = ca.server_context(name)
        self._behind = port
        super().__init__(self._serve)

    def _serve(self, client: socket.socket) -> None:
        with (
            self._context.wrap_socket(client, server_side=True) as opened,
            socket.create_connection(("127.0.0.1", self._behind)) as server,
        ):
            _pump_both(opened, server)


class PrivateCa:
    """A certificate authority that nobody else knows; `path` is its certificate."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Example Corp CA")])
        self.certificate = self._sign(self._name, self._key, None)
        self.path = folder / "ca.pem"
        self.path.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def server_context(self, name: str) -> ssl.SSLContext:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        chain = self._folder / f"{name}.pem"
        chain.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + self._sign(subject, key, name).public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain)
        return context

    def _sign(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, host: str | None) -> Any:
        now = datetime.now(UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=host is None, path_length=None), critical=True)
        )
        if host is not None:
            made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        return made.sign(self._key, hashes.SHA256())


def _read_head(client: socket.socket) -> bytes:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        if not (some := client.recv(1)):
            break
        head += some
    return head


def _pump_both(one: socket.socket, other: socket.socket) -> None:
    back = threading.Thread(target=_pump, args=(other, one), daemon=True)
    back.start()
    _pump(one, other)
    back.join(10)


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while some := source.recv(65_536):
            sink.sendall(some)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
