"""The tables: what was measured now, beside what the peers and an early sketch reached then.

The figures of then come from `shared/bench/RESULTS.md` (200-token runs, medians, two cores shared by
server, client and model). They are no like-for-like comparison: another sitting, perhaps another
machine, a load client that cost more CPU, and a JSON proxy made of aiohttp and Starlette where ours
is bare. Hence `CAUTION` under the table, and the ratios to baselines of the same sitting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.measure import Result

MEASURED = (
    "clients × delay",
    "server",
    "accept",
    "first delta",
    "total",
    "deltas/s",
    "runs/s",
    "tokens a frame",
    "CPU s per 1,000",
    "RSS / PSS MiB",
    "lost / doubled / disordered",
    "errors",
    "strangers' CPU, tries",
)
BESIDE_PEERS = (
    "server",
    "deltas/s, 8 × 0 ms",
    "deltas/s, 200 × 10 ms",
    "accept / first ms, 1 × 10 ms",
    "first / total ms, 50 × 10 ms",
    "CPU s per 1,000, 50 × 10 ms",
)
CAUTION = (
    "Lines marked *then* are from RESULTS.md: another sitting, a heavier load client and a heavier JSON "
    "proxy. Absolute figures compare only as far as the machines do: `fake model itself` now and then "
    "tells how far that is. Ratios between lines of *now* are safe."
)
Rows = dict[tuple[str, str], Result]  # by target and cell name


@dataclass(frozen=True)
class Peer:
    """One line of RESULTS.md: deltas/s, then milliseconds, then CPU seconds per 1,000 deltas."""

    name: str
    at_8x0: int
    at_200x10: int
    accept: float
    first_1: float
    first_50: float
    total_50: float
    cpu: float


PEERS = (
    Peer("fake model itself", 205_942, 19_722, 0.2, 0.4, 2, 1_994, 0.02),
    Peer("JSON proxy (aiohttp, Starlette)", 25_192, 14_273, 0.9, 1.6, 21, 2_010, 0.08),
    Peer("a Django view by hand, openai SDK", 3_829, 3_018, 4.2, 7.2, 812, 2_822, 0.33),
    Peer("django-ag-ui 0.70", 1_245, 986, 2.7, 13, 652, 9_788, 0.93),
    Peer("agentscope-runtime 1.1.6.post2", 2_947, 2_571, 2.4, 11, 600, 3_826, 0.39),
    Peer("agno 3.1.10", 1_292, 1_172, 5.9, 15, 581, 7_940, 0.85),
    Peer("agno, background and durable queue", 612, 535, 29, 80, 3_075, 16_124, 1.92),
    Peer("langgraph-api 0.16.7 in memory", 791, 1_005, 2.6, 986, 1_450, 8_393, 0.79),
    Peer("aegra 0.6.0", 788, 601, 11, 25, 2_161, 13_988, 1.77),
    Peer("sketch of Parley: no auth, DRF, ORM, tools", 18_281, 9_761, 4.2, 7.4, 351, 2_204, 0.28),
)


@dataclass(frozen=True)
class Goal:
    """A figure of one cell, the value that must be beaten and the one to reach."""

    words: str
    cell: str
    value: Callable[[Result], float]
    must: float
    goal: float

    def verdict(self, value: float) -> str:
        sign = 1 if self.goal > self.must else -1  # whether more is better
        if sign * value >= sign * self.goal:
            return "goal reached"
        return "beats the bar" if sign * value > sign * self.must else "**missed**"


GOALS = (
    Goal("deltas/s, 8 clients, 0 ms", "8x0", lambda r: r.deltas_per_s, 3_829, 15_000),
    Goal("deltas/s, 200 clients, 10 ms", "200x10", lambda r: r.deltas_per_s, 3_018, 9_000),
    Goal("CPU s per 1,000, 50 clients, 10 ms", "50x10", lambda r: r.cpu_s_per_1000, 0.33, 0.20),
    Goal("accept p50 ms, 1 client", "1x10", lambda r: r.accept.p50, 10, 6),
    Goal("first delta p50 ms, 1 client", "1x10", lambda r: r.first.p50, 25, 10),
    Goal("first delta p50 ms, 50 clients, 10 ms", "50x10", lambda r: r.first.p50, 580, 300),
    Goal("total p50 ms, 50 clients, 10 ms", "50x10", lambda r: r.total.p50, 2_822, 2_200),
)


def report(results: Sequence[Result], *, heading: str) -> str:
    """All tables, in Markdown."""
    rows = {(result.target, result.cell.name): result for result in results}
    tables = (measured(results), price(rows), beside_peers(rows), goals(rows), troubles(results))
    parts = [f"### {heading}", *tables]
    return "\n\n".join(part for part in parts if part)


def measured(results: Sequence[Result]) -> str:
    """One line per measurement; latencies are p50 / p99 in milliseconds."""
    return _table(MEASURED, map(_measured_line, results))


def _measured_line(result: Result) -> tuple[str, ...]:
    faults, cost = result.faults, result.cost
    return (
        f"{result.cell.clients} × {result.cell.delay_ms} ms",
        result.target,
        *(f"{_short(s.p50)} / {_short(s.p99)}" for s in (result.accept, result.first, result.total)),
        f"{result.deltas_per_s:,.0f}",
        f"{result.runs_per_s:,.1f}",
        f"{result.tokens_per_frame:.1f}",
        f"{result.cpu_s_per_1000:.3f}",
        f"{cost.rss_mib:,.0f} / {cost.pss_mib:,.0f}",
        f"{faults.lost} / {faults.doubled} / {faults.reordered + faults.garbled}",
        f"{sum(result.errors.values())} of {result.runs}",
        f"{cost.strangers_share:.0%}{' (noisy)' if cost.noisy else ''}, {result.tries}",
    )


def price(rows: Rows) -> str:
    """What a run itself costs: the cells of one token, each figure also as a multiple of the view's."""
    lines = [
        (
            f"{result.cell.clients} × 1 token",
            target,
            f"{result.runs_per_s:,.0f}{_times(rows, cell, lambda r: r.runs_per_s, result)}",
            f"{_cpu_ms(result):.2f}{_times(rows, cell, _cpu_ms, result)}",
            " + ".join(f"{name} {ms:.2f}" for name, ms in result.cpu_ms_of.items()),
        )
        for (target, cell), result in rows.items()
        if result.cell.tokens == 1
    ]
    return _table(("clients", "server", "runs/s", "CPU ms a run", "of which"), lines) if lines else ""


def _cpu_ms(result: Result) -> float:
    return 1000 * result.cost.server_cpu_s / max(1, result.runs)


def _times(rows: Rows, cell: str, value: Callable[[Result], float], ours: Result) -> str:
    view = rows.get(("Django view", cell))
    if view is None or view is ours or not value(view):
        return ""
    return f" ({value(ours) / value(view):.2f} × the view)"


def beside_peers(rows: Rows) -> str:
    """The columns of RESULTS.md for what was measured now, above what was measured then."""
    names = dict.fromkeys(target for target, _ in rows)
    now = [_now_line(rows, name) for name in names]
    ratios = [line for line in (_ratio_line(rows),) if line]
    return _table(BESIDE_PEERS, [*now, *ratios, *map(_peer_line, PEERS)]) + f"\n\n{CAUTION}"


def _now_line(rows: Rows, name: str) -> tuple[str, ...]:
    return (
        f"**{name}, now**",
        _cell(rows, name, "8x0", lambda r: f"{r.deltas_per_s:,.0f}"),
        _cell(rows, name, "200x10", lambda r: f"{r.deltas_per_s:,.0f}"),
        _cell(rows, name, "1x10", lambda r: f"{_short(r.accept.p50)} / {_short(r.first.p50)}"),
        _cell(rows, name, "50x10", lambda r: f"{_short(r.first.p50)} / {_short(r.total.p50)}"),
        _cell(rows, name, "50x10", lambda r: f"{r.cpu_s_per_1000:.3f}"),
    )


def _ratio_line(rows: Rows) -> tuple[str, ...]:
    """Parley as a multiple of the JSON proxy of the same sitting."""
    shares = [
        _share(rows, "8x0", lambda r: r.deltas_per_s),
        _share(rows, "200x10", lambda r: r.deltas_per_s),
        _share(rows, "50x10", lambda r: r.cpu_s_per_1000),
    ]
    if set(shares) == {""}:
        return ()
    return ("*Parley ÷ JSON proxy, now*", *shares[:2], "", "", shares[2])


def _share(rows: Rows, cell: str, value: Callable[[Result], float]) -> str:
    ours, baseline = rows.get(("Parley", cell)), rows.get(("JSON proxy", cell))
    if ours is None or baseline is None or not value(baseline):
        return ""
    return f"{value(ours) / value(baseline):.2f}"


def _cell(rows: Rows, target: str, cell: str, words: Callable[[Result], str]) -> str:
    result = rows.get((target, cell))
    return words(result) if result is not None else ""


def _peer_line(peer: Peer) -> tuple[str, ...]:
    return (
        f"{peer.name}, then",
        f"{peer.at_8x0:,}",
        f"{peer.at_200x10:,}",
        f"{peer.accept:g} / {peer.first_1:g}",
        f"{peer.first_50:,.0f} / {peer.total_50:,.0f}",
        f"{peer.cpu:g}",
    )


def goals(rows: Rows) -> str:
    """The goals whose cell was measured."""
    known = [(goal, rows[key]) for goal in GOALS if (key := ("Parley", goal.cell)) in rows]
    lines = [
        (goal.words, f"{goal.must:,g}", f"{goal.goal:,g}", _short(value), goal.verdict(value))
        for goal, result in known
        for value in (goal.value(result),)
    ]
    return _table(("Parley", "must beat", "goal", "now", "on this machine"), lines) if lines else ""


def troubles(results: Sequence[Result]) -> str:
    """Every kind of error met, with its count."""
    lines = [
        f"- {result.target}, {result.cell.name}: {count} × {error}"
        for result in results
        for error, count in result.errors.items()
    ]
    return "\n".join(lines)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rule = ["---"] * len(head)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *lines))
