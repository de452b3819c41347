"""Whole runs of a command-line agent, with a stub that behaves as such tools do."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import psutil
import pytest

from agents.providers.tool_names import ToolNames
from agents.runtimes.harness.folder_cleanup import remove_old_folders
from agents.tools import registry
from agents.tools.base import Tool
from tests.agents.runtimes.harness.harness_runs import STUB, answer_of, harness, talk
from tests.agents.runtimes.plugins.bound import audited, said
from tests.agents.runtimes.plugins.runs import on_loop
from tests.conftest import Server
from tests.support.client import Client
from tests.support.fakes.mcp_host import wait_until
from tests.support.pictures import picture


def test_the_answer_streams_and_its_tokens_are_counted(client: Client) -> None:
    with harness(client):
        _, answer, detail = said(client, "say 你好, world")
    assert (answer, detail["status"]) == ("你好, world", "completed")
    assert detail["usage"]["output_tokens"] == 7


def test_a_conversation_is_resumed_and_a_lost_session_begun_anew(client: Client) -> None:
    with harness(client):
        assert talk(client, "turns", "turns", "turns") == ["turn 1", "turn 2", "turn 3"]
    with harness(client, resume_arguments=f"{STUB} --resume no-such-session"):
        assert talk(client, "turns", "turns") == ["turn 1", "turn 1"]


def test_it_works_in_the_conversations_own_folder_and_reads_its_context(client: Client) -> None:
    with harness(client):
        run_id, answer, _ = said(client, "files x")
    told_id, told, directory = json.loads(answer)
    assert (told_id, told) == (run_id, "files x")
    assert Path(directory).parent.name == "harness"


def test_the_files_of_a_message_are_written_where_the_program_can_read_them(client: Client) -> None:
    image = base64.b64encode(picture("PNG", (4, 4))).decode()
    parts = [
        {"type": "input_text", "text": "look x"},
        {"type": "input_file", "file_data": "YSxi", "filename": "../a.csv"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{image}"},
    ]
    with harness(client):
        body = {"model": "demo", "input": [{"role": "user", "content": parts}]}
        told = client.http.post("/v1/responses", json=body).json()
    (name, text), (image_name, seen) = json.loads(told["output"][-1]["content"][0]["text"])
    assert (name, bytes.fromhex(text)) == ("a.csv", b"a,b")
    assert image_name == "Image"
    assert bytes.fromhex(seen).startswith(b"\x89PNG")


def test_the_folder_goes_with_its_conversation(client: Client, server: Server) -> None:
    with harness(client):
        accepted = client.start("files x")
        client.watch(accepted["run_id"])
        directory = Path(json.loads(answer_of(client, accepted["run_id"]))[2])
    on_loop(server, remove_old_folders())
    assert directory.is_dir()
    deleted = client.http.delete(f"/api/v1/agent/threads/{accepted['conversation_id']}")
    assert deleted.status_code in (200, 202, 204), deleted.text
    wait_until(lambda: on_loop(server, remove_old_folders()) or not directory.exists())
    wait_until(lambda: not directory.exists())


def test_without_state_every_run_is_the_first(client: Client) -> None:
    with harness(client, state_enabled=False):
        assert talk(client, "turns", "turns") == ["turn 1", "turn 1"]


def test_tools_are_offered_by_the_runs_own_mcp_server(client: Client) -> None:
    with harness(client, tools=["gymbro.exercise.search"]):
        run_id, answer, detail = said(client, "tools chest")
    assert detail["status"] == "completed", detail
    refused, offered, found, unknown = json.loads(answer)
    assert (refused, unknown) == (401, True)
    assert "gymbro_exercise_search" in offered
    assert "web_search_exa" not in offered
    assert len(found["results"]) == 1
    assert ("call_tool", "ok") in audited(run_id, 1)


def test_tools_whose_long_names_begin_alike_are_both_offered_and_told_apart(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"team.{'long.' * 15}{word}" for word in ("first", "second")]
    called: list[str] = []

    def tool(name: str) -> Tool:
        async def call(arguments: dict[str, Any]) -> dict[str, Any]:
            called.append(name)
            return {"results": [name]}

        schema = {"type": "object", "properties": {"query": {"type": "string"}}}
        return Tool(name, "Finds.", schema, call, idempotent=True, timeout_s=5)

    known = {**registry._by_name(), **{name: tool(name) for name in names}}
    monkeypatch.setattr(registry, "_by_name", lambda: known)
    sent = ToolNames(names)
    with harness(client, tools=names):
        _, answer, _ = said(client, f"call {sent.to_provider(names[1])}")
    offered, found = json.loads(answer)
    assert {sent.to_provider(name) for name in names} <= {*offered}
    assert max(map(len, offered)) <= 64
    assert (found["results"], called) == ([names[1]], [names[1]])


def test_the_program_sees_what_it_is_given_and_no_more(client: Client) -> None:
    with harness(client, environment="HARNESS_TOKEN"):
        _, answer, _ = said(client, "env")
    variables = json.loads(answer)
    assert variables["HARNESS_TOKEN"] == "given"
    ours = {"HARNESS_SECRET", "DATABASE_URL", "SECRET_KEY", "JWT_SECRET", "SEALING_KEYS", "VAR_DIR"}
    assert ours & set(variables) == set()


def test_codex_and_plain_text_are_understood(client: Client) -> None:
    with harness(client):
        _, answer, _ = said(client, "codex hello")
        assert answer == "hello"
    with harness(client, arguments=f"{STUB} --text --prompt {{prompt}}", output="text"):
        _, answer, _ = said(client, "say $(id) `id` ; rm -rf / {mcp_url}")
        assert answer.startswith("plain $(id) `id` ; rm -rf / {mcp_url}\nsecond line")


def test_what_a_user_says_is_never_an_option(client: Client) -> None:
    with harness(client, arguments=f"{STUB} --prompt {{prompt}}"):
        _, _, detail = said(client, "--text")
    assert detail["error"]["code"] == "harness.empty_answer"  # a prompt that tells the stub nothing


def test_rubbish_between_the_lines_is_passed_over(client: Client) -> None:
    with harness(client):
        assert said(client, "rubbish fine")[1] == "fine"


@pytest.mark.parametrize("how", ["cancel", "deadline"])
def test_nothing_that_it_started_outlives_the_run(client: Client, tmp_path: Path, how: str) -> None:
    pids = tmp_path / "pids"
    with harness(client, **({"deadline_s": 2} if how == "deadline" else {})):
        run_id = client.start(f"sleep {pids}")["run_id"]
        wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
        if how == "cancel":
            client.http.post(f"/api/v1/agent/runs/{run_id}/cancel")
        detail = client.wait_for(run_id, "failed", "cancelled")
    wait_until(lambda: not any(_alive(int(pid)) for pid in pids.read_text().split()))
    expected = {"cancel": ("cancelled",), "deadline": ("runner.timeout", "deadline_exceeded")}
    assert detail["error"]["code"] in expected[how]


def _alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


@pytest.mark.parametrize(
    ("text", "given", "code"),
    [
        ("fail", {"environment": "HARNESS_SECRET"}, "harness.failed"),
        ("flood", {}, "harness.output_too_large"),
        ("nothing", {}, "harness.empty_answer"),
        ("say x", {"command": "/bin/sh"}, "harness.config_invalid"),
        ("say x", {"command": ""}, "harness.config_invalid"),
        ("say x", {"arguments": "'"}, "harness.config_invalid"),
        ("say x", {"environment": "PGPASSWORD"}, "harness.config_invalid"),
        ("say x", {"working_directory": "relative"}, "harness.config_invalid"),
        ("say x", {"working_directory": "/no/such/folder"}, "harness.working_directory_not_found"),
        (
            "say x",
            {"command": "/no/such/program", "arguments": "", "resume_arguments": ""},
            "harness.command_not_found",
        ),
    ],
)
def test_what_goes_wrong_has_a_code_and_says_nothing_of_its_inside(
    client: Client, text: str, given: dict[str, Any], code: str
) -> None:
    with harness(client, **given):
        _, _, detail = said(client, text)
    assert detail["error"]["code"] == code
    assert os.environ["HARNESS_SECRET"] not in json.dumps(detail)
    assert "Traceback" not in json.dumps(detail)
