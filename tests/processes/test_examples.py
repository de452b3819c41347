"""The examples of `docs/extending/`, as printed, in a process of its own.

Each is written to a folder, built and installed by pip, bound in admin by a form, and run over HTTP.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.core.management import call_command

from tests.processes.place import Place, fresh
from tests.support.doc_pages import page, snippets
from tests.support.paths import ROOT
from tests.support.streams import until

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif(
        find_spec("setuptools.command.bdist_wheel") is None and find_spec("wheel") is None,
        reason="without the network pip builds a package only with setuptools 70.1 or later",
    ),
]
_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="(\w+)"')


def install(package: Path, site: Path) -> None:
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", "install", "-q", *offline, "--target", str(site)]
    done = subprocess.run([*pip, str(package)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def install_my_gym(folder: Path, site: Path) -> None:
    """The package of `tools.md`: its two modules in one, and its configuration."""
    (folder / "my_gym.py").write_text("\n\n".join(snippets("extending/tools.md", "python")))
    (configuration,) = snippets("extending/tools.md", "toml")
    (folder / "pyproject.toml").write_text(configuration)
    install(folder, site)


def install_my_plates(folder: Path, site: Path) -> None:
    """The package of `tutorial.md`, with its test beside it."""
    module, test = snippets("extending/tutorial.md", "python")
    (folder / "my_plates.py").write_text(module)
    (folder / "test_my_plates.py").write_text(test)
    (configuration,) = snippets("extending/tutorial.md", "toml")
    (folder / "pyproject.toml").write_text(configuration)
    install(folder, site)


def install_my_agent(folder: Path, site: Path) -> None:
    """The package that `startrunner` makes, with pydantic-ai's agent in it as the page says."""
    printed = page("extending/runners.md").split("## An agent of pydantic-ai\n")[1].split("\n## ")[0]
    (module,) = re.findall(r"```python\n(.*?)```", printed, re.DOTALL)
    call_command("startrunner", "my_agent", str(folder), verbosity=0)
    (folder / "my_agent" / "my_agent" / "__init__.py").write_text(module)
    install(folder / "my_agent", site)


@dataclass(frozen=True)
class Staff:
    """Somebody who is signed in to admin."""

    http: httpx.Client

    def post(self, path: str, **fields: str) -> None:
        token = _TOKEN.search(self.http.get(path).text)
        assert token
        headers = {"Referer": str(self.http.base_url.join(path))}
        answer = self.http.post(path, data=fields | {"csrfmiddlewaretoken": token[1]}, headers=headers)
        errors = re.findall(r"error[^>]*>([^<]+)", answer.text)
        assert answer.status_code == 302, errors

    def bind(self, runner_id: str, **fields: str) -> None:
        usual = {"position": "1", "calls_per_minute": "600", "delivery": "stream", "is_active": "on"}
        fields = usual | {"name": runner_id, "runner_id": runner_id} | fields
        self.post("/admin/agents/runnerbinding/add/", **fields)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A Parley where the examples are installed."""
    folder = tmp_path_factory.mktemp("examples")
    (gym := folder / "my_gym").mkdir()
    install_my_gym(gym, folder / "site")
    (plates := folder / "my_plates").mkdir()
    install_my_plates(plates, folder / "site")
    if find_spec("pydantic_ai"):
        install_my_agent(folder, folder / "site")
    with fresh() as made:
        process = made.up(PYTHONPATH=str(folder / "site"))
        made.wait_until_ready(process)
        yield made
        process.terminate()
        process.communicate(timeout=30)


@pytest.fixture(scope="module")
def staff(place: Place) -> Iterator[Staff]:
    with httpx.Client(base_url=place.url, trust_env=False, timeout=30) as http:
        found = Staff(http)
        found.post("/admin/login/?next=/admin/", **place.notes["admin"])
        yield found


def ask(place: Place, path: str, body: dict[str, Any]) -> httpx.Response:
    headers = {"Authorization": f"Bearer {place.notes['client_token']}", "Accept": "text/event-stream"}
    return httpx.post(place.url + path, json=body, headers=headers, trust_env=False, timeout=60)


def test_the_runner_of_the_page_serves_runs_once_it_is_bound(place: Place, staff: Staff) -> None:
    listed = staff.http.get("/admin/agents/runnerbinding/runners/").text
    assert 'data-runner="python:library"' in listed
    staff.bind("python:library", tools="gymbro.exercise.search", dialect="text")
    answer = ask(place, "/api/v1/agent/runs", {"model": "demo", "text": "bench press"})
    pieces = re.findall(r'"delta": ?"([^"]*)"', answer.text)
    assert re.fullmatch(r"The library knows \d+ exercises for that\. ", "".join(pieces)), answer.text
    assert len(pieces) == 7
    assert "event: completed" in answer.text


def test_the_runner_of_the_page_says_what_it_was_not_granted(place: Place, staff: Staff) -> None:
    staff.bind("python:library", name="without tools", dialect="responses", position="2")
    answer = ask(place, "/v1/responses", {"model": "demo", "input": "bench press"})
    told = answer.json()["error"]["message"]
    assert told == "tool gymbro.exercise.search is not authorized for this agent run"


def test_the_tool_of_the_tutorial_is_called_and_can_be_switched_off(place: Place, staff: Staff) -> None:
    [call] = re.findall(r'"content": "(plates.*?)"}', page("extending/tutorial.md"))
    body = {"model": "demo", "messages": [{"role": "user", "content": call.replace('\\"', '"')}]}

    def answer() -> str:
        told = ask(place, "/v1/chat/completions", body).json()["choices"][0]["message"]["content"]
        return str(told)

    [shown] = re.findall(r"`(The tool answered: .*?)`", page("extending/tutorial.md"))
    assert answer() == shown
    assert "plates.load" in staff.http.get("/admin/agents/toolpolicy/add/").text
    staff.post(
        "/admin/agents/toolpolicy/add/",
        tool="plates.load",
        enabled="on",
        requires_approval="true",
        allowed_to="everyone",
    )
    until(lambda: "approval_required" in answer())


def test_the_test_of_the_tutorial_passes(place: Place, tmp_path: Path) -> None:
    install_my_plates(tmp_path, tmp_path / "site")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{tmp_path}", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_the_agent_of_pydantic_ai_serves_runs_once_it_is_bound(place: Place, staff: Staff) -> None:
    pytest.importorskip("pydantic_ai", reason="pydantic-ai is an optional extra")
    staff.bind("python:my_agent", dialect="agent-api")
    body = {"input": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}], "stream": False}
    answer = ask(place, "/process", body)
    assert "success (no tool calls)" in answer.text
