"""What points from one run of a command-line agent to the next (seed 003 §10)."""

from __future__ import annotations

from pathlib import Path

from agents.models import HostState
from tests.agents.runtimes.harness.harness_runs import harness, talk
from tests.support.client import Client


def test_its_session_and_folder_are_small_states_of_the_conversation(client: Client) -> None:
    with harness(client):
        talk(client, "turns")
    kept = HostState.objects.filter(owner=client.user).order_by("key")
    assert [(row.scope, row.key) for row in kept] == [
        ("conversation", "external.session_id"),
        ("conversation", "external.working_directory"),
    ]
    assert Path(str(kept[1].value)).parent.name == "harness"
