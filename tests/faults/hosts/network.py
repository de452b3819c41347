"""Parley on three hosts of a network: on each a web and a worker process, with a folder of their own.
With RabbitMQ the third host's worker is a bare `celery worker`.

PostgreSQL, Redis, RabbitMQ and S3 are on a fourth one, which is where the clients are too. Only inside
`lan.ALONE`.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, Literal

import boto3
import psycopg
from cryptography.fernet import Fernet
from moto.server import ThreadedMotoServer
from psycopg.rows import namedtuple_row

from benchmarks.clusters import Cluster
from benchmarks.stack import PYTHON, Parts, healthy_at
from tests.faults.hosts import lan
from tests.faults.hosts.lan import HERE, Host
from tests.faults.stack import ENVIRONMENT, Part, Ready

Shape = Literal["redis-rabbitmq", "postgres-only"]
PORT: Final = 8000
BUCKET: Final = "parley"
_POSTGRES, _REDIS, _RABBITMQ, _S3, _MODEL = 5432, 6379, 5672, 9000, 8080
_CELERYS: Final = "celery"
_CELERY: Final = (
    *("-m", "celery", "-A", "config", "worker"),
    *("--pool", "solo", "--loglevel", "INFO", "--hostname", f"parley@{_CELERYS}"),
)
_RABBITMQ_SERVER: Final = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")


@dataclass
class Machine:
    """A host, and what Parley runs on it."""

    host: Host
    web: Part
    worker: Part
    make: Callable[[str, tuple[str, ...], Ready], Part]
    """Makes another process of Parley there, which is not started yet."""

    @property
    def parts(self) -> tuple[Part, Part]:
        return self.web, self.worker

    def kill(self) -> None:
        """Take the host away: SIGKILL of all that it runs."""
        for part in self.parts:
            part.kill()

    def start(self) -> None:
        for part in self.parts:
            part.launch()
        for part in self.parts:
            part.wait_ready()


@dataclass
class Network:
    """Everything that runs, and how to call it."""

    cluster: Cluster
    machines: list[Machine]
    token: str
    s3: Any
    port: int = PORT
    host: str = field(init=False)

    def __post_init__(self) -> None:
        self.host = self.machines[0].host.address

    def connect(self) -> psycopg.Connection[Any]:
        """A connection of the trial's own, in autocommit, rows by name."""
        return psycopg.connect(self.cluster.url, autocommit=True, row_factory=namedtuple_row)


@contextmanager
def running(shape: Shape) -> Iterator[Network]:
    """Lay the network and start everything on it; end it again whatever happens."""
    hosts = lan.lay(3)
    with ExitStack() as opened:
        folder = Path(tempfile.mkdtemp(prefix="parley-hosts-"))
        opened.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o711)  # PostgreSQL's user passes through
        parts = opened.enter_context(Parts(folder))
        cluster = _postgres(parts, folder)
        s3 = _bucket(opened)
        model = ("-m", "benchmarks.fake_model", "--host", HERE, "--port", str(_MODEL))
        parts.start("model", PYTHON, *model)
        env = ENVIRONMENT | _same_everywhere()
        env |= {"DATABASE_URL": f"postgresql://parley@{HERE}:{_POSTGRES}/parley"}
        env |= _services(parts, folder) if shape == "redis-rabbitmq" else {"REDIS_URL": ""}
        here = env | {"VAR_DIR": str(folder / "here")}
        parts.finish("migrate", PYTHON, "manage.py", "migrate", "--no-input", env=here)
        models = [f"http://{HERE}:{_MODEL}/v1"] * 2
        token = parts.finish("prepare", PYTHON, "-m", "tests.faults.prepare", *models, env=here)
        bare = hosts[-1] if shape == "redis-rabbitmq" else None
        machines = [_machine(parts, host, folder, env, bare=host is bare) for host in hosts]
        for machine in machines:
            opened.callback(machine.kill)
            machine.start()
        yield Network(cluster, machines, token, s3)


def _same_everywhere() -> dict[str, str]:
    """What all hosts of one installation share."""
    return {
        "SECRET_KEY": token_hex(32),
        "JWT_SECRET": token_hex(32),
        "SEALING_KEYS": Fernet.generate_key().decode(),
        "ATTACHMENT_STORAGE": "s3",
        "S3_ENDPOINT_URL": f"http://{HERE}:{_S3}",
        "S3_ACCESS_KEY_ID": "k",
        "S3_SECRET_ACCESS_KEY": "s",
        "S3_BUCKET": BUCKET,
    }


def _machine(parts: Parts, host: Host, folder: Path, env: dict[str, str], *, bare: bool) -> Machine:
    """Return the host with its processes, not started yet; a `bare` worker is Celery's own."""
    own = {"HOST": host.address, "PORT": str(PORT), "VAR_DIR": str(folder / host.name)}
    own |= {"ALLOWED_HOSTS": host.address}

    def make(name: str, arguments: tuple[str, ...], ready: Ready) -> Part:
        command = host.command(PYTHON, *arguments)
        return Part(parts, f"{name}-{host.number}", command, env | own, ready)

    web = make("web", ("manage.py", "web"), lambda _: healthy_at(PORT, host=host.address))
    worker = make("worker", _CELERY if bare else ("manage.py", "worker"), _says_ready)
    return Machine(host, web, worker, make)


def _says_ready(worker: Part) -> bool:
    return any(words in worker.log() for words in ("worker ready", f"@{_CELERYS} ready"))


def _postgres(parts: Parts, folder: Path) -> Cluster:
    rules = folder / "pg_hba.conf"
    rules.write_text("host all all 127.0.0.1/32 trust\nhost all all 10.83.0.0/24 trust\n")
    own = {"listen_addresses": f"127.0.0.1,{HERE}", "hba_file": str(rules)}
    cluster = Cluster(parts, folder / "postgres", port=_POSTGRES, settings=own)
    cluster.create()
    return cluster


def _services(parts: Parts, folder: Path) -> dict[str, str]:
    """Start Redis, and RabbitMQ as Celery's broker. Return the settings that lead to them."""
    quiet = ("--save", "", "--appendonly", "no", "--protected-mode", "no", "--dir", str(folder))
    parts.start("redis", "redis-server", "--bind", HERE, "--port", str(_REDIS), *quiet)
    home = folder / "rabbitmq"
    home.mkdir()
    (home / "rabbitmq.conf").write_text(f"loopback_users = none\nlisteners.tcp.1 = {HERE}:{_RABBITMQ}\n")
    env = {
        "HOME": str(home),
        "RABBITMQ_NODENAME": "rabbit@localhost",
        "RABBITMQ_MNESIA_BASE": str(home / "data"),
        "RABBITMQ_LOG_BASE": str(home / "log"),
        "RABBITMQ_CONFIG_FILE": str(home / "rabbitmq.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "plugins"),
        "RABBITMQ_LOGS": "-",
    }
    parts.start("rabbitmq", str(_RABBITMQ_SERVER), env=env, stop_by=signal.SIGKILL)
    parts.wait("rabbitmq", lambda: "completed with" in parts.tail("rabbitmq"))
    return {
        "REDIS_URL": f"redis://{HERE}:{_REDIS}/0",
        "CELERY_BROKER_URL": f"amqp://guest:guest@{HERE}:{_RABBITMQ}//",
    }


def _bucket(opened: ExitStack) -> Any:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # else a line for each request
    server = ThreadedMotoServer(HERE, _S3, verbose=False)
    server.start()
    opened.callback(server.stop)
    keys = {"aws_access_key_id": "k", "aws_secret_access_key": "s", "region_name": "us-east-1"}
    client = boto3.client("s3", endpoint_url=f"http://{HERE}:{_S3}", **keys)
    client.create_bucket(Bucket=BUCKET)
    return client


def missing(shape: Shape) -> str:
    """Return why this shape cannot be started here, or nothing."""
    if os.geteuid() != 0:
        return "only root may lay a network here"
    if shape == "redis-rabbitmq" and not (_RABBITMQ_SERVER.exists() and shutil.which("redis-server")):
        return "there is no RabbitMQ or no Redis here (apt-get install rabbitmq-server redis-server)"
    return lan.missing()
