"""The pages that show how to connect are run as they stand, against the running server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents.dialects.agent_api import oracle
from tests.support.client import Client
from tests.support.doc_pages import snippets
from tests.support.shell import needs_curl, run_commands

pytestmark = pytest.mark.once

assert oracle.clients, "without it the reference package cannot be imported alone"


@pytest.mark.parametrize(
    "page", ["clients/agentscope.md", "clients/chat-completions.md", "clients/openai-sdk.md"]
)
def test_the_python_of_a_page_runs(
    page: str, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    for code in snippets(page, "python"):
        here = code.replace("http://127.0.0.1:8000", client.url)
        assert here != code
        exec(compile(here, page, "exec"), {"TOKEN": client.token})
    said = capsys.readouterr().out
    assert "(An answer of the offline demo model.)" in said or "离线演示模型" in said


@needs_curl
def test_the_commands_of_the_curl_page_run(client: Client, tmp_path: Path) -> None:
    run_id = client.start("chest")["run_id"]
    client.wait_for(run_id, "completed")
    known = {"TOKEN": client.token, "RUN": run_id, "TASK": run_id, "ID": f"resp_{run_id}"}
    first, *blocks = snippets("clients/curl.md", "sh")
    commands = first + "".join(blocks).replace("curl -", "curl -f -")
    printed = run_commands(commands, client, tmp_path, **known)
    for said in (
        '"run_id"',
        "event: completed",
        '"object":"response"',
        "response.completed",
        '"object":"chat.completion"',
        "data: [DONE]",
        '"object":"list"',
    ):
        assert said in printed
