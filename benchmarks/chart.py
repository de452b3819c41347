"""Draw a sitting of `benchmarks.beside`: deltas per second, a bar a server.

    .venv/bin/python -m benchmarks.chart PEERBENCH/results/results.jsonl > docs/images/speed.svg

Of repeated measurements of a cell the median is drawn.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

NAMES: Final = {
    "platform": "Parley",
    "proxy-json": "JSON proxy: keeps nothing",
    "django-view": "Django view: keeps nothing",
    "agno": "Agno AgentOS, streamed",
    "aegra": "Aegra",
    "langgraph": "LangGraph server, in memory",
    "agno-bg": "Agno AgentOS, background",
}
CELLS: Final = {
    (8, 0): "8 clients, no pause between tokens",
    (200, 10): "200 clients, a token each 10 ms",
}
_WIDTH: Final = 960
_LEFT: Final = 230
_LONGEST: Final = 620
_ROW: Final = 30
_TITLE: Final = 46
Figures = dict[tuple[int, int], dict[str, float]]


def read(lines: Iterable[str]) -> Figures:
    """By cell and server, the median of its deltas per second."""
    found: dict[tuple[int, int], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in map(json.loads, lines):
        cell = row["clients"], row["delay_ms"]
        if cell in CELLS and row["peer"] in NAMES and row["kind"] == "run":
            found[cell][row["peer"]].append(row["deltas_per_s"])
    return {
        cell: {peer: statistics.median(values) for peer, values in peers.items()}
        for cell, peers in found.items()
    }


def draw(figures: Figures) -> str:
    """The figures as an SVG image."""
    parts, top = [], 16
    for cell, title in CELLS.items():
        parts.append(f'<text class="w" x="24" y="{top + 22}">{title}: tokens a second</text>')
        top += _TITLE
        parts += _bars(figures.get(cell, {}), top)
        top += _ROW * len(figures.get(cell, {})) + 10
    style = ".w{fill:#111827;font-weight:600}.s{fill:#374151}.o{fill:#c4b5fd}.p{fill:#7c3aed}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top}" '
        f'font-family="Inter, system-ui, sans-serif" font-size="14"><style>{style}</style>'
        f'<rect width="{_WIDTH}" height="{top}" rx="12" fill="#fafafa"/>{"".join(parts)}</svg>\n'
    )


def _bars(values: dict[str, float], top: int) -> Iterator[str]:
    longest = max(values.values(), default=1)
    for place, (peer, value) in enumerate(sorted(values.items(), key=lambda one: -one[1])):
        y, width = top + place * _ROW, max(2, value / longest * _LONGEST)
        kind = "p" if peer == "platform" else "o"
        yield f'<text class="s" x="{_LEFT - 12}" y="{y + 15}" text-anchor="end">{NAMES[peer]}</text>'
        yield f'<rect class="{kind}" x="{_LEFT}" y="{y}" width="{width:.0f}" height="20" rx="4"/>'
        yield f'<text class="s" x="{_LEFT + width + 8:.0f}" y="{y + 15}">{value:,.0f}</text>'


if __name__ == "__main__":
    sys.stdout.write(draw(read(Path(sys.argv[1]).read_text().splitlines())))
