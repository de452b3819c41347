"""What docs/reference, the map and the page on watching say of the code is checked here."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest

from conversations.events import Fact
from prompts.app_settings import SETTINGS
from tests.conftest import Server
from tests.support.doc_pages import DOCS, page
from tests.support.paths import ROOT
from tests.support.product import MODULES, ROOMS

pytestmark = pytest.mark.once

OURS = ("/api/v1/", "/storage/v1/")
_ROUTE = re.compile(r"(/(?:api|storage)/v1/[a-z_/{}-]+)")
_CODE = re.compile(r"""\bcode(?::\s*ClassVar\[str\])?\s*=\s*"([A-Za-z_]+)\"""")
_FAILURE = re.compile(r"\b(?:RunFailure|RunFailed|ToolFailure)\(\s*\"([a-z_.]+)\"")
_PATH = re.compile(r"`([\w/]+(?:\.py|/))`")
_COMMAND = re.compile(r"`manage\.py (\w+)")
DJANGOS = {"migrate", "createsuperuser", "changepassword", "check"}


def sources() -> str:
    return "\n".join(path.read_text() for path in MODULES)


def test_every_setting_is_explained_and_every_explained_one_exists() -> None:
    read = re.compile(r"(?:env|keys)\.\w+\(\s*\"([A-Z][A-Z0-9_]+)\"")
    used = {name for path in ROOT.glob("config/**/*.py") for name in read.findall(path.read_text())}
    explained = set(re.findall(r"`([A-Z][A-Z0-9_]+)`", page("reference/settings.md")))
    assert used - explained == set(), "explain them in docs/reference/settings.md"
    assert explained - used == set(), "docs/reference/settings.md explains what nothing reads"


def test_every_app_setting_is_explained_with_its_default() -> None:
    rows = page("reference/settings.md").split("\n## App settings\n")[1]
    told = dict(re.findall(r"^\| ([a-z_]+) \| ([a-z_]+) \|", rows, re.MULTILINE))
    words = {"": "empty", False: "off", True: "on"}
    assert told == {name: words.get(one.default, one.default) for name, one in SETTINGS.items()}


def test_every_event_is_listed() -> None:
    tags = {kind.__struct_config__.tag for kind in get_args(Fact)}
    listed = set(re.findall(r"`([a-z]+(?:\.[a-z]+)+)`", page("reference/events.md")))
    assert listed == tags


def test_every_route_of_the_openapi_document_is_listed_and_the_other_way_round(server: Server) -> None:
    document: dict[str, Any] = httpx.get(
        f"{server.url}/api/schema/", headers={"Accept": "application/json"}, trust_env=False
    ).json()
    listed = set(_ROUTE.findall(page("reference/routes.md")))
    assert listed == {path for path in document["paths"] if path.startswith(OURS)}


def test_the_openapi_document_describes_every_route_of_the_api() -> None:
    from config.openapi.document import add_async_operations
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
    assert described <= everywhere
    assert {
        "/process",
        "/v1/responses",
        "/v1/chat/completions",
        "/v1/models",
    } <= described  # where clients of other servers look
    assert routed == set(_ROUTE.findall(page("reference/routes.md")))


def test_every_member_of_an_answer_of_our_own_is_named_on_a_page() -> None:
    from config.openapi.document import add_async_operations

    schemas = add_async_operations({"paths": {}})["components"]["schemas"]
    named = {word for path in DOCS.rglob("*.md") for word in re.findall(r"[$\w]+", path.read_text())}
    known = {
        (name, member)
        for name, schema in schemas.items()
        if not name.startswith(FOREIGN)
        for member in members(schema)
    }
    assert len(known) > 400
    missing = {(name, member) for name, member in known if _STATISTIC.sub("", member) not in named}
    assert missing == set(), "name them in docs/reference/members.md, or on the protocol's page"


FOREIGN = (
    "AgUi",
    "AgentRequest",
    "AgentResponse",
    "ChatCompletion",
    "Completion",
    "Mcp",
    "OpenAI",
    "Response",
    "UrlCitation",
)
"""The schemas of protocols that others publish; what of them is ours stands on their pages."""
_STATISTIC = re.compile(r"_(?:n|mean|p\d\d|low|high)\Z")


def members(schema: Any) -> Iterator[str]:
    """The names of all members, at any depth."""
    if isinstance(schema, dict):
        own = schema.get("properties", {})
        yield from own
        for value in (*own.values(), *(value for key, value in schema.items() if key != "properties")):
            yield from members(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from members(value)


def test_every_run_failure_of_the_providers_is_listed() -> None:
    raised = re.compile(r"\"(provider_\w+)\"")
    codes = {
        code for path in ROOT.glob("agents/**/*.py") for code in raised.findall(path.read_text())
    } - {"provider_unsupported"}
    assert codes == set(re.findall(r"`(provider_\w+)`", page("reference/errors.md")))


def test_every_code_of_an_error_and_of_a_failure_is_listed() -> None:
    code = sources()
    used = {*_CODE.findall(code), *_FAILURE.findall(code)}
    listed = set(re.findall(r"`([A-Za-z_.]+)`", page("reference/errors.md")))
    assert len(used) > 120
    assert used - listed == set(), "list them in docs/reference/errors.md"


def test_every_command_is_listed_and_every_listed_one_exists() -> None:
    text = page("reference/commands.md")
    ours = {path.stem for room in ROOMS for path in ROOT.glob(f"{room}/management/commands/*.py")}
    assert set(_COMMAND.findall(text)) == (ours - {"__init__"}) | DJANGOS
    targets = set(re.findall(r"^([a-z]+):.*?## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z]+)`", text)) == targets


def test_the_map_names_every_room_and_every_layer() -> None:
    text = page("architecture/index.md")
    rooms = text.split("\n## Rooms\n")[1].split("\n## ")[0]
    named = set(re.findall(r"\b(\w+)/", rooms))
    inner = {path.parent.name for room in ROOMS for path in ROOT.glob(f"{room}/*/__init__.py")}
    assert {path.parent.name for path in ROOT.glob("*/__init__.py")} <= named
    missing = inner - {"management", "migrations", "templatetags"} - named
    assert missing == set(), "draw them in docs/architecture/index.md"
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = {
        name
        for contract in contracts
        for layer in contract.get("layers", ())
        for name in re.findall(r"[\w.]+", layer)
    }
    django = {"urls", "management", "apps", "hosting", "storage_urls", "templatetags"}
    told = set(re.findall(r"`([\w.]+)`", text.split("\n## Directions\n")[1].split("\n## ")[0]))
    assert layers - django - told == set(), "name them in docs/architecture/index.md"


def test_every_file_of_the_map_exists() -> None:
    table = page("architecture/index.md").split("\n## Where to read\n")[1]
    missing = []
    for line in table.splitlines():
        folder = Path()
        for part in _PATH.findall(line):
            found = part if "/" in part else str(folder / part)
            if part.endswith("/"):
                folder = Path(part)
            if not (ROOT / found).exists():
                missing.append(found)
    assert missing == []


def test_every_metric_of_prometheus_and_every_log_line_of_the_page_is_there() -> None:
    text, code = page("operating/watching.md"), sources()
    named = set(re.findall(r"\"(parley_[a-z_]+)\"", code)) - {"parley_prompts", "parley_analyst"}
    assert named - set(re.findall(r"`(parley_[a-z_]+)`", text)) == set()
    lines = text.split("\n## Log lines\n")[1].split("\n## ")[0]
    told = re.findall(r"`([A-Za-z -]+[a-z] [a-z/]+[a-z ]*)`", lines)
    assert len(told) > 12
    assert [line for line in told if f'"{line}"' not in code] == []


def test_the_docs_page_needs_no_network(server: Server) -> None:
    answer = httpx.get(f"{server.url}/api/docs/", trust_env=False)
    assert answer.status_code == 200
    addresses = re.findall(r"(?:src|href)=\"([^\"]+)\"", answer.text)
    assert addresses
    for address in addresses:
        assert address.startswith(("/static/", "/api/docs/?")), address
        assert httpx.get(server.url + address, trust_env=False).status_code == 200
