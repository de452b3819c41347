"""nginx and Caddy in front of a web process, with the very files of `deploy/`, on loopback and by TLS.

Only names of this machine are put into the files: ports, addresses, certificate and folders.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import psutil
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from benchmarks.ports import free_port
from benchmarks.stack import ROOT, Parts

HOST: Final = "127.0.0.1"
KINDS: Final = ("nginx", "caddy")
_DEPLOY: Final = ROOT / "deploy"
_CERTIFICATES: Final = "/etc/parley/tls"
_OWN: Final = f"# A certificate of your own: tls {_CERTIFICATES}/certificate.pem {_CERTIFICATES}/key.pem"
_COMMAND_S: Final = 20


@dataclass
class Front:
    """A proxy: its files are in `folder`, it listens on `port` and asks the web process on `web`."""

    kind: str
    folder: Path
    parts: Parts
    web: int
    port: int = field(default_factory=free_port)
    _plain: int = field(default_factory=free_port)
    _admin: int = field(default_factory=free_port)
    _starts: int = 0
    _process: psutil.Process | None = None
    _replaced: list[psutil.Process] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir(mode=0o711)
        self.certificate, key = make_certificate(self.folder)
        write = {"nginx": self._write_nginx, "caddy": self._write_caddy}[self.kind]
        write(self.certificate, key)

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.port}"

    @property
    def process(self) -> psutil.Process:
        """The process that takes new connections; of nginx, the master."""
        assert self._process is not None
        return self._process

    def check(self) -> str:
        """Let the program itself judge its files; return what it says, raise if it refuses them."""
        caddy = ("caddy", "validate", "--config", str(self.folder / "Caddyfile"))
        return self._run(*(caddy if self.kind == "caddy" else (*self._nginx(), "-t")))

    def start(self) -> None:
        """Start it, and return when it listens."""
        self._starts += 1
        name = f"{self.folder.name}.{self._starts}"
        if self.kind == "caddy":
            command = ("caddy", "run", "--config", str(self.folder / "Caddyfile"))
            self._process = psutil.Process(self.parts.start(name, *command, env=self._environment()).pid)
            self.parts.wait(name, self._listens)
        else:  # a daemon, as everywhere: a child of ours would not let itself be replaced
            self.parts.finish(name, *self._nginx())
            self._process = self._nginx_but(None)

    def reload(self) -> None:
        """Let it read its files again, and return when it has."""
        if self.kind == "caddy":
            address = ("--address", f"{HOST}:{self._admin}", "--force")
            self._run("caddy", "reload", "--config", str(self.folder / "Caddyfile"), *address)
            return
        before = set(self.process.children())
        self._run(*self._nginx(), "-s", "reload")
        _wait(lambda: set(self.process.children()) - before)

    def replace(self) -> None:
        """Start another, which takes the new connections; this one ends with the last of its own.

        nginx's takes over the open port; Caddy's needs it free, so that for a moment nobody listens.
        """
        old = self.process
        self._replaced.append(old)
        if self.kind == "caddy":
            old.send_signal(signal.SIGTERM)
            _wait(lambda: not self._listens())
            self.start()
        else:
            old.send_signal(signal.SIGUSR2)
            self._process = self._nginx_but(old)
            _wait(self.process.children)
            old.send_signal(signal.SIGQUIT)

    def wait_for_replaced(self) -> None:
        """Return when those that were replaced have ended."""
        while self._replaced:
            self._replaced.pop().wait(_COMMAND_S)

    def restart(self) -> None:
        """End it at once, with all its connections, and start it again."""
        self.stop()
        self.start()

    def stop(self) -> None:
        """End it at once."""
        for process in (*self._replaced, self.process):
            with suppress(psutil.NoSuchProcess):  # one that was replaced ends by itself
                process.send_signal(signal.SIGTERM if self.kind == "nginx" else signal.SIGKILL)
                process.wait(_COMMAND_S)
        self._replaced.clear()

    def _nginx_but(self, old: psutil.Process | None) -> psutil.Process:
        """Wait until `nginx.pid` names a master other than the old one; return it."""
        file, known = self.folder / "nginx.pid", str(old.pid) if old else ""
        _wait(lambda: _text(file) not in {"", known})
        return psutil.Process(int(file.read_text()))

    def _nginx(self) -> tuple[str, ...]:
        program = nginx_program()
        assert program is not None
        return program, "-c", str(self.folder / "nginx.conf"), "-e", str(self.folder / "error.log")

    def _write_nginx(self, certificate: Path, key: Path) -> None:
        temporary = "".join(
            f"    {kind}_temp_path {self.folder}/{kind};\n"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        main = {
            "/run/nginx.pid": str(self.folder / "nginx.pid"),
            "/var/log/nginx/access.log": str(self.folder / "access.log"),
            "/etc/nginx/conf.d/*.conf": str(self.folder / "parley.conf"),
            "http {\n": "http {\n" + temporary,
        }
        site = {
            "listen 80;": f"listen {HOST}:{self._plain};",
            "listen 443 ": f"listen {HOST}:{self.port} ",
            "127.0.0.1:8000": f"{HOST}:{self.web}",
            f"{_CERTIFICATES}/certificate.pem": str(certificate),
            f"{_CERTIFICATES}/key.pem": str(key),
        }
        for name, changes in (("nginx.conf", main), ("parley.conf", site)):
            text = (_DEPLOY / "nginx" / name).read_text()
            (self.folder / name).write_text(_changed(text, changes))

    def _write_caddy(self, certificate: Path, key: Path) -> None:
        own = f"\tadmin {HOST}:{self._admin}\n\thttp_port {self._plain}\n\tdefault_bind {HOST}\n"
        changes = {
            "{\n\tservers {": "{\n" + own + "\tservers {",
            _OWN: f"tls {certificate} {key}",
        }
        text = (_DEPLOY / "caddy" / "Caddyfile").read_text()
        (self.folder / "Caddyfile").write_text(_changed(text, changes))

    def _environment(self) -> dict[str, str]:
        """Return what Caddy reads: its folders, and the names in its file."""
        folders = dict.fromkeys(("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"), str(self.folder))
        return folders | {"PARLEY_SITE": self.url, "PARLEY_WEB": f"{HOST}:{self.web}"}

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((HOST, self.port)) == 0

    def _run(self, *command: str) -> str:
        done = subprocess.run(
            command,
            env=os.environ | self._environment(),
            capture_output=True,
            text=True,
            timeout=_COMMAND_S,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr


def missing(kind: str) -> str:
    """Return why this proxy cannot be started here, or nothing."""
    found = nginx_program() if kind == "nginx" else shutil.which("caddy")
    return "" if found else f"there is no {kind} here (apt-get install {kind})"


def nginx_program() -> str | None:
    """Return the path of nginx, which Debian keeps out of the path of users."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """Write a certificate of loopback for a day, and its key; return the paths."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "parley on loopback")])
    names = [x509.DNSName("localhost"), x509.IPAddress(ip_address(HOST))]
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(issuer_name=name, subject_name=name, public_key=key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(made.public_bytes(form[0]))
    paths[1].write_bytes(key.private_bytes(*form))
    paths[1].chmod(0o600)
    return paths


def _changed(text: str, changes: Mapping[str, str]) -> str:
    """Replace each; raise ValueError if one is not there, because the file has changed."""
    for old, new in changes.items():
        if old not in text:
            raise ValueError(f"{old!r} is not in the file")
        text = text.replace(old, new)
    return text


def _text(file: Path) -> str:
    """What is in the file; nothing while nginx moves it."""
    with suppress(FileNotFoundError):
        return file.read_text().strip()
    return ""


def _wait(ready: Callable[[], object]) -> None:
    until = time.monotonic() + _COMMAND_S
    while not ready():
        if time.monotonic() > until:
            raise TimeoutError("the proxy did not do what it was asked")
        time.sleep(0.01)
