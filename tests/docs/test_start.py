"""The first run of docs/start.md: its commands as printed, and the answer that the page shows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from config.management.commands.up import _QUESTION
from tests.support.client import Client
from tests.support.doc_pages import page, snippets
from tests.support.shell import needs_curl, run_commands

pytestmark = pytest.mark.once


def plain(text: str) -> str:
    return " ".join(text.split())


def shown_answer() -> str:
    """The quoted answer, without the marks of quoting."""
    return plain("\n".join(re.findall(r"^>(.*)$", page("start.md"), re.MULTILINE)))


@needs_curl
def test_the_commands_of_the_first_run_give_the_answer_that_is_shown(
    client: Client, tmp_path: Path
) -> None:
    commands = next(block for block in snippets("start.md", "sh") if "RUN=" in block)
    assert f'"text": "{_QUESTION}"' in commands, "make up prints the same question"
    printed = run_commands(commands, client, tmp_path)
    frames = [json.loads(data) for data in re.findall(r"^data: (.*)$", printed, re.MULTILINE)]
    assert plain("".join(frame.get("delta", "") for frame in frames)) == shown_answer()


def test_the_words_for_the_chat_page_do_what_the_page_says(client: Client) -> None:
    asked = re.findall(r"^- `([^`]+)`: ", page("start.md"), re.MULTILINE)
    assert len(asked) == 3
    card, thought, approval = (client.start(text)["run_id"] for text in asked)
    for run_id in (card, thought, approval):
        client.wait_for(run_id, "completed")
    events = "/api/v1/agent/runs/{}/events?dialect=ag-ui"
    assert "REASONING_MESSAGE_CONTENT" in client.http.get(events.format(thought)).text
    assert "uiSchema" in client.http.get(events.format(card)).text
    waiting = client.http.get("/api/v1/agent/approvals").json()["approvals"]
    assert [one["tool_name"] for one in waiting if one["run_id"] == approval] == ["demo.note"]
