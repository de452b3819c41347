"""Histograms of latencies: small, merged by addition, with an error of at most 4.5 %.

Slot 0 holds values below 1, slot s > 0 values from 2^((s-1)/8) up to 2^(s/8): eight slots per doubling.
The middle of a slot, 2^((s-1/2)/8), is within 2^(1/16) - 1 = 4.43 % of every value in it. That is the
largest error of a percentile, however many hours are merged. A percentile is the middle of the slot with
the nearest rank: the smallest value such that at least this share of all values is equal or lower.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import Final

PER_DOUBLING: Final = 8
ERROR_BOUND: Final = 2 ** (1 / (2 * PER_DOUBLING)) - 1
STRIDE: Final = 1_000  # what is measured stands in the thousands of a run's slots

MEASURED: Final = ("duration_ms", "queue_wait_ms", "first_token_ms", "tokens_per_s")
SHARES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_PERCENTS: Final = tuple(round(share * 100) for share in SHARES.values())  # 95 % of 20 are 19


def slot_sql(value: str) -> str:
    """Return the SQL of the slot of a number."""
    exact = f"{PER_DOUBLING} * ln({value}::float8) / ln(2::float8)"
    return f"CASE WHEN {value} < 1 THEN 0 ELSE 1 + floor({exact} + 1e-9)::int END"


def middle_sql(slot: str) -> str:
    """Return the SQL of the middle of a slot, without its thousands."""
    place = f"mod({slot}, {STRIDE})"
    return f"CASE WHEN {place} = 0 THEN 0 ELSE power(2::float8, ({place} - 0.5) / {PER_DOUBLING}) END"


@cache
def middle(slot: int) -> float:
    """Return the middle of a slot."""
    place = slot % STRIDE
    return 0.0 if place == 0 else float(2 ** ((place - 0.5) / PER_DOUBLING))


Columns = tuple[bytes, bytes]
"""The slots and the counts of a rollup as `sent_sql` returns them, in the order of the slots."""


def spreads_of(rollups: Sequence[Columns]) -> dict[int, tuple[int, float, float, float]]:
    """Return per measure (the thousands of its slots): the count, p50, p95, p99 of all together."""
    slots, counts = _merge(rollups)
    found, begin = {}, 0
    while begin < len(slots):
        what = slots[begin] // STRIDE
        end = bisect_left(slots, (what + 1) * STRIDE, begin)
        found[what] = _spread(slots[begin:end], counts[begin:end])
        begin = end
    return found


def _merge(rollups: Sequence[Columns]) -> tuple[Sequence[int], Sequence[int]]:
    """Return the counts by slot; those of a single rollup (usual) as they are."""
    columns = [(_numbers(slots), _numbers(counts)) for slots, counts in rollups]
    if len(columns) == 1:
        return columns[0]
    merged: defaultdict[int, int] = defaultdict(int)
    for slots, counts in columns:
        for slot, count in zip(slots, counts, strict=True):
            merged[slot] += count
    return sorted(merged), [merged[slot] for slot in sorted(merged)]


def sent_sql(column: str) -> str:
    """Return the SQL of whole numbers as bytes, which are read fifty times as fast as a list."""
    return f"array_send({column})"


_HEAD: Final = 20  # bytes before the elements of an array with one dimension, each after its length


def _numbers(sent: bytes) -> array[int]:
    found = array("i", sent[_HEAD:])
    if sys.byteorder == "little":
        found.byteswap()
    return found[1::2]


def _spread(slots: Sequence[int], counts: Sequence[int]) -> tuple[int, float, float, float]:
    upto = list(accumulate(counts))
    total = upto[-1]
    p50, p95, p99 = (
        middle(slots[bisect_left(upto, -(-percent * total // 100))]) for percent in _PERCENTS
    )
    return total, p50, p95, p99
