"""The reading of a POST as the run that it requests."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from django.http import HttpRequest

from agents.dialects import run_agent_input
from agents.dialects.base import Dialect
from agents.dialects.recognition import dialect_named, recognise
from agents.intake import request_limits
from agents.intake.run_options import RunOptions, apply_run_options, read_run_options
from agents.requests import RunRequest
from config.auth.bearer import Caller
from config.errors import current_request_id
from config.http.async_views import json_object
from config.http.parsing import parsed


class Post(NamedTuple):
    """The run that a POST requests, and its body, of which the dialect alone reads more."""

    dialect: Dialect
    request: RunRequest
    body: dict[str, Any]


async def read_post(
    request: HttpRequest,
    caller: Caller,
    dialect: str | None = None,
    *,
    named_threads: bool = False,
    runner: str = "",
) -> Post:
    """Return the completed request of a body in this dialect, or in the one that the body speaks."""
    post, options = await parsed(request.body, functools.partial(_read, request, dialect, named_threads))
    return post._replace(request=await apply_run_options(post.request, options, caller, runner=runner))


def _read(
    request: HttpRequest, named: str | None, named_threads: bool, raw: bytes
) -> tuple[Post, RunOptions]:
    body = json_object(raw)
    dialect = dialect_named(named) if named else recognise(body)
    by_name = named_threads and dialect is run_agent_input  # seed 001's form of seed 000's body
    parse = run_agent_input.parse_named if by_name else dialect.parse
    run_request = parse(body, request_id=current_request_id())
    options = read_run_options(request.GET, request.headers)
    request_limits.check(run_request, size=len(raw))
    return Post(dialect, run_request, body), options
