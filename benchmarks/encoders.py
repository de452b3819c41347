"""What a dialect's encoder costs per event: `python -m benchmarks.encoders` prints a line a dialect.

The run is what most runs are: a few hundred deltas of a word or two, and the other events around
them. Each figure is of one event, SSE framing included, in microseconds.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from uuid import UUID

from conversations import events
from conversations.events import Fact, RunEvent

ROUNDS = 200
DELTAS = 500
RUN = UUID("0192f0c1-8a3b-7c44-9d55-1a2b3c4d5e6f")
THREAD = UUID("7c9e6679-7425-40de-944b-e07fc1f90ae7")


def run() -> list[RunEvent]:
    """A run of all that is usual, most of it deltas."""
    return [RunEvent(seq, 1_760_000_000_000 + seq, fact) for seq, fact in enumerate(_facts(), 1)]


def _facts() -> Iterator[Fact]:
    said = f"execution-{RUN.hex}"
    yield events.RunQueued(0)
    yield events.RunStarted(1, 1_760_000_600_000)
    yield events.StageStarted("execution")
    yield events.ModelRouted("provider", "model", 1)
    for number in range(20):
        yield events.ReasoningDelta(said, f"thought {number} ")
    yield events.ToolCallStarted("call-1", "search", {"query": "press", "top_k": 5})
    yield events.ToolCallCompleted(
        "call-1", "search", True, 12, {"total": 1, "results": [{"name": "x"}]}
    )
    for number in range(DELTAS):
        yield events.MessageDelta(said, f"Wort{number} 你好 " if number % 2 else f"word{number} ")
    yield events.MessageCompleted(events.MessageBody(said, "assistant", ""))
    yield events.StageCompleted("execution", 900)
    yield events.RunCompleted("stop", events.Usage(10, 500))


@dataclass(frozen=True)
class Cost:
    """Microseconds: of a delta, and of any event."""

    delta_median: float
    delta_p99: float
    event_median: float
    event_p99: float
    event_mean: float


def measure(name: str) -> Cost:
    """What one dialect's encoder costs for the run, over many rounds."""
    from agents.api.streaming import to_sse
    from agents.dialects.base import RunHead
    from agents.dialects.recognition import dialect_named

    dialect, whole = dialect_named(name), run()
    head = RunHead(RUN, THREAD, "request-1", wire={"protocolVersion": "1.0"})
    deltas: list[int] = []
    others: list[int] = []
    for _ in range(ROUNDS):
        encoder = dialect.encoder(head)
        for event in whole:
            before = time.perf_counter_ns()
            for frame in encoder.feed(event):
                to_sse(frame)
            spent = time.perf_counter_ns() - before
            (deltas if isinstance(event.fact, events.MessageDelta) else others).append(spent)
    every = sorted([*deltas, *others])
    deltas.sort()
    return Cost(_at(deltas, 50), _at(deltas, 99), _at(every, 50), _at(every, 99), _mean(every))


def _at(ordered: list[int], percent: int) -> float:
    return ordered[len(ordered) * percent // 100] / 1000


def _mean(times: list[int]) -> float:
    return statistics.fmean(times) / 1000


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    os.environ.setdefault("DATABASE_URL", "postgresql:///unused")
    import django

    django.setup()
    from agents.dialects.recognition import DIALECTS

    titles = ("delta median", "delta p99", "event median", "event p99", "event mean")
    print(f"{'dialect':<18}" + "".join(f"{title:>14}" for title in titles) + "   µs")
    for name in DIALECTS:
        figures = astuple(measure(name))
        print(f"{name:<18}" + "".join(f"{figure:>14.2f}" for figure in figures))


if __name__ == "__main__":
    main()
