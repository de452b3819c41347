"""95 % confidence intervals of rates and means with few judgements.

Sources: E. B. Wilson (1927) for a share; R. G. Newcombe (1998), method 10, for the difference of two;
the normal approximation for the mean of scores and for the difference of two means.
"""

from __future__ import annotations

from math import sqrt
from typing import Final, NamedTuple

Z: Final = 1.959963984540054


class Interval(NamedTuple):
    """A value with the bounds of its 95 % confidence interval."""

    value: float
    low: float
    high: float


def share_interval(hits: int, of: int) -> Interval | None:
    """Return Wilson's score interval of hits/of; None if `of` is 0."""
    if of == 0:
        return None
    p, z2 = hits / of, Z * Z
    middle = (p + z2 / (2 * of)) / (1 + z2 / of)
    reach = Z / (1 + z2 / of) * sqrt(p * (1 - p) / of + z2 / (4 * of * of))
    return Interval(p, max(0.0, middle - reach), min(1.0, middle + reach))


def difference_of_shares(a: Interval | None, b: Interval | None) -> Interval | None:
    """Return b - a of two shares, each with its Wilson interval; None if either is unknown."""
    if a is None or b is None:
        return None
    difference = b.value - a.value
    down = sqrt((b.value - b.low) ** 2 + (a.high - a.value) ** 2)
    up = sqrt((b.high - b.value) ** 2 + (a.value - a.low) ** 2)
    return Interval(difference, difference - down, difference + up)


class Scores(NamedTuple):
    """Counts of judgements of -1, 0 and 1."""

    good: int
    bad: int
    total: int

    @property
    def mean(self) -> float:
        return (self.good - self.bad) / self.total

    @property
    def squared_error(self) -> float:
        """Return the variance of the mean; 0 for a single judgement, which has no variance."""
        if self.total < 2:
            return 0.0
        spread = (self.good + self.bad) / self.total - self.mean**2
        return spread / (self.total - 1)


def mean_interval(scores: Scores) -> Interval | None:
    """Return the mean of scores with an interval within -1 and 1; None without scores."""
    if scores.total == 0:
        return None
    reach = Z * sqrt(scores.squared_error)
    return Interval(scores.mean, max(-1.0, scores.mean - reach), min(1.0, scores.mean + reach))


def difference_of_means(a: Scores, b: Scores) -> Interval | None:
    """Return b - a of two mean scores; None unless each has two judgements."""
    if a.total < 2 or b.total < 2:
        return None
    difference = b.mean - a.mean
    reach = Z * sqrt(a.squared_error + b.squared_error)
    return Interval(difference, difference - reach, difference + reach)
