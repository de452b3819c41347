"""What runs use and cost: on the row, in the message, on the wire, per model, and under the fence."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth import get_user_model
from django.test import Client as Browser
from django.utils import timezone

from config.database import connection, run_sync
from conversations import events
from conversations.events import ModelCompleted, RunEvent, Usage
from conversations.identifiers import uuid7
from conversations.log.transcript import fold
from conversations.models import Message, Run, Thread
from conversations.runs import end_sql
from conversations.runs.endings import FAILURES, compose_ending
from tests.support.client import Client, ScriptedModel, Seen
from tests.support.fakes import fake_anthropic
from tests.support.fakes.fake_anthropic import FakeAnthropic
from tests.support.fakes.fake_model import Answer, End, FakeModel, status, text, tool_calls
from tests.support.spending import PRICE, STEP_USD, priced, run_with_tools, spent

pytestmark = pytest.mark.once

Scripted = Callable[..., ScriptedModel]
CALL = tool_calls(("c1", "no.such.tool", "{}"))  # is told so, and the model is asked again


def script(provider: FakeModel, *answers: Answer) -> str:
    name = uuid4().hex
    provider.script(*answers, name=name)
    return f"script:{name}"


def run(client: Client, model: ScriptedModel) -> tuple[Run, list[Seen]]:
    accepted = client.start("squat?", model.name, enable_exercise_search=False)
    frames = client.watch(accepted["run_id"])
    return Run.objects.get(pk=accepted["run_id"]), frames


def answer_of(made: Run) -> dict[str, Any]:
    """The metadata of what the run said."""
    said: dict[str, Any] = Message.objects.get(run=made, role="assistant").metadata
    return said


def test_a_run_costs_what_its_own_price_says_everywhere(client: Client, scripted: Scripted) -> None:
    cheaper = {"cached_input_price": Decimal("0.5")}
    model = priced(scripted("usage"), **PRICE, **cheaper)  # 11 in, 7 of them cached, 8 out
    made, frames = run(client, model)
    cost = "0.0000915"
    assert (made.status, made.cost_usd, made.unpriced_tokens) == ("completed", Decimal(cost), 0)
    detail = client.run(made.id.hex)["usage"]
    counted = {
        "input_tokens": 11,
        "output_tokens": 8,
        "cached_tokens": 7,
        "reasoning_tokens": 5,
        "cache_write_tokens": 0,
        "unpriced_tokens": 0,
        "cost_usd": cost,
    }
    by = {"provider": "fake", "model": "usage", "endpoint_id": model.endpoint_ids[0], "calls": 1}
    assert detail == counted | {"models": [by | counted]}
    assert frames[-1].data["metadata"]["usage"] == {
        "input_tokens": 11,
        "output_tokens": 8,
        "cost_usd": cost,
    }
    assert answer_of(made)["usage"] == counted
    assert (answer_of(made)["model"], answer_of(made)["finish_reason"]) == ("usage", "stop")
    assert spent(client) == {
        "runs": 1,
        "input_tokens": 11,
        "output_tokens": 8,
        "unpriced_tokens": 0,
        "cost_usd": Decimal(cost),
    }


def test_an_unknown_price_is_null_and_never_zero(client: Client, scripted: Scripted) -> None:
    made, frames = run(client, scripted("hello"))
    assert (made.cost_usd, made.unpriced_tokens) == (None, 19)
    assert client.run(made.id.hex)["usage"]["cost_usd"] is None
    assert answer_of(made)["usage"]["cost_usd"] is None
    assert "cost_usd" not in frames[-1].data["metadata"]["usage"]
    assert spent(client)["cost_usd"] is None
    assert spent(client)["unpriced_tokens"] == 19


def test_a_run_whose_provider_counts_nothing_costs_nothing_known(
    client: Client, scripted: Scripted
) -> None:
    made, _ = run(client, priced(scripted("no-usage")))
    assert (made.status, made.cost_usd, made.unpriced_tokens) == ("completed", None, 0)
    assert spent(client)["runs"] is None


def test_a_run_of_several_models_is_priced_call_by_call(
    client: Client, scripted: Scripted, provider: FakeModel
) -> None:
    first = script(provider, CALL, status(503, headers={"retry-after": "0"}))
    second = script(provider, text("done"))
    model = priced(priced(scripted(first, second)), 2, input_price=Decimal(1), output_price=Decimal(0))
    made = run_with_tools(client, model)
    costs = [(used["model"], used["calls"], used["cost_usd"]) for used in made.model_usage]
    assert costs == [(first, 1, "0.000102"), (second, 1, "0.000011")]
    assert (made.input_tokens, made.output_tokens) == (22, 16)
    assert made.cost_usd == STEP_USD + Decimal("0.000011")


def test_of_a_run_of_several_models_the_unpriced_part_is_told_apart(
    client: Client, scripted: Scripted, provider: FakeModel
) -> None:
    first = script(provider, CALL, status(503, headers={"retry-after": "0"}))
    made = run_with_tools(client, priced(scripted(first, script(provider, text("done")))))
    assert (made.cost_usd, made.unpriced_tokens) == (STEP_USD, 19)
    assert [used["cost_usd"] for used in made.model_usage] == ["0.000102", None]


def test_each_message_says_what_it_cost(client: Client, scripted: Scripted, provider: FakeModel) -> None:
    speaking = Answer((*text("Let me look.").steps[:2], *CALL.steps))
    made = run_with_tools(client, priced(scripted(script(provider, speaking, text("Found.")))))
    said = Message.objects.filter(run=made, role="assistant").order_by("seq")
    costs = {message.content: message.metadata["usage"]["cost_usd"] for message in said}
    assert costs == {"Let me look.": "0.000102", "Found.": "0.000102"}
    assert made.cost_usd == 2 * STEP_USD


def test_what_a_failed_run_used_before_it_failed_counts(
    client: Client, scripted: Scripted, provider: FakeModel
) -> None:
    made = run_with_tools(client, priced(scripted(script(provider, CALL, status(400)))))
    assert (made.status, made.error_code) == ("failed", "provider_bad_request")
    assert (made.input_tokens, made.cost_usd) == (11, STEP_USD)
    assert spent(client)["cost_usd"] == STEP_USD


def test_a_cancelled_call_counts_as_far_as_the_provider_told(client: Client) -> None:
    with FakeAnthropic() as fake:
        name = uuid4().hex
        begun = fake_anthropic.opening({"input_tokens": 50, "output_tokens": 1})
        fake.script(Answer((begun, fake_anthropic.words(0, "Hello"), End.HANG)), name=name)
        model = ScriptedModel.make(fake.base_url, (f"script:{name}",), dialect="anthropic.messages")
        accepted = client.start("hi", priced(model).name, enable_exercise_search=False)
        client.watch(accepted["run_id"], stop_after=4)
        client.http.post(f"/api/v1/agent/runs/{accepted['run_id']}/cancel")
        client.wait_for(accepted["run_id"], "cancelled")
    made = Run.objects.get(pk=accepted["run_id"])
    assert (made.input_tokens, made.cost_usd) == (50, Decimal("0.00011"))
    assert spent(client)["cost_usd"] == Decimal("0.00011")


def test_the_providers_own_reason_stands_in_the_message_and_in_the_end(client: Client) -> None:
    with FakeAnthropic() as fake:
        model = ScriptedModel.make(fake.base_url, ("length",), dialect="anthropic.messages")
        made, frames = run(client, model)
    told = answer_of(made)
    assert (told["finish_reason"], told["upstream_reason"]) == ("length", "max_tokens")
    assert frames[-1].data["metadata"]["upstream_reason"] == "max_tokens"


def test_a_run_page_shows_the_cost_and_each_model(client: Client, scripted: Scripted) -> None:
    made, _ = run(client, priced(scripted("hello")))
    staff = get_user_model().objects.create_superuser(username=uuid4().hex, password="x")
    browser = Browser()
    browser.force_login(staff)
    page = browser.get(f"/admin/conversations/run/{made.pk}/change/").content.decode()
    assert "0.000102" in page
    assert "fake · hello: 1 × asked, 11 tokens in, 8 out, USD 0.000102" in page
    assert "0.000102" in browser.get("/admin/conversations/run/").content.decode()


# --- under the fence -----------------------------------------------------------------------------


def test_a_settled_run_of_a_lost_worker_costs_what_its_log_says() -> None:
    run_id = uuid7()
    calls = [
        ModelCompleted("p", "a", 1, Usage(10, 5, cost_usd=Decimal("0.5")), "tool_calls"),
        ModelCompleted("p", "b", 2, Usage(1, 1, unpriced_tokens=2)),
    ]
    facts: list[events.Fact] = [events.RunQueued(0), events.RunStarted(1, 0), *calls]
    stored = events.encode([RunEvent(seq, 7, fact) for seq, fact in enumerate(facts, 1)])
    transcript = fold(run_id, events.decode(1, stored))
    made = compose_ending(transcript, FAILURES["worker_lost"], fence=1, after=4)
    assert made.usage == Usage(11, 6, cost_usd=Decimal("0.5"), unpriced_tokens=2)
    assert '"model":"a"' in made.model_usage


def test_a_worker_that_lost_its_lease_writes_no_cost(client: Client) -> None:
    thread = Thread.objects.create(owner=client.user)
    later = timezone.now() + timedelta(hours=1)
    held = Run.objects.create(
        owner=client.user,
        thread=thread,
        thread_seq=1,
        request_id="r",
        dialect="text",
        model="m",
        request={},
        status="running",
        fence=7,
        lease_until=later,
        deadline_at=later,
        deadline_s=1,
    )
    used = Usage(10, 5, cost_usd=Decimal("0.25"))

    def end(fence: int) -> bool:
        said = fold(held.id, [RunEvent(1, 7, events.RunQueued(0))])
        done = events.RunCompleted("stop", used)
        made = compose_ending(said, done, fence=fence, after=1)
        return run_sync(_end(made)) is not None

    assert [end(6), end(7), end(7)] == [False, True, False]
    held.refresh_from_db()
    assert (held.cost_usd, held.model_usage[0]["calls"]) == (Decimal("0.25"), 1)
    assert spent(client)["cost_usd"] == Decimal("0.25")
    assert spent(client)["runs"] == 1


async def _end(made: end_sql.Ending) -> end_sql.Ended | None:
    async with connection() as held:
        return await end_sql.end_run(held, made, [uuid7() for _ in made.messages])


@pytest.mark.parametrize("count", [2**31 - 1])
def test_a_provider_that_counts_past_every_column_still_lets_its_run_end(
    client: Client, scripted: Scripted, provider: FakeModel, count: int
) -> None:
    huge = {"prompt_tokens": count, "completion_tokens": count}
    steps = (*CALL.steps[:-2], *text("x", usage=huge).steps[-2:])
    highest = {"input_price": Decimal(999_999), "output_price": Decimal(999_999)}
    model = priced(scripted(script(provider, Answer(steps), text("x", usage=huge))), **highest)
    made = run_with_tools(client, model)
    assert (made.status, made.input_tokens) == ("completed", count)
    assert made.cost_usd is not None
    assert made.cost_usd > 10**9


def test_erasing_an_account_erases_what_it_spent(client: Client, scripted: Scripted) -> None:
    from conversations.models import Spend
    from conversations.upkeep.retention import erase_user

    run(client, priced(scripted("hello")))
    owner_id: UUID = client.user.pk
    assert Spend.objects.filter(owner_id=owner_id).exists()
    erase_user(owner_id)
    assert not Spend.objects.filter(owner_id=owner_id).exists()
