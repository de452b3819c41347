"""Who may use which route of the API: the whole URL table, met by every kind of caller.

The matrix is a literal: a route or a method that somebody adds must be placed in it, or the first test
fails. A view states what it needs (`config.auth.requirements`); here real requests show that it holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

import httpx
import pytest
from asgiref.sync import iscoroutinefunction
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client
from pytest_django import Settings

from config.auth.bearer import create_api_token
from config.http import paths
from tests.config.auth.url_table import routes, table
from tests.conftest import Server

pytestmark = pytest.mark.once

KINDS = (
    "nobody",
    "guest",
    "user",
    "bare",
    "owner",
    "staff",
    "analyst",
    "support",
    "run",
    "read",
    "admin",
)
"""No token; a guest; a plain account; a staff account without a role; the four roles; an owner whose
token has this one scope."""

OPEN = "++++ ++++ +++"
READ = "-+++ ++++ -+-"
RUN = "-+++ ++++ +--"
OWNER = "---- +--- --+"
WRITER = "---- ++-- --+"
READER = "---- ++++ --+"
SUPPORT = "---- +--+ --+"
METRICS = "---- +++- --+"
OWNER_TWICE = "---- +--- ---"  # needs another scope beside admin
SUPPORT_TWICE = "---- +--+ ---"

RIGHTS = {
    "ANY /health": OPEN,
    "ANY /ready": OPEN,
    "ANY /metrics": METRICS,
    "ANY /api/docs/": OPEN,
    "ANY /api/schema/": OPEN,
    "ANY /api/v1/schemas/<str:name>": OPEN,
    "ANY /api/v1/auth/token": OPEN,
    "ANY /storage/v1/object/sign/<str:bucket>/<path:path>": OPEN,  # the signature says who may
    "GET /api/v1/llm/models": READ,
    "GET /api/v1/llm/models?view=endpoints": OWNER_TWICE,
    "GET /api/v1/llm/app/config": OWNER,
    "POST /api/v1/llm/app/config": OWNER,
    "GET /api/v1/llm/prompts": WRITER,
    "POST /api/v1/llm/prompts": WRITER,
    "GET /api/v1/llm/prompts/<int:prompt_id>": WRITER,
    "PUT /api/v1/llm/prompts/<int:prompt_id>": WRITER,
    "DELETE /api/v1/llm/prompts/<int:prompt_id>": WRITER,
    "POST /api/v1/llm/prompts/<int:prompt_id>/activate": WRITER,
    "GET /api/v1/llm/tests/active-agent-prompts": WRITER,
    "POST /api/v1/llm/sse/force-disconnect": SUPPORT,
    "GET /api/v1/stats/dashboard": READER,
    "GET /api/v1/metrics/<str:sheet>": METRICS,
    "GET /api/v1/exercise/library/meta": READ,
    "GET /api/v1/exercise/library/full": READ,
    "GET /api/v1/exercise/library/updates": READ,
    "POST /api/v1/admin/exercise/library/publish": WRITER,
    "POST /api/v1/admin/exercise/library/patch": WRITER,
    "GET /api/v1/agent/runners": OWNER,
    "POST /api/v1/agent/runners/<path:runner_id>/run": OWNER_TWICE,
    "POST /api/v1/agent/runs": RUN,
    "POST /api/v1/agent/run": RUN,
    "POST /api/v1/agent/ag-ui": RUN,
    "POST /api/v1/agent/process": RUN,
    "GET /api/v1/agent/runs/<str:run_id>": READ,
    "GET /api/v1/agent/runs/<str:run_id>/events": READ,
    "GET /api/v1/messages/<str:run_id>/events": READ,
    "POST /api/v1/agent/runs/<str:run_id>/cancel": RUN,
    "GET /api/v1/agent/runs/<str:run_id>/feedback": READ,
    "POST /api/v1/agent/runs/<str:run_id>/feedback": RUN,
    "DELETE /api/v1/agent/runs/<str:run_id>/feedback": RUN,
    "GET /api/v1/agent/capabilities": READ,
    "GET /api/v1/agent/usage": READ,
    "GET /api/v1/agent/approvals": READ,
    "GET /api/v1/agent/approvals?user_id=all": SUPPORT_TWICE,
    "GET /api/v1/agent/approvals/<str:approval_id>": READ,
    "POST /api/v1/agent/approvals/<str:approval_id>": RUN,
    "GET /api/v1/agent/threads": READ,
    "GET /api/v1/agent/threads/<str:thread_id>": READ,
    "PATCH /api/v1/agent/threads/<str:thread_id>": RUN,
    "DELETE /api/v1/agent/threads/<str:thread_id>": RUN,
    "GET /api/v1/agent/threads/<str:thread_id>/connect": READ,
    "GET /api/v1/agent/history": READ,
    "GET /api/v1/agent/history/search": READ,
    "GET /api/v1/agent/artifacts/<str:artifact_id>": READ,
    "POST /api/v1/agent/attachments": RUN,
    "POST /process": RUN,
    "POST /process/task": RUN,
    "GET /process/task/<str:task_id>": READ,
    "POST /v1/responses": RUN,
    "POST /v1/responses/compact": RUN,
    "POST /v1/responses/input_tokens": RUN,
    "GET /v1/responses/<str:response_id>": READ,
    "DELETE /v1/responses/<str:response_id>": RUN,
    "GET /v1/responses/<str:response_id>/input_items": READ,
    "POST /v1/responses/<str:response_id>/cancel": RUN,
    "POST /compatible-mode/v1/responses": RUN,
    "POST /compatible-mode/v1/responses/compact": RUN,
    "POST /compatible-mode/v1/responses/input_tokens": RUN,
    "GET /compatible-mode/v1/responses/<str:response_id>": READ,
    "DELETE /compatible-mode/v1/responses/<str:response_id>": RUN,
    "GET /compatible-mode/v1/responses/<str:response_id>/input_items": READ,
    "POST /compatible-mode/v1/responses/<str:response_id>/cancel": RUN,
    "POST /v1/chat/completions": RUN,
    "GET /v1/models": READ,
    "GET /v1/models/<path:model_id>": READ,
    "POST /compatible-mode/v1/chat/completions": RUN,
    "GET /compatible-mode/v1/models": READ,
    "GET /compatible-mode/v1/models/<path:model_id>": READ,
}
KEPT_BY_BROWSERS = {f"GET /api/v1/exercise/library/{what}" for what in ("meta", "full", "updates")}
BODIES = {"POST /api/v1/admin/exercise/library/publish": {"baseVersion": 2**31 - 1}}
"""What changes nothing where an empty body would."""
POLICY = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'"


def methods(view: Any) -> set[str]:
    """The methods that a class has."""
    return {name.upper() for name in view.http_method_names if hasattr(view, name)} - {"HEAD", "OPTIONS"}


@pytest.fixture(scope="module")
def callers(server: Server) -> Iterator[dict[str, httpx.Client]]:
    with ExitStack() as stack:
        yield {kind: stack.enter_context(_client(server, kind)) for kind in KINDS}


def _client(server: Server, kind: str) -> httpx.Client:
    web = httpx.Client(base_url=server.url, trust_env=False, timeout=60)
    if kind == "nobody":
        return web
    alone = kind in ("run", "read", "admin")
    user = get_user_model().objects.create_user(
        f"{kind}-{uuid4().hex}", is_staff=kind not in ("guest", "user"), is_guest=kind == "guest"
    )
    role = "owner" if alone else kind
    user.groups.set(Group.objects.filter(name=role))
    _, token = create_api_token(user, "test", scopes=[kind] if alone else ["run", "read", "admin"])
    web.headers["Authorization"] = f"Bearer {token}"
    return web


def test_every_route_has_its_place_in_the_matrix() -> None:
    assert set(table()) == {line for line in RIGHTS if "?" not in line}


def test_every_method_of_a_class_states_what_it_needs() -> None:
    classes: list[Any] = [getattr(pattern.callback, "cls", None) for _, pattern in routes()]
    stated = {view: set(view.needs) for view in classes if hasattr(view, "needs")}
    assert stated == {view: methods(view) for view in stated} != {}


@pytest.mark.parametrize("line", RIGHTS)
def test_a_route_lets_in_whom_the_matrix_says(callers: dict[str, httpx.Client], line: str) -> None:
    method, _, route = line.partition(" ")
    path = re.sub(r"<(\w+):\w+>", lambda found: "0" if found[1] == "int" else uuid4().hex, route)
    seen = ""
    for kind in KINDS:
        body = None if method in ("ANY", "GET", "DELETE") else BODIES.get(line, {})
        answer = callers[kind].request("GET" if method == "ANY" else method, path, json=body)
        assert answer.status_code < 500, answer.text
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store" or line in KEPT_BY_BROWSERS
        assert (answer.status_code == 401) is (kind == "nobody" and RIGHTS[line][0] == "-"), answer.text
        seen += "-" if answer.status_code in (401, 403) else "+"
    assert seen == RIGHTS[line].replace(" ", "")


def test_the_views_in_a_thread_are_at_the_addresses_that_say_so() -> None:
    """All others are answered without Django's connections, which nobody would close."""
    for route, pattern in routes():
        if route.startswith(paths.API) and not route.startswith(paths.WITH_ORM):
            assert iscoroutinefunction(pattern.callback), route


def test_the_page_where_tokens_are_pasted_runs_our_files_alone_in_nobody_s_frame(server: Server) -> None:
    page = httpx.get(f"{server.url}/api/docs/", trust_env=False)
    assert page.headers["Content-Security-Policy"].startswith(POLICY)
    assert page.headers["X-Frame-Options"] == "DENY"
    assert set(re.findall(r"<script([^>]*)>(.*?)</script>", page.text, re.DOTALL)) == {
        (f' src="{address}"', "") for address in re.findall(r'<script src="([^"]*)"', page.text)
    }
    script = httpx.get(f"{server.url}/api/docs/?script=", trust_env=False)
    assert script.headers["Content-Type"].startswith("application/javascript")


def test_browsers_are_bound_to_https_for_as_long_as_the_setting_says(settings: Settings) -> None:
    assert "Strict-Transport-Security" not in Client().get("/admin/login/", secure=True).headers
    settings.SECURE_HSTS_SECONDS = 600
    page = Client().get("/admin/login/", secure=True)
    assert page.headers["Strict-Transport-Security"] == "max-age=600"
