"""The gate can fail: each limit, passed on purpose by a server with planted faults, is reported."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile import gate as limits
from tests.hostile.conftest import served
from tests.hostile.gate import Gate

pytestmark = pytest.mark.timeout(0)


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    """A server whose settings have faults in them."""
    folder: Path = tmp_path_factory.mktemp("faulty")
    rows: dict[str, object] = {"base_url": "http://127.0.0.1:9", "models": {}, "mcp": {}, "runtimes": {}}
    with served(folder, rows, DJANGO_SETTINGS_MODULE="tests.hostile.planted") as gate:
        gate.settle()
        yield gate


@pytest.mark.parametrize(
    ("fault", "report"),
    [
        ("hold", r"/health: 200 after .* of CPU|the loop was held by \['"),  # see `is_late`
        ("labour", r"s of CPU to an answer"),
        ("leak", "the key is in the answer"),
        ("keep", r"MiB more than before"),  # the last: what it keeps is kept
    ],
)
def test_a_planted_fault_is_reported(
    faulty: Gate, monkeypatch: pytest.MonkeyPatch, fault: str, report: str
) -> None:
    monkeypatch.setattr(limits, "_RETURNED_WITHIN_S", 1.0)
    faulty.health.late.clear()
    with pytest.raises(AssertionError, match=report):
        faulty.send(f"/planted/{fault}", b"{}")


@pytest.mark.parametrize(
    ("status", "wall_s", "cpu_s", "late"),
    [
        (200, 0.7, 0.6, True),
        (200, 0.7, 0.3, False),  # it waited for a processor, not for work of the process
        (200, 0.1, 0.1, False),
        (0, 0.1, 0.0, True),
        (503, 0.1, 0.0, True),
    ],
)
def test_health_is_late_by_what_the_process_computes(
    status: int, wall_s: float, cpu_s: float, late: bool
) -> None:
    assert limits.is_late(status, wall_s=wall_s, cpu_s=cpu_s) is late


def test_a_server_without_the_faults_passes(faulty: Gate) -> None:
    faulty.settle()
    assert faulty.send("/api/v1/agent/runs", b"{}") == 422
