"""Convert a runner's results into facts: increments, checks, and exactly one ending (seed §6).

A `message.delta` is a piece of its message (seed §6.3). It is all of the text so far if it is marked so
(`all_content`), or if its runner's generation sends it so (`snapshots`: a plugin runtime's Host
replaces each by the next); then it is reduced to its new part. Nothing is guessed. State and artifacts
are stored at once; an action goes through the same door as a Host call. A result that breaks the
contract ends the run with `runner.protocol_error`; one of an unknown type is ignored and logged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final, TypeVar

import msgspec
import structlog
from msgspec import Struct

from agents.host import message_contents
from agents.host.actions import artifacts, state
from agents.host.builder_events import BuilderEvents, is_event
from agents.host.runner_failures import (
    MAX_CODE_LENGTH,
    MAX_MESSAGE_LENGTH,
    convert,
    protocol_error,
    reported_failure,
)
from agents.host.session import Session
from agents.host_protocol import parameters, results
from agents.host_protocol.errors import HostRefusal, unauthorized
from agents.host_protocol.messages import (
    Content,
    ContentElement,
    Message,
    MessageChunk,
    shown_in,
    text_in,
)
from agents.host_protocol.results import RunResult
from agents.runners.base import Approval, RunFailure
from conversations import events
from conversations.events import Fact, Usage

log = structlog.get_logger(__name__)

T = TypeVar("T", bound=Struct)
_FACTS: Final = tuple(events.Fact.__args__)
SHARED: Final = "thread"
"""The scope of the state that a thread shares with its client (AG-UI); other scopes are the runner's."""
_MAX_SHOWN: Final = 32


class ResultStream:
    """One run's results on their way to the log.

    With `whole` only whole messages are delivered; with `snapshots` each delta is all the text so far.
    `client_tools` are the functions that the client executes itself.
    """

    def __init__(
        self,
        session: Session,
        message_id: str,
        *,
        whole: bool,
        snapshots: bool = False,
        client_tools: Collection[str] = (),
    ) -> None:
        self.ended = False
        self._session = session
        self._first_id = message_id
        self._whole = whole
        self._snapshots = snapshots
        self._message_count = 0
        self._open: str | None = None
        self._text = ""
        self._delivered = ""
        self._last: str | None = None
        self._files: list[str] = []
        self._shown: list[ContentElement] = []
        self._has_shown = False
        self._last_sequence = 0
        self._completed: events.RunCompleted | None = None
        self._started_calls: dict[str, results.ToolStartedData] = {}
        self._client_tools = client_tools
        self._builders: BuilderEvents | None = None
        self._waits = False

    async def convert(self, result: object) -> list[Fact]:
        """Return the facts of the next result; raise RunFailure for `run.failed` and wrong results."""
        if isinstance(result, _FACTS):
            return list(self._fact(result))
        if is_event(result):
            return await self._event(result)
        if not isinstance(result, RunResult):
            raise protocol_error(
                "A runner must say RunResult, facts or events of the Agent API's builders."
            )
        if self._is_repeated(result):
            return []
        if result.run_id and result.run_id.replace("-", "") != self._session.scene.run_id.hex:
            raise protocol_error("A result names another run.")
        return await self._result(result)

    async def _event(self, event: object) -> list[Fact]:
        """Return the facts of a builders' event; the text of earlier results becomes a message."""
        if self._builders is None:
            scene = self._session.scene
            self._builders = BuilderEvents(scene, self._client_tools, self._new_id, whole=self._whole)
        facts = [*(await self._close() if self._text else ()), *await self._builders.convert(event)]
        self._end_if_ended(self._builders)
        return facts

    def _new_id(self) -> str:
        message_id = self._message_id
        self._message_count += 1
        return message_id

    def _end_if_ended(self, builders: BuilderEvents) -> None:
        if builders.ending is not None:
            self._completed, self.ended = builders.ending, True

    async def finish_builders(self) -> list[Fact]:
        """Return the facts of the builders' incomplete objects when the runner is done."""
        if self._builders is None or self.ended:
            return []
        facts = await self._builders.end()
        self._end_if_ended(self._builders)
        return facts

    def _fact(self, fact: Any) -> Iterator[Fact]:
        """Yield the facts for Parley's own event, from a runner of this process."""
        match fact:
            case events.RunCompleted():
                self._completed, self.ended = fact, True
            case events.RunFailed(code, message, retryable):
                raise RunFailure(code, message, retryable=retryable)
            case events.MessageDelta() if self._whole:
                return
            case events.StateUpdated(scope, key, value):
                yield from self._change_shared_state(scope, key, value)
            case events.RunQueued() | events.RunStarted():
                return
            case _:
                yield fact

    def _is_repeated(self, result: RunResult) -> bool:
        if result.sequence is None:
            return False
        if result.sequence <= self._last_sequence:
            log.warning("result repeated", sequence=result.sequence)
            return True
        self._last_sequence = result.sequence
        return False

    async def _result(self, result: RunResult) -> list[Fact]:
        match result.type:
            case results.MESSAGE_DELTA:
                return await self._delta(_convert(result, results.MessageDeltaData).chunk)
            case results.MESSAGE_COMPLETED:
                return await self._message(_convert(result, results.MessageCompletedData).message)
            case results.TOOL_STARTED:
                started = _convert(result, results.ToolStartedData)
                self._started_calls[started.tool_call_id] = started
                return [self._tool_started(started)]
            case results.TOOL_COMPLETED:
                completed = _convert(result, results.ToolCompletedData)
                self._started_calls.pop(completed.tool_call_id, None)
                return [_tool_completed(completed)]
            case results.STATE_UPDATED if result.data.get("scope") == SHARED:
                update = _convert(result, results.StateUpdatedData)
                return list(self._change_shared_state(update.scope, update.key, update.value))
            case results.STATE_UPDATED:
                await self._state(result)
            case results.ARTIFACT_CREATED:
                return [await self._artifact(result)]
            case results.ACTION_REQUESTED:
                await self._action(_convert(result, results.ActionRequestedData))
            case results.RUN_COMPLETED:
                return await self._complete(result)
            case results.RUN_FAILED:
                failed = _convert(result, results.RunFailedData)
                raise reported_failure(
                    failed.code, failed.error or failed.message, retryable=failed.retryable
                )
            case results.PLUGIN_LOG:
                text = str(result.data.get("text", ""))[:MAX_MESSAGE_LENGTH]
                log.info("runner says", runner=self._session.scene.runner_id, text=text)
            case "":
                raise protocol_error("A result has no type.")
            case unknown:
                log.warning("unknown result ignored", type=unknown[:100])
        return []

    def _tool_started(self, started: results.ToolStartedData) -> Fact:
        """Return a call of the runner itself, or of a tool that the client executes."""
        kind: events.ToolKind = "frontend" if started.tool_name in self._client_tools else "plugin"
        self._waits = self._waits or kind == "frontend"
        return events.ToolCallStarted(started.tool_call_id, started.tool_name, started.parameters, kind)

    async def _delta(self, chunk: MessageChunk) -> list[Fact]:
        """Return the new part of the message; its images and files wait until it is complete."""
        facts: list[Fact] = []
        text = text_in(chunk.content) if chunk.all_content is None else chunk.all_content
        is_whole = self._snapshots or chunk.all_content is not None
        is_open = self._text or self._shown
        if chunk.resp_message_id and is_open and chunk.resp_message_id != self._open:
            facts += await self._close()
        if not (self._text or self._shown):
            self._open = chunk.resp_message_id
        if not is_whole:
            text = self._text + text
        elif self._text.startswith(text) and text != self._text:
            return facts  # a later one has overtaken it
        elif not text.startswith(self._text):  # the runner began anew: its former text stays a message
            facts += await self._close()
        self._add_shown(chunk.content, replace=self._snapshots)
        self._text = text
        if not self._whole and len(text) > len(self._delivered):
            facts.append(events.MessageDelta(self._message_id, text[len(self._delivered) :]))
            self._delivered = text
        return facts

    def _add_shown(self, content: Content, *, replace: bool) -> None:
        """Add the images and files of a message, or of the new part of one."""
        if shown := shown_in(content):
            self._shown = shown if replace else [*self._shown, *shown]
        if len(self._shown) > _MAX_SHOWN:
            raise protocol_error(f"A message shows more than {_MAX_SHOWN} images and files.")

    async def _message(self, message: Message) -> list[Fact]:
        """Complete a message; its text replaces that of its deltas, delivered or not (seed §6.4)."""
        text = text_in(message.content)
        if message.role not in ("assistant", "tool"):
            return []
        self._add_shown(message.content, replace=True)
        if not text and self._text:
            text = self._text
        if not (text or self._files or self._shown):
            return []
        self._text = text
        return await self._close()

    async def _close(self) -> list[Fact]:
        """Complete the open message, with its files, and with the images and files that it shows."""
        text, message_id = self._text, self._message_id
        contents = [message_contents.content_of_element(part) for part in self._shown]
        shown, made = await message_contents.store_inline_contents(self._session.scene, contents)
        metadata = {"artifact_refs": self._files} if self._files else {}
        body = events.MessageBody(message_id, "assistant", text, metadata, contents=shown)
        differs = not text.startswith(self._delivered) and text.strip() != self._delivered.strip()
        self._message_count, self._last, self._has_shown = self._message_count + 1, text, bool(shown)
        self._open, self._text, self._delivered, self._files, self._shown = None, "", "", [], []
        return [*made, events.MessageCompleted(body, replaces=differs)]

    @property
    def _message_id(self) -> str:
        return (
            self._first_id if not self._message_count else f"{self._first_id}-{self._message_count + 1}"
        )

    async def _state(self, result: RunResult) -> None:
        """Store a value; log a refusal by policy or size, and let the run continue."""
        if not result.data.get("scope") or not result.data.get("key"):
            raise protocol_error("state.updated needs scope and key.")
        try:
            new = msgspec.convert(result.data, results.StateUpdatedData)
            await self._session.call("state_set", parameters.SetState(new.scope, new.key, new.value))
        except (HostRefusal, msgspec.ValidationError) as problem:
            log.warning("state.updated dropped", reason=str(problem)[:200])

    def _change_shared_state(self, scope: str, key: str, value: Any) -> Iterator[Fact]:
        """Yield a change of the state that the thread shares with its client; log refusals."""
        try:
            if scope != SHARED or not self._session.scene.binding.state_enabled:
                raise unauthorized(f'Scope "{scope}" is not shared with the client')
            yield events.StateUpdated(SHARED, key, state.to_storable(value))
        except HostRefusal as problem:
            log.warning("state.updated dropped", reason=problem.message[:200])

    async def _artifact(self, result: RunResult) -> Fact:
        artifact = _convert(result, results.ArtifactCreatedData)
        run_id = result.data.get("run_id")
        if run_id and str(run_id).replace("-", "") != self._session.scene.run_id.hex:
            raise protocol_error("artifact.created names another run.")
        try:
            made = await artifacts.store(self._session.scene, artifact)
        except HostRefusal as refusal:
            raise protocol_error(refusal.message) from None
        self._files.append(made.artifact_id)
        return made

    async def _action(self, data: results.ActionRequestedData) -> None:
        """Request the action; log a refusal, and let the run continue."""
        params = parameters.RequestAction(action=data.action, target=data.target, payload=data.payload)
        try:
            await self._session.call("request_action", params)
        except HostRefusal as refusal:
            log.warning("action.requested refused", action=data.action[:100], reason=refusal.code)

    async def _complete(self, result: RunResult) -> list[Fact]:
        completed = _convert(result, results.RunCompletedData)
        facts: list[Fact] = []
        if completed.message and self._is_new(completed.message):
            facts = await self._message(completed.message)
        self.ended = True
        self._completed = events.RunCompleted(completed.finish_reason[:MAX_CODE_LENGTH] or "stop")
        return facts

    def _is_new(self, message: Message) -> bool:
        """Return whether the last message differs from the completed ones before it."""
        text, shown = text_in(message.content), shown_in(message.content)
        if self._text or self._shown:
            return bool(text or shown)
        return bool(text and text != self._last) or bool(shown and not self._has_shown)

    async def finish(self) -> list[Fact]:
        """Return the remaining facts and the ending, with the run's tokens and approvals."""
        facts = await self._close() if self._text or self._files or self._shown else []
        return [*facts, *self._end()]

    def _end(self) -> Iterator[Fact]:
        session = self._session
        ending = self._completed or events.RunCompleted("stop")
        if self._waits and ending.finish_reason == "stop":
            ending = events.RunCompleted("tool_calls", ending.usage, metadata=ending.metadata)
        usage = ending.usage if ending.usage != Usage() else session.usage
        if session.approvals:
            approvals = [self._with_announced_id(approval) for approval in session.approvals]
            for approval in approvals:
                yield from approval.facts
            interrupts = [approval.interrupt for approval in approvals]
            yield events.RunCompleted("interrupt", usage, interrupts)
            return
        yield msgspec.structs.replace(ending, usage=usage)

    def _with_announced_id(self, approval: Approval) -> Approval:
        """Return the approval with the id of the runner's call, if the stream has it (the SDK's has)."""
        use = approval.use
        for call_id, started in self._started_calls.items():
            if (started.tool_name, started.parameters) == (use.name, use.arguments):
                del self._started_calls[call_id]
                return msgspec.structs.replace(approval, call_id=call_id)
        return approval


def _convert(result: RunResult, kind: type[T]) -> T:
    return convert(result.data, kind, result.type)


def _tool_completed(data: results.ToolCompletedData) -> Fact:
    problem = events.Problem("tool_error", data.error[:MAX_MESSAGE_LENGTH]) if data.error else None
    return events.ToolCallCompleted(
        data.tool_call_id, data.tool_name, problem is None, 0, data.result, problem
    )
