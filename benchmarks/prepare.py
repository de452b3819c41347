"""Make the rows a benchmark needs: a model `bench` at the fake model's address, and a token.

Runs as a process of its own with the stack's environment, and prints the token as its last line.
"""

from __future__ import annotations

import os
import sys

import django


def prepare(base_url: str, username: str = "bench") -> str:
    """Create endpoint, mapping and user; the text of a new API token."""
    from config.auth.bearer import create_api_token
    from config.auth.models import Scope, User
    from prompts.models import Endpoint, ModelCandidate, ModelMapping
    from prompts.wordings.staff_actions import rotate_secret

    endpoint, _ = Endpoint.objects.update_or_create(
        name="bench", defaults={"provider": "bench", "base_url": base_url}
    )
    rotate_secret(endpoint, "sk-bench")
    mapping, _ = ModelMapping.objects.get_or_create(key="bench", defaults={"label": "Benchmark"})
    mapping.candidates.all().delete()
    ModelCandidate.objects.create(mapping=mapping, endpoint=endpoint, model="bench")
    user, _ = User.objects.get_or_create(username=username)
    _, text = create_api_token(user, "bench", scopes=[Scope.RUN, Scope.READ])
    return text


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    from config.process import embedded_postgres

    embedded_postgres.provide_database(["prepare"])
    django.setup()
    print(prepare(*sys.argv[1:]))
