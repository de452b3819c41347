"""Every Host action: allowed, refused, audited; docs/extending/host-actions.md is what came out."""

from __future__ import annotations

import os
from typing import Any, Final

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from agents.host import gateway
from agents.host.action_registry import ACTIONS
from agents.host_protocol import parameters
from agents.host_protocol.errors import HostRefusal
from agents.host_protocol.manifest import Permissions
from tests.support.host.stage import (
    EVERYTHING,
    audited,
    manifest,
    run,
    stage_with,
)
from tests.support.paths import ROOT

pytestmark = pytest.mark.once

DOC: Final = ROOT / "docs" / "extending" / "host-actions.md"
OPEN: Final = frozenset(("run_append_result", "get_prompt", "get_langbot_version"))
HEAD: Final = """# Host actions

Made by `tests/agents/host/test_action_table.py`, which runs every row: once as allowed, and once for
each way to be refused. “audited” counts the rows that the audit then has.

| action | permission | allowed | not granted | run over | another run's plugin | audited |
|---|---|---|---|---|---|---|
"""


def tried(action: str, payload: dict[str, Any], run_id: str, identity: str) -> str:
    """`ok`, or the code of the refusal."""

    async def go() -> None:
        if not ACTIONS[action].streams:
            await gateway.call(action, payload, run_id=run_id, identity=identity)
            return
        async for _ in gateway.stream(action, payload, run_id=run_id, identity=identity):
            pass

    try:
        run(go())
    except HostRefusal as refusal:
        return str(to_builtins(refusal.wire())["code"])
    return "ok"


def test_every_action_is_allowed_refused_and_audited(everything: Any) -> None:
    stage, payloads, needs = everything
    assert payloads.keys() == ACTIONS.keys()
    other = stage_with(stage.user)
    bare = manifest(permissions=Permissions())
    off = replace(needs["binding"], state_enabled=False)
    lines = []
    for name, payload in payloads.items():
        run_id = stage.run.pk.hex
        before = len(audited(stage.run.pk)) + len(audited(other.run.pk))
        stage.session(**needs)
        allowed = tried(name, payload, run_id, "acme/tester")
        foreign = tried(name, payload, run_id, "evil/plugin")
        stage.session(**(needs | {"of": bare, "binding": off}))
        ungranted = tried(name, payload, run_id, "acme/tester")
        stage.close()
        over = tried(name, payload, run_id, "acme/tester")
        rows = len(audited(stage.run.pk)) + len(audited(other.run.pk)) - before
        action = ACTIONS[name]
        permission = " ".join(filter(None, (action.group, action.operation))) or "–"
        lines.append(
            f"| `{name}` | {permission} | {allowed} | {ungranted} | {over} | {foreign} | {rows} |"
        )
        if name == "get_langbot_version":  # tells nothing of a run, and needs none
            assert (allowed, foreign, ungranted, over, rows) == ("ok", "ok", "ok", "ok", 0)
            continue
        refusals = {foreign, over} if name in OPEN else {foreign, over, ungranted}
        assert (name, allowed, refusals, rows) == (name, "ok", {"unauthorized"}, 4)
    other.close()
    table = HEAD + "\n".join(lines) + "\n"
    if os.environ.get("WRITE_DOCS"):
        DOC.write_text(table)
    assert table == DOC.read_text()


def test_every_permission_of_a_manifest_guards_an_action() -> None:
    groups = {action.group for action in ACTIONS.values()} - {"", "state"}
    unused = {"interactions"}  # released runtimes only; nothing of ours answers it
    assert {*EVERYTHING.__struct_fields__} - unused == groups


def test_asks_are_read_from_the_wires_own_keys() -> None:
    for action in ACTIONS.values():
        names = {field.encode_name for field in _fields(action.takes)}
        assert not names & {"run_id", "caller_plugin_identity", "query_id"}, action.name
    assert issubclass(ACTIONS["state_set"].takes, parameters.SetState)


def _fields(kind: Any) -> Any:
    from msgspec.structs import fields

    return fields(kind)
