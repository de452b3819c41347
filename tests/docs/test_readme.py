"""The README is the map; what it says of routes, events and settings is checked here."""

from __future__ import annotations

import re
from typing import Any, get_args

import httpx
import pytest

from conversations.events import Fact
from tests.conftest import Server
from tests.support.doc_pages import README, section
from tests.support.paths import ROOT

pytestmark = pytest.mark.once

OURS = ("/api/v1/", "/storage/v1/")


def test_every_setting_is_explained_and_every_explained_one_exists() -> None:
    read = re.compile(r"(?:env|keys)\.\w+\(\s*\"([A-Z][A-Z0-9_]+)\"")
    used = {name for path in ROOT.glob("config/**/*.py") for name in read.findall(path.read_text())}
    explained = set(re.findall(r"`([A-Z][A-Z0-9_]+)`", section("Settings")))
    assert used - explained == set()
    assert explained - used == set()


def test_every_event_is_listed() -> None:
    tags = {kind.__struct_config__.tag for kind in get_args(Fact)}
    listed = set(re.findall(r"`([a-z]+(?:\.[a-z]+)+)`", section("Events")))
    assert listed == tags


def test_every_route_of_the_openapi_document_is_listed_and_the_other_way_round(server: Server) -> None:
    document: dict[str, Any] = httpx.get(
        f"{server.url}/api/schema/", headers={"Accept": "application/json"}, trust_env=False
    ).json()
    listed = set(re.findall(r"(/(?:api|storage)/v1/[a-z_/{}-]+)", section("Routes")))
    assert listed == {path for path in document["paths"] if path.startswith(OURS)}


def test_the_openapi_document_describes_every_route_of_the_api() -> None:
    from config.openapi import add_async_operations
    from config.urls import urlpatterns

    def paths(patterns: list[Any], prefix: str) -> set[str]:
        found = set()
        for pattern in patterns:
            whole = prefix + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", str(pattern.pattern))
            inner = getattr(pattern, "url_patterns", None)
            found |= paths(inner, whole) if inner is not None else {whole}
        return found

    everywhere = paths(urlpatterns, "/")
    routed = {path for path in everywhere if path.startswith(OURS)}
    described = set(add_async_operations({"paths": {}})["paths"])
    listed = set(re.findall(r"(/(?:api|storage)/v1/[a-z_/{}-]+)", section("Routes")))
    assert described <= everywhere
    assert {
        "/process",
        "/v1/responses",
        "/v1/chat/completions",
        "/v1/models",
    } <= described  # where clients of other servers look
    assert routed == listed


def test_the_map_names_every_room() -> None:
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    named = set(re.findall(r"^(\w+)/ ", section("The map"), re.MULTILINE))
    assert rooms <= named


def test_every_run_failure_of_the_providers_is_listed() -> None:
    raised = re.compile(r"\"(provider_\w+)\"")
    codes = {
        code for path in ROOT.glob("agents/**/*.py") for code in raised.findall(path.read_text())
    } - {"provider_unsupported"}
    assert codes == set(re.findall(r"`(provider_\w+)`", section("Errors")))


def test_pictures_and_links_of_the_readme_exist() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_docs_page_needs_no_network(server: Server) -> None:
    page = httpx.get(f"{server.url}/api/docs/", trust_env=False)
    assert page.status_code == 200
    addresses = re.findall(r"(?:src|href)=\"([^\"]+)\"", page.text)
    assert addresses
    for address in addresses:
        assert address.startswith(("/static/", "/api/docs/?")), address
        assert httpx.get(server.url + address, trust_env=False).status_code == 200
