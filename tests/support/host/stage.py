"""A session of a made-up runner on a real run, for tests of Host calls; and what the audit says."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from unittest import mock
from uuid import UUID, uuid4

from agents.host import call_audit, gateway, grants, runner_catalogue
from agents.host.grants import Binding
from agents.host.model_and_tool_calls import RunHost
from agents.host.session import Scene, Session
from agents.host_protocol.host_api import HostApi
from agents.host_protocol.manifest import Permissions, RunnerManifest
from agents.host_protocol.resources import AgentResources
from agents.host_protocol.run_context import AgentRunContext
from agents.host_protocol.runner_id import identity_of
from agents.providers import http
from agents.tools.base import Tool, ToolContext
from config import database
from conversations.models import Message, Run, Thread
from prompts.endpoints.routing import Candidate, ModelRoute

T = TypeVar("T")
EVERYTHING = Permissions(
    models=("invoke", "stream", "rerank", "count_tokens"),
    tools=("detail", "call"),
    knowledge_bases=("list", "retrieve"),
    history=("page", "search"),
    events=("get", "page"),
    artifacts=("metadata", "read"),
    storage=("plugin", "workspace", "binding"),
    files=("config",),
    platform_api=("*",),
)
GENEROUS = Binding(
    id=1, storage=("plugin", "workspace", "binding"), platform_actions=("thread.rename",), tools=("*",)
)
ROUTE = ModelRoute("global:none", "none", (Candidate(0, "none", "demo", "", "", "", None, None),))


def manifest(
    runner_id: str = "plugin:acme/tester/default", permissions: Permissions = EVERYTHING, **more: Any
) -> RunnerManifest:
    """A manifest that asks for everything unless told otherwise."""
    name = runner_id.rpartition("/")[2].rpartition(":")[2]
    return RunnerManifest(
        id=runner_id, name=name, label={"en_US": "Tester"}, permissions=permissions, **more
    )


@dataclass
class Stage:
    """A conversation of a new user with one run in it, and sessions of it."""

    user: Any
    thread: Thread
    run: Run
    open_sessions: list[Session] = field(default_factory=list)

    def session(
        self,
        *,
        of: RunnerManifest | None = None,
        binding: Binding = GENEROUS,
        resources: AgentResources | None = None,
        tools: tuple[Tool, ...] = (),
        models: tuple[tuple[str, str], ...] = (),
        bases: tuple[grants.Base, ...] = (),
        seconds: float = 60,
        thread_id: UUID | str | None = "",
    ) -> Session:
        """A live session, as the execution would open it."""
        declared = of or manifest()
        here = self.thread.pk if thread_id == "" else thread_id
        caller = ToolContext(self.run.pk, self.thread.pk, self.user.pk, "")
        host = RunHost(ROUTE, caller=caller).for_runner(grants.tool_names(declared, binding), tools)
        granted = resources or grants.resources(
            declared, binding, models=models, tools=host.granted_tools, bases=bases
        )
        scene = Scene(
            run_id=self.run.pk,
            user_id=self.user.pk,
            thread_id=here,  # type: ignore[arg-type]
            thread_seq=self.run.thread_seq,
            identity=identity_of(declared.id),
            manifest=declared,
            binding=binding,
            resources=granted,
            deadline_at=time.time() + seconds,
            actions=frozenset(grants.platform_actions(declared, binding)),
            subject_id=self.run.pk.hex,
        )
        made = Session(scene, host)
        gateway.register(made)
        self.open_sessions.append(made)
        return made

    def close(self) -> None:
        for session in self.open_sessions:
            gateway.unregister(session)


def stage_with(user: Any) -> Stage:
    """Another conversation of the same user's."""
    return stage(user)


def stage(user: Any, *, said: tuple[tuple[str, str], ...] = ()) -> Stage:
    """A conversation whose earlier run held `said` (role, text), and a run that goes on now."""
    thread = Thread.objects.create(owner=user, last_seq=len(said) + 1)
    if said:
        earlier = _run(user, thread, 1)
        for seq, (role, text) in enumerate(said, 1):
            Message.objects.create(
                owner=user, thread=thread, run=earlier, seq=seq, role=role, content=text
            )
    run = _run(user, thread, len(said) + 1)
    return Stage(user, thread, run)


def _run(user: Any, thread: Thread, seq: int) -> Run:
    from datetime import UTC, datetime, timedelta

    from conversations.identifiers import uuid7

    now = datetime.now(UTC)
    return Run.objects.create(
        id=uuid7(),
        owner=user,
        thread=thread,
        thread_seq=seq,
        request_id="test",
        dialect="text",
        model="global:none",
        request={},
        status="completed",  # so that nobody takes it, or ends it
        deadline_at=now + timedelta(hours=1),
        deadline_s=60,
        finished_at=now,
    )


def run(work: Awaitable[T]) -> T:
    """Do it on a loop of its own, and write the audit before the loop is gone."""

    async def whole() -> T:
        try:
            return await work
        finally:
            await call_audit.flush()
            await http.close()
            await database.close()

    return asyncio.run(whole())


def audited(run_id: UUID) -> list[tuple[str, str]]:
    """(action, result) of the run's calls, in order."""
    from agents.models import HostCall

    rows = HostCall.objects.filter(run_id=run_id).order_by("at", "id")
    return [(row.action, row.result) for row in rows]


Says = Callable[[AgentRunContext, HostApi], AsyncGenerator[Any]]


class Scripted:
    """A runner that does what a test says."""

    def __init__(self, declared: RunnerManifest, says: Says) -> None:
        self.manifest = declared
        self._says = says

    def run(self, context: AgentRunContext, host: HostApi) -> AsyncGenerator[Any]:
        return self._says(context, host)


@contextmanager
def serving(*runners: Scripted) -> Iterator[None]:
    """Have these runners known while the block lasts."""

    def read() -> tuple[Scripted, ...]:
        return runners

    with mock.patch.object(runner_catalogue, "_sources", [*runner_catalogue._sources, read]):
        yield


def new_user() -> Any:
    from django.contrib.auth import get_user_model

    return get_user_model().objects.create(username=f"user-{uuid4().hex}")


async def _double(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"twice": arguments["n"] * 2}


DOUBLE = Tool(
    name="math.double",
    description="Doubles a number.",
    parameters={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    call=_double,
    idempotent=True,
    timeout_s=5,
)
