"""The Host of a run as this package needs it: for requests of our own to the run's model."""

from __future__ import annotations

from typing import Protocol

from agents.requests import Generation
from agents.runners.base import Host


class ModelHost(Host, Protocol):
    """A Host that takes requests outside the run's own conversation."""

    async def offer_artifact_tool(self) -> None:
        """Let the model read on in artifacts, because its conversation names one."""
        ...

    def with_parameters(self, generation: Generation) -> Host:
        """Return the run's model for a request of our own.

        It has no tools, uses the parameters of `generation`, and counts its tokens with the run.
        """
        ...
