"""The admin's test button: connect once, greet, list the runners, and disconnect.

A runtime with a worker's connection is not contacted: it would drop the worker for the new connection.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
from django.conf import settings
from msgspec import Struct
from msgspec.structs import replace

from agents.host_protocol.manifest import RunnerManifest
from agents.models.plugins import PluginRuntime, PluginStatus
from agents.runtimes.plugins.channel import Channel
from agents.runtimes.plugins.connection import greet, list_runners, open_channel
from agents.runtimes.plugins.failure_reasons import explain
from agents.runtimes.plugins.host_requests import answer_greeting
from agents.runtimes.plugins.runner_listing import manifest_to_json
from agents.runtimes.plugins.runtime import Runtime
from agents.runtimes.plugins.wire_protocol import WireProtocol
from prompts.endpoints.secrets import get_sealed

_FOR_PLUGINS_S: Final = 5.0
_LOOK_S: Final = 0.2


class CheckResult(Struct, frozen=True):
    """The result of a test; `live` if it is the status of a connected worker."""

    spoken: str
    runners: list[dict[str, Any]]
    passed_over: list[str]
    live: bool = False


def runtime_from_row(row: PluginRuntime) -> Runtime:
    """Return the row as a value for its connection."""
    runtime = msgspec.convert(row, Runtime, from_attributes=True)
    return replace(runtime, sealed_token=get_sealed(row.token))


def is_live(row: PluginRuntime) -> bool:
    """Return whether a worker has recently reported its connection."""
    if not row.is_active or row.status != PluginStatus.CONNECTED or row.seen_at is None:
        return False
    lately = timedelta(seconds=2 * settings.PLUGIN_REFRESH_S + 15)
    return row.seen_at > datetime.now(UTC) - lately


async def check_connection(row: PluginRuntime) -> CheckResult | str:
    """Return the result of a test, or the reason of its failure in words for staff."""
    if is_live(row):
        return CheckResult(row.spoken, row.runners, row.passed_over, live=True)
    runtime = runtime_from_row(row)
    patience = asyncio.timeout(settings.PLUGIN_CONNECT_S + _FOR_PLUGINS_S)
    try:
        async with patience, open_channel(runtime, answer_greeting) as (channel, _):
            protocol = await greet(runtime, channel)
            found, passed_over = await _list_runners(protocol, channel)
            runners = [manifest_to_json(one) for one in found.values()]
            return CheckResult(protocol.name, runners, passed_over)
    except Exception as error:
        return explain(error, runtime)


async def _list_runners(
    protocol: WireProtocol, channel: Channel
) -> tuple[dict[str, RunnerManifest], list[str]]:
    """Return the runners, as soon as there are any, and those passed over; plugins start slowly."""
    until = asyncio.get_running_loop().time() + _FOR_PLUGINS_S
    while True:
        found, passed_over = await list_runners(channel, protocol)
        if found or asyncio.get_running_loop().time() > until:
            return found, passed_over
        await asyncio.sleep(_LOOK_S)
