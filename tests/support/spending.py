"""Models with prices of their own, and what was spent on them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import uuid4

from django.db.models import Sum

from conversations.models import Run, Spend
from prompts.endpoints import routing
from prompts.models import ModelCandidate
from tests.support.client import Client, ScriptedModel

PRICE = {"input_price": Decimal(2), "output_price": Decimal(10)}
STEP_USD = Decimal("0.000102")  # of USAGE: 11 tokens in, 8 out
NAMES = ("runs", "input_tokens", "output_tokens", "unpriced_tokens", "cost_usd")


def priced(model: ScriptedModel, place: int = 1, /, **prices: Any) -> ScriptedModel:
    """The model, its candidate at this place with these prices (or PRICE)."""
    found = ModelCandidate.objects.filter(mapping__key=model.name.removeprefix("global:"))
    found.filter(position=place).update(**(prices or PRICE))
    routing.clear_cache()
    return model


def spent(client: Client) -> dict[str, Any]:
    """All that the account has spent."""
    sums = {name: Sum(name) for name in NAMES}
    return Spend.objects.filter(owner=client.user).aggregate(**sums)


def run_with_tools(client: Client, model: ScriptedModel) -> Run:
    """A run, ended, whose model may call tools: it is asked again after each."""
    given = {
        "threadId": str(uuid4()),
        "runId": uuid4().hex,
        "messages": [{"id": "1", "role": "user", "content": "go"}],
        "forwardedProps": {"model": model.name},
    }
    run_id = client.http.post("/api/v1/agent/runs", json=given).json()["taskId"]
    client.wait_for(run_id, "completed", "failed")
    return Run.objects.get(pk=run_id)
