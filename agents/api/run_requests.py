"""The reading of a POST as the run that it requests."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from django.http import HttpRequest

from agents import request_limits
from agents.dialects.base import Dialect
from agents.dialects.recognition import dialect_named, recognise, with_named_threads
from agents.intake import run_options
from agents.intake.request_completion import complete_request
from agents.intake.run_options import RunOptions
from agents.requests import RunRequest
from config.auth.bearer import Caller
from config.errors import current_request_id
from config.http.api import json_object
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
    return post._replace(request=await complete_request(post.request, options, caller, runner=runner))


def _read(
    request: HttpRequest, named: str | None, named_threads: bool, raw: bytes
) -> tuple[Post, RunOptions]:
    body = json_object(raw)
    dialect = dialect_named(named) if named else recognise(body)
    dialect = with_named_threads(dialect) if named_threads else dialect
    run_request = dialect.parse(body, request_id=current_request_id())
    options = run_options.read_run_options(request.GET, request.headers)
    request_limits.check(run_request, size=len(raw))
    return Post(dialect, run_request, body), options
