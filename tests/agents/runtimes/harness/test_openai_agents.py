"""An agent of the OpenAI Agents SDK, in an environment of its own, serves runs (decision 8)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pytest_django import Settings

from tests.agents.runtimes.harness.harness_runs import harness
from tests.agents.runtimes.plugins.bound import said
from tests.clients import environments
from tests.support.client import Client, ScriptedModel
from tests.support.doc_pages import snippets
from tests.support.fakes.fake_model import TEXT

PROGRAM = environments.PROGRAMS / "openai_agents_answer.py"
VARIABLES = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL")


@pytest.mark.timeout(300)  # the environment may have to be made
def test_the_sdk_answers_as_the_decision_says(
    client: Client,
    make_client: Callable[[], Client],
    scripted: Callable[..., ScriptedModel],
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    [block] = snippets("decisions/0008-package-names.md", "sh")
    assert 'RUNNER_COMMANDS="/srv/sdk/bin/python /srv/agents_cli/answer.py"' in block
    try:
        python = str(environments.python("openai-agents"))
    except environments.Unavailable as reason:
        environments.missing(str(reason))
    settings.RUNNER_COMMANDS = [f"{python} {PROGRAM}"]
    settings.RUNNER_ENV = list(VARIABLES)
    other = make_client()  # whose runs no binding sends to the agent again
    values = (other.token, f"{other.url}/v1", scripted("hello").name)
    for name, value in zip(VARIABLES, values, strict=True):
        monkeypatch.setenv(name, value)
    given = {"arguments": str(PROGRAM), "resume_arguments": "", "output": "text"}
    with harness(client, command=python, environment=" ".join(VARIABLES), **given):
        _, answer, detail = said(client, "Say hello.")
    assert (answer.strip(), detail["status"]) == ("".join(TEXT), "completed"), detail
