"""The metrics of a row, computed from sums: the only place where a metric is defined.

docs/guides/analysts.md describes them in words; a test compares them with a small data set that was
counted by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from conversations.metrics import intervals
from conversations.metrics.histograms import MEASURED
from conversations.metrics.intervals import Interval, Scores

_SUMS: Final = (*MEASURED[:3], "speed")  # the column with the sum of each
Numbers = Mapping[str, Any]


@dataclass(frozen=True)
class Spread:
    """The number of measurements, and their percentiles."""

    n: int = 0
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None


NOTHING: Final = Spread()


@dataclass(frozen=True)
class Members:
    """The numbers of users and conversations; None where they were not counted."""

    users: int | None = None
    conversations: int | None = None


@dataclass(frozen=True)
class RunGroup:
    """All known numbers of a group of runs."""

    sums: Numbers
    spreads: Mapping[int, Spread] = field(default_factory=dict)
    members: Members = field(default_factory=Members)
    errors: Mapping[str, int] = field(default_factory=dict)

    @property
    def scores(self) -> Scores:
        sums = self.sums
        return Scores(int(sums["feedback_good"]), int(sums["feedback_bad"]), int(sums["feedback"]))

    @property
    def success(self) -> Interval | None:
        """Return the share of completed runs among completed and failed ones."""
        completed, failed = int(self.sums["completed"]), int(self.sums["failed"])
        return intervals.share_interval(completed, completed + failed)

    @property
    def liked(self) -> Interval | None:
        """Return the share of good judgements among good and bad ones."""
        scores = self.scores
        return intervals.share_interval(scores.good, scores.good + scores.bad)


def group_to_row(group: RunGroup) -> dict[str, Any]:
    """Return the metrics of a group of runs as a flat row."""
    sums, members = group.sums, group.members
    runs, ended = (
        int(sums["runs"]),
        sum(int(sums[name]) for name in ("completed", "failed", "cancelled")),
    )
    found: dict[str, Any] = {
        "runs": runs,
        "completed": int(sums["completed"]),
        "failed": int(sums["failed"]),
        "cancelled": int(sums["cancelled"]),
        "timed_out": int(sums["timed_out"]),
        "live": int(sums["queued"]) + int(sums["running"]),
        "success_rate": rounded(group.success and group.success.value),
    }
    for place, (name, total) in enumerate(zip(MEASURED, _SUMS, strict=True)):
        spread = group.spreads.get(place, NOTHING)
        found |= spread_fields(name, spread, float(sums[total]))
    for name in ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens"):
        found[name] = int(sums[name])
    found |= {
        "cost_usd": round(float(sums["cost_usd"]), 6),
        "unpriced_tokens": int(sums["unpriced_tokens"]),
        "reconnects": int(sums["reconnects"]),
        "active_users": members.users,
        "conversations": members.conversations,
        "conversations_begun": int(sums["conversations_begun"]),
        "conversations_per_user": ratio(members.conversations, members.users),
        "turns_per_conversation": ratio(runs, members.conversations),
    }
    found |= _feedback(group, ended)
    found["errors"] = dict(sorted(group.errors.items(), key=lambda item: (-item[1], item[0])))
    return found


def spread_fields(name: str, spread: Spread, total: float) -> dict[str, Any]:
    """Return `{name}_n`, `_mean`, `_p50`, `_p95`, `_p99`."""
    return {
        f"{name}_n": spread.n,
        f"{name}_mean": rounded(total / spread.n if spread.n else None, 1),
        f"{name}_p50": rounded(spread.p50, 1),
        f"{name}_p95": rounded(spread.p95, 1),
        f"{name}_p99": rounded(spread.p99, 1),
    }


def _feedback(group: RunGroup, ended: int) -> dict[str, Any]:
    scores = group.scores
    return {
        "feedback": scores.total,
        "feedback_rate": ratio(scores.total, ended),
        "feedback_good": scores.good,
        "feedback_bad": scores.bad,
        **interval_fields("feedback_score", intervals.mean_interval(scores)),
        **interval_fields("feedback_good_share", group.liked),
    }


def interval_fields(name: str, found: Interval | None) -> dict[str, Any]:
    """Return `{name}`, `{name}_low`, `{name}_high`."""
    value, low, high = found or (None, None, None)
    return {name: rounded(value), f"{name}_low": rounded(low), f"{name}_high": rounded(high)}


def ratio(part: int | None, whole: int | None) -> float | None:
    return rounded(part / whole) if part is not None and whole else None


def rounded(value: float | None, digits: int = 4) -> float | None:
    return None if value is None else round(value, digits)


def compare_groups(a: RunGroup, b: RunGroup) -> dict[str, Any]:
    """Return the differences of b from a with 95 % intervals; `sure` if the interval excludes 0."""
    found = {
        "success_rate": intervals.difference_of_shares(a.success, b.success),
        "feedback_good_share": intervals.difference_of_shares(a.liked, b.liked),
        "feedback_score": intervals.difference_of_means(a.scores, b.scores),
    }
    return {
        name: {
            "difference": rounded(one.value),
            "low": rounded(one.low),
            "high": rounded(one.high),
            "sure": not one.low <= 0 <= one.high,
        }
        if one
        else None
        for name, one in found.items()
    }
