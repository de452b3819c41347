"""Functions of `agents` for these pages; `agents.admin` sets them when admin starts.

`prompts` can neither compose the system message of an agent nor call a provider.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Compose(Protocol):
    """Composes the system message of a run from its prompts and the client's tools and context."""

    def __call__(self, prompts: str, *, tools: Any, context: Any) -> str: ...


TestEndpoint = Callable[[Any], tuple[bool, str, tuple[str, ...]]]
"""Lists the models of an endpoint: (whether it works, a message for staff, model names)."""


def _prompts_only(prompts: str, *, tools: Any, context: Any) -> str:
    return prompts


def _cannot_test(endpoint: Any) -> tuple[bool, str, tuple[str, ...]]:
    return False, "Endpoints cannot be tested here.", ()


compose: Compose = _prompts_only
test_endpoint: TestEndpoint = _cannot_test
