"""The Host of a run as this package needs it: to ask the run's model a question of our own."""

from __future__ import annotations

from typing import Protocol

from agents.requests import Generation
from agents.runners.base import Host


class AskingHost(Host, Protocol):
    """A Host that can be asked apart from the run's own conversation."""

    async def offer_reading(self) -> None:
        """Let the model read on in artifacts: there is one in what it is told."""
        ...

    def apart(self, generation: Generation) -> Host:
        """The run's model for a question of our own: without tools, asked so, counted with the run."""
        ...
