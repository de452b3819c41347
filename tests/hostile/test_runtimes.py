"""Whatever a plugin runtime does: its runs end, and the others are served."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.hostile import runs, runtimes
from tests.hostile.gate import Gate, wait
from tests.hostile.runtimes import BEHAVIOURS, NONE

pytestmark = pytest.mark.timeout(0)
_MET_WITHIN_S = 20.0
_HUNG_UP_WITHIN_S = 60.0


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_no_runtime_stops_the_server(warm: Gate, name: str) -> None:
    behaviour, runner = BEHAVIOURS[name], f"plugin:evil/{name}/default"
    switched_on = warm.switched_on("agents_pluginruntime", "name", name)
    with warm.held_to_limits(name), _until_disconnected(name), switched_on:
        if behaviour.ends == NONE:
            assert wait(lambda: runtimes.asked.get(name, 0) > 0, _MET_WITHIN_S)
            assert (
                warm.http.post(f"/api/v1/agent/runners/{runner}/run", json=_ENVELOPE).status_code == 404
            )
        else:
            ends: list[str] = []
            assert wait(lambda: _has_ended(warm, runner, ends), _MET_WITHIN_S)
            assert ends == [behaviour.ends]
    assert runtimes.asked[name] > 0


@contextmanager
def _until_disconnected(name: str) -> Iterator[None]:
    """Wait behind the block for the server to hang up: a connection has what it reads in memory."""
    yield
    assert wait(lambda: runtimes.connected[name] == 0, _HUNG_UP_WITHIN_S)


_ENVELOPE = {"input": {"text": "hello"}}


def _has_ended(gate: Gate, runner: str, ends: list[str]) -> bool:
    """Start a run of the runner and note how it ends; false while the runner is not known."""
    answer = gate.http.post(f"/api/v1/agent/runners/{runner}/run", json=_ENVELOPE)
    if answer.status_code == 404:
        return False
    run = runs.latest(gate)
    gate.wait_for_ends()
    runs.said(gate, run)
    ends.append(runs.outcome(gate, run))
    return True
