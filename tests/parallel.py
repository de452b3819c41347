"""Tests on all cores: how many processes of pytest-xdist there are, and which of them gets what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil
import pytest
from xdist.scheduler import LoadFileScheduling

_SHARING = ("tests/browser/", "tests/hostile/")
_LONG = (
    *_SHARING,
    "tests/clients/",
    "tests/deploy/",
    "tests/processes/",
    "tests/agents/runtimes/",
    "tests/agents/dialects/ag_ui/test_cuts.py",
    "tests/agents/worker/test_held_loop.py",
    "tests/conversations/metrics/test_exports.py",
)
_ALONE = tuple(f"tests/hostile/test_{name}.py" for name in ("bytes", "gate", "patterns"))
"""Those beside them that do not share."""


class ByFile(LoadFileScheduling):  # type: ignore[misc]
    """All tests of a file go to one worker of pytest-xdist, and all that share a browser or a server.

    What has more tests begins earlier, but first of all what is long for its few tests: at the end no
    worker is left alone with it.
    """

    def _split_scope(self, nodeid: str) -> str:
        shared = next((shared for shared in _SHARING if nodeid.startswith(shared)), "")
        return shared if shared and not nodeid.startswith(_ALONE) else super()._split_scope(nodeid)

    def _assign_work_unit(self, node: Any) -> None:
        if long := next((scope for scope in self.workqueue if scope.startswith(_LONG)), None):
            self.workqueue.move_to_end(long, last=False)
        super()._assign_work_unit(node)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile | None:
    return ByFile(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(tryfirst=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One for each core; but pytest's own for what is shorter than their start, or is to be watched."""
    places = {Path(config.invocation_params.dir, place.partition("::")[0]) for place in config.args}
    pure = config.rootpath / "tests" / "pure"
    is_short = all(place.is_relative_to(pure) for place in places)
    is_file = len(places) == 1 and places.pop().is_file()
    if is_short or is_file or config.option.capture == "no":
        return 0
    return psutil.cpu_count() or 1
