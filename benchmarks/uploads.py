"""What an upload costs: memory, time, and the microseconds of signing and parsing its URL.

    .venv/bin/python -m benchmarks.uploads

Starts Parley in the embedded shape, alone and on loopback, and sends it real pictures. Memory is the
private memory (RssAnon) of the serving process, looked at every millisecond: files that the system
caches are not counted, a copy of the upload would be.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from io import BytesIO
from itertools import repeat
from pathlib import Path
from typing import Final

import httpx
from PIL import Image

from benchmarks import stack
from benchmarks.ports import free_port

MIB: Final = 2**20
_ADDRESS: Final = "/api/v1/agent/attachments"


def photo(kind: str, size: tuple[int, int], **options: int) -> bytes:
    """A picture as hard to compress as any: noise."""
    made = BytesIO()
    Image.effect_noise(size, 90).convert("RGB").save(made, kind, **options)
    return made.getvalue()


@contextmanager
def server() -> Iterator[tuple[httpx.Client, int]]:
    """A client of a running Parley, and the pid of the process that serves it."""
    with ExitStack() as opened:
        folder = Path(tempfile.mkdtemp(prefix="parley-bench-"))
        opened.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o711)
        parts = opened.enter_context(stack.Parts(folder))
        env = stack.environment(parts, free_port(), "uvicorn")
        _, port, token, _, pid, *_ = stack.embedded_shape(
            parts, opened, base_url="http://127.0.0.1:9/v1", env=env, workers=1, say=lambda _: None
        )
        client = httpx.Client(
            base_url=f"http://127.0.0.1:{port}",
            headers={"Authorization": f"Bearer {token}"},
            timeout=60,
            trust_env=False,
        )
        with client:
            yield client, pid


def send(client: httpx.Client, data: bytes) -> None:
    response = client.post(_ADDRESS, files={"file": ("a", data)})
    assert response.status_code == 201, response.text


def private_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0])


def growth_mib(pid: int, work: Callable[[], None]) -> float:
    """By how much the process grows at most while the work is done."""
    before = peak = private_kib(pid)
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.001):
            peak = max(peak, private_kib(pid))

    watching = threading.Thread(target=watch)
    watching.start()
    work()
    done.set()
    watching.join()
    return (peak - before) / 1024


def measure(client: httpx.Client, pid: int) -> None:
    small = photo("JPEG", (900, 700), quality=85)
    large = {
        "JPEG": photo("JPEG", (3150, 2700), quality=97),
        "PNG": photo("PNG", (2000, 1700), compress_level=1),
    }
    for data in (small, photo("PNG", (64, 64))):
        send(client, data)  # what is loaded once is no cost of an upload; the first large one counts
    for kind, data in large.items():
        grown = max(growth_mib(pid, partial(send, client, data)) for _ in range(5))
        print(f"{kind} of {len(data) / MIB:.1f} MiB: grows by at most {grown:.1f} MiB")
    for name, data, count in (("large", large["JPEG"], 24), ("small", small, 200)):
        with ThreadPoolExecutor(4) as pool:
            since = time.perf_counter()
            list(pool.map(partial(send, client), repeat(data, count)))
            took = time.perf_counter() - since
        rate, volume = count / took, count * len(data) / MIB / took
        print(f"{name} ({len(data) / MIB:.2f} MiB), 4 at once: {rate:.1f} uploads/s, {volume:.0f} MiB/s")


def sign_and_parse(rounds: int = 20_000) -> None:
    os.environ |= {"DJANGO_SETTINGS_MODULE": "config.settings", "DATABASE_URL": "postgresql:///unused"}
    os.environ["VAR_DIR"] = tempfile.mkdtemp(prefix="parley-bench-")
    from uuid import uuid4

    from conversations.attachments import parse_signed_url, sign_url

    owner = uuid4()
    path = f"agent-inputs/{owner}/{uuid4()}/_/{uuid4()}.jpg"
    url = sign_url("agent-files", path)
    for name, work in (
        ("sign", lambda: sign_url("agent-files", path)),
        ("parse", lambda: parse_signed_url(url, owner_id=owner)),
    ):
        since = time.perf_counter()
        for _ in range(rounds):
            work()
        print(f"{name}: {(time.perf_counter() - since) / rounds * 1e6:.1f} µs")
    shutil.rmtree(os.environ["VAR_DIR"])


if __name__ == "__main__":
    if sys.platform != "linux":
        sys.exit("Memory is read from /proc: this runs on Linux.")
    with server() as (client, pid):
        measure(client, pid)
    sign_and_parse()
