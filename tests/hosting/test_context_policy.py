"""What a runner is told of its conversation: as its context policy asks (seed 003 §3.5, 4.8)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any
from uuid import uuid4

import pytest

from agents.hosting import results
from agents.hosting.api import HostApi
from agents.hosting.manifest import ContextPolicy
from agents.hosting.results import RunResult
from agents.hosting.run_context import AgentRunContext, InlinePolicy
from tests.client import Client
from tests.hosting.stage import manifest
from tests.hosting.test_hosted_runs import bound, finished


def third_run(client: Client, **policy: Any) -> tuple[AgentRunContext, list[str | None]]:
    """The context of a conversation's third run, and what a page before its latest cursor shows."""
    told: list[Any] = []

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        page = await host.history.page(before_cursor=context.context.latest_cursor)
        told[:] = [context, [one.content for one in page.items if one.role != "tool"]]
        yield results.message(context.run_id, f"re {context.input.text}")

    declared = manifest(f"python:t{uuid4().hex[:8]}", context=ContextPolicy(**policy))
    with bound(client.user, says, declared):
        first, _ = finished(client, "one")
        for text in ("two", "three"):
            finished(client, text, conversation_id=first["conversation_id"])
    return told[0], told[1]


BEFORE = ["one", "re one", "two", "re two"]


@pytest.mark.parametrize(
    ("policy", "tail", "told", "more"),
    [
        ({}, None, InlinePolicy(delivered_count=1, reason="self_managed"), True),
        ({"bootstrap": "none"}, None, InlinePolicy(mode="none", reason="bootstrap_none"), True),
        (
            {"bootstrap": "none", "ownership": "hybrid"},
            None,
            InlinePolicy(mode="none", reason="bootstrap_none"),
            True,
        ),
        (
            {"bootstrap": "recent_tail"},
            BEFORE,
            InlinePolicy(
                mode="recent_tail", delivered_count=4, source_total_count=4, messages_complete=True
            ),
            False,
        ),
        (
            {"bootstrap": "recent_tail", "max_inline_events": 3},
            BEFORE[1:],
            InlinePolicy(
                mode="recent_tail", delivered_count=3, source_total_count=4, reason="inline_bounds"
            ),
            True,
        ),
        (
            {"bootstrap": "recent_tail", "max_inline_bytes": 9},
            BEFORE[2:],
            InlinePolicy(
                mode="recent_tail", delivered_count=2, source_total_count=4, reason="inline_bounds"
            ),
            True,
        ),
        (
            {"bootstrap": "summary_tail", "max_inline_events": 1},
            BEFORE[3:],
            InlinePolicy(
                mode="recent_tail",
                delivered_count=1,
                source_total_count=4,
                reason="host_keeps_no_summary",
            ),
            True,
        ),
        (
            {"ownership": "host_bootstrap"},
            BEFORE,
            InlinePolicy(
                mode="recent_tail", delivered_count=4, source_total_count=4, messages_complete=True
            ),
            False,
        ),
    ],
)
def test_a_policy_is_obeyed_and_said(
    client: Client, policy: dict[str, Any], tail: list[str] | None, told: InlinePolicy, more: bool
) -> None:
    context, page = third_run(client, **policy)
    inlined = context.bootstrap and [one.content for one in context.bootstrap.messages]
    assert (inlined, context.context.inline_policy) == (tail, told)
    assert context.context.has_history_before is more
    assert page == BEFORE[::-1]


def test_an_api_that_the_runner_says_it_does_not_use_is_not_available(client: Client) -> None:
    no = dict.fromkeys(
        ("supports_history_pull", "supports_history_search", "supports_artifact_pull"), False
    )
    names = ("history_page", "history_search", "artifact_metadata", "artifact_read", "event_page")
    apis = [third_run(client, **policy)[0].context.available_apis for policy in (no, {})]
    assert [[getattr(one, name) for name in names] for one in apis] == [
        [False, False, False, False, True],
        [True] * 5,
    ]
