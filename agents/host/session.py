"""A run's session with the Host, which checks every call and writes it to the audit.

The grants are frozen when the session opens; no later change extends them. The order of the checks: the
run is live, it has time left, its rate is within the limit, the runner may do that at all (manifest),
and with this resource (grant). A handler refuses what only it can check (an event of another
conversation, a value that is too large). Every result is noted once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from typing import Any, Final, NoReturn
from uuid import UUID

import structlog
from msgspec import Struct

from agents.host import call_audit
from agents.host.action_registry import ACTIONS, Action
from agents.host.grants import Binding
from agents.host_protocol.errors import HostRefusal, invalid, unauthorized
from agents.host_protocol.manifest import RunnerManifest
from agents.host_protocol.resources import AgentResources
from agents.host_protocol.results import RunResult
from agents.host_protocol.run_context import Scope
from agents.runners.base import Approval, RunFailure
from conversations.events import Fact, Usage
from conversations.threads.earlier_messages import MessageRow

log = structlog.get_logger(__name__)

MAX_APPROVALS: Final = 32


class Scene(Struct, frozen=True, kw_only=True):
    """The run, its user and its runner's grants: the frozen half of a session.

    `most_calls` is the request's maximum of tool calls, `input_seq` the place in the thread of the run's
    input message, `unstored_rows` the request's other messages that the thread does not store.
    """

    run_id: UUID
    user_id: UUID
    thread_id: UUID | None
    thread_seq: int
    identity: str
    manifest: RunnerManifest
    binding: Binding
    resources: AgentResources
    deadline_at: float
    model: str = ""
    system: str = ""
    actions: frozenset[str] = frozenset()
    subject_id: str = ""
    most_calls: int | None = None
    input_seq: int | None = None
    unstored_rows: tuple[MessageRow, ...] = ()

    @property
    def runner_id(self) -> str:
        return self.manifest.id

    @property
    def conversation_id(self) -> str | None:
        return self.thread_id.hex if self.thread_id else None

    def scope_key(self, scope: Scope) -> str:
        """Return the owner of a scope's state; "" if the run has none."""
        match scope:
            case "conversation":
                return self.conversation_id or ""
            case "actor":
                return self.user_id.hex
            case "subject":
                return self.subject_id
            case "binding":
                return str(self.binding.id) if self.binding.id else ""
        return self.runner_id[:100]


ConvertResult = Callable[[RunResult], Awaitable[list[Fact]]]


async def _drop_result(result: RunResult) -> list[Fact]:
    return []


class Session:
    """The one door (`agents.host_protocol.host_api.Calls`) of one run; it closes with the run."""

    def __init__(self, scene: Scene, host: Any) -> None:
        self.scene = scene
        self.host = host
        self.usage = Usage()
        self.facts: list[Fact] = []
        self.approvals: list[Approval] = []
        self.convert_result: ConvertResult = _drop_result
        self.appended_count = 0
        self.called_tools: set[str] = set()
        self.calls = 0
        self.is_stopping = False
        self.late_s = 0.0
        self._open = True
        self._under_way = 0
        self._waiting = 0
        self._patience: asyncio.Timeout | None = None
        self._granted: dict[str, dict[str, tuple[str, ...]]] = {
            "models": {one.model_id: one.operations for one in scene.resources.models},
            "tools": {one.tool_name: one.operations for one in scene.resources.tools},
            "knowledge_bases": {one.kb_id: one.operations for one in scene.resources.knowledge_bases},
            "files": {one.file_id: ("config",) for one in scene.resources.files},
        }
        self._call_rate = _CallRate(scene.binding.calls_per_minute)

    def close(self) -> None:
        """Refuse every call from now on: the run is over."""
        self._open = False

    async def call(self, action: str, params: Struct) -> Any:
        """Execute one action for the runner; raise HostRefusal if it is not allowed or fails."""
        with self._audited(action, params) as found:
            async with asyncio.timeout(self._seconds(found, params)):
                return await found.handler(self, params)

    async def stream(self, action: str, params: Struct) -> AsyncGenerator[Any]:
        """Execute one action with several replies; the time-out applies to each reply."""
        with self._audited(action, params) as found:
            async with aclosing(found.handler(self, params)) as pieces:
                while True:
                    async with asyncio.timeout(self._seconds(found, params)):
                        piece = await anext(pieces, None)
                    if piece is None:
                        return
                    yield piece

    @contextmanager
    def _audited(self, name: str, params: Struct) -> Iterator[Action]:
        """Check the call and return its action; at its end convert an error, and note the result."""
        started_at, result = time.perf_counter(), "ok"
        action = ACTIONS.get(name)
        self._under_way += 1
        try:
            yield self._check(name, action, params)
        except BaseException as problem:
            refusal = self._refusal(name, problem)
            if refusal is not None:
                result = refusal.code
            else:
                result = "approval_required" if self.is_stopping else "cancelled"
            if refusal is None or refusal is problem:
                raise
            raise refusal from None
        finally:
            self._under_way -= 1
            self._note(name, action, params, result, started_at)
            self._stop_if_all_wait()

    def add_approval(self, approval: Approval) -> None:
        """End the run with this interrupt later; raise HostRefusal `rate_limited` for one too many."""
        if len(self.approvals) >= MAX_APPROVALS:
            raise HostRefusal("rate_limited", f"A run asks for at most {MAX_APPROVALS} approvals.")
        self.approvals.append(approval)

    async def add_approval_and_wait(self, approval: Approval) -> NoReturn:
        """End the run with this interrupt when none of its other calls is under way; never return."""
        self.add_approval(approval)
        self._waiting += 1
        self._stop_if_all_wait()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._waiting -= 1
        raise AssertionError("nobody answers")

    @contextmanager
    def limit_wait(self, seconds: float | None) -> Iterator[asyncio.Timeout]:
        """Limit the wait for the runner's next result to `seconds`, or until the run stops.

        After the stop the limit is `late_s`: on a wire a call may overtake earlier results.
        """
        self._patience = asyncio.timeout(self.late_s if self.is_stopping else seconds)
        try:
            yield self._patience
        finally:
            self._patience = None

    def _stop_if_all_wait(self) -> None:
        if not self._waiting or self._under_way > self._waiting:
            return
        self.is_stopping = True
        if self._patience is not None:
            self._patience.reschedule(asyncio.get_running_loop().time() + self.late_s)

    def _check(self, name: str, action: Action | None, params: Struct) -> Action:
        if action is None:
            raise invalid(f"Action {name} not found")
        if not self._open:
            raise unauthorized(f"Run session {self.scene.run_id.hex} not found or expired")
        if time.time() >= self.scene.deadline_at:
            raise HostRefusal("deadline_exceeded", "The run's deadline has passed.")
        if not isinstance(params, action.takes):
            raise invalid(f"{name} takes {action.takes.__name__}.")
        self._call_rate.count_call()
        self._check_permission(action, params)
        return action

    def _check_permission(self, action: Action, params: Any) -> None:
        """Raise HostRefusal unless the manifest has the permission and the grants have the resource."""
        match action.group:
            case "models" | "tools" | "knowledge_bases" | "files":
                self._check_grant(action, params)
            case "history" | "events" | "artifacts":
                permitted: tuple[str, ...] = getattr(self.scene.manifest.permissions, action.group)
                if action.operation not in permitted:
                    kind = action.kind.capitalize()
                    raise unauthorized(f"{kind} {action.operation} access not authorized")
            case "storage":
                area = params.area
                permitted = self.scene.manifest.permissions.storage
                if area not in permitted or area not in self.scene.binding.storage:
                    raise unauthorized(f"storage {area} is not authorized for this agent run")
            case "platform_api":
                if params.action not in self.scene.actions:
                    raise unauthorized(f"action {params.action} is not authorized for this agent run")

    def _check_grant(self, action: Action, params: Any) -> None:
        target = action.resource(params)
        operations = self._granted[action.group].get(target)
        kind = action.kind
        if operations is None:
            raise unauthorized(f"{kind} {target} is not authorized for this agent run")
        if action.operation not in operations:
            raise unauthorized(
                f"{kind} {target} is not authorized for operation {action.operation} for this agent run"
            )

    def _seconds(self, action: Action, params: Any) -> float:
        """Return the smallest of the action's limit, the runner's, and the run's remaining time."""
        limit = getattr(params, "timeout", None) or action.seconds
        return max(0.001, min(limit, action.seconds, self.scene.deadline_at - time.time()))

    def _refusal(self, action: str, problem: BaseException) -> HostRefusal | None:
        match problem:
            case HostRefusal():
                return problem
            case TimeoutError():
                return HostRefusal("deadline_exceeded", f"{action} took too long.")
            case RunFailure():
                return HostRefusal(
                    "runtime_error", problem.message, retryable=problem.retryable, reason=problem.code
                )
            case Exception():
                log.error("host call failed", action=action, exc_info=problem)
                return HostRefusal("runtime_error", f"{action} failed on the Host's side.")
        return None

    def _note(
        self, name: str, action: Action | None, params: Any, result: str, started_at: float
    ) -> None:
        scene = self.scene
        resource = action.resource(params) if action and isinstance(params, action.takes) else ""
        scope = getattr(params, "scope", "") or getattr(params, "area", "")
        call_audit.add_note(
            call_audit.CallNote(
                time.time(),
                scene.run_id,
                scene.runner_id,
                scene.binding.id,
                name[:64],
                resource,
                scope[:64],
                result,
                min(round((time.perf_counter() - started_at) * 1e6), 2**31 - 1),
            )
        )


class _CallRate:
    """At most so many calls per minute, a tenth of them at once; 0 means no limit."""

    def __init__(self, per_minute: int) -> None:
        self._rate = per_minute / 60
        self._room = self._max_room = max(20.0, per_minute / 10)
        self._at = time.monotonic()

    def count_call(self) -> None:
        """Count a call; raise HostRefusal `rate_limited` for one too many."""
        if not self._rate:
            return
        now = time.monotonic()
        self._room = min(self._max_room, self._room + (now - self._at) * self._rate)
        self._at = now
        if self._room < 1:
            raise HostRefusal("rate_limited", "This run calls the Host too often.")
        self._room -= 1
