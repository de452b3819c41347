"""The score of the fault tests: what it adds up and what it does not let pass."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.faults.tally import Tally


def test_rounds_of_a_trial_are_one_line_with_all_their_times() -> None:
    tally = Tally()
    tally.score("P9", "settled", 3, times=[1.0, 2.0], limit_s=3, note="calm")
    tally.score("P1", "ended", 7)
    tally.score("P9", "settled", 4, times=[2.5], limit_s=3, note="wild")
    _, ended, settled = tally.table()
    assert ended.split() == ["P1", "ended", "7", "0"]
    assert settled.split()[:4] == ["P9", "settled", "7", "0"]
    assert "2.00 / 2.50 (≤ 3)" in settled
    assert settled.endswith("first of 2 rounds: calm")


def test_one_fault_or_one_late_time_fails_the_trial_and_is_in_the_table() -> None:
    tally = Tally()
    with pytest.raises(AssertionError, match="1× lost"):
        tally.score("P3", "cut", 5, Counter({"lost": 1, "doubled": 0}))
    with pytest.raises(AssertionError, match="1× later than 2 s"):
        tally.score("P9", "cancelled", 2, times=[1.9, 2.1], limit_s=2)
    assert [line.split()[3] for line in tally.table()[1:]] == ["1", "1"]
