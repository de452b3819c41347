"""A runner's results as canonical facts: increments, checks, and one ending whatever it says (seed §6).

A `message.delta` is a piece of its message (seed §6.3). It is all of the text so far where it says so
(`all_content`), and where its runner's generation has it so (`snapshots`: a plugin runtime's Host puts
each in the place of the one before); then it becomes what is new of it. Nothing is guessed. State and
artifacts are written when they are said; an action goes through the same door as a Host call. A result
that breaks the contract ends the run with `runner.protocol_error`; one of an unknown type is ignored and
logged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final, TypeVar

import msgspec
import structlog
from msgspec import Struct

from agents.host import message_contents
from agents.host.builder_events import BuilderEvents, is_event
from agents.host.calls import artifacts, state
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
_LONGEST_CODE: Final = 64
_LONGEST_WORDS: Final = 2_000
SHARED: Final = "thread"
"""The scope of the state that a thread shares with its client (AG-UI); the others are the runner's."""
_MOST_SHOWN: Final = 32


class ResultStream:
    """One run's results on their way to the log.

    With `whole` only whole messages are delivered; with `snapshots` each delta is all the text so far.
    `clients` are the functions that the client executes itself.
    """

    def __init__(
        self,
        session: Session,
        message_id: str,
        *,
        whole: bool,
        snapshots: bool = False,
        clients: Collection[str] = (),
    ) -> None:
        self.ended = False
        self._session = session
        self._first_id = message_id
        self._whole = whole
        self._snapshots = snapshots
        self._spoken = 0
        self._open: str | None = None
        self._text = ""
        self._said = ""
        self._last: str | None = None
        self._files: list[str] = []
        self._shown: list[ContentElement] = []
        self._has_shown = False
        self._last_sequence = 0
        self._completed: events.RunCompleted | None = None
        self._begun: dict[str, results.ToolBegun] = {}
        self._clients = clients
        self._built: BuilderEvents | None = None
        self._waits = False

    async def take(self, result: object) -> list[Fact]:
        """The facts of the next result. RunFailure for `run.failed` and for a broken contract."""
        if isinstance(result, _FACTS):
            return list(self._fact(result))
        if is_event(result):
            return await self._event(result)
        if not isinstance(result, RunResult):
            raise _broken("A runner must say RunResult, facts or events of the Agent API's builders.")
        if self._is_repeated(result):
            return []
        if result.run_id and result.run_id.replace("-", "") != self._session.scene.run_id.hex:
            raise _broken("A result names another run.")
        return await self._result(result)

    async def _event(self, event: object) -> list[Fact]:
        """An event of the Agent API's builders; what results have said before it is a message."""
        if self._built is None:
            scene = self._session.scene
            self._built = BuilderEvents(scene, self._clients, self._new_id, whole=self._whole)
        facts = [*(await self._close() if self._text else ()), *await self._built.take(event)]
        self._ended_by(self._built)
        return facts

    def _new_id(self) -> str:
        message_id = self._message_id
        self._spoken += 1
        return message_id

    def _ended_by(self, built: BuilderEvents) -> None:
        if built.ending is not None:
            self._completed, self.ended = built.ending, True

    async def rest(self) -> list[Fact]:
        """What builders have begun and not completed when the runner is done."""
        if self._built is None or self.ended:
            return []
        facts = await self._built.end()
        self._ended_by(self._built)
        return facts

    def _fact(self, fact: Any) -> Iterator[Fact]:
        """Our own events, from a runner that lives in this process."""
        match fact:
            case events.RunCompleted():
                self._completed, self.ended = fact, True
            case events.RunFailed(code, message, retryable):
                raise RunFailure(code, message, retryable=retryable)
            case events.MessageDelta() if self._whole:
                return
            case events.StateUpdated(scope, key, value):
                yield from self._shared(scope, key, value)
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
                return await self._delta(_read(result, results.Said).chunk)
            case results.MESSAGE_COMPLETED:
                return await self._message(_read(result, results.SaidWhole).message)
            case results.TOOL_STARTED:
                begun = _read(result, results.ToolBegun)
                self._begun[begun.tool_call_id] = begun
                return [self._started(begun)]
            case results.TOOL_COMPLETED:
                ended = _read(result, results.ToolEnded)
                self._begun.pop(ended.tool_call_id, None)
                return [_ended(ended)]
            case results.STATE_UPDATED if result.data.get("scope") == SHARED:
                update = _read(result, results.StateSaid)
                return list(self._shared(update.scope, update.key, update.value))
            case results.STATE_UPDATED:
                await self._state(result)
            case results.ARTIFACT_CREATED:
                return [await self._artifact(result)]
            case results.ACTION_REQUESTED:
                await self._action(_read(result, results.ActionSaid))
            case results.RUN_COMPLETED:
                return await self._complete(result)
            case results.RUN_FAILED:
                raise _failure(_read(result, results.Failed))
            case results.PLUGIN_LOG:
                said = str(result.data.get("text", ""))[:_LONGEST_WORDS]
                log.info("runner says", runner=self._session.scene.runner_id, text=said)
            case "":
                raise _broken("A result has no type.")
            case unknown:
                log.warning("unknown result ignored", type=unknown[:100])
        return []

    def _started(self, begun: results.ToolBegun) -> Fact:
        """A call of the runner's own, or of a tool that the client answers in its next request."""
        kind: events.ToolKind = "frontend" if begun.tool_name in self._clients else "plugin"
        self._waits = self._waits or kind == "frontend"
        return events.ToolCallStarted(begun.tool_call_id, begun.tool_name, begun.parameters, kind)

    async def _delta(self, chunk: MessageChunk) -> list[Fact]:
        """What is new of the message; what it shows beside its text waits until it is whole."""
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
            return facts  # one that was overtaken
        elif not text.startswith(self._text):  # it thought again: what was said stays a message
            facts += await self._close()
        self._show(chunk.content, anew=self._snapshots)
        self._text = text
        if not self._whole and len(text) > len(self._said):
            facts.append(events.MessageDelta(self._message_id, text[len(self._said) :]))
            self._said = text
        return facts

    def _show(self, content: Content, *, anew: bool) -> None:
        """Remember the images and files of a message, or of what is new of it."""
        if shown := shown_in(content):
            self._shown = shown if anew else [*self._shown, *shown]
        if len(self._shown) > _MOST_SHOWN:
            raise _broken(f"A message shows more than {_MOST_SHOWN} images and files.")

    async def _message(self, message: Message) -> list[Fact]:
        """A whole message; its words replace those of its deltas, delivered or not (seed §6.4)."""
        text = text_in(message.content)
        if message.role not in ("assistant", "tool"):
            return []
        self._show(message.content, anew=True)
        if not text and self._text:
            text = self._text
        if not (text or self._files or self._shown):
            return []
        self._text = text
        return await self._close()

    async def _close(self) -> list[Fact]:
        """Finish the message that is open, with the files that were made for it and what it shows."""
        text, message_id = self._text, self._message_id
        made, shown = await self._kept()
        metadata = {"artifact_refs": self._files} if self._files else {}
        body = events.MessageBody(message_id, "assistant", text, metadata, contents=shown)
        differs = not text.startswith(self._said) and text.strip() != self._said.strip()
        self._spoken, self._last, self._has_shown = self._spoken + 1, text, bool(shown)
        self._open, self._text, self._said, self._files, self._shown = None, "", "", [], []
        return [*made, events.MessageCompleted(body, replaces=differs)]

    async def _kept(self) -> tuple[list[Fact], list[events.MessageContent]]:
        """The files that the message shows, those inline also as artifacts that its owner can have."""
        facts, shown = list[Fact](), list[events.MessageContent]()
        for part in self._shown:
            content, made = await message_contents.keep(
                self._session.scene, message_contents.of_element(part)
            )
            shown.append(content)
            facts += [made] if made else []
        return facts, shown

    @property
    def _message_id(self) -> str:
        return self._first_id if not self._spoken else f"{self._first_id}-{self._spoken + 1}"

    async def _state(self, result: RunResult) -> None:
        """Persist a value; one that policy or size refuse is logged and the run goes on."""
        if not result.data.get("scope") or not result.data.get("key"):
            raise _broken("state.updated needs scope and key.")
        try:
            said = msgspec.convert(result.data, results.StateSaid)
            await self._session.call("state_set", parameters.SetState(said.scope, said.key, said.value))
        except (HostRefusal, msgspec.ValidationError) as problem:
            log.warning("state.updated dropped", reason=str(problem)[:200])

    def _shared(self, scope: str, key: str, value: Any) -> Iterator[Fact]:
        """A change of the state that the thread shares with its client; what is refused is logged."""
        try:
            if scope != SHARED or not self._session.scene.binding.state_enabled:
                raise unauthorized(f'Scope "{scope}" is not shared with the client')
            yield events.StateUpdated(SHARED, key, state.storable(value))
        except HostRefusal as problem:
            log.warning("state.updated dropped", reason=problem.message[:200])

    async def _artifact(self, result: RunResult) -> Fact:
        said = _read(result, results.ArtifactSaid)
        given = result.data.get("run_id")
        if given and str(given).replace("-", "") != self._session.scene.run_id.hex:
            raise _broken("artifact.created names another run.")
        try:
            made = await artifacts.store(self._session.scene, said)
        except HostRefusal as refusal:
            raise _broken(refusal.message) from None
        self._files.append(made.artifact_id)
        return made

    async def _action(self, said: results.ActionSaid) -> None:
        """Request it; what is not allowed is logged, and the run goes on."""
        ask = parameters.RequestAction(action=said.action, target=said.target, payload=said.payload)
        try:
            await self._session.call("request_action", ask)
        except HostRefusal as refusal:
            log.warning("action.requested refused", action=said.action[:100], reason=refusal.code)

    async def _complete(self, result: RunResult) -> list[Fact]:
        said = _read(result, results.Completed)
        facts: list[Fact] = []
        if said.message and self._is_new(said.message):
            facts = await self._message(said.message)
        self.ended = True
        self._completed = events.RunCompleted(said.finish_reason[:_LONGEST_CODE] or "stop")
        return facts

    def _is_new(self, message: Message) -> bool:
        """Whether the message of the end has not been said as a whole before."""
        text, shown = text_in(message.content), shown_in(message.content)
        if self._text or self._shown:
            return bool(text or shown)
        return bool(text and text != self._last) or bool(shown and not self._has_shown)

    async def finish(self) -> list[Fact]:
        """What is still to be said at the end, and the ending, with the run's tokens and approvals."""
        said = await self._close() if self._text or self._files or self._shown else []
        return [*said, *self._end()]

    def _end(self) -> Iterator[Fact]:
        session = self._session
        ending = self._completed or events.RunCompleted("stop")
        if self._waits and ending.finish_reason == "stop":
            ending = events.RunCompleted("tool_calls", ending.usage, metadata=ending.metadata)
        usage = ending.usage if ending.usage != Usage() else session.usage
        if session.approvals:
            approvals = [self._as_told(approval) for approval in session.approvals]
            for approval in approvals:
                yield from approval.facts
            interrupts = [approval.interrupt for approval in approvals]
            yield events.RunCompleted("interrupt", usage, interrupts)
            return
        yield msgspec.structs.replace(ending, usage=usage)

    def _as_told(self, approval: Approval) -> Approval:
        """The approval under the id that the runner gave the call, if it told of it (the SDK does)."""
        use = approval.use
        for call_id, begun in self._begun.items():
            if (begun.tool_name, begun.parameters) == (use.name, use.arguments):
                del self._begun[call_id]
                return msgspec.structs.replace(approval, call_id=call_id)
        return approval


def _read(result: RunResult, kind: type[T]) -> T:
    try:
        return msgspec.convert(result.data, kind)
    except msgspec.ValidationError as problem:
        raise _broken(f"{result.type}: {problem}") from None


def _ended(said: results.ToolEnded) -> Fact:
    problem = events.Problem("tool_error", said.error[:_LONGEST_WORDS]) if said.error else None
    return events.ToolCallCompleted(
        said.tool_call_id, said.tool_name, problem is None, 0, said.result, problem
    )


def _failure(said: results.Failed) -> RunFailure:
    words = said.error or said.message or "The runner failed."
    return RunFailure(
        said.code[:_LONGEST_CODE] or "runner.error", words[:_LONGEST_WORDS], retryable=said.retryable
    )


def _broken(message: str) -> RunFailure:
    return RunFailure("runner.protocol_error", message)
