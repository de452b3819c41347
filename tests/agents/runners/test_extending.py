"""Tools and runners of other packages: found by their entry points, or left out and told why.

The runner of `docs/extending/tools.md` is run in `tests/processes/test_examples.py`.
"""

from __future__ import annotations

import html
from collections.abc import AsyncGenerator, Callable, Iterator
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client as Browser

from agents.host import runner_catalogue
from agents.host_protocol.manifest import RunnerManifest
from agents.runners import registry as runners
from agents.tools import entry_points as installed_tools
from agents.tools import registry as tools
from tests.agents.runtimes.plugins.bound import bound, said
from tests.support.client import Client, ScriptedModel
from tests.support.doc_pages import snippets
from tests.support.fakes.fake_model import FakeModel, text, tool_calls
from tests.support.image_runs import CHINESE_QUESTION, finished, post, uploaded
from tests.support.pictures import picture

pytestmark = pytest.mark.once


def module(place: int) -> tuple[ModuleType, str]:
    """The module in the page's Python block of this place, and its text."""
    code = snippets("extending/tools.md", "python")[place]
    made = ModuleType(f"tools_{place}")
    exec(compile(code, f"tools.md block {place}", "exec"), made.__dict__)
    return made, code


class Entry:
    """An installed entry point."""

    def __init__(self, name: str, found: Any) -> None:
        self.name, self.value, self._found = name, f"package:{name}", found

    def load(self) -> Any:
        if isinstance(self._found, Exception):
            raise self._found
        return self._found


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    def install(room: ModuleType, *entries: Entry) -> None:
        reads = installed_tools if room is tools else room
        monkeypatch.setattr(reads, "entry_points", lambda group: list(entries))
        room.clear_cache()

    yield install
    monkeypatch.undo()
    tools.clear_cache()
    runners.clear_cache()


def lines(code: str) -> int:
    return len([line for line in code.splitlines() if line.strip()])


def test_the_tool_of_the_page_is_called_by_a_model(
    installed: Callable[..., None],
    client: Client,
    scripted: Callable[..., ScriptedModel],
    provider: FakeModel,
) -> None:
    made, code = module(0)
    assert lines(code) <= 15
    installed(tools, Entry("plates", made.PLATES))
    name = uuid4().hex
    provider.script(tool_calls(("c1", "gym_plates", '{"kg": 100}')), text("Load it."), name=name)
    body = {
        "threadId": str(uuid4()),
        "runId": uuid4().hex,
        "messages": [{"id": "1", "role": "user", "content": "go"}],
        "forwardedProps": {"model": scripted(f"script:{name}").name},
    }
    run_id = client.http.post("/api/v1/agent/runs", json=body).json()["taskId"]
    client.wait_for(run_id, "completed")
    told = provider.requests_for(f"script:{name}")[1].body["messages"][-1]
    assert told["content"] == '{"each_side":[25,15]}'


class Waits:
    async def run(self, context: Any, host: Any) -> Any:
        return None


class TooFew:
    async def run(self, context: Any) -> Any:
        yield None


class NeedsMore:
    def __init__(self, key: str) -> None:
        self.key = key


class Undeclared:
    async def run(self, context: Any, host: Any) -> Any:
        yield None


class Misnamed(Undeclared):
    manifest = RunnerManifest(id="python:other", name="other", label={})


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (ImportError("secret path"), "cannot be loaded (ImportError)"),
        ("no runner", "must be an async generator"),
        (Waits, "must be an async generator"),
        (TooFew(), "must take context and host"),
        (NeedsMore, "cannot be loaded (TypeError)"),
        (Undeclared, 'it has no manifest: add manifest = RunnerManifest(id="python:bad", name="bad"'),
        (Misnamed, 'the id in its manifest is "python:other": say id="python:bad"'),
    ],
)
def test_a_runner_that_is_none_is_left_out_and_the_reason_is_told(
    installed: Callable[..., None], found: Any, why: str
) -> None:
    good, code = module(1)
    assert lines(code) <= 20
    installed(runners, Entry("bad", found), Entry("library", good.Library))
    assert list(runners.runners()) == ["library"]
    assert why in runners.why_not("bad")
    assert "secret" not in runners.why_not("bad")
    assert runners.why_not("library") == ""
    assert runners.why_not("gone") == "No package brings a runner named gone. Installed: library."


def test_of_two_runners_of_a_name_the_first_stays(installed: Callable[..., None]) -> None:
    good, _ = module(1)
    first = good.Library()
    installed(runners, Entry("library", first), Entry("library", good.Library()))
    assert runners.runners() == {"library": first}


def test_a_name_that_no_runner_can_have_is_told(installed: Callable[..., None]) -> None:
    good, _ = module(1)
    installed(runners, Entry("my gym", good.Library))
    assert "rename the entry" in runners.why_not("my gym")


def test_entry_points_are_those_of_importlib() -> None:
    entry = EntryPoint("harness", "agents.runtimes.harness.runner:HarnessRunner", runners.GROUP)
    with pytest.raises(runners._NotARunner, match="builtin:harness"):
        runners._runner(entry)


def test_admin_says_which_packages_runners_are_left_out_and_why(
    installed: Callable[..., None], make_client: Callable[..., Client]
) -> None:
    browser = Browser()
    browser.force_login(make_client(is_staff=True, is_superuser=True).user)
    installed(runners, Entry("undeclared", Undeclared))
    page = browser.get("/admin/agents/runnerbinding/runners/").content.decode()
    shown = page.split('data-runner="python:undeclared"')[1].split("data-runner=")[0]
    assert "not available" in shown
    assert "it has no manifest: add manifest = RunnerManifest(" in html.unescape(shown)


def test_staff_who_run_one_that_is_left_out_are_told_why(
    installed: Callable[..., None], make_client: Callable[..., Client]
) -> None:
    staff = make_client(is_staff=True, is_superuser=True)
    installed(runners, Entry("undeclared", Undeclared))
    path = "/api/v1/agent/runners/python:undeclared/run"
    answer = staff.http.post(path, json={"input": {"text": "hi"}})
    assert answer.status_code == 404
    assert "it has no manifest: add manifest" in answer.json()["detail"]


# --- pydantic-ai ---------------------------------------------------------------------------------


def test_a_pydantic_ai_agent_is_a_runner(installed: Callable[..., None], client: Client) -> None:
    """Its tools and words are the run's, and it is told what was said before."""
    pytest.importorskip("pydantic_ai", reason="pydantic-ai is an optional extra")
    from pydantic_ai import Agent
    from pydantic_ai.models.function import DeltaToolCall, FunctionModel

    from agents.runners.pydantic_ai import PydanticAiRunner

    told: list[list[str]] = []

    async def says(messages: list[Any], info: Any) -> AsyncGenerator[Any]:
        told.append([str(getattr(part, "content", "")) for one in messages for part in one.parts])
        if len(told) % 2:
            yield {0: DeltaToolCall("plates", '{"kg": 100}', tool_call_id="c1")}
        else:
            yield "Squat, "
            yield "then rest."

    agent: Any = Agent(FunctionModel(stream_function=says))

    @agent.tool_plain
    def plates(kg: int) -> int:
        return kg // 25

    runner = PydanticAiRunner(agent, name="coach")
    installed(runners, Entry("coach", runner))
    assert runner_catalogue.find("python:coach") is runner
    with bound(client, "python:coach"):
        _, _, first = said(client, "What now?")
        run_id, answer, run = said(client, "And then?", conversation_id=first["conversation_id"])
    assert (answer, run["status"]) == ("Squat, then rest.", "completed")
    assert told[2][-3:] == ["What now?", "Squat, then rest.", "And then?"]
    made = [frame.data for frame in client.watch(run_id) if frame.event == "tool_result"]
    assert ("plates", True) in [(one["tool_name"], one["ok"]) for one in made]
    assert run["usage"]["output_tokens"] > 0


def test_a_pydantic_ai_agent_sees_the_images_of_the_question(
    installed: Callable[..., None], client: Client
) -> None:
    pytest.importorskip("pydantic_ai", reason="pydantic-ai is an optional extra")
    from pydantic_ai import Agent, BinaryContent
    from pydantic_ai.models.function import FunctionModel

    from agents.runners.pydantic_ai import PydanticAiRunner

    seen: list[Any] = []

    async def says(messages: list[Any], info: Any) -> AsyncGenerator[Any]:
        seen.append(messages[-1].parts[-1].content)
        yield "A squat."

    installed(
        runners,
        Entry("coach", PydanticAiRunner(Agent(FunctionModel(stream_function=says)), name="coach")),
    )
    data = picture("PNG", (8, 8))
    with bound(client, "python:coach"):
        finished(client, post(client, uploaded(client, data)["url"]))
    ((words, image),) = seen
    assert words == CHINESE_QUESTION
    assert isinstance(image, BinaryContent)
    assert image.media_type == "image/png"
    assert image.data.startswith(b"\x89PNG")
