"""Which tools are called before the model: what the client asked for, as far as staff allow it."""

from __future__ import annotations

import msgspec

from agents.requests import RunRequest
from agents.tools.web_search import NAME as WEB_SEARCH


def prefetch_with_defaults(request: RunRequest, *, web_search: bool) -> RunRequest:
    """The request without its web searches where staff have switched them off (`web_search_enabled`).

    A dialect asks for the search unless its client declined, so a request can only switch it off.
    """
    if web_search:
        return request
    allowed = tuple(use for use in request.prefetch if use.name != WEB_SEARCH)
    return msgspec.structs.replace(request, prefetch=allowed)
