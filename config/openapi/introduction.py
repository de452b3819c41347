"""The beginning of the document: what Parley is, and how to start a first run."""

from __future__ import annotations

from typing import Any, Final

from config import __version__

_JSON: Final = "-H 'Content-Type: application/json'"
_AUTH: Final = '-H "Authorization: Bearer $TOKEN"'
_CREDENTIALS: Final = '{"username": "ada", "password": "…"}'
_RUN: Final = '{"model": "demo", "text": "Which exercises train the chest?"}'
_FIRST_RUN: Final = f"""
    TOKEN=$(curl -s $URL/api/v1/auth/token {_JSON} -d '{_CREDENTIALS}' | jq -r .access_token)
    RUN=$(curl -s $URL/api/v1/agent/runs {_AUTH} {_JSON} -d '{_RUN}' | jq -r .run_id)
    curl -N $URL/api/v1/agent/runs/$RUN/events {_AUTH}
    curl -s $URL/api/v1/agent/runs/$RUN {_AUTH}
"""
_DESCRIPTION: Final = f"""\
Start agent runs, follow them and find them again. Sign in, start a run, follow it, and read its state:
{_FIRST_RUN}
Every error is `{{"detail", "code", "request_id"}}`: a sentence for people, a code for programs, and
the id that finds the request in the logs. An invalid body has `errors` too, each with its place.
"""
INFO: Final[dict[str, Any]] = {
    "title": "Parley",
    "version": __version__,
    "license": {"name": "Apache License 2.0", "identifier": "Apache-2.0"},
    "description": _DESCRIPTION,
}
