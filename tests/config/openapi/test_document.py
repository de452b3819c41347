"""The document itself: valid, complete and in the order of use."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from config import __version__
from config.errors import AGENT_API_PATHS, OPENAI_PATHS
from config.http.documentation.json_types import Shown
from tests.schema_true.document import published
from tests.support.openapi_operations import OPERATIONS
from tests.support.paths import ROOT

pytestmark = pytest.mark.once

PUBLIC = {
    "GET /api/v1/schemas/{name}",
    "GET /health",
    "GET /ready",
    "GET /storage/v1/object/sign/{bucket}/{path}",
}
NO_BODY = re.compile(r"/cancel$|/force-disconnect$|/compact$|/input_tokens$|\}/feedback$")
STARTS = "POST (/api/v1/agent/(runs?|ag-ui|process)|/process(/task)?|/v1/(responses|chat/completions))"
GROUPS = (
    "Runs",
    "Streams",
    "Approvals",
    "Threads and history",
    "Files",
    "AG-UI",
    "Agent API",
    "OpenAI",
    "Models",
    "Usage",
    "Prompts",
    "Metrics",
    "Exercise library",
    "Administration",
    "Service",
)
WITH_HEADERS = {
    "201": {"Location"},
    "202": {"Location"},
    "401": {"WWW-Authenticate"},
    "405": {"Allow"},
    "429": {"Retry-After"},
    "503": {"Retry-After"},
}
each_operation = pytest.mark.parametrize("label", OPERATIONS)


def operation_of(label: str) -> dict[str, Any]:
    method, path = label.split()
    found: dict[str, Any] = published().raw["paths"][path][method.lower()]
    return found


def test_the_document_is_valid() -> None:
    assert published().raw["openapi"] == "3.1.0"
    assert list(OpenAPIV31SpecValidator(published().raw).iter_errors()) == []


def test_the_introduction_names_the_version_and_the_licence() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    info = published().raw["info"]
    assert info["version"] == __version__
    assert info["license"]["identifier"] == project["license"]
    assert len(re.findall("^    ", info["description"], re.MULTILINE)) == 4


def test_the_groups_and_their_operations_are_in_the_order_of_use() -> None:
    raw = published().raw
    assert tuple(tag["name"] for tag in raw["tags"]) == GROUPS
    assert all(tag["description"] for tag in raw["tags"])
    used = [min(_groups(operations)) for operations in raw["paths"].values()]
    assert used == sorted(used)
    assert {group for operations in raw["paths"].values() for group in _groups(operations)} == {
        *range(len(GROUPS))
    }


def _groups(operations: dict[str, Any]) -> list[int]:
    return [GROUPS.index(group) for operation in operations.values() for group in operation["tags"]]


OF_OPENAI = re.compile(
    "(Response(?!s)|(Chat)?Completion(?!Request)|Mcp(?!ListToolsTool)|UrlC|OpenAIModel)"
)


def test_the_objects_and_frames_of_openai_are_the_structs_that_render_them() -> None:
    schemas = published().raw["components"]["schemas"]
    objects = {name: schema for name, schema in schemas.items() if OF_OPENAI.match(name)}
    structs = {kind.__name__: kind for kind in _kinds_of(Shown)}
    assert len(objects) > 60
    for name, schema in objects.items():
        if "properties" not in schema:
            assert schema.keys() <= {"anyOf", "oneOf", "description"}, name
            continue
        config, fields = structs[name].__struct_config__, msgspec.structs.fields(structs[name])
        tag = [config.tag_field] if config.tag else []
        assert [*schema["properties"]] == [*tag, *(field.encode_name for field in fields)], name
        sent = [field.encode_name for field in fields if field.default is not msgspec.UNSET]
        assert schema["required"] == [*tag, *sent], name
        assert schema["additionalProperties"] is False, name


def _kinds_of(kind: type[Shown]) -> Iterator[type[Shown]]:
    for one in kind.__subclasses__():
        yield one
        yield from _kinds_of(one)


@each_operation
def test_every_operation_declares_the_statuses_of_its_kind(label: str) -> None:
    expected = {"405", "503"}
    if label not in PUBLIC:
        expected |= {"401", "422", "429"}
        expected |= set() if label.endswith("/auth/token") else {"403"}
    if "{" in label:
        expected |= {"404"}
    if "requestBody" in operation_of(label):
        expected |= {"408", "413"}
    if re.fullmatch(STARTS, label):
        expected |= {"404", "409", "410", "415", "507"}
    assert expected - operation_of(label)["responses"].keys() == set()


@each_operation
def test_every_error_has_the_body_of_its_address(label: str) -> None:
    path = label.split()[1]
    name = "Error"
    if path.startswith(OPENAI_PATHS):
        name = "OpenAIError"
    elif path.startswith(AGENT_API_PATHS):
        name = "AgentApiError"
    for status, declared in operation_of(label)["responses"].items():
        if status >= "400" and declared.get("content") and (path, status) not in OF_THEIR_OWN:
            (media,) = declared["content"].values()
            assert media["schema"] == {"$ref": f"#/components/schemas/{name}"}, status


OF_THEIR_OWN = {
    ("/storage/v1/object/sign/{bucket}/{path}", "400"),
    ("/health", "503"),
    ("/ready", "503"),
}
"""Storage speaks as Supabase's does, and a probe says what is missing."""


@each_operation
def test_every_response_declares_its_headers(label: str) -> None:
    for status, declared in operation_of(label)["responses"].items():
        assert {"X-Request-Id"} | WITH_HEADERS.get(status, set()) <= declared["headers"].keys(), status


@each_operation
def test_every_operation_declares_the_headers_that_it_reads(label: str) -> None:
    parameters = operation_of(label)["parameters"]
    read = {one["$ref"].rpartition("/")[2] for one in parameters if "$ref" in one}
    expected = {"X-Request-Id"}
    if re.fullmatch(STARTS, label) or label.endswith("/run"):
        expected |= {"Idempotency-Key", "X-Run-Deadline", "X-On-Disconnect", "X-Prompt-Version"}
    if label.endswith("/events") or label == "GET /v1/responses/{response_id}":
        expected |= {"Last-Event-ID"}
    assert expected <= read <= published().raw["components"]["parameters"].keys()


@each_operation
def test_every_body_has_examples_that_fit_it(label: str) -> None:
    body = operation_of(label).get("requestBody")
    if body is None:
        assert label.startswith(("GET", "DELETE")) or NO_BODY.search(label)
        return
    (media,) = [media for kind, media in body["content"].items() if kind in TAKEN]
    assert media["examples"]
    whole = media["schema"] | {"components": published().raw["components"]}
    for example in media["examples"].values():
        jsonschema_rs.Draft202012Validator(whole).validate(example["value"])


TAKEN = ("application/json", "multipart/form-data")


def test_every_stream_says_what_its_frames_are() -> None:
    raw = published().raw
    streams = [*_streams(raw["paths"])]
    assert len(streams) >= 12
    for schema in streams:
        frame = schema["properties"]["data"]
        frame = next((one for one in frame.get("anyOf", ()) if "contentSchema" in one), frame)
        named = frame["contentSchema"]["$ref"].rpartition("/")[2]
        assert raw["components"]["schemas"][named].keys() & {"oneOf", "anyOf"}, named
        assert "each `data:` line holds one" in schema["description"]


def _streams(node: Any) -> Iterator[Any]:
    if isinstance(node, dict):
        if "text/event-stream" in node:
            yield node["text/event-stream"]["schema"]
        for value in node.values():
            yield from _streams(value)
