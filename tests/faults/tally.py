"""The score: promise, what was tried how often, what failed, how long the worst one took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace


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
    rounds: int = 1

    def __add__(self, other: Score) -> Score:
        """The same trial done again, as one line; the notes are those of the first round."""
        return replace(
            self,
            trials=self.trials + other.trials,
            faults=self.faults + other.faults,
            times=self.times + other.times,
            rounds=self.rounds + other.rounds,
        )

    def line(self) -> str:
        times = sorted(self.times)
        took = f"{times[len(times) // 2]:.2f} / {times[-1]:.2f}" if times else ""
        if times and self.limit_s is not None:
            took += f" (≤ {self.limit_s:g})"
        broken = "; ".join(f"{number}× {fault}" for fault, number in self.faults.items())
        again = f"first of {self.rounds} rounds: " if self.rounds > 1 else ""
        note = self.note and again + self.note
        said = "; ".join(filter(None, (broken, note)))
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
        lines: dict[tuple[str, str], Score] = {}
        for score in self.scores:
            key = score.promise, score.trial
            lines[key] = lines[key] + score if key in lines else score
        return [head, *(score.line() for score in sorted(lines.values(), key=lambda s: s.promise))]
