"""Through CopilotKit's own runtime, as docs/connect-copilotkit.md says; it is large, so not by default.

`COPILOTKIT=1 make test` installs it; CI does.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.ag_ui.node import HERE, installed
from tests.ag_ui.test_live import WEATHER, user
from tests.client import Client

FOLDER = HERE / "copilotkit"
WANTED = "COPILOTKIT" in os.environ or os.environ.get("CI") == "true"
pytestmark = [
    pytest.mark.skipif(not WANTED, reason="280 MB of packages: set COPILOTKIT=1"),
    pytest.mark.timeout(600),
]


def through(client: Client, **given: Any) -> dict[str, Any]:
    node = installed(FOLDER)
    told = {"url": client.url, "authorization": f"Bearer {client.token}", "threadId": str(uuid4())}
    done = subprocess.run(
        [node, "runtime.mjs", json.dumps(told | given)],
        cwd=FOLDER,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer: dict[str, Any] = json.loads(done.stdout.rstrip("\n").rpartition("\n")[2])
    return answer


def spoken(messages: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    return [(message["role"], message.get("content")) for message in messages]


def test_turns_with_full_history_and_a_replay_from_our_log(client: Client) -> None:
    thread_id = str(uuid4())
    turns = [user("hello"), user("练胸有什么动作？")]
    seen = through(client, threadId=thread_id, turns=turns, forwardedProps={"model": "demo"})
    assert "failure" not in seen
    assert [kinds[0] for kinds in seen["runs"]] == ["RUN_STARTED"] * 2
    assert [kinds[-1] for kinds in seen["runs"]] == ["RUN_FINISHED"] * 2
    assert spoken(seen["replayed"]) == spoken(seen["messages"])
    stored = client.history(thread_id)["messages"]
    assert [said["content"] for said in stored if said["role"] == "user"] == [
        turn["content"] for turn in turns
    ]


def test_frontend_tools_reach_the_browser(client: Client) -> None:
    asked = user('Please get_weather {"city": "Oslo"}')
    seen = through(client, turns=[asked], tools=[WEATHER], forwardedProps={"model": "demo"})
    calls = [call for said in seen["messages"] for call in said.get("toolCalls", [])]
    assert [call["function"]["name"] for call in calls] == ["get_weather"]


def test_the_browsers_answer_to_a_frontend_tool_goes_on(client: Client) -> None:
    turns = [user('Please get_weather {"city": "Oslo"}'), {"answer": "12 °C, rain"}]
    seen = through(client, turns=turns, tools=[WEATHER], forwardedProps={"model": "demo"})
    assert "failure" not in seen
    assert "12 °C, rain" in seen["messages"][-1]["content"]
    assert [kinds[-1] for kinds in seen["runs"]] == ["RUN_FINISHED"] * 2


@pytest.mark.usefixtures("scripted_runs")
def test_reasoning_tools_state_and_activities_arrive(client: Client) -> None:
    props = {"model": "demo", "script": "everything"}
    seen = through(client, turns=[user("go")], forwardedProps=props)
    assert "failure" not in seen
    said = {message["role"]: message.get("content") for message in seen["messages"]}
    assert said["reasoning"] == "let me think"
    assert said["activity"]["artifact_id"] == "chart"
    assert said["assistant"] == "Here it is."
    assert seen["state"] == {"count": 1, "items": ["a", "b"], "deep": {"er": True}}
    assert [m["role"] for m in seen["replayed"]] == [m["role"] for m in seen["messages"]]


@pytest.mark.parametrize(
    ("resume", "told"),
    [
        ({"status": "resolved", "payload": {"approved": True}}, "buy milk"),
        ({"status": "resolved", "payload": {"approved": False, "reason": "no"}}, "approval_refused"),
        ({"status": "cancelled"}, "approval_refused"),
    ],
)
def test_an_interrupt_is_answered(client: Client, resume: dict[str, Any], told: str) -> None:
    turns = [user("approve demo.note buy milk"), {"resume": resume}]
    seen = through(client, turns=turns, forwardedProps={"model": "demo"})
    assert "failure" not in seen
    assert seen["interrupts"] == []
    [answer] = [message["content"] for message in seen["messages"] if message["role"] == "tool"]
    assert told in answer
    assert spoken(seen["replayed"]) == spoken(seen["messages"])


@pytest.mark.usefixtures("scripted_runs")
def test_stop_ends_the_run_here(client: Client) -> None:
    thread_id = str(uuid4())
    props = {"model": "demo", "script": "endless"}
    through(client, threadId=thread_id, turns=[user("speak")], stopAfter=8, forwardedProps=props)
    run_id = _newest_run(client)
    client.wait_for(run_id, "cancelled")


def _newest_run(client: Client) -> str:
    from conversations.models import Run

    newest: Run = Run.objects.filter(owner=client.user).latest("created_at")
    return newest.id.hex


def test_the_page_of_the_docs_shows_what_is_tested_here() -> None:
    page = (Path(__file__).parents[2] / "docs" / "connect-copilotkit.md").read_text()
    for said in ("class DurableRunner extends InMemoryAgentRunner", '"X-On-Disconnect": "cancel"'):
        assert said in page
        assert said in (FOLDER / "runtime.mjs").read_text()
