"""Findings for people and for machines."""

from __future__ import annotations

import json
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Final

from config import __version__
from config.doctor.findings import Finding

_STATE: Final = 9
_THING: Final = 18
_NARROWEST: Final = 60


def render(findings: Sequence[Finding]) -> str:
    """Return the screen: a line for each finding, its fix below it, and a summary."""
    lines = [f"Parley {__version__}"]
    for group, found in groupby(findings, key=lambda one: one.group):
        lines.append(group)
        for one in found:
            lines.extend(_lines(one))
    return "\n".join([*lines, _summary(findings)])


def render_json(findings: Sequence[Finding]) -> str:
    """Return the same as a JSON object."""
    counts = {f"{state}s": _count(findings, state) for state in ("fault", "warning")}
    listed = [asdict(one) for one in findings]
    return json.dumps(
        {"version": __version__, "ok": not counts["faults"], **counts, "findings": listed}, indent=1
    )


def _lines(one: Finding) -> Iterator[str]:
    rest = " " * (2 + _STATE + _THING + 1)
    yield from _wrapped(f"  {one.state:<{_STATE}}{one.thing:<{_THING}} {one.text}", rest)
    if one.fix:
        yield from _wrapped(f"{rest}→ {one.fix}", f"{rest}  ")


def _wrapped(text: str, indent: str) -> list[str]:
    width = max(_NARROWEST, min(shutil.get_terminal_size((105, 24)).columns, 120))
    return textwrap.wrap(
        text, width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )


def _summary(findings: Sequence[Finding]) -> str:
    faults, warnings = _count(findings, "fault"), _count(findings, "warning")
    return f"{faults} fault{'s' * (faults != 1)}, {warnings} warning{'s' * (warnings != 1)}"


def _count(findings: Sequence[Finding], state: str) -> int:
    return sum(one.state == state for one in findings)
