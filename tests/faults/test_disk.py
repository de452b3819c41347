"""A disk that is full while attachments arrive and runs go on: what was answered 201 is whole."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.faults import scenes
from tests.faults.clients import Caller
from tests.faults.scenes import Books, numbered
from tests.faults.stack import FULL, Stack
from tests.faults.tally import Tally
from tests.support.pictures import large_jpeg

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600 if FULL else 120)]
UPLOADS = 400 if FULL else 40
AT_ONCE = 8
RUNS = 20
SIZES = (100_000, 300_000, 1_500_000, 6_000_000)


@contextmanager
def _small_disk(folder: Path) -> Iterator[None]:
    """4 MiB for attachments and for the spool beside them."""
    folder.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small disk")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_refuses_uploads_and_keeps_what_it_accepted(stack: Stack, tally: Tally) -> None:
    with _small_disk(stack.folder / "var" / "attachments"):
        asyncio.run(_fill(stack, tally))


async def _fill(stack: Stack, tally: Tally) -> None:
    faults: Counter[str] = Counter()
    with Books(stack) as books:
        async with scenes.client(stack) as caller:
            run_ids = await scenes.start_many(caller, RUNS, numbered(200, 10))
            room = asyncio.Semaphore(AT_ONCE)
            answers = await asyncio.gather(*(_upload(caller, room, n) for n in range(UPLOADS)))
            await books.settled(run_ids, within_s=30)
            for answer in answers:
                faults += await _judge(caller, answer)
        found = books.examine(run_ids)
    faults += found.faults + Counter({"run not completed": RUNS - found.ends["completed"]})
    incoming = stack.folder / "var" / "attachments" / ".incoming"
    faults["left in the spool"] += len(list(incoming.iterdir())) if incoming.exists() else 0
    refused = sum(answer.status_code == 507 for answer in answers)
    faults["the disk was never full"] += not refused
    note = f"{UPLOADS - refused} kept, {refused} refused (507), {RUNS} runs beside them"
    tally.score("P1", "attachments on a full disk", UPLOADS, faults, note=note)


async def _upload(caller: Caller, room: asyncio.Semaphore, number: int) -> httpx.Response:
    picture = large_jpeg(SIZES[number % len(SIZES)] + number)
    async with room:
        return await caller.http.post(
            f"{caller.url}/api/v1/agent/attachments", files={"file": ("p.jpg", picture, "image/jpeg")}
        )


async def _judge(caller: Caller, answer: httpx.Response) -> Counter[str]:
    """A kept picture can be fetched whole; a refusal says why."""
    if answer.status_code == 201:
        got = await caller.http.get(httpx.URL(answer.json()["url"]).copy_with(port=_port(caller)))
        whole = got.status_code == 200 and got.content.endswith(b"\xff\xd9")
        return Counter({"kept and not whole": not whole})
    named = answer.status_code == 507 and answer.json()["code"] == "storage_full"
    return Counter({f"answered {answer.status_code}": not named})


def _port(caller: Caller) -> int | None:
    return httpx.URL(caller.url).port
