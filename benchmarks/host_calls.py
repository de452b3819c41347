"""What a Host call costs in process, beside the thing itself: `python -m benchmarks.host_calls`.

Each figure is a call of a deed that does nothing, in microseconds: all checks, the time-out and the
note for the audit are in it. `api` is what a runner calls, `session` the door below it, `desk` what a
wire pays (finding the session, reading the payload, writing the answer), `bare` the deed alone. The
audit's own writing goes to the database in batches, and not into these figures.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

ROUNDS = 60
CALLS = 1_000
RUN = UUID("0192f0c1-8a3b-7c44-9d55-1a2b3c4d5e6f")
IDENTITY = "acme/tester"


def main() -> None:
    """Print a line a way to call."""
    os.environ.setdefault("DATABASE_URL", "postgresql:///unused")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    for name, median, worst in asyncio.run(measure()):
        print(f"{name:8} median {median:6.2f} us   worst round {worst:6.2f} us")


async def measure() -> list[tuple[str, float, float]]:
    """(way, median, worst round); the ways take turns, so that a busy moment hits all alike."""
    ways = _ways()
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, call in ways.items():
            begun = time.perf_counter()
            for _ in range(CALLS):
                await call()
            taken[name].append((time.perf_counter() - begun) / CALLS * 1e6)
    return [(name, statistics.median(some), max(some)) for name, some in taken.items()]


def _ways() -> dict[str, Callable[[], Awaitable[Any]]]:
    from msgspec.structs import replace

    from agents.host import call_audit, gateway
    from agents.host.action_registry import ACTIONS
    from agents.host.grants import Binding
    from agents.host.session import Scene, Session
    from agents.host_protocol import parameters, replies
    from agents.host_protocol.host_api import HostApi
    from agents.host_protocol.manifest import RunnerManifest
    from agents.host_protocol.resources import AgentResources

    notes: list[call_audit.CallNote] = []

    def add_note(note: call_audit.CallNote) -> None:
        notes.append(note)
        if len(notes) > 10_000:
            notes.clear()

    call_audit.add_note = add_note

    async def get(session: Session, params: parameters.GetState) -> replies.StateValue:
        return replies.StateValue("abc")

    scene = Scene(
        run_id=RUN,
        user_id=RUN,
        thread_id=RUN,
        thread_seq=1,
        identity=IDENTITY,
        manifest=RunnerManifest(id="plugin:acme/tester/default", name="default", label={}),
        binding=Binding(calls_per_minute=0),
        resources=AgentResources(),
        deadline_at=time.time() + 3_600,
    )
    ACTIONS["state_get"] = replace(ACTIONS["state_get"], handler=get)
    session = Session(scene, None)
    gateway.register(session)
    host, ask = HostApi(session), parameters.GetState("actor", "k")
    payload = {"scope": "actor", "key": "k", "run_id": RUN.hex, "caller_plugin_identity": IDENTITY}
    return {
        "bare": lambda: get(session, ask),
        "session": lambda: session.call("state_get", ask),
        "api": lambda: host.state.get("actor", "k"),
        "desk": lambda: gateway.call("state_get", payload, run_id=RUN.hex, identity=IDENTITY),
    }


if __name__ == "__main__":
    main()
