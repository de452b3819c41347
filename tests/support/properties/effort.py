"""How hard the tests of properties try."""

from __future__ import annotations

from hypothesis import settings

_OWN = 100  # Hypothesis's number of examples where nothing else is said


def examples(number: int) -> int:
    """So many where Hypothesis tries a hundred, and fewer or more as the profile has it."""
    return max(1, number * settings().max_examples // _OWN)
