"""Where the project is, and what may lie beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
SCHEMAS: Final = ROOT / "docs" / "api-contracts" / "schemas"


def shared(*names: str) -> Path:
    """What has this path in `shared/` beside the project or its folder of worktrees, if it is there."""
    places = [above.joinpath("shared", *names) for above in ROOT.parents[:2]]
    return next((place for place in places if place.exists()), places[0])
