"""With a redaction hook installed no table, stream or model ever holds what it takes out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from conversations.log import redaction_hook
from conversations.models import Run, Thread
from tests.conversations.upkeep.erasing import new_canary, ran, tables_with
from tests.support.client import Client, ScriptedModel
from tests.support.fakes.fake_model import Answer, FakeModel, text, tool_calls

pytestmark = pytest.mark.once

_CANARY = re.compile(r"canary-[0-9a-f]{32}")


def redact(value: str) -> str:
    return _CANARY.sub("[gone]", value)


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[str], str]], None]:
    """Install a hook, as the entry point of a package does."""

    def hook(function: Callable[[str], str]) -> None:
        monkeypatch.setattr(redaction_hook, "_hooks", lambda: (("test", function),))

    return hook


@pytest.fixture
def model(scripted: Callable[..., ScriptedModel], provider: FakeModel) -> Callable[..., str]:
    def script(*answers: Answer) -> str:
        name = uuid4().hex
        provider.script(*answers, name=name)
        return scripted(f"script:{name}").name

    return script


def said(client: Client, run: Run) -> str:
    return "".join(
        seen.data["delta"] for seen in client.watch(run.pk.hex) if seen.event == "content_delta"
    )


def test_what_a_hook_takes_out_is_in_no_table_stream_or_request(
    client: Client, install: Any, model: Callable[..., str], provider: FakeModel
) -> None:
    install(redact)
    asked, answered, called = new_canary(), new_canary(), new_canary()
    pieces = re.findall(r".{1,5}", f"It is {answered}, I say.")
    name = model(
        text(*pieces, "\nA second ", "line."),
        tool_calls(("call_1", "no_such_tool", json.dumps({"query": called}))),
    )
    run = ran(client, f"My secret is {asked}.", model=name, metadata={"ticket": asked})
    assert said(client, run) == "It is [gone], I say.\nA second line."
    for canary in (asked, answered, called):
        assert tables_with(canary) == set()
    assert Thread.objects.get(pk=run.thread_id).title == "My secret is [gone]."
    history = json.dumps(client.history(str(run.thread_id)))
    assert "It is [gone], I say." in history
    assert asked not in json.dumps([one.body for one in provider.requests])
    ran(client, "Go on.", model=name, conversation_id=str(run.thread_id))
    assert "It is [gone], I say." in json.dumps(provider.requests[-1].body)


def test_a_hook_that_raises_lets_no_request_in(client: Client, install: Any) -> None:
    def fail(_: str) -> str:
        raise ValueError(_)

    install(fail)
    runs = Run.objects.filter(owner=client.user).count()
    answer = client.http.post("/api/v1/agent/runs", json={"model": "demo", "text": new_canary()})
    assert (answer.status_code, answer.json()["code"]) == (503, "redaction_failed")
    assert "canary" not in answer.text
    assert Run.objects.filter(owner=client.user).count() == runs


def test_a_hook_that_raises_later_fails_the_run_by_name_and_stores_nothing_of_it(
    client: Client, install: Any, model: Callable[..., str]
) -> None:
    canary = new_canary()

    def fail(value: str) -> str:
        if "canary" in value:
            raise ValueError(value)
        return value

    install(fail)
    name = model(text("A fine line.\n", "Then ", canary[:12], canary[12:], "\nand more."))
    accepted = client.start("Say it", model=name)
    client.wait_for(accepted["run_id"], "failed")
    run = Run.objects.get(pk=accepted["run_id"])
    assert run.error_code == "redaction_failed"
    assert said(client, run) == "A fine line.\n"
    assert tables_with(canary[:12]) == set()
