"""`GET /api/v1/metrics/{sheet}`: numbers for analysts, as JSON, CSV, JSON lines or Parquet."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse

from config.auth.bearer import Caller
from config.auth.models import Scope
from config.auth.requirements import Access
from config.errors import InvalidRequest, NotFound, TooManyRequests
from config.http.async_views import api, json_response
from config.http.documentation import groups
from config.http.documentation.operations import described, operation, query, response
from config.http.documentation.schema_builders import ERROR, TEXT, ref
from config.http.slow_readers import patiently
from conversations.metrics import rollup_reads
from conversations.metrics.exports import CONTENT_TYPES, export_rows, make_writer
from conversations.metrics.histograms import ERROR_BOUND
from conversations.metrics.query import MetricsQuery, parse_query
from conversations.metrics.sheets import SHEETS, Sheet, query_to_json
from conversations.threads.cursors import read_limit

METRICS: Final = Access(Scope.ADMIN, "conversations.view_metrics", staff=False)
EXPORTS_AT_ONCE: Final = 2
_RETRY_S: Final = 10
_MOST: Final = 1_000
_DEFAULT: Final = 100
_SHEET: Final = query(
    "sheet",
    "users, runs and messages are paginated (limit, cursor); the other sheets are not.",
    enum=list(SHEETS),
) | {"in": "path", "required": True}
_FILTERS: Final = [
    query("from", "A day or a time. Default: the last seven days, including today."),
    query("to", "A day (inclusive) or a time (exclusive)."),
    query("bucket", "For the sheet timeseries.", enum=["hour", "day", "week", "month"]),
    query(
        "group_by", "For timeseries and models.", enum=["model", "prompt_version", "dialect", "runner"]
    ),
    query("model", "Only runs that requested this model."),
    query("prompt_version", "Only runs that used the version with this id.", type="integer"),
    query("dialect", "Only runs of this dialect."),
    query("runner", "Only runs of this runner."),
    query("user", "Only runs of the user with this id."),
    query("compare", "For overview: add a row for the previous period.", enum=["previous"]),
    query("versions", "For prompts: the ids of two versions to compare, such as 12,15."),
    query("format", "Default: json.", enum=["json", "csv", "jsonl", "parquet"]),
    query("limit", "Rows per page, 1 to 1000.", type="integer"),
    query("cursor", "The `next_cursor` of the previous page."),
]
_ROWS: Final = {
    "description": "The rows of the sheet.",
    "content": {
        "application/json": {"schema": ref("MetricsSheet")},
        "text/csv": {"schema": TEXT},
        "application/jsonl": {"schema": TEXT},
        "application/vnd.apache.parquet": {"schema": TEXT | {"format": "binary"}},
    },
}
_ID: Final = re.compile(r"[0-9]{1,9}")


@described(
    operation(
        "GET /api/v1/metrics/{sheet}",
        "metrics",
        "Get a sheet of metrics, for analysts",
        {"200": _ROWS, "501": response("Parquet support is not installed on this server.", ERROR)},
        group=groups.METRICS,
        parameters=[_SHEET, *_FILTERS],
    )
)
@api(GET=METRICS)
async def metrics(request: HttpRequest, caller: Caller, sheet: str) -> HttpResponseBase:
    """Answer with one sheet; docs/guides/analysts.md describes its columns."""
    found = SHEETS.get(sheet)
    if found is None:
        raise NotFound(f"There is no such sheet; there are: {', '.join(SHEETS)}.")
    query = parse_query(request.GET.dict())
    if query.format != "json":
        _take_place(caller.user_id)
        return await _file(sheet, found, query)
    if found.fetch_page is not None:
        limit = read_limit(request.GET.get("limit"), default=_DEFAULT, most=_MOST)
        rows, more = await found.fetch_page(query, limit=limit, cursor=request.GET.get("cursor"))
        return json_response(query_to_json(query) | {"rows": rows, "next_cursor": more})
    assert found.fetch_all is not None
    answer = query_to_json(query) | {
        "percentile_error": ERROR_BOUND,
        "rows": await found.fetch_all(query),
    }
    if sheet == "timeseries":
        answer["bucket"] = query.bucket
    if sheet == "prompts" and (pair := request.GET.get("versions")):
        answer["comparison"] = await rollup_reads.compare_versions(query, *_versions(pair))
    return json_response(answer)


async def _file(name: str, sheet: Sheet, query: MetricsQuery) -> HttpResponseBase:
    """Return an export; an error before its first row is answered as an error."""
    using = make_writer(query.format, sheet.columns(query))
    pieces = export_rows(sheet.stream(query), using)
    first = await anext(pieces, b"")
    return StreamingHttpResponse(
        patiently(_all(first, pieces)),
        content_type=CONTENT_TYPES[query.format],
        headers={
            "Content-Disposition": f'attachment; filename="parley-{name}.{query.format}"',
            "Cache-Control": "no-store",
            "X-Accel-Buffering": "no",
        },
    )


async def _all(first: bytes, rest: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    async with aclosing(rest):
        yield first
        async for piece in rest:
            yield piece


_exporting: Final[set[UUID]] = set()  # the accounts that have an export in progress in this process


def _take_place(account_id: UUID) -> None:
    """Occupy a place until the running task (the request's) ends. Raise TooManyRequests."""
    if account_id in _exporting:
        raise TooManyRequests("Another export of yours is under way.", retry_after=_RETRY_S)
    if len(_exporting) >= EXPORTS_AT_ONCE:
        raise TooManyRequests("Other exports are under way: try again later.", retry_after=_RETRY_S)
    answering = asyncio.current_task()
    assert answering is not None
    _exporting.add(account_id)
    answering.add_done_callback(lambda _: _exporting.discard(account_id))


def _versions(text: str) -> tuple[int, int]:
    """Return two ids of prompt versions, as `12,15`."""
    match text.split(","):
        case [first, second] if all(_ID.fullmatch(one) for one in (first, second)):
            return int(first), int(second)
    raise InvalidRequest(
        "versions must be two ids of prompt versions, like 12,15.", code="invalid_filter"
    )
