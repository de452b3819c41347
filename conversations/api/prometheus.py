"""`GET /metrics`: the metrics in the format of Prometheus."""

from __future__ import annotations

import hmac
from ipaddress import ip_network
from typing import Any

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse

from config.coordination.rate_limits import client_address
from config.errors import ParleyError, Unavailable
from config.http.async_views import admitted, allow, error_response
from config.http.documentation import groups
from config.http.documentation.operations import described, operation, response
from config.http.documentation.schema_builders import TEXT
from conversations.api.metrics import METRICS
from conversations.metrics.exposition import CONTENT_TYPE, fetch_exposition

log = structlog.get_logger(__name__)


@described(
    operation(
        "GET /metrics",
        "prometheus",
        "Get the metrics for Prometheus",
        {
            "200": response(
                "The metrics in Prometheus' text format.", TEXT, CONTENT_TYPE.partition(";")[0]
            )
        },
        group=groups.SERVICE,
    )
)
async def prometheus(request: HttpRequest) -> HttpResponse:
    """Answer with the metrics, to METRICS_TOKEN, METRICS_NETWORKS and accounts that may see metrics."""
    try:
        allow(request, "GET", "HEAD")
        if not _is_known(request):
            await METRICS.check(await admitted(request.META))
        return HttpResponse(await fetch_exposition(), content_type=CONTENT_TYPE)
    except ParleyError as error:
        return error_response(error)
    except Exception as error:  # whatever fails in the database, the answer is the same
        log.warning("metrics: the database is away", error=type(error).__name__)
        return error_response(Unavailable(retry_after=5))


def _is_known(request: HttpRequest) -> bool:
    authorization = request.headers.get("Authorization", "")
    if settings.METRICS_TOKEN and hmac.compare_digest(
        authorization.encode(), f"Bearer {settings.METRICS_TOKEN}".encode()
    ):
        return True
    try:
        client: Any = ip_network(client_address(request.META))  # of IPv6 the upper half
    except ValueError:
        return False
    return any(
        client.version == network.version and client.subnet_of(network)
        for network in settings.METRICS_NETWORKS
    )
