"""Stages for tests of Host calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.host.stage import Stage, new_user, stage


@pytest.fixture
def make_stage() -> Iterator[Callable[..., Stage]]:
    """Make stages, each of a user of its own."""
    made: list[Stage] = []

    def make(**more: Any) -> Stage:
        made.append(stage(new_user(), **more))
        return made[-1]

    yield make
    for one in made:
        one.close()
