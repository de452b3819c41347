"""Recognition of a body's dialect: one URL, many dialects (DESIGN §9)."""

from __future__ import annotations

from typing import Any, Final

from agents.dialects import run_agent_input, runner, text_run
from agents.dialects.ag_ui import dialect as ag_ui
from agents.dialects.agent_api import dialect as agent_api
from agents.dialects.base import AnsweringDialect, Dialect
from agents.dialects.openai_chat import dialect as chat_completions
from agents.dialects.openai_responses import dialect as responses
from config.errors import InvalidRequest

ANSWERING: Final[dict[str, AnsweringDialect]] = {
    agent_api.NAME: agent_api,
    responses.NAME: responses,
    chat_completions.NAME: chat_completions,
}
DIALECTS: Final[dict[str, Dialect]] = {
    text_run.NAME: text_run,
    run_agent_input.NAME: run_agent_input,
    ag_ui.NAME: ag_ui,
    runner.NAME: runner,
    **ANSWERING,
}
_KEYS: Final[dict[str, frozenset[str]]] = {
    text_run.NAME: frozenset({"model", "text"}),
    run_agent_input.NAME: frozenset({"threadId", "messages"}),
    agent_api.NAME: frozenset({"input"}),
}


def dialect_named(name: str) -> Dialect:
    """Return the dialect of this name. Raise InvalidRequest, which names the known ones."""
    found = DIALECTS.get(name)
    if found is None:
        raise InvalidRequest(
            f"There is no such dialect; there are: {', '.join(DIALECTS)}.", code="unknown_dialect"
        )
    return found


def recognise(body: dict[str, Any]) -> Dialect:
    """Return the dialect whose required keys the body has, or the only one of which it has some.

    OpenAI's wires have addresses of their own, and `?dialect=` here. So has AG-UI, whose body is a
    RunAgentInput with other rules (DESIGN §11.4).
    Raise InvalidRequest, naming the dialects, if none or several fit.
    """
    whole = [name for name, keys in _KEYS.items() if keys <= body.keys()]
    partly = [name for name, keys in _KEYS.items() if keys & body.keys()]
    for speaking in (whole, partly):
        if len(speaking) == 1:
            return DIALECTS[speaking[0]]
    raise InvalidRequest(
        "The body is no run that we know, or several at once: send model and text (text run), "
        "threadId, runId and messages (RunAgentInput), or input (Agent API). ?dialect= forces one.",
        code="unknown_dialect",
    )
