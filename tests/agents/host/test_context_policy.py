"""What a runner is told of its conversation: as its context policy asks (seed 003 §3.5, 4.8)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any
from uuid import uuid4

import pytest

from agents.host_protocol import parameters, results
from agents.host_protocol.host_api import HostApi
from agents.host_protocol.manifest import ContextPolicy
from agents.host_protocol.results import RunResult
from agents.host_protocol.run_context import AgentRunContext, InlinePolicy
from tests.support import image_runs
from tests.support.client import Client
from tests.support.host.hosted_runs import bound, finished, reply
from tests.support.host.stage import manifest
from tests.support.image_runs import uploaded
from tests.support.pictures import picture

pytestmark = pytest.mark.once


def third_run(client: Client, **policy: Any) -> tuple[AgentRunContext, list[str | None]]:
    """The context of a conversation's third run, and what a page before its latest cursor shows."""
    told: list[Any] = []

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        page = await host.history.page(before_cursor=context.context.latest_cursor)
        told[:] = [context, [one.content for one in page.items if one.item_type == "message"]]
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


def test_a_run_knows_where_it_stands_in_its_conversation(client: Client) -> None:
    context, _ = third_run(client)
    # before it stand two turns of three rows: the question, what was searched, the answer
    assert (context.context.event_seq, context.context.transcript_seq) == (1, 7)
    assert context.conversation is not None
    assert context.context.conversation_id == context.conversation.conversation_id


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


def test_the_tail_names_the_files_of_its_messages(client: Client) -> None:
    thread, stored = str(uuid4()), uploaded(client, picture("PNG", (8, 8)))
    accepted = image_runs.finished(client, image_runs.post(client, stored["url"], threadId=thread))
    contexts: list[AgentRunContext] = []

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        contexts.append(context)
        (ref,) = context.bootstrap.artifacts if context.bootstrap else ()
        held = await host.artifacts.metadata(ref.artifact_id)
        yield results.message(context.run_id, held.mime_type or "")

    policy = ContextPolicy(bootstrap="recent_tail")
    with bound(client.user, says, manifest(f"python:t{uuid4().hex[:8]}", context=policy)):
        run, frames = finished(client, "And now?", conversation_id=thread)
    assert (run["status"], reply(frames)) == ("completed", "image/png")
    assert accepted["threadId"] == thread


def test_a_runner_is_told_who_asks_and_whose_api_it_may_use(client: Client) -> None:
    told: list[Any] = []

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        version = await host.calls.call("get_langbot_version", parameters.GetVersion())
        told[:] = [context.actor, context.runtime, version.version]
        yield results.message(context.run_id, "ok")

    client.user.first_name = "Mei"
    client.user.save()
    with bound(client.user, says):
        finished(client)
    actor, runtime, version = told
    assert (actor.actor_id, actor.actor_name) == (client.user.pk.hex, "Mei")
    assert (runtime.host, runtime.langbot_version, runtime.locale) == ("parley", version, None)
