"""The API's addresses by their beginnings, and how a request to each is taken in."""

from __future__ import annotations

from typing import Final

from config.errors import AGENT_API_PATHS, OPENAI_PATHS

SEEDS_OWN: Final = ("/api/v1/agent/runs", "/api/v1/agent/run")
UPLOAD: Final = "/api/v1/agent/attachments"
_AG_UI: Final = "/api/v1/agent/ag-ui"
_OPENAI_STARTS: Final = ("responses", "chat/completions")

API: Final = ("/api/", "/storage/", "/health", "/ready", "/metrics", "/process", *OPENAI_PATHS)
"""All of the API. Every other address is a page's."""

WITH_ORM: Final = (
    "/api/docs/",
    "/api/schema/",
    "/api/v1/admin/",
    "/api/v1/agent/approvals",
    "/api/v1/auth/",
    "/api/v1/llm/",
    "/api/v1/stats/",
)
"""Where views run in a thread and use Django's connections."""

STARTS: Final = frozenset(
    (
        *SEEDS_OWN,
        _AG_UI,
        *AGENT_API_PATHS,
        "/process/task",
        *(f"{base}{name}" for base in ("/v1/", "/compatible-mode/v1/") for name in _OPENAI_STARTS),
    )
)
"""Where a POST starts a run."""

OF_A_RUN: Final = "/api/v1/agent/runs/"
"""Where a client reads or ends its run."""

HISTORIES: Final = (
    _AG_UI,
    *AGENT_API_PATHS,
    *(f"/v1/{name}" for name in _OPENAI_STARTS),
    "/compatible-mode/",
)
"""Where a client may send its whole history each turn, and images with it."""
