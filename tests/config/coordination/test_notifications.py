"""Notifications over Redis: sent, received, lost and caught up, whatever the connection does."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import hiredis
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from benchmarks.ports import free_port
from config.coordination import notifications, redis_pubsub
from config.coordination.memory_exchange import MISSED, Exchange
from config.coordination.redis_exchange import RedisExchange
from config.coordination.redis_pubsub import Publisher, Subscriber
from tests.support.log_lines import lines_about

REAL = os.environ.get("REDIS_URL", "")


class FakeRedis:
    """As much of Redis as pub/sub needs, with the faults of a real one."""

    def __init__(self, password: str = "") -> None:
        self.password = password
        self.silent = False
        self.commands: list[list[bytes]] = []
        self._subscribed: dict[asyncio.StreamWriter, set[bytes]] = {}

    @asynccontextmanager
    async def on_port(self, port: int = 0) -> AsyncIterator[int]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        async with server:
            yield server.sockets[0].getsockname()[1]
            self.hang_up()

    def hang_up(self) -> None:
        for writer in list(self._subscribed):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        parser, self._subscribed[writer] = hiredis.Reader(), set()
        is_known = not self.password
        try:
            while data := await reader.read(65_536):
                parser.feed(data)
                while (command := parser.gets()) is not False:
                    self.commands.append(command)
                    if command[0] == b"AUTH":
                        is_known = command[-1] == self.password.encode()
                    elif is_known and not self.silent:
                        self._obey(command, writer)
                    if not is_known:
                        writer.write(b"-NOAUTH Authentication required.\r\n")
        except (ConnectionError, asyncio.CancelledError):  # the client, or the test, is over
            pass
        finally:
            del self._subscribed[writer]
            writer.transport.abort()

    def _obey(self, command: list[bytes], writer: asyncio.StreamWriter) -> None:
        match command:
            case [b"SUBSCRIBE", *channels]:
                self._subscribed[writer].update(channels)
                for channel in channels:
                    writer.write(redis_pubsub.pack(b"subscribe", channel, b"1"))
            case [b"PUBLISH", channel, message]:
                self.publish(channel, message)
                writer.write(b":1\r\n")
            case [b"PING"]:
                writer.write(b"+PONG\r\n")

    def publish(self, channel: bytes, message: bytes) -> None:
        line = redis_pubsub.pack(b"message", channel, message)
        for writer, channels in self._subscribed.items():
            if channel in channels:
                writer.write(line)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_pubsub, "_RETRY_S", 0.02)
    monkeypatch.setattr(redis_pubsub, "_BEAT_S", 0.1)


async def until(true: Callable[[], object], *, seconds: float = 5.0) -> None:
    async with asyncio.timeout(seconds):
        while not true():  # noqa: ASYNC110 (what is waited for is on the other side of a socket)
            await asyncio.sleep(0.005)


async def heard(
    exchange: Exchange, told: list[notifications.Message], number: int, *, seconds: float = 5.0
) -> None:
    """Ring until it is heard: who has just connected may have missed the first."""
    async with asyncio.timeout(seconds):
        while {"number": number} not in told:
            exchange.notify("group", {"number": number})
            await asyncio.sleep(0.01)


def test_in_one_process_only_a_group_receives_its_notifications() -> None:
    async def work() -> None:
        exchange, here, there = Exchange(), list[notifications.Message](), list[notifications.Message]()
        with exchange.subscribe("a", here.append), exchange.subscribe("b", there.append):
            exchange.notify("a", {"wake": True})
            assert here == []  # soon, but never within the call
            await asyncio.sleep(0)
        exchange.notify("a", {"wake": True})
        await asyncio.sleep(0)
        assert (here, there) == ([{"wake": True}], [])

    asyncio.run(work())


def test_a_listener_that_fails_keeps_nothing_from_the_others() -> None:
    def fail(message: notifications.Message) -> None:
        raise KeyError("what is this?")

    async def work() -> None:
        exchange, told = Exchange(), list[notifications.Message]()
        with exchange.subscribe("a", fail), exchange.subscribe("a", told.append):
            exchange.notify("a", {"cancel": b"x"})
            await asyncio.sleep(0)
        assert told == [{"cancel": b"x"}]

    with lines_about("notification", "Redis") as lines:
        asyncio.run(work())
    assert [line["event"] for line in lines] == ["notification not understood"]


@pytest.mark.parametrize(
    "kind",
    ["fake", pytest.param("real", marks=pytest.mark.skipif(not REAL, reason="REDIS_URL is not set"))],
)
def test_processes_hear_each_other(kind: str) -> None:
    async def tell(url: str) -> None:
        one, other, told = RedisExchange(url), RedisExchange(url), list[notifications.Message]()
        with other.subscribe("group", told.append):
            await heard(one, told, 1)
            message = {"batches": [(b"\x00\xff", 1, 2, "é".encode())]}
            one.notify("group", message)
            await until(lambda: "batches" in told[-1])
        assert told[-1] == {"batches": [[b"\x00\xff", 1, 2, "é".encode()]]}

    async def work() -> None:
        if kind == "real":
            await tell(REAL)
            return
        async with FakeRedis().on_port() as port:
            await tell(f"redis://127.0.0.1:{port}/3")

    asyncio.run(work())


def test_a_lost_connection_is_made_anew_and_listens_again() -> None:
    async def work() -> None:
        redis, told = FakeRedis(), list[notifications.Message]()
        async with redis.on_port() as port:
            exchange = RedisExchange(f"redis://127.0.0.1:{port}")
            with exchange.subscribe("group", told.append):
                for number in range(4):
                    await heard(exchange, told, number)
                    assert told.count(MISSED) == number + 1
                    redis.hang_up()

    with lines_about("notification", "Redis") as lines:
        asyncio.run(work())
    assert {line["event"] for line in lines} == {"Redis pub/sub is down", "Redis pub/sub is back"}


def test_a_redis_that_is_frozen_is_left_and_found_again() -> None:
    async def work() -> None:
        redis, told = FakeRedis(), list[notifications.Message]()
        async with redis.on_port() as port:
            exchange = RedisExchange(f"redis://127.0.0.1:{port}")
            with exchange.subscribe("group", told.append):
                await heard(exchange, told, 1)
                redis.silent = True
                before = len(redis.commands)
                await until(lambda: [b"SUBSCRIBE", b"parley:ring:group"] in redis.commands[before:])
                redis.silent = False
                await heard(exchange, told, 2)

    with lines_about("notification", "Redis") as lines:
        asyncio.run(work())
    assert [line["error"] for line in lines if "error" in line] == ["Redis does not answer."] * 2


def test_while_redis_is_away_nobody_waits_and_the_newest_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(redis_pubsub, "_WAITING", 100)

    async def work() -> None:
        redis, told = FakeRedis(), list[bytes]()
        port = free_port()
        url = f"redis://127.0.0.1:{port}"
        publisher = Publisher(url)
        for number in range(1_000):
            publisher.publish("channel", b"%d" % number)
        async with redis.on_port(port):
            subscriber = Subscriber(url, lambda channel, message: told.append(message))
            subscriber.subscribe("channel")
            await until(lambda: sum(command[0] == b"PUBLISH" for command in redis.commands) == 100)
        sent = [command[2] for command in redis.commands if command[0] == b"PUBLISH"]
        assert sent == [b"%d" % number for number in range(900, 1_000)]

    asyncio.run(work())


def test_a_slow_redis_is_sent_no_more_than_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_pubsub, "_UNSENT", 1 << 20)

    async def work() -> None:
        async def take_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            try:
                await asyncio.sleep(60)
            finally:
                writer.transport.abort()

        server = await asyncio.start_server(take_nothing, "127.0.0.1", 0)
        async with server:
            publisher = Publisher(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}")
            publisher.publish("channel", b"first")
            await until(lambda: publisher._connection._wire is not None)
            wire = publisher._connection._wire
            assert wire is not None
            assert wire.transport is not None
            for _ in range(1_000):
                publisher.publish("channel", b"x" * 65_536)
            assert wire.transport.get_write_buffer_size() < 2 << 20

    asyncio.run(work())


@pytest.mark.parametrize(("given", "is_told"), [("secret", True), ("wrong", False), ("", False)])
def test_the_password_of_the_address_is_said_first(given: str, is_told: bool) -> None:
    async def work() -> None:
        redis, told = FakeRedis(password="secret"), list[notifications.Message]()
        async with redis.on_port() as port:
            exchange = RedisExchange(f"redis://{f'app:{given}@' if given else ''}127.0.0.1:{port}")
            with exchange.subscribe("group", told.append):
                if is_told:
                    await heard(exchange, told, 1)
                    assert redis.commands[0] == [b"AUTH", b"app", b"secret"]
                else:
                    exchange.notify("group", {"number": 1})
                    await asyncio.sleep(0.2)
                    assert told == []

    with lines_about("notification", "Redis") as lines:
        asyncio.run(work())
    assert given == "" or given not in str(lines)
    assert is_told or "NOAUTH" in lines[0]["error"]


def test_a_redis_behind_a_unix_socket(tmp_path: Path) -> None:
    async def work() -> None:
        redis, told = FakeRedis(), list[notifications.Message]()
        async with await asyncio.start_unix_server(redis._serve, tmp_path / "redis"):
            exchange = RedisExchange(f"unix://{tmp_path}/redis")
            with exchange.subscribe("group", told.append):
                await heard(exchange, told, 1)
            redis.hang_up()

    asyncio.run(work())


def test_a_redis_behind_tls(tmp_path: Path) -> None:
    certificate, key = _certificate(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)

    async def work(options: str) -> list[notifications.Message]:
        redis, told = FakeRedis(), list[notifications.Message]()
        async with await asyncio.start_server(redis._serve, "127.0.0.1", 0, ssl=tls) as server:
            port = server.sockets[0].getsockname()[1]
            exchange = RedisExchange(f"rediss://127.0.0.1:{port}/0?{options}")
            with exchange.subscribe("group", told.append), suppress(TimeoutError):
                await heard(exchange, told, 1, seconds=2)
            redis.hang_up()
        return told

    assert asyncio.run(work(f"ssl_ca_certs={certificate}"))
    assert asyncio.run(work("ssl_cert_reqs=none"))
    with lines_about("notification", "Redis") as lines:
        assert not asyncio.run(work(""))
    assert "certificate verify failed" in lines[0]["error"]


def _certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate that 127.0.0.1 has signed for itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    address = x509.IPAddress(ip_address("127.0.0.1"))
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    certificate, private = folder / "certificate", folder / "key"
    certificate.write_bytes(made.public_bytes(Encoding.PEM))
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return certificate, private


def test_what_is_no_ring_is_passed_over() -> None:
    async def work() -> None:
        redis, told = FakeRedis(), list[notifications.Message]()
        async with redis.on_port() as port:
            exchange = RedisExchange(f"redis://127.0.0.1:{port}")
            with exchange.subscribe("group", told.append):
                await heard(exchange, told, 1)
                redis.publish(b"parley:ring:group", b"\xc1 no MessagePack")
                await heard(exchange, told, 2)

    asyncio.run(work())


@pytest.mark.parametrize("url", ["redis://127.0.0.1:1", "rediss://127.0.0.1:1", "unix:///nowhere"])
def test_an_address_where_nobody_listens_costs_one_line(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect, attempts = redis_pubsub._connect, list[str]()

    def counted(
        url: str, on_reply: Callable[[object], None]
    ) -> AbstractAsyncContextManager[redis_pubsub._Wire]:
        attempts.append(url)
        return connect(url, on_reply)

    monkeypatch.setattr(redis_pubsub, "_connect", counted)

    async def work() -> None:
        exchange = RedisExchange(url)
        with exchange.subscribe("group", lambda _: None):
            exchange.notify("group", {"wake": True})
            await until(lambda: len(attempts) > 12, seconds=20)  # several each way

    with lines_about("Redis") as lines:
        asyncio.run(work())
    assert [line["event"] for line in lines] == ["Redis pub/sub is down"] * 2  # one each way
