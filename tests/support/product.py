"""The modules of the product."""

from __future__ import annotations

from tests.support.paths import ROOT

ROOMS = ("config", "agents", "conversations", "prompts")
MODULES = sorted(
    path
    for room in ROOMS
    for path in (ROOT / room).rglob("*.py")
    if "migrations" not in path.parts and path.stat().st_size
)
