"""Requests that schemathesis makes along the links of the document: none is answered outside of it.

The profile of hypothesis says how many sequences are tried: `few` by default, `hostile` for many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase
from hypothesis import settings as effort
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from prompts.models import Prompt
from prompts.wordings import active
from tests.schema_true.document import published
from tests.support.client import Client

pytestmark = pytest.mark.once

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
LONGEST_S = 60
FEWEST, SHARE, STEPS = 10, 5, 8


@pytest.fixture
def same_prompts() -> Iterator[None]:
    """The prompts in use, as they were before."""
    before = list(Prompt.objects.all())
    yield
    Prompt.objects.update(is_active=False)
    for prompt in before:
        prompt.save()
    active.clear_cache()


@pytest.mark.timeout(0)
@pytest.mark.parametrize("is_staff", [False, True])
@pytest.mark.usefixtures("same_prompts")
def test_no_sequence_of_requests_gets_an_answer_outside_the_document(
    make_client: Callable[..., Client], is_staff: bool
) -> None:
    client = make_client(is_staff=is_staff)
    document = schemathesis.openapi.from_dict(published().raw)
    session = requests.Session()
    session.trust_env = False

    class Workflow(document.as_state_machine()):  # type: ignore[misc]
        """A client that goes from link to link."""

        def before_call(self, case: schemathesis.Case) -> None:
            if isinstance(case.body, dict) and "model" in case.body:
                case.body["model"] = "demo"  # any other does not exist, and nothing would follow

        def call(self, case: schemathesis.Case, **more: Any) -> schemathesis.Response:
            headers = {"Authorization": f"Bearer {client.token}"}
            return case.call(
                base_url=client.url, session=session, headers=headers, timeout=LONGEST_S, **more
            )

        def validate_response(
            self, response: schemathesis.Response, case: schemathesis.Case, **_: Any
        ) -> None:
            case.validate_response(response, checks=CHECKS)

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
