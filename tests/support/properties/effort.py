"""How hard the tests of properties try."""

from __future__ import annotations

from hypothesis import settings

_ALL = 100  # Hypothesis's own number, which the profile `all` leaves as it is


def examples(number: int) -> int:
    """So many examples under `make test`, a fiftieth of them where pytest is called by hand."""
    return max(1, number * settings().max_examples // _ALL)
