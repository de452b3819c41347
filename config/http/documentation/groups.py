"""The groups of operations, in the order of use: the order of the whole document."""

from __future__ import annotations

from typing import Any, Final

RUNS: Final = "Runs"
STREAMS: Final = "Streams"
APPROVALS: Final = "Approvals"
THREADS: Final = "Threads and history"
FILES: Final = "Files"
AG_UI: Final = "AG-UI"
AGENT_API: Final = "Agent API"
OPENAI: Final = "OpenAI"
USAGE: Final = "Usage"
METRICS: Final = "Metrics"
LIBRARY: Final = "Exercise library"
ADMINISTRATION: Final = "Administration"
SERVICE: Final = "Service"

_GROUPS: Final = {
    RUNS: "Start a run, read its state, cancel it, and give feedback on it.",
    STREAMS: "Follow a run by server-sent events or long polling; resume after a lost connection.",
    APPROVALS: "Decide the tool calls for which a run waits.",
    THREADS: "Find conversations again: one by one, day by day, or by their words.",
    FILES: "Upload images, and download them and the files of runs.",
    AG_UI: "The protocol of AG-UI's clients, such as CopilotKit.",
    AGENT_API: "The protocol of AgentScope's runtime: a message in, a stream of objects out.",
    OPENAI: "OpenAI's Responses and Chat Completions, for its SDKs with the base URL `/v1`.",
    "Models": "The models that a run may request.",
    USAGE: "What the caller's runs have used and cost, and what is left of the budget.",
    "Prompts": "The prompts of all runs, for staff.",
    METRICS: "Numbers of all runs, for analysts and staff.",
    LIBRARY: "The published exercises for apps, and their publication by staff.",
    ADMINISTRATION: "Settings, runners and open streams, for staff.",
    SERVICE: "Sign in, and get the published JSON Schemas.",
}
"""Each group with its description. The views of the REST framework name theirs in `extend_schema`."""

TAGS: Final = [{"name": name, "description": text} for name, text in _GROUPS.items()]


def sort_paths(paths: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the paths in the order of their groups; within a group they keep their order."""
    order = {name: place for place, name in enumerate(_GROUPS)}

    def place(path: str) -> int:
        return min(order[operation["tags"][0]] for operation in paths[path].values())

    return {path: paths[path] for path in sorted(paths, key=place)}
