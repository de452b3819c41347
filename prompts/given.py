"""What the room above gives to the pages of this one; `agents.admin` sets it when admin starts.

Prompts know neither how an agent composes a system message nor how a provider is asked.
"""

from __future__ import annotations

from typing import Any, Protocol


class Compose(Protocol):
    """Makes the whole system message of a run from its prompts and its client's tools and context."""

    def __call__(self, prompts: str, *, tools: Any, context: Any) -> str: ...


class TestEndpoint(Protocol):
    """Asks an endpoint for its models: (whether it works, what to say of it, names of models)."""

    def __call__(self, endpoint: Any) -> tuple[bool, str, tuple[str, ...]]: ...


def _prompts_only(prompts: str, *, tools: Any, context: Any) -> str:
    return prompts


def _cannot_test(endpoint: Any) -> tuple[bool, str, tuple[str, ...]]:
    return False, "Nothing here can ask an endpoint.", ()


compose: Compose = _prompts_only
test_endpoint: TestEndpoint = _cannot_test
