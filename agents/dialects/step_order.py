"""A run's events as steps in an order that a wire of items allows, whatever the runner did.

Wires such as the Agent API and OpenAI's Responses are lists of items: each is opened, filled and
closed once, and a client refuses events before an item's beginning or after its end. Here an unknown
call is begun before it is answered, closed items stay closed, open items are closed before the end,
and after the end there are no steps.

The closing of a message is held back until it is known that the run goes on: an execution closes open
items just before the run's failure, and then the message failed too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from agents.dialects import steps
from agents.dialects.artifact_links import TOOL_RESULT
from agents.dialects.base import id_in_run
from agents.dialects.steps import Item, Status, Step
from agents.dialects.wire import json_text, optional_text
from conversations import events
from conversations.events import Fact, LaterFact, MessageDelta, Terminal, Usage

LIST_TOOLS_SCOPE: Final = "mcp"
REFUSED: Final = "refusal"
_CUT_SHORT: Final = frozenset({"length", "max_tokens", "max_output_tokens"})


class StepOrder:
    """A converter of a run's facts into ordered steps."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._steps: list[Step] = []
        self._created = self._started = self._ended = False
        self._messages: dict[str, Item] = {}
        self._reasoning: Item | None = None
        self._reasoned_as = ""
        self._closing: list[Item] = []
        self._calls: dict[str, steps.ToolCalled] = {}
        self._answered: set[str] = set()
        self._approvals: set[str] = set()
        self._files: dict[str, events.ArtifactCreated] = {}
        self._count = 0

    def open_message(self, message_id: str) -> Item | None:
        """Return the message to which text may be added at once, without any other step."""
        if self._closing or self._reasoning is not None:
            return None
        item = self._messages.get(message_id)
        return item if item is not None and item.open and not self._ended else None

    def take(self, fact: Fact | LaterFact) -> list[Step]:
        """Return the steps of the next fact; none after the last, nor of what a later release wrote."""
        if self._ended or isinstance(fact, LaterFact):
            return []
        self._begin(fact)
        if not isinstance(fact, events.MessageCompleted | events.StageCompleted | events.RunFailed):
            reason = _finish_reason(fact)
            self._release(
                "incomplete" if reason in _CUT_SHORT else "completed", refused=reason == REFUSED
            )
        self._take(fact)
        steps, self._steps = self._steps, []
        return steps

    def _begin(self, fact: Fact) -> None:
        if not self._created:
            self._created = True
            self._steps.append(steps.Created())
        if not self._started and not isinstance(fact, events.RunQueued | events.RunFailed):
            self._started = True
            self._steps.append(steps.Started())

    def _take(self, fact: Fact) -> None:
        match fact:
            case MessageDelta(message_id, text):
                self._say(self._message(message_id), text)
            case events.ReasoningDelta(message_id, text) if text:
                self._say(self._reason(message_id), text)
            case events.MessageCompleted(body):
                self._complete(body)
            case events.ToolCallStarted() as started:
                self._call(started)
            case events.ToolCallCompleted() as completed:
                self._answer(completed)
            case events.ActionRequested(action="tool.approve") as request:
                self._ask((request.target or {}) | (request.payload or {}))
            case events.StateUpdated(scope, server_label, list() as tools) if scope == LIST_TOOLS_SCOPE:
                self._list_tools(server_label, tools)
            case events.ArtifactCreated() as made if made.artifact_type != TOOL_RESULT:
                self._files[made.artifact_id] = made  # a tool's output names its own
            case events.RunCompleted() | events.RunFailed() as terminal:
                self._end(terminal)

    # words

    def _message(self, message_id: str, role: str = "assistant") -> Item:
        item = self._messages.get(message_id)
        if item is None:
            item = self._messages[message_id] = Item(id_in_run(message_id, self._run), role)
            self._open(item)
        elif item.open:
            self._stop_reasoning()
        return item

    def _reason(self, message_id: str) -> Item:
        if self._reasoning is not None and self._reasoned_as == message_id:
            return self._reasoning
        self._count += 1
        wire_id = f"reasoning-{self._count}-{id_in_run(message_id, self._run)}"
        item = Item(wire_id, "assistant", is_reasoning=True)
        self._open(item)
        self._reasoning, self._reasoned_as = item, message_id
        return item

    def _open(self, item: Item) -> None:
        self._release()
        self._stop_reasoning()
        self._steps.append(steps.Opened(item))

    def _say(self, item: Item, text: str) -> None:
        if item.open and text:
            item.add(text)
            self._steps.append(steps.TextAdded(item, text))

    def _complete(self, body: events.MessageBody) -> None:
        is_reasoning = body.role == "reasoning"
        known = self._reasoned(body) if is_reasoning else self._messages.get(body.message_id)
        files = self._files_of(body)
        if known is None and not (body.content or body.contents or files):
            return
        if known is None:
            known = (
                self._reason(body.message_id)
                if is_reasoning
                else self._message(body.message_id, body.role)
            )
        if not known.open:
            return
        so_far = known.text
        if body.content.startswith(so_far):
            self._say(known, body.content[len(so_far) :])
        known.settle(body.content)
        known.files, known.contents = files, body.contents
        if is_reasoning:
            self._reasoning = None
        self._closing.append(known)

    def _files_of(self, body: events.MessageBody) -> tuple[events.ArtifactCreated, ...]:
        """Return the files of this run that a message names; each is used once."""
        for content in body.contents:
            self._files.pop(content.artifact_id, None)
        named = body.metadata.get("artifact_refs")
        refs = [ref for ref in named if isinstance(ref, str)] if isinstance(named, list) else []
        return tuple(self._files.pop(ref) for ref in dict.fromkeys(refs) if ref in self._files)

    def _reasoned(self, body: events.MessageBody) -> Item | None:
        return self._reasoning if self._reasoned_as == body.message_id else None

    def _stop_reasoning(self) -> None:
        if self._reasoning is not None:
            item, self._reasoning = self._reasoning, None
            item.open = False
            self._steps.append(steps.Closed(item, "completed"))

    def _release(self, status: Status = "completed", *, refused: bool = False) -> None:
        self._close(self._closing, status, refused=refused)
        self._closing.clear()

    def _close(
        self,
        items: Sequence[Item],
        status: Status,
        problem: events.Problem | None = None,
        *,
        refused: bool,
    ) -> None:
        """Close these items; the words of a refused run are those of its last message."""
        words = [item for item in items if not item.is_reasoning and item.role == "assistant"]
        last = words[-1] if refused and words else None
        self._steps += [steps.Closed(item, status, problem, item is last) for item in items]

    # tools

    def _call(self, started: events.ToolCallStarted) -> None:
        if started.tool_call_id in self._calls:
            return
        is_clients = started.kind == "frontend"
        call_id = started.tool_call_id if is_clients else id_in_run(started.tool_call_id, self._run)
        arguments, kind, label = json_text(started.parameters), started.kind, started.server_label
        call = steps.ToolCalled(call_id, call_id, started.tool_name, arguments, kind, label)
        self._make(started.tool_call_id, call)

    def _make(self, known_as: str, call: steps.ToolCalled) -> None:
        self._stop_reasoning()
        self._calls[known_as] = call
        self._steps.append(call)

    def _answer(self, completed: events.ToolCallCompleted) -> None:
        known_as = completed.tool_call_id
        if completed.asked_in:
            known_as = f"{completed.asked_in}:{known_as}"
        if known_as not in self._calls:
            self._recall(known_as, completed)
        call = self._calls[known_as]
        if known_as in self._answered or call.kind == "frontend":
            return  # a client's tool is answered by the client, never by us
        self._answered.add(known_as)
        self._stop_reasoning()
        problem = completed.error
        if problem is None and not completed.ok:
            problem = events.Problem("failed", "The tool failed.")
        result = completed.result or {} if problem is None else {"error": problem}
        self._steps.append(steps.ToolAnswered(call, json_text(result), problem))

    def _recall(self, known_as: str, completed: events.ToolCallCompleted) -> None:
        """Add a call whose outcome comes first: an earlier run made it, or its start is missing."""
        call_id = id_in_run(completed.tool_call_id, completed.asked_in or self._run)
        self._make(
            known_as,
            steps.ToolCalled(
                id_in_run(call_id, self._run),
                call_id,
                completed.tool_name,
                json_text(completed.parameters or {}),
                "function" if completed.kind == "frontend" else completed.kind,
                completed.server_label,
                completed.approval_id,
            ),
        )

    def _ask(self, about: dict[str, Any]) -> None:
        """Ask once per call, though both the action and the interrupt at the end contain the request."""
        call_id = optional_text(about, "tool_call_id")
        server_label = optional_text(about, "server_label")
        name = optional_text(about, "tool_name") or optional_text(about, "name")
        arguments = _arguments(about)
        given_id = optional_text(about, "id") or call_id
        asked_id = given_id or f"approval-{len(self._approvals) + 1}-{self._run}"
        if asked_id in self._approvals:
            return
        self._approvals.add(asked_id)
        call = self._calls.get(call_id)
        if call is not None:
            name, arguments = name or call.name, arguments or call.arguments
            server_label = server_label or call.server_label
        self._stop_reasoning()
        self._steps.append(steps.ApprovalRequested(asked_id, name, arguments or "{}", server_label))

    def _list_tools(self, server_label: str, tools: list[Any]) -> None:
        self._count += 1
        listed = [_offered(tool) for tool in tools if isinstance(tool, dict)]
        self._stop_reasoning()
        self._steps.append(steps.ToolsListed(f"mcpl_{self._count}_{self._run}", server_label, listed))

    # the end

    def _end(self, terminal: Terminal) -> None:
        status = self._status(terminal)
        problem = None
        if isinstance(terminal, events.RunFailed) and status != "cancelled":
            problem = events.Problem(terminal.code, terminal.message)
        failed: Status = "failed" if status == "rejected" else status
        self._close_all(failed, problem, refused=_finish_reason(terminal) == REFUSED)
        self._steps += map(steps.FileMade, self._files.values())
        if isinstance(terminal, events.RunCompleted):
            for interrupt in terminal.interrupts:
                self._ask(_interrupt(interrupt))
            self._say_something()
        usage = terminal.usage if isinstance(terminal, events.RunCompleted) else Usage()
        self._steps.append(steps.Ended(status, usage, problem))
        self._ended = True

    def _close_all(self, status: Status, problem: events.Problem | None, *, refused: bool) -> None:
        """Close open and held items, in the order in which they were begun."""
        reasoning = [self._reasoning] if self._reasoning is not None else []
        still = [item for item in self._messages.values() if item.open]
        self._close([*reasoning, *self._closing, *still], status, problem, refused=refused)
        for item in (*reasoning, *still):
            item.open = False
        self._reasoning = None
        self._closing.clear()

    def _status(self, terminal: Terminal) -> Status:
        if isinstance(terminal, events.RunCompleted):
            return "incomplete" if terminal.finish_reason in _CUT_SHORT else "completed"
        if terminal.code == "cancelled":
            return "cancelled"
        return "failed" if self._started else "rejected"

    def _say_something(self) -> None:
        """Add an empty message to an empty answer: some clients wait for one for ever."""
        if not (self._messages or self._count or self._calls or self._approvals or self._files):
            item = Item(id_in_run("execution", self._run), "assistant")
            self._steps += [steps.Opened(item), steps.Closed(item, "completed")]


def _finish_reason(fact: Fact) -> str:
    return fact.finish_reason if isinstance(fact, events.RunCompleted) else ""


def _interrupt(interrupt: dict[str, Any]) -> dict[str, Any]:
    """Return an interrupt at a run's end as the request for approval that it repeats."""
    metadata = interrupt.get("metadata")
    about = metadata if isinstance(metadata, dict) else {}
    return about | {"tool_call_id": interrupt.get("toolCallId"), "id": interrupt.get("id")}


def _arguments(about: dict[str, Any]) -> str:
    """Return the arguments of a request for approval as JSON text; "" if it has none."""
    arguments = about.get("arguments", about.get("parameters"))
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    return json_text(arguments)


def _offered(tool: dict[str, Any]) -> steps.McpListToolsTool:
    return {
        "input_schema": tool.get("input_schema", tool.get("inputSchema", {})),
        "name": optional_text(tool, "name"),
        "annotations": tool.get("annotations"),
        "description": optional_text(tool, "description") or None,
    }
