"""A base backup and a moment after it: what `benchmarks.restores` proves at length, once and briefly."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cryptography.fernet import Fernet

from benchmarks import restores
from benchmarks.clusters import missing, restored
from benchmarks.restores import Place, Recorded

pytestmark = [pytest.mark.timeout(120), pytest.mark.skipif(bool(missing()), reason=missing())]
RATE, SECONDS = 10.0, 3.0


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with restores.place(("up",)) as made:
        yield made


@pytest.fixture(scope="module")
def recorded(place: Place) -> Recorded:
    return restores.record(place, RATE, SECONDS, say=lambda _: None, under_load=False)


def test_what_was_promised_by_a_moment_is_there_and_nothing_of_later(
    place: Place, recorded: Recorded
) -> None:
    accepted = sorted(one.accepted_at for one in recorded.seen if one.accepted_at)
    moment = accepted[len(accepted) * 3 // 4]
    with (
        restored(recorded.cluster, recorded.base, place.folder / "restored", moment) as cluster,
        cluster.connect() as connection,
    ):
        found = restores.check_rows(connection, recorded.seen, moment, recorded.keys)
        assert found.promised > 0
        assert found.ended > 0
        assert not +found.faults
        early = restores.check_rows(connection, recorded.seen, recorded.first, recorded.keys).faults
        late = restores.check_rows(connection, recorded.seen, recorded.last, recorded.keys).faults
        assert early["a run of later is there"] > 0
        assert late["an accepted run is not there"] > 0
        assert restores.count_unopened(connection, Fernet.generate_key().decode()) == 1
