"""What a run's model calls use and cost: each is said in the log when it is over, well or badly.

A call that the provider broke off, or that the run's end cut short, counts as far as its use was told
by then. Before each call the budget is looked at (`budget_checks`), less what the run has
spent.
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

_MOST: Final = 2**31 - 1  # of the run's column


class ModelCall:
    """One try of one candidate, as it goes on."""

    def __init__(self, candidate: Candidate, message_id: str) -> None:
        self.candidate = candidate
        self.message_id = message_id
        self.finished: Finished | None = None
        self._usage = Usage()

    def counted(self, usage: Usage) -> None:
        """What the provider has said of its use."""
        self._usage = usage

    @property
    def fact(self) -> ModelCompleted | None:
        """What is to be said of it; None of a call that came to nothing."""
        done = self.finished
        usage = done.usage if done else self._usage
        if done is None and usage == Usage():
            return None
        return ModelCompleted(
            self.candidate.provider,
            self.candidate.model,
            self.candidate.endpoint_id,
            priced(self.candidate, usage),
            done.finish_reason if done else "",
            done.upstream_reason if done else "",
            self.message_id,
        )


class Meter:
    """Counts the model calls of one run; `say` writes the log."""

    def __init__(self, user_id: UUID, say: Callable[[ModelCompleted], None]) -> None:
        self._user_id = user_id
        self._say = say
        self._spent = Usage()

    async def admit(self, candidate: Candidate) -> None:
        """Before a call. RunFailure `budget_exceeded` when the budget is used up."""
        await prices.prepare(candidate)
        await budget_checks.check_run(self._user_id, self._spent)

    def count(self, call: ModelCall) -> None:
        """After it; never waits, for a run that was cancelled may not."""
        fact = call.fact
        if fact is not None:
            self._spent = self._spent.plus(fact.usage)
            self._say(fact)


def priced(candidate: Candidate, usage: Usage) -> Usage:
    """The usage with its cost, or with how many tokens have no price."""
    cost = prices.compute_cost(
        candidate,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )
    return _with_cost(usage, cost)


def reported(candidate: Candidate, usage: Usage) -> Usage:
    """What a runner says of its own use, which only staff's own price of its model can price."""
    return priced(candidate, usage) if candidate.price else _with_cost(usage, None)


def _with_cost(usage: Usage, cost: Decimal | None) -> Usage:
    unpriced = min(usage.input_tokens + usage.output_tokens, _MOST) if cost is None else 0
    return msgspec.structs.replace(usage, cost_usd=cost, unpriced_tokens=unpriced)
