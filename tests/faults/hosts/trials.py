"""The trials of many hosts: `python -m tests.faults.hosts.trials SHAPE RUNS [SEED]` inside `lan.ALONE`.

Prints one line of JSON per score: the arguments of `Tally.score`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from itertools import cycle, islice, repeat
from random import Random
from typing import Any, Final, get_args

from tests.faults import scenes
from tests.faults.clients import Caller, Reader, Transport, session
from tests.faults.hosts.network import BUCKET, PORT, Machine, Network, Shape, running
from tests.faults.ledger import Findings
from tests.faults.scenes import Books, numbered
from tests.faults.stack import FULL, LEASE_S, wait_until
from tests.support.pictures import picture

APART: Final = 60 if FULL else 24
CUT_S: Final = LEASE_S + 4.0
SETTLE_S: Final = 30.0
READ_S: Final = 90.0
_NOTICED_S: Final = 5.0
# Who reads these notices silence by himself; a WebSocket client would wait for its own pings.
_WAYS: Final[tuple[Transport, ...]] = ("sse", "long-poll")
_LOCK: Final = 83
_HOLDER: Final = f"""
import asyncio, os, django
os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
django.setup()
from config import sql
async def hold():
    async with sql.advisory_lock({_LOCK}):
        print("held", flush=True)
        await asyncio.sleep(3_600)
asyncio.run(hold())
"""


class Trials:
    """The trials, in turn, on one network that is whole at the beginning of each."""

    def __init__(self, network: Network, runs: int, random: Random) -> None:
        self.network, self.runs, self.random = network, runs, random
        self.machines = network.machines

    async def all(self) -> None:
        with Books(self.network) as books:
            async with session(self.network.token, seconds=_NOTICED_S) as http:
                await asyncio.gather(
                    *(self._until_it_executes(books, http, machine) for machine in self.machines)
                )
                await self.hosts_share_the_work(books, http)
                await self.files_are_everywhere(http)
                await self.taken_away(books, http, "killed", _killed)
                await self.taken_away(books, http, "cut off", _cut_off)
            if FULL:
                await self.locks_of_a_host_that_is_gone(books)

    async def hosts_share_the_work(self, books: Books, http: Any) -> None:
        """Each run is accepted on one host and read on the next."""
        accepting = list(islice(cycle(self.machines), APART))
        ids = await self._start_many(http, self.machines, APART, numbered(20, 5))
        read_at = list(islice(cycle([*self.machines[1:], *self.machines[:1]]), APART))
        readers = [
            Reader(http, PORT, run_id, hosts=repeat(machine.host.address))
            for run_id, machine in zip(ids, read_at, strict=True)
        ]
        await asyncio.gather(*(reader.read(within_s=READ_S) for reader in readers))
        found = books.examine(ids)
        faults = found.faults + scenes.otherwise(found, "completed")
        faults += await scenes.compare(self.network, http, readers)
        names = [found.of(run_id).row.worker.split(":")[0] for run_id in ids]
        places = zip(accepting, names, read_at, strict=True)
        on_three = sum(len({one.host.name, name, other.host.name}) == 3 for one, name, other in places)
        faults["no run on three hosts"] += not on_three
        faults["a host that executes nothing"] += 3 - len(set(names))
        _score(
            "P3", "accepted, executed and read on several hosts", APART, faults, f"{on_three} on three"
        )

    async def files_are_everywhere(self, http: Any) -> None:
        """A file that one host has taken is read from another, and is in the bucket."""
        faults: Counter[str] = Counter()
        data = picture()
        for one, other in zip(self.machines, [*self.machines[1:], self.machines[0]], strict=True):
            url = f"http://{one.host.address}:{PORT}/api/v1/agent/attachments"
            taken = await http.post(url, files={"file": ("a.png", data, "image/png")})
            faults[f"upload: {taken.status_code} {taken.text}"] += taken.status_code not in (200, 201)
            path = taken.json()["url"].replace(one.host.address, other.host.address)
            read = await http.get(path if "://" in path else f"http://{other.host.address}:{PORT}{path}")
            faults["read differs"] += read.content != data
        stored = self.network.s3.list_objects_v2(Bucket=BUCKET).get("KeyCount", 0)
        faults["not in the bucket"] += stored < len(self.machines)
        _score("P1", "uploaded on one host, read on another", len(self.machines), +faults)

    async def taken_away(
        self,
        books: Books,
        http: Any,
        how: str,
        take_away: Callable[[Machine], Coroutine[Any, Any, None]],
    ) -> None:
        """A host goes while its worker executes and its readers read; all is well without it."""
        victim = self.random.choice(self.machines)
        ids = await self._start_many(http, self.machines, self.runs, numbered(60, 100))
        readers = [
            Reader(http, PORT, run_id, cycle(_WAYS), self._wander(first))
            for run_id, first in zip(ids, cycle(self.machines), strict=False)
        ]
        reading = [asyncio.create_task(reader.read(within_s=READ_S)) for reader in readers]
        await books.all_say(ids, "message.delta", within_s=SETTLE_S)
        gone_at, held = scenes.now(), _held(books, ids, victim)
        going = asyncio.create_task(take_away(victim))
        others = [machine for machine in self.machines if machine is not victim]
        later = await self._start_many(http, others, self.runs // 4, numbered(5, 5))
        started_s = (scenes.now() - gone_at).total_seconds()
        await books.settled(ids + later, within_s=SETTLE_S)
        await going
        await asyncio.gather(*reading)
        found, new = books.examine(ids), books.examine(later)
        faults = found.faults + new.faults + scenes.otherwise(new, "completed")
        faults += await scenes.compare(self.network, http, readers) + _wrongly_lost(found, held)
        ends = ", ".join(f"{number} {end}" for end, number in found.ends.items())
        note = f"{len(held)} on it; {ends}; {len(later)} more accepted within {started_s:.1f} s"
        lost = [row for row in books.rows(held) if row.error_code]
        times = scenes.seconds_since(gone_at, lost)
        trial = f"a host {how} under runs with readers"
        _score("P1 P3 P9", trial, self.runs, faults, note, times=times)
        took, faults = await self._until_it_executes(books, http, victim)
        _score("P1", "a host that is back: until it executes runs", 1, faults, times=[took])

    async def locks_of_a_host_that_is_gone(self, books: Books) -> None:
        """Nobody tells PostgreSQL that it is gone: what it holds must not be held for hours."""
        machine = self.random.choice(self.machines)
        holder = machine.make("holder", ("-c", _HOLDER), lambda holder: "held" in holder.log())
        await asyncio.to_thread(holder.start)
        assert not _is_free(books)
        machine.host.cut()
        cut_at = scenes.now()
        try:
            await asyncio.to_thread(
                wait_until, lambda: _is_free(books), seconds=SETTLE_S, what="the lock"
            )
        finally:
            holder.kill()
            machine.host.join()
        took = (scenes.now() - cut_at).total_seconds()
        _score("P9", "a lock that a host held when it was cut off", 1, Counter(), times=[took])

    async def _until_it_executes(
        self, books: Books, http: Any, machine: Machine
    ) -> tuple[float, Counter[str]]:
        """Start and read runs at this host until it executes one; return the seconds, and the faults.

        A bare Celery has no worker before its first wake-up.
        """
        begun_at = scenes.now()
        ids: list[str] = []
        executed_by: set[str] = set()
        while machine.host.name not in executed_by:
            assert (scenes.now() - begun_at).total_seconds() < SETTLE_S, f"{machine.host.name} is idle"
            ids += await self._start_many(http, [machine], 10, numbered(5, 5))
            readers = [Reader(http, PORT, one, hosts=repeat(machine.host.address)) for one in ids[-10:]]
            await asyncio.gather(*(reader.read(within_s=READ_S) for reader in readers))
            executed_by = {_host(row) for row in books.rows(ids)}
        took = (scenes.now() - begun_at).total_seconds()
        found = books.examine(ids)
        return took, found.faults + scenes.otherwise(found, "completed")

    async def _start_many(
        self, http: Any, machines: Sequence[Machine], count: int, text: str
    ) -> list[str]:
        """Start runs one after the other, at one machine after the other."""
        started = []
        for machine in islice(cycle(machines), count):
            caller = Caller(http, f"http://{machine.host.address}:{PORT}")
            started.append(await caller.start(text))
        return [one["run_id"] for one in started]

    def _wander(self, first: Machine) -> Iterator[str]:
        """Return one host, and after a break the next, as a proxy would lead a client."""
        begin = self.machines.index(first)
        machines = (*self.machines[begin:], *self.machines[:begin])
        return cycle([machine.host.address for machine in machines])


def _held(books: Books, ids: list[str], machine: Machine) -> list[str]:
    running = [row for row in books.rows(ids) if row.status == "running"]
    return [row.id.hex for row in running if _host(row) == machine.host.name]


def _is_free(books: Books) -> bool:
    row = books.connection.execute("SELECT pg_try_advisory_xact_lock(%s) AS free", [_LOCK]).fetchone()
    return row is not None and bool(row.free)


def _host(row: Any) -> str:
    return str(row.worker.split(":")[0])


def _wrongly_lost(found: Findings, held: list[str]) -> Counter[str]:
    """Runs of the hosts that stay must not notice; those of the one that goes are lost or whole."""
    faults: Counter[str] = Counter()
    for account in found.accounts.values():
        end = account.row.error_code or account.row.status
        allowed = {"completed", "worker_lost"} if account.row.id.hex in held else {"completed"}
        faults[f"ended {end}"] += end not in allowed
    return +faults


async def _killed(machine: Machine) -> None:
    machine.kill()
    await asyncio.sleep(CUT_S)
    await asyncio.to_thread(machine.start)


async def _cut_off(machine: Machine) -> None:
    machine.host.cut()
    await asyncio.sleep(CUT_S)
    machine.host.join()
    await asyncio.to_thread(wait_until, lambda: machine.web.alive and machine.worker.alive, what="both")


def _score(
    promise: str, trial: str, trials: int, faults: Counter[str], note: str = "", *, times: Any = ()
) -> None:
    line = {"promise": promise, "trial": trial, "trials": trials, "faults": +faults, "note": note}
    print(json.dumps(line | {"times": list(times)}), flush=True)


def main() -> None:
    shape = next(one for one in get_args(Shape) if one == sys.argv[1])
    runs, seed = int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1
    with running(shape) as network:
        asyncio.run(Trials(network, runs, Random(seed)).all())


if __name__ == "__main__":
    main()
