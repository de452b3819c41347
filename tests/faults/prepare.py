"""Make the rows that the fault tests need: seeds, models on the two fake providers, a token.

Runs as a process of its own with the stack's environment; prints the token as its last line.
A scripted model `script:wakes` is offered to clients under the key `script-wakes`.
"""

from __future__ import annotations

import os
import sys

import django


def prepare(numbered_url: str, scripted_url: str, *scripted: str) -> str:
    """`bench` speaks numbered tokens; each of `scripted` is played by `fake_model`."""
    from agents.tools.exercises.seed import seed_exercises
    from benchmarks.prepare import prepare as prepare_bench
    from prompts import seeds
    from prompts.models import Endpoint, ModelCandidate, ModelMapping
    from prompts.wordings.staff_actions import rotate_secret

    seeds.seed()
    seed_exercises()
    token = prepare_bench(numbered_url)
    endpoint = Endpoint.objects.create(name="scripted", provider="fake", base_url=scripted_url)
    rotate_secret(endpoint, "sk-test-key-of-the-faults-0123456789")
    for model in scripted:
        mapping = ModelMapping.objects.create(key=model.replace(":", "-"))
        ModelCandidate.objects.create(mapping=mapping, endpoint=endpoint, model=model)
    return token


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    print(prepare(*sys.argv[1:]))
