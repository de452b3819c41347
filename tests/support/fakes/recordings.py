"""Recordings of real model providers, kept as shapes (`shapes`), with their source and their date.

    python -m tests.support.fakes.recordings FOLDER

reads again what `tests/agents/providers/recorded/sources.json` names, out of git clones in FOLDER, each
as `owner+name`; what is not there stays as it is. A source is `[repository, path, place]`, the place
being that of the exchange in a cassette of VCR's; a file of chunks is one answer. None of its text is
kept. What people showed in an issue is written there as it is kept.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from tests.support.fakes.shapes import Ids, reduce
from tests.support.paths import ROOT

FOLDER: Final = ROOT / "tests/agents/providers/recorded"
DONE: Final = "[DONE]"
Frame = Any


@dataclass(frozen=True)
class Recording:
    """One answer of the peer that its name begins with: its frames as shapes, and where it was seen."""

    name: str
    frames: tuple[Frame, ...]
    model: str
    recorded: str
    seen: str
    status: int = 200


def recordings(wire: str) -> dict[str, Recording]:
    """All those of a wire, by their names."""
    kept = json.loads((FOLDER / f"{wire}.json").read_text())
    return {name: _recording(name, **one) for name, one in kept.items()}


def _recording(name: str, frames: list[tuple[int, Frame]], **about: Any) -> Recording:
    return Recording(name, tuple(frame for times, frame in frames for _ in range(times)), **about)


def events(body: str) -> list[Frame]:
    """The data of the events of a body; of a body that is none, its document or its lines of them."""
    lines = body.splitlines()
    if not any(line.startswith("data:") for line in lines):
        if body.startswith(("{\n", "[\n")) or len(lines) == 1:
            return [json.loads(body)]
        return [json.loads(line) for line in lines if line.strip()]
    told = [line.removeprefix("data:").strip() for line in lines if line.startswith("data:")]
    return [one if one == DONE else json.loads(one) for one in told if one]


# --- reading them again ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _Exchange:
    body: str
    status: int = 200
    date: str = ""


def _exchange(text: str, path: str, place: int) -> _Exchange:
    if not path.endswith(".yaml"):
        return _Exchange(text)
    import yaml

    one = yaml.load(text, Loader=yaml.CSafeLoader)["interactions"][place]
    answer = one["response"]
    headers = {name.lower(): value for name, value in answer["headers"].items()}
    body = answer.get("body", {}).get("string") or json.dumps(answer.get("parsed_body"))
    date = headers.get("date", [""])[0]
    return _Exchange(
        body,
        answer["status"]["code"],
        parsedate_to_datetime(date).date().isoformat() if date else "",
    )


def _kept(clone: Path, path: str, place: int) -> dict[str, Any]:
    exchange = _exchange(_git(clone, "show", f"HEAD:{path}"), path, place)
    frames, ids = events(exchange.body), Ids()
    shapes = [frame if frame == DONE else reduce(frame, ids) for frame in frames]
    return {
        "model": next(_said(frames, "model", "modelVersion"), ""),
        "recorded": _day(frames) or exchange.date or _day_of(clone),
        "seen": f"{clone.name.replace('+', '/')} {path} {place}",
        "status": next(_refused(frames), exchange.status),
        "frames": [(len([*same]), shape) for shape, same in groupby(shapes)],
    }


def _said(frames: list[Frame], *names: str) -> Iterator[Any]:
    for frame in frames:
        for inside in (frame, *(frame.values() if isinstance(frame, dict) else ())):
            if isinstance(inside, dict):
                yield from (inside[name] for name in names if inside.get(name))


def _refused(frames: list[Frame]) -> Iterator[int]:
    """The status of an answer that is nothing but an error, where it says so itself."""
    match frames:
        case [{"error": {"code": int(code)}}]:
            yield code


def _day(frames: list[Frame]) -> str:
    at = next(_said(frames, "created", "created_at"), 0)
    return datetime.fromtimestamp(at, UTC).date().isoformat() if isinstance(at, int) and at else ""


def _day_of(clone: Path) -> str:
    return f"by {_git(clone, 'log', '-1', '--format=%cs').strip()}"


def _git(clone: Path, *words: str) -> str:
    return subprocess.run(
        ["git", "-C", str(clone), *words], capture_output=True, text=True, check=True
    ).stdout


def _written(kept: dict[str, Any]) -> str:
    """JSON with one frame a line, so that what has changed is seen."""
    told = []
    for name, one in kept.items():
        frames = ",\n".join(f"   {json.dumps(frame, ensure_ascii=False)}" for frame in one["frames"])
        head = json.dumps({key: value for key, value in one.items() if key != "frames"})
        told.append(f' {json.dumps(name)}: {head[:-1]}, "frames": [\n{frames}\n  ]}}')
    return "{\n" + ",\n".join(told) + "\n}\n"


def refresh(clones: Path) -> None:
    """Read all sources again that are there."""
    for wire, sources in json.loads((FOLDER / "sources.json").read_text()).items():
        path = FOLDER / f"{wire}.json"
        before = json.loads(path.read_text()) if path.exists() else {}
        kept = {}
        for name, source in sources.items():
            if isinstance(source, dict):
                kept[name] = source
                continue
            repository, file, place = source
            clone = clones / repository.replace("/", "+")
            kept[name] = _kept(clone, file, place) if clone.exists() else before[name]
        path.write_text(_written(kept))


if __name__ == "__main__":
    refresh(Path(sys.argv[1]))
