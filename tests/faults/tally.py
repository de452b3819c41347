"""The score: promise, what was tried how often, what failed, how long the worst one took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Score:
    """One line of the table; times in seconds."""

    promise: str
    trial: str
    trials: int
    faults: Counter[str]
    times: tuple[float, ...] = ()
    limit_s: float | None = None
    note: str = ""

    def line(self) -> str:
        times = sorted(self.times)
        took = f"{times[len(times) // 2]:.2f} / {times[-1]:.2f}" if times else ""
        if times and self.limit_s is not None:
            took += f" (≤ {self.limit_s:g})"
        broken = "; ".join(f"{number}× {fault}" for fault, number in self.faults.items())
        said = "; ".join(filter(None, (broken, self.note)))
        counts = f"{self.trials:>6} {self.faults.total():>7}"
        return f"{self.promise:<7} {self.trial:<52} {counts}  {took:<22} {said}".rstrip()


@dataclass
class Tally:
    """Collects scores; a score that broke a promise fails its test."""

    scores: list[Score] = field(default_factory=list)

    def score(
        self,
        promise: str,
        trial: str,
        trials: int,
        faults: Counter[str] | None = None,
        *,
        times: Iterable[float] = (),
        limit_s: float | None = None,
        note: str = "",
    ) -> None:
        """Enter a line, then insist on zero faults and on the time limit."""
        took = tuple(times)
        broken = Counter(faults or ())
        late = sum(limit_s is not None and seconds > limit_s for seconds in took)
        broken[f"later than {limit_s} s"] += late
        self.scores.append(Score(promise, trial, trials, +broken, took, limit_s, note))
        assert not +broken, self.scores[-1].line()

    def table(self) -> list[str]:
        head = (
            f"{'promise':<7} {'trial':<52} {'trials':>6} {'faults':>7}  {'median / worst s':<22} notes"
        )
        return [head, *(score.line() for score in sorted(self.scores, key=lambda s: s.promise))]
