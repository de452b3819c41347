"""The use and cost of a run's model calls: each call is written to the log when it ends, well or badly.

A call that the provider broke off, or that the run's end cut short, counts with the use that the
provider had reported by then. Before each call the budget is checked (`budget_checks`), with the
spending of the run so far.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Final
from uuid import UUID

import msgspec

from agents.providers.base import Finished
from agents.spending import budget_checks
from conversations.events import ModelCompleted, Usage
from prompts.endpoints import prices
from prompts.endpoints.routing import Candidate

_MAX_TOKENS: Final = 2**31 - 1  # the maximum of the run's column


class ModelCall:
    """One attempt with one candidate, while it lasts."""

    def __init__(self, candidate: Candidate, message_id: str) -> None:
        self.candidate = candidate
        self.message_id = message_id
        self.finished: Finished | None = None
        self._usage = Usage()

    def set_usage(self, usage: Usage) -> None:
        """Record the use that the provider has reported."""
        self._usage = usage

    @property
    def fact(self) -> ModelCompleted | None:
        """Return the event of the call; None if the call had no result and no use."""
        done = self.finished
        usage = done.usage if done else self._usage
        if done is None and usage == Usage():
            return None
        return ModelCompleted(
            self.candidate.provider,
            self.candidate.model,
            self.candidate.endpoint_id,
            add_cost(self.candidate, usage),
            done.finish_reason if done else "",
            done.upstream_reason if done else "",
            self.message_id,
        )


class Meter:
    """The count of one run's model calls; `append` writes to the log."""

    def __init__(self, user_id: UUID, append: Callable[[ModelCompleted], None]) -> None:
        self._user_id = user_id
        self._append = append
        self._spent = Usage()

    async def admit(self, candidate: Candidate) -> None:
        """Raise RunFailure `budget_exceeded` before a call if a budget is used up."""
        await prices.prepare(candidate)
        await budget_checks.check_run(self._user_id, self._spent)

    def count(self, call: ModelCall) -> None:
        """Count a call that has ended; never wait, because a cancelled run must not."""
        fact = call.fact
        if fact is not None:
            self._spent = self._spent.plus(fact.usage)
            self._append(fact)


def add_cost(candidate: Candidate, usage: Usage) -> Usage:
    """Return the usage with its cost, or with the number of tokens that have no price."""
    cost = prices.compute_cost(
        candidate,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )
    return _with_cost(usage, cost)


def add_staff_cost(candidate: Candidate, usage: Usage) -> Usage:
    """Return the use that a runner reports; only a price that staff set for the model applies."""
    return add_cost(candidate, usage) if candidate.price else _with_cost(usage, None)


def _with_cost(usage: Usage, cost: Decimal | None) -> Usage:
    unpriced = min(usage.input_tokens + usage.output_tokens, _MAX_TOKENS) if cost is None else 0
    return msgspec.structs.replace(usage, cost_usd=cost, unpriced_tokens=unpriced)
