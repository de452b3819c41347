"""Whatever an MCP server does: runs that meet it end, the others are served, and no key comes out."""

from __future__ import annotations

import pytest

from tests.hostile import mcp, runs
from tests.hostile.gate import Gate, wait
from tests.hostile.mcp import BEHAVIOURS
from tests.hostile.prepare import KEY

pytestmark = pytest.mark.timeout(0)
_MET_WITHIN_S = 20.0


@pytest.mark.parametrize("label", BEHAVIOURS)
def test_no_mcp_server_stops_the_server(warm: Gate, label: str) -> None:
    """Of a server that cannot be met there is no tool, and the model calls one that is none."""
    begun = mcp.asked.get(label, 0)
    with warm.held_to_limits(label), warm.switched_on("agents_mcpserver", "label", label):
        if BEHAVIOURS[label].when != "tools/call":
            assert wait(lambda: mcp.asked.get(label, 0) > begun, _MET_WITHIN_S)
        assert wait(lambda: _is_met(warm, label, begun), _MET_WITHIN_S)


def _is_met(gate: Gate, label: str, begun: int) -> bool:
    """Run a model that calls the server's tool; whether the server could do its worst by now."""
    run = runs.start(gate, "chat-calls_what_it_is_asked_for", f"{label}__t")
    gate.wait_for_ends()
    assert runs.outcome(gate, run) == "completed"
    runs.said(gate, run)
    return mcp.asked.get(label, 0) > begun


def test_no_key_of_a_server_is_written_and_nobody_is_sent_elsewhere(warm: Gate) -> None:
    assert mcp.asked.get("elsewhere", 0) == 0
    assert warm.written(KEY) == []
