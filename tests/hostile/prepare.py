"""Make what the hostile gate needs in its server's database: `python -m tests.hostile.prepare JSON`.

The JSON names the base URL of the misbehaving provider, the wire of each of its models, and the
addresses of MCP servers and plugin runtimes. The last line printed is the token of a superuser, whose
requests reach every route.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import django


def prepare(base_url: str, models: dict[str, str], mcp: dict[str, str], runtimes: dict[str, str]) -> str:
    """Create the rows, the servers and runtimes switched off, and return the token."""
    from agents.models import McpServer, PluginRuntime
    from agents.tools.mcp.secret_pairs import store_pairs
    from config.auth.bearer import create_api_token
    from config.auth.models import Scope, User

    for model, wire in models.items():
        _map(model, wire, f"{base_url}/{model}")
    for label, url in mcp.items():
        server = {"label": label, "url": url, "all_tools": True, "timeout_s": 3}
        row = McpServer.objects.create(**server, is_active=False)
        store_pairs(row, "headers", {"x-key": KEY}, by=None)
    for name, url in runtimes.items():
        PluginRuntime.objects.create(name=name, url=url, profile="v1", is_active=False)
    user = User.objects.create(username="hostile", is_staff=True, is_superuser=True)
    _, token = create_api_token(user, "hostile", scopes=[Scope.RUN, Scope.READ, Scope.ADMIN])
    return token


def _map(model: str, wire: str, base_url: str) -> None:
    from prompts.models import Endpoint, ModelCandidate, ModelMapping
    from prompts.wordings.staff_actions import rotate_secret

    told = {"provider": "hostile", "dialect": wire, "base_url": base_url}
    endpoint = Endpoint.objects.create(name=model, **told)
    rotate_secret(endpoint, KEY)
    mapping = ModelMapping.objects.create(key=model)
    ModelCandidate.objects.create(mapping=mapping, endpoint=endpoint, model=model)


KEY = "sk-canary-of-the-hostile-gate-0123456789"


def main(rows: dict[str, Any]) -> None:
    django.setup()
    print(prepare(**rows))


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    main(json.loads(sys.argv[1]))
