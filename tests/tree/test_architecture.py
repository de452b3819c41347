"""Who may import whom (DESIGN §3): the contracts of pyproject.toml, and what they cannot express."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps as django_apps

from tests.support.paths import ROOT
from tests.support.product import MODULES, ROOMS

TESTS = ROOT / "tests"
TRANSPORT = ("rest_framework", "channels", "django.http")
TRANSPORT_ROOMS = {"config", "api", "urls", "storage_urls", "admin"}
ALONE = (
    "agents/requests.py",
    "conversations/blocks.py",
    "conversations/events.py",
    "conversations/identifiers.py",
    "conversations/cards/ui_nodes.py",
    "conversations/cards/ui_hints.py",
    "conversations/cards/ui_safety.py",
    "conversations/cards/card_compiler.py",
)
ALONE_MODULES = tuple(name.removesuffix(".py").replace("/", ".") for name in ALONE)
PROTOCOLS = {
    "ag_ui", "agent_api", "openai_chat", "openai_responses", "run_agent_input", "runner", "text_run",
}  # fmt: skip
KNOWN_PROTOCOLS = {
    ("run_agent_input", "ag_ui"): "its stream is AG-UI's",
    ("openai_chat", "openai_responses"): "OpenAI's tools are the same on both",
}
FORMS = {"admin", "api", "models", "openapi", "actions", "commands"}
"""Folders of pages, addresses, tables, documentation, Host actions and commands, named by resources."""
TWICE = {
    "admin": "Django looks for it in each app",
    "apps": "Django looks for it in each app",
    "models": "Django looks for it in each app",
    "urls": "Django looks for it in each app",
    "base": "the contract of a package, which its modules keep",
    "registry": "what installed packages bring: runners, and tools",
    "runner": "one for each kind of runner, and their dialect and contract",
    "dialect": "each wire in a package of its own has one",
    "encoder": "each dialect has one",
    "request": "each dialect has one",
    "objects": "each dialect of OpenAI has its own",
    "messages": "each wire has its own, and threads have them",
    "connection": "to an MCP server, and to a plugin runtime",
    "errors": "ours, and those that seed 003 names",
    "answer": "the words of ThinkingML are public",
    "retention": "of conversations, and of the audit log",
}
VALUE_LIBRARIES = {"msgspec", "pydantic", "structlog"}


def test_the_import_contracts_are_kept() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_app_has_more_than_eight_layers() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = {
        contract["name"]: len(contract["layers"]) for contract in contracts if "containers" in contract
    }
    assert layers.keys() == {f"Inside {app}" for app in ROOMS if app != "config"}
    assert max(layers.values()) <= 8


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
    dialects = ROOT / "agents" / "dialects"
    known = {
        (own, other)
        for path in dialects.rglob("*.py")
        if (own := path.relative_to(dialects).with_suffix("").parts[0]) in PROTOCOLS
        for imported in _imports(path)
        for other in PROTOCOLS - {own}
        if imported.startswith(f"agents.dialects.{other}")
    }
    assert known == KNOWN_PROTOCOLS.keys()


def test_modules_are_small_enough_to_hold_in_mind() -> None:
    long = {
        _name(path): lines for path in MODULES if (lines := len(path.read_text().splitlines())) > 400
    }
    assert long == {}


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports inside functions count: a circle is one, whenever it is closed."""
    graph = {_name(path): {*_modules_imported(path)} - {_name(path)} for path in MODULES}
    while leaves := {name for name, imported in graph.items() if not imported & graph.keys()}:
        graph = {name: imported for name, imported in graph.items() if name not in leaves}
    # what is left stands in a circle or above one: take away what nobody imports
    while True:
        imported = set().union(*graph.values()) if graph else set()
        roots = graph.keys() - imported
        if not roots:
            break
        graph = {name: found for name, found in graph.items() if name not in roots}
    assert sorted(graph) == []


def test_no_folder_is_a_heap() -> None:
    folders = Counter(path.parent for path in MODULES)
    heaps = {str(folder.relative_to(ROOT)): files for folder, files in folders.items() if files > 25}
    assert heaps == {}
    loose = {
        room: names
        for room in ROOMS
        if len(names := [path.stem for path in (ROOT / room).glob("*.py") if path.stem != "__init__"])
        > 12
    }
    assert loose == {}


def test_the_folders_of_tests_are_no_heaps_either() -> None:
    files = [path for path in TESTS.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    folders = Counter(path.parent for path in files)
    assert {str(folder.relative_to(ROOT)): n for folder, n in folders.items() if n > 25} == {}
    loose = [path.stem for path in TESTS.glob("*.py") if path.stem != "__init__"]
    assert len(loose) <= 12, loose


def test_no_test_module_imports_another() -> None:
    """What several need is in tests/support, in a module beside them, or a fixture of their folder."""
    offenders = [
        f"{_name(path)} imports {imported}"
        for path in TESTS.rglob("*.py")
        if re.search(r"\btests[.\w]* import\b[^)]*\btest_|\btests\..*\.test_", path.read_text())
        for imported in _imports(path)
        if imported.startswith("tests.") and ".test_" in imported
    ]
    assert offenders == []


def test_one_name_is_one_module() -> None:
    """A resource may have a page, an address and a table; else a name that stands twice has a reason."""
    places: dict[str, set[str]] = {}
    for path in MODULES:
        if path.stem != "__init__" and path.parent.name not in FORMS:
            places.setdefault(path.stem, set()).add(str(path.parent.relative_to(ROOT)))
    twice = {name for name, found in places.items() if len(found) > 1}
    assert twice == TWICE.keys(), "give one of them another name, or write down why not"


def _modules_imported(path: Path) -> Iterator[str]:
    """The modules of ours that a module imports; a package stands for its `__init__`."""
    for found in _imports(path):
        yield found if found in NAMES else found.rpartition(".")[0]


@functools.cache
def _imports(path: Path) -> tuple[str, ...]:
    """Every imported name as `package` or `package.name`; relative imports are not used."""
    found = list[str]()
    for node in _statements(ast.parse(path.read_text())):
        match node:
            case ast.Import(names=names):
                found += [alias.name for alias in names]
            case ast.ImportFrom(module=str(module), level=0, names=names):
                found += [f"{module}.{alias.name}" for alias in names]
            case ast.ImportFrom():
                raise AssertionError(f"{_name(path)} has a relative import")
    return tuple(found)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements in it, however deep; expressions, which are ten times as many, hold none."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for statement in getattr(node, field, ()):
            yield statement
            yield from _statements(statement)


def _is_transport(path: Path) -> bool:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return bool(TRANSPORT_ROOMS & {*parts})


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


NAMES = {_name(path) for path in MODULES}


NAMED_EVERYWHERE = {"accounts_user": "the name of a row's owner is joined where rows are listed"}


def test_a_table_is_named_by_its_own_app_alone() -> None:
    """In any text: statements, parts of statements, names of tables for one."""
    tables = {
        model._meta.db_table: Path(app.path).relative_to(ROOT)
        for app in django_apps.get_app_configs()
        if Path(app.path).is_relative_to(ROOT) and app.name.split(".")[0] in ROOMS
        for model in app.get_models(include_auto_created=True)
    }
    assert {"conversations_run", "agents_mcpserver", "prompts_prompt"} <= tables.keys()
    named = re.compile(rf"\b({'|'.join(tables)})\b")

    def foreign(path: Path, text: str) -> list[str]:
        own = path.relative_to(ROOT)
        everywhere = NAMED_EVERYWHERE.keys() if own.parts[0] == "conversations" else ()
        return [
            table
            for table in named.findall(text)
            if not own.is_relative_to(tables[table]) and table not in everywhere
        ]

    offenders = [
        f"{path.relative_to(ROOT)}:{node.lineno} names {table}"
        for path in MODULES
        if foreign(path, text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for table in foreign(path, node.value)
    ]
    assert offenders == []
