"""Three hosts of a network, each with web and worker; one is killed, one cut off (P1, P3, P9).

With Redis, RabbitMQ and S3; in full also with PostgreSQL and S3 alone, and with locks that a host held.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from typing import Final

import pytest

from benchmarks.clusters import missing as missing_cluster
from benchmarks.stack import PYTHON, ROOT
from tests.faults.hosts import lan, network
from tests.faults.hosts.network import Shape
from tests.faults.stack import FULL, LEASE_S, SEED, SLACK, only_in_full
from tests.faults.tally import Tally

RUNS: Final = 200 if FULL else 40
LIMIT_S: Final = 600 if FULL else 280
# A lost run is settled after its lease and the two seconds in which that must stand still; a host that
# nobody has missed yet is found by TCP.
LIMITS_S: Final = {"lock": 20 + 5 * SLACK, "executes": 20.0, "cut": LEASE_S + 2 + 2 * SLACK}

pytestmark = [pytest.mark.faults, pytest.mark.timeout(LIMIT_S + 20)]


@pytest.mark.parametrize("shape", ["redis-rabbitmq", pytest.param("postgres-only", marks=only_in_full)])
def test_a_host_may_go_at_any_time(shape: Shape, tally: Tally) -> None:
    if why := missing_cluster() or network.missing(shape):
        pytest.skip(why)
    trials = ("-m", "tests.faults.hosts.trials", shape, str(RUNS), str(SEED))
    command = (*lan.ALONE, PYTHON, *trials)
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=LIMIT_S, check=False
    )
    scores = [json.loads(line) for line in done.stdout.splitlines()]
    for score in scores:
        limit_s = next((limit for word, limit in LIMITS_S.items() if word in score["trial"]), None)
        tally.score(
            score["promise"],
            f"{shape}: {score['trial']}",
            score["trials"],
            Counter(score["faults"]),
            times=score["times"],
            limit_s=limit_s,
            note=score["note"],
        )
    assert done.returncode == 0
    assert len(scores) == (7 if FULL else 6)
