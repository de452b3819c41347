"""Runs of a command-line agent, which is a stub."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agents.runtimes.harness.options import RUNNER_ID
from tests.agents.runtimes.plugins.bound import bound
from tests.support.client import Client

STUB = str(Path(__file__).with_name("stub.py"))
ARGUMENTS = f"{STUB} --mcp-config {{mcp_config}}"
RESUME = f"{ARGUMENTS} --resume {{session_id}}"


@contextmanager
def harness(client: Client, **given: Any) -> Iterator[None]:
    """The user's runs go to the stub."""
    config = {"command": sys.executable, "arguments": ARGUMENTS, "resume_arguments": RESUME}
    grants = {key: given.pop(key) for key in ("tools", "deadline_s", "state_enabled") if key in given}
    with bound(client, RUNNER_ID, config=config | given, **grants):
        yield


def talk(client: Client, *texts: str) -> list[str]:
    """The answers to these, in one conversation."""
    answers, more = [], dict[str, str]()
    for text in texts:
        accepted = client.start(text, **more)
        more = {"conversation_id": accepted["conversation_id"]}
        client.watch(accepted["run_id"])
        detail = client.wait_for(accepted["run_id"], "completed", "failed")
        assert detail["status"] == "completed", detail
        answers.append(answer_of(client, accepted["run_id"]))
    return answers


def answer_of(client: Client, run_id: str) -> str:
    """What the run has said."""
    frames = client.watch(run_id)
    return "".join(frame.data["delta"] for frame in frames if frame.event == "content_delta")
