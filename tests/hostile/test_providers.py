"""Whatever a model's provider does: its runs end, the others are served, and no key comes out."""

from __future__ import annotations

import pytest

from tests.hostile import providers, runs
from tests.hostile.gate import Gate
from tests.hostile.prepare import KEY
from tests.hostile.providers import BEHAVIOURS
from tests.hostile.runs import Started

pytestmark = pytest.mark.timeout(0)


@pytest.mark.parametrize("name", [name for name, behaviour in BEHAVIOURS.items() if not behaviour.waits])
def test_no_provider_stops_the_server(warm: Gate, name: str) -> None:
    behaviour = BEHAVIOURS[name]
    for model in behaviour.models:
        with warm.held_to_limits(model):
            run = runs.start(warm, model)
            warm.wait_for_ends()
            assert runs.outcome(warm, run) in behaviour.ends.split()
            runs.said(warm, run)


def test_providers_that_keep_us_waiting_are_given_up(impatient: Gate) -> None:
    waiting = [behaviour for behaviour in BEHAVIOURS.values() if behaviour.waits]
    with impatient.held_to_limits("waiting"):
        started: dict[str, Started] = {
            model: runs.start(impatient, model) for behaviour in waiting for model in behaviour.models
        }
        impatient.wait_for_ends()
        ends = {model: runs.outcome(impatient, run) for model, run in started.items()}
    expected = {model: behaviour.ends for behaviour in waiting for model in behaviour.models}
    assert {model: end for model, end in ends.items() if end not in expected[model].split()} == {}


def test_a_provider_that_only_a_user_ends_is_ended_at_once(warm: Gate) -> None:
    with warm.held_to_limits("cancelled"):
        run = runs.start(warm, "chat-silent")
        runs.cancel(warm, run)
        warm.wait_for_ends()
        assert runs.outcome(warm, run) == "cancelled"


def test_nobody_is_sent_elsewhere_and_no_key_is_written(warm: Gate) -> None:
    for name in ("redirects", "repeats_the_key", "repeats_the_key_in_its_head", "refuses_the_key"):
        runs.start(warm, f"chat-{name}")
    warm.wait_for_ends()
    assert providers.hits() == []
    assert warm.written(KEY) == []
