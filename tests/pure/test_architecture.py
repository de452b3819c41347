"""Who may import whom (DESIGN §3): the contracts of pyproject.toml, and what they cannot express."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("config", "agents", "conversations", "prompts")
MODULES = sorted(
    path
    for room in ROOMS
    for path in (ROOT / room).rglob("*.py")
    if "migrations" not in path.parts and path.stat().st_size
)
TRANSPORT = ("rest_framework", "channels", "django.http")
TRANSPORT_ROOMS = {"config", "views", "consumers", "urls", "admin"}
ALONE = (
    "agents/requests.py",
    "conversations/blocks.py",
    "conversations/events.py",
    "conversations/identifiers.py",
    "conversations/ui_nodes.py",
    "conversations/ui_hints.py",
    "conversations/ui_safety.py",
    "conversations/ui_schema.py",
)
ALONE_MODULES = tuple(name.removesuffix(".py").replace("/", ".") for name in ALONE)
SHARED = (
    "agents.dialects.base",
    "agents.dialects.agui",  # the wire of two dialects
    "agents.dialects.orderly",  # the order that wires of items need
    "agents.dialects.steps",
    "agents.dialects.agentapi",  # wires too large for one module
    "agents.dialects.openai",
    "agents.dialects.completions",
    "agents.dialects.given",
    "agents.dialects.generation",
    "agents.dialects.field_errors",
)
VALUE_LIBRARIES = {"msgspec", "pydantic", "structlog"}


def test_the_import_contracts_are_kept() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_only_the_transport_speaks_http() -> None:
    offenders = [
        f"{_name(path)} imports {imported}"
        for path in MODULES
        if not _is_transport(path)
        for imported in _imports(path)
        if imported.startswith(TRANSPORT)
    ]
    assert offenders == []


@pytest.mark.parametrize("name", ALONE)
def test_pure_values_stand_alone(name: str) -> None:
    allowed = sys.stdlib_module_names | VALUE_LIBRARIES
    others = (found for found in _imports(ROOT / name) if not found.startswith(ALONE_MODULES))
    assert [found for found in others if found.split(".")[0] not in allowed] == []


def test_dialects_do_not_know_each_other() -> None:
    offenders = [
        f"{_name(path)} imports {imported}"
        for path in (ROOT / "agents" / "dialects").glob("*.py")
        if path.stem not in {"base", "recognise"}
        for imported in _imports(path)
        if imported.startswith("agents.dialects") and not imported.startswith(SHARED)
    ]
    assert offenders == []


def test_modules_are_small_enough_to_hold_in_mind() -> None:
    long = {
        _name(path): lines for path in MODULES if (lines := len(path.read_text().splitlines())) > 400
    }
    assert long == {}


def _imports(path: Path) -> Iterator[str]:
    """Every imported name as `package` or `package.name`; relative imports are not used."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), level=0, names=names):
                yield from (f"{module}.{alias.name}" for alias in names)
            case ast.ImportFrom():
                raise AssertionError(f"{_name(path)} has a relative import")


def _is_transport(path: Path) -> bool:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return bool(TRANSPORT_ROOMS & {*parts}) or path.stem.endswith(("_admin", "_urls", "_views"))


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)
