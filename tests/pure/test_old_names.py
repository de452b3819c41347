"""Places that runners of others may still import from."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from agents.host_protocol import host_api, parameters, replies, results


def test_agents_hosting_is_the_host_protocol() -> None:
    sys.modules.pop("agents.hosting", None)
    with pytest.warns(DeprecationWarning, match=r"agents\.host_protocol"):
        importlib.import_module("agents.hosting")
    assert importlib.import_module("agents.hosting.results") is results
    assert importlib.import_module("agents.hosting.asks") is parameters
    assert importlib.import_module("agents.hosting.records") is replies
    assert importlib.import_module("agents.hosting").api is host_api
    assert vars(results)["Said"] is results.MessageDeltaData
    assert vars(replies)["PromptTold"] is replies.SystemPrompt


def test_it_can_be_imported_before_anything_else() -> None:
    program = "from agents.hosting.manifest import RunnerManifest; print(RunnerManifest.__module__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "agents.host_protocol.manifest\n", done.stderr


def test_the_offline_runner_has_its_name() -> None:
    from agents.runners.demo import DemoRunner

    assert DemoRunner.__name__ == "DemoRunner"
