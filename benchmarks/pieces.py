"""What one small thing costs a core, each beside its bar: `python -m benchmarks.pieces`.

Each is measured five times in CPU time of its own thread, and the best counts: a busy machine does not.
The command ends with 1 if a bar is missed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

ROUNDS: Final = 5


@dataclass(frozen=True)
class Piece:
    """Something done `times` times by one call of `work`; `bar_us` is the most that one may take."""

    name: str
    work: Callable[[], None]
    times: int
    bar_us: float

    def microseconds(self) -> float:
        return min(self._once() for _ in range(ROUNDS)) / self.times * 1e6

    def _once(self) -> float:
        begun = time.thread_time()
        self.work()
        return time.thread_time() - begun


def main() -> None:
    """Measure all of them and print a table."""
    os.environ.setdefault("DATABASE_URL", "postgresql:///unused")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    missed = False
    for piece in (exercise_search(), rate_limit(), thinkingml_repair()):
        took = piece.microseconds()
        missed |= took > piece.bar_us
        print(f"{piece.name:<48} {took:>10,.1f} µs   bar {piece.bar_us:>7,.0f} µs")
    sys.exit(missed)


def exercise_search() -> Piece:
    import msgspec

    from agents.tools.exercises.index import Exercise, Library
    from agents.tools.exercises.seed import starter_items

    rows = [
        msgspec.convert(
            {"id": f"{item.id}{copy}", "name": f"{item.name} {copy}"} | item.fields, Exercise
        )
        for item in starter_items()
        for copy in range(10)
    ]
    library = Library(rows)
    questions = (
        "杠铃卧推",
        "在家没有器械怎么练胸",
        "bench press exercises",
        "三分化怎么安排",
        "lat pull down",
    )

    def work() -> None:
        for question in questions:
            library.search(question, 10)

    return Piece(f"a search of {len(rows):,} exercises", work, len(questions), 1_000)


def rate_limit() -> Piece:
    from config.coordination.rate_limits import Limiter

    limiter = Limiter()

    def work() -> None:
        for _ in range(10_000):
            limiter.take("user:1", 1_000_000)

    return Piece("a decision of the rate limit", work, 10_000, 50)


def thinkingml_repair() -> Piece:
    from agents.runners.thinkingml import Repair

    text = '<thinking><phase id="1"><title>t</title>' + "深蹲时保持背部挺直，膝盖对准脚尖。" * 1_200
    deltas = [text[start:end] for start, end in pairwise(range(0, 20_020, 20))]

    def work() -> None:
        repair = Repair()
        for delta in deltas:
            repair.feed(delta)

    return Piece("a delta of 20 characters through the repair", work, len(deltas), 50)


if __name__ == "__main__":
    main()
