"""Start runs by calling `actions.start_run` itself, many at once, in a process of its own.

Reads `{"at": epoch seconds, "owner_id": …, "requests": [RunRequest as JSON, …]}` from stdin, waits for
the moment, starts all at once and prints an outcome for each: `{run_id, created}` or `{error}`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from typing import Any
from uuid import UUID

import django


async def _start_all(order: dict[str, Any]) -> list[dict[str, Any]]:
    from config import database

    async with database.connection():
        await asyncio.sleep(max(0.0, order["at"] - time.time()))
    started = await asyncio.gather(
        *(_start(request, UUID(order["owner_id"])) for request in order["requests"])
    )
    await database.close()
    return list(started)


async def _start(request: dict[str, Any], owner_id: UUID) -> dict[str, Any]:
    import msgspec

    from agents import actions, requests
    from config.errors import ParleyError

    try:
        asked = requests.load(msgspec.json.encode(request))
        accepted = await actions.start_run(asked, owner_id=owner_id)
    except ParleyError as error:
        return {"error": error.error_code, "status": error.status}
    return {"run_id": accepted.run_id.hex, "created": accepted.created}


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    print(json.dumps(asyncio.run(_start_all(json.load(sys.stdin)))))
