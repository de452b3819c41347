"""How fast the analysts' and staff's pages are, through HTTP, on a seeded database.

    .venv/bin/python -m benchmarks.metrics [RUNS]

RUNS (500,000: with them 1,000,000 messages and 10,000,000 events over ninety days) are written into a
scratch PostgreSQL, added up by `manage.py rollup`, and asked for: every sheet over 7, 30 and 90 days,
the pages of admin, exports with the server's memory beside them, how soon a run is in the numbers, how
soon a changed prompt is in a run. DATABASE_URL names another database: a superuser's, empty, or filled
by this before; then only today is added up again. No answer is kept between two requests, so asking the
same thing again is as dear as the first time.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final
from uuid import uuid4

import httpx
import psutil

from benchmarks.history import _server
from benchmarks.scratch import scratch_database

_REQUESTS: Final = 30
_WARM: Final = 2
_ROUNDS: Final = 3
_PASSWORD: Final = "a long enough passphrase"
_ADMIN: Final = "/admin/conversations"
_EXPORTS: Final = (("messages", "csv"), ("messages", "jsonl"), ("messages", "parquet"), ("runs", "csv"))
_FOOT: Final = 2**22  # bytes in which a Parquet file's foot lies
_SHEETS: Final[tuple[tuple[str, dict[str, str]], ...]] = (
    ("overview", {}),
    ("overview", {"compare": "previous"}),
    ("timeseries", {"bucket": "day"}),
    ("timeseries", {"bucket": "week"}),
    ("timeseries", {"bucket": "day", "group_by": "model"}),
    ("timeseries", {"bucket": "day", "group_by": "prompt_version"}),
    ("timeseries", {"bucket": "day", "group_by": "dialect"}),
    ("timeseries", {"bucket": "day", "group_by": "runner"}),
    ("timeseries", {"bucket": "week", "group_by": "prompt_version"}),
    ("timeseries", {"bucket": "day", "group_by": "dialect", "model": "global:model-1"}),
    ("stages", {}),
    ("tools", {}),
    ("models", {}),
    ("models", {"group_by": "dialect"}),
    ("prompts", {}),
    ("users", {}),
    ("runs", {}),
)


def main(runs: int) -> None:
    with scratch_database():
        _fill(runs)
        _a_round()
        token, username = _staff()
        with _server() as url:
            headers = {"Authorization": f"Bearer {token}"}
            with httpx.Client(base_url=url, headers=headers, timeout=120, trust_env=False) as http:
                _sheets(http)
                _pages(url, username)
                _export(http, url)
                _freshness(http)
                _prompt_to_effect(http)


def say(line: str) -> None:
    print(line, flush=True)


def _fill(runs: int) -> None:
    from benchmarks.seed_metrics import EVENTS_A_RUN, seed
    from conversations.models import Run

    if found := Run.objects.count():
        say(f"{2 * found:,} messages are there")
        _roll_up("--from", datetime.now(UTC).date().isoformat())
        return
    say(f"{2 * runs:,} messages, {EVENTS_A_RUN * runs:,} events")
    seed(runs, say)
    took = _roll_up()
    say(f"  added up in {took:.0f} s: {runs / took:,.0f} runs/s")


def _roll_up(*options: str) -> float:
    from django.core.management import call_command

    since = time.monotonic()
    with open("/dev/null", "w") as nowhere:
        call_command("rollup", *options, stdout=nowhere)
    return time.monotonic() - since


def _a_round() -> None:
    """What serving processes do every quarter of a minute: the newest hours of today are stale."""
    from config import database
    from conversations.metrics.rollups import RollUpResult, roll_up

    took = []
    for _ in range(_ROUNDS):
        since = time.monotonic()
        done = database.run_sync(roll_up())
        assert isinstance(done, RollUpResult), "another process adds up meanwhile"
        took.append(time.monotonic() - since)
    say(f"  a round of adding up takes {min(took):.2f} to {max(took):.2f} s")


def _staff() -> tuple[str, str]:
    from config.auth.bearer import create_api_token
    from config.auth.models import User

    user = User.objects.create_superuser(f"bench-{uuid4().hex[:8]}", password=_PASSWORD)
    return create_api_token(user, "bench", scopes=["run", "read", "admin"])[1], user.username


def _days(days: int) -> dict[str, str]:
    today = datetime.now(UTC).date()
    return {"from": (today - timedelta(days=days - 1)).isoformat(), "to": today.isoformat()}


def _sheets(http: httpx.Client) -> None:
    for days in (7, 30, 90):
        for sheet, asked in _SHEETS:
            name = " ".join([sheet, *asked.values()])
            _measured(f"{name}, {days} days", partial(_get, http, sheet, **_days(days), **asked))
    hourly = partial(_get, http, "timeseries", **_days(7), bucket="hour")
    _measured("timeseries hour, 7 days", hourly)


def _get(http: httpx.Client, sheet: str, **asked: str) -> Any:
    answer = http.get(f"/api/v1/metrics/{sheet}", params=asked)
    answer.raise_for_status()
    return answer.json()


def _measured(name: str, ask: Callable[[], Any]) -> None:
    took = []
    for number in range(_WARM + _REQUESTS):
        since = time.perf_counter()
        ask()
        if number >= _WARM:
            took.append((time.perf_counter() - since) * 1000)
    took.sort()
    p50, p95 = took[len(took) // 2], took[min(len(took) - 1, len(took) * 95 // 100)]
    say(f"  {name:<48} p50 {p50:7.1f}  p95 {p95:7.1f}  worst {took[-1]:7.1f} ms")


def _pages(url: str, username: str) -> None:
    from conversations.models import Thread

    thread_id = Thread.objects.order_by("?").values_list("pk", flat=True)[0]
    with httpx.Client(base_url=url, timeout=120, trust_env=False, follow_redirects=True) as browser:
        login = "/admin/login/"
        found = re.search(r'csrfmiddlewaretoken" value="(\w+)"', browser.get(login).text)
        assert found
        given = {"csrfmiddlewaretoken": found[1], "username": username, "password": _PASSWORD}
        browser.post(login, data=given, headers={"Referer": url + login}).raise_for_status()

        def page(path: str) -> None:
            browser.get(path).raise_for_status()

        for name, path in (
            ("admin: metrics, 7 days", f"{_ADMIN}/metrics/"),
            ("admin: metrics, 90 days", f"{_ADMIN}/metrics/?from={_days(90)['from']}"),
            ("admin: runs", f"{_ADMIN}/run/"),
            ("admin: failed runs", f"{_ADMIN}/run/?status=failed"),
            ("admin: conversations", f"{_ADMIN}/thread/"),
            ("admin: a conversation", f"{_ADMIN}/thread/{thread_id}/change/"),
        ):
            _measured(name, partial(page, path))


def _export(http: httpx.Client, url: str) -> None:
    port = int(url.rpartition(":")[2])
    for sheet, kind in _EXPORTS:
        with _peak_of(port) as memory:
            since, lines, size, tail = time.perf_counter(), 0, 0, bytearray()
            with http.stream(
                "GET", f"/api/v1/metrics/{sheet}", params=_days(91) | {"format": kind}
            ) as answer:
                answer.raise_for_status()
                for piece in answer.iter_bytes():
                    lines += piece.count(b"\n")
                    size += len(piece)
                    if kind == "parquet":
                        tail += piece
                        del tail[:-_FOOT]
            took = time.perf_counter() - since
        rows = _rows_of(kind, lines, tail)
        before, peak = memory
        grown = f"RSS {before:.0f} → at most {peak:.0f} MiB"
        rate = f"{took:.1f} s, {rows / took:,.0f} rows/s, {size >> 20} MiB"
        say(f"  export of {rows:,} {sheet} as {kind}: {rate}; {grown}")


def _rows_of(kind: str, lines: int, tail: bytearray) -> int:
    """How many rows a file has; that of Parquet says so in its foot."""
    if kind != "parquet":
        return lines - (kind == "csv")
    from pyarrow import BufferReader, parquet

    magic = b"PAR1"
    return int(parquet.read_metadata(BufferReader(bytes(magic + tail))).num_rows)


@contextmanager
def _peak_of(port: int) -> Iterator[list[float]]:
    """The serving process's memory in MiB: before, and at most while something is done."""
    pid = next(
        one.pid
        for one in psutil.net_connections("tcp")
        if one.status == psutil.CONN_LISTEN and one.laddr and one.laddr.port == port and one.pid
    )
    serving, done = psutil.Process(pid), threading.Event()
    found = [serving.memory_info().rss / 2**20] * 2

    def watch() -> None:
        while not done.wait(0.05):
            found[1] = max(found[1], serving.memory_info().rss / 2**20)

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield found
    finally:
        done.set()
        watching.join()


def _freshness(http: httpx.Client) -> None:
    asked = _days(1) | {"runner": "demo"}
    took = []
    for _ in range(_ROUNDS):
        before = _get(http, "overview", **asked)["rows"][0]["completed"]
        _ran(http)
        since = time.monotonic()
        while _get(http, "overview", **asked)["rows"][0]["completed"] == before:
            if time.monotonic() - since > 120:
                raise RuntimeError("the run is not in the numbers after two minutes")
            time.sleep(0.25)
        took.append(time.monotonic() - since)
    shown = ", ".join(f"{one:.1f}" for one in took)
    say(f"  a run is in the numbers {shown} s after its end")


def _prompt_to_effect(http: httpx.Client) -> None:
    """From the answer to a PUT of an active prompt to the acceptance of the first run that uses it."""
    prompts = http.get("/api/v1/llm/prompts", params={"is_active": "true"}).json()
    prompt = next(one for one in _items(prompts) if one["prompt_type"] == "agent_system")
    path = f"/api/v1/llm/prompts/{prompt['id']}"
    wanted = {"name": prompt["name"], "content": f"{prompt['content']}\n({uuid4().hex[:6]})"}
    before = _versions(http, _ran(http))
    http.put(path, json=wanted | {"prompt_type": "agent_system"}).raise_for_status()
    since, runs, accepted = time.monotonic(), 1, 0.0
    while _versions(http, _ran(http)) == before:
        runs, accepted = runs + 1, time.monotonic() - since
        if accepted > 60:
            raise RuntimeError("the prompt has no effect after a minute")
    say(f"  prompt change to effect: run {runs} after it has it, accepted {accepted:.2f} s later")


def _items(page: Any) -> list[dict[str, Any]]:
    found = page.get("data", page) if isinstance(page, dict) else page
    return found if isinstance(found, list) else found["items"]


def _versions(http: httpx.Client, run_id: str) -> list[int]:
    return [one["number"] for one in http.get(f"/api/v1/agent/runs/{run_id}").json()["prompt_versions"]]


def _ran(http: httpx.Client) -> str:
    """A run of the offline model, once it has ended."""
    answer = http.post("/api/v1/agent/runs", json={"model": "demo", "text": "a back exercise"})
    answer.raise_for_status()
    run_id: str = answer.json()["run_id"]
    while http.get(f"/api/v1/agent/runs/{run_id}").json()["status"] in ("queued", "running"):
        time.sleep(0.05)
    return run_id


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500_000)
