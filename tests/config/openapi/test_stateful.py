"""Requests that schemathesis makes along the links of the document: none is answered outside of it.

The profile of hypothesis says how many sequences are tried: `few` by default, `hostile` for many.
"""

from __future__ import annotations

import copy
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase
from hypothesis import settings as effort
from hypothesis.errors import Flaky
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.core.failures import FailureGroup

from prompts.models import Prompt
from prompts.wordings import active
from tests.schema_true.document import published
from tests.support.client import Client
from tests.support.pictures import picture

pytestmark = pytest.mark.once

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
LONGEST_S = 60
FEWEST, SHARE, STEPS = 4, 20, 8
STORIES = (
    "agent_runs_create",
    "agent_run_create_alias",
    "agent_threads",
    "agent_approvals",
    "agent_attachments_create",
    "process_task",
    "responses_create",
    "openai_models",
    "llm_prompt_create",
    "agent_runners",
)
"""The operations from which links lead on."""
OF_STAFF = ("llm_prompt_create", "agent_runners")
MADE_UP = 4  # one of so many bodies is made up; else few would be accepted, and nothing would follow


@pytest.fixture
def same_prompts() -> Iterator[None]:
    """The prompts in use, as they were before."""
    before = list(Prompt.objects.all())
    yield
    Prompt.objects.update(is_active=False)
    for prompt in before:
        prompt.save()
    active.clear_cache()


def _without_security() -> dict[str, Any]:
    """The document as for a client that is signed in: else half of all requests leave the token out."""
    raw = copy.deepcopy(published().raw)
    for operations in raw["paths"].values():
        for operation in operations.values():
            operation["security"] = []
    return raw


def _examples(raw: dict[str, Any]) -> dict[str, list[Any]]:
    """The examples of each operation's body in JSON."""
    return {
        f"{method.upper()} {path}": [example["value"] for example in media["examples"].values()]
        for path, operations in raw["paths"].items()
        for method, operation in operations.items()
        for kind, media in operation.get("requestBody", {}).get("content", {}).items()
        if kind == "application/json" and "examples" in media
    }


@pytest.mark.timeout(0)
@pytest.mark.parametrize("source", STORIES)
@pytest.mark.usefixtures("same_prompts")
def test_no_sequence_of_requests_gets_an_answer_outside_the_document(
    make_client: Callable[..., Client], source: str
) -> None:
    client = make_client(is_staff=source in OF_STAFF)
    client.start("please approve demo.note buy milk")
    raw = _without_security()
    whole = schemathesis.openapi.from_dict(raw)
    whole.config.phases.stateful.inference.algorithms = []  # only our own links lead on
    document = whole.include(operation_id=_linked(raw, source))
    examples = _examples(raw) | {"POST /api/v1/agent/attachments": [{"file": picture("PNG")}]}
    faults, answers = set[str](), Counter[int]()
    session = requests.Session()
    session.trust_env = False

    class Workflow(document.as_state_machine()):  # type: ignore[misc]
        """A client that goes from link to link."""

        def before_call(self, case: schemathesis.Case) -> None:
            known = examples.get(case.operation.label)
            draw = zlib.crc32(repr(case.body).encode())
            if known and draw % MADE_UP:
                case.body = dict(known[draw % len(known)])
                case.headers.clear()
            if isinstance(case.body, dict):
                case.body |= {"model": "demo"} if "model" in case.body else {}  # there is no other
                case.body |= {"name": uuid4().hex} if "name" in case.body else {}  # of a prompt

        def call(self, case: schemathesis.Case, **more: Any) -> schemathesis.Response:
            more |= {"headers": {"Authorization": f"Bearer {client.token}"}, "timeout": LONGEST_S}
            return case.call(base_url=client.url, session=session, **more)

        def validate_response(
            self, response: schemathesis.Response, case: schemathesis.Case, **_: Any
        ) -> None:
            answers[response.status_code] += 1
            try:
                case.validate_response(response, checks=CHECKS)
            except FailureGroup as found:
                faults.update(f"{case.operation.label}: {fault}" for fault in found.exceptions)

    with suppress(Flaky):  # the server remembers, so the same requests need not get the same answers
        Workflow.run(
            settings=effort(
                max_examples=max(FEWEST, effort().max_examples // SHARE),
                stateful_step_count=STEPS,
                deadline=None,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
        )
    assert sorted(faults) == []
    assert 2 in {status // 100 for status in answers}


def _linked(raw: dict[str, Any], source: str) -> list[str]:
    """The operation, and those to which its links lead."""
    operations = [one for methods in raw["paths"].values() for one in methods.values()]
    (found,) = [one for one in operations if one["operationId"] == source]
    declared = found["responses"].values()
    return [source, *{link["operationId"] for one in declared for link in one.get("links", {}).values()}]
