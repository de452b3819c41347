"""How fast staff's pages are, through HTTP, on a large database: every list of admin, in every order and
by every filter that it offers, searched and to its last page, conversations, runs, `/chat/`.

    .venv/bin/python -m benchmarks.admin [RUNS] [WORD]

RUNS (500,000) as for `benchmarks.metrics`, and what `benchmarks.seed_admin` adds. A DATABASE_URL that
holds runs already is measured as it is, so that a second sitting need not seed. WORD keeps to the pages
whose name holds it. What misses the goal is marked, and listed at the end.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import urlencode
from uuid import uuid4

import httpx

from benchmarks.history import _server
from benchmarks.metrics import say
from benchmarks.scratch import scratch_database

GOAL_MS: Final = 300.0
_REQUESTS: Final = 10
_WARM: Final = 1
_PASSWORD: Final = "a long enough passphrase"
_HREF: Final = re.compile(r'href="\?([^"#]+)"')
_SELECT: Final = re.compile(r'<select[^>]*\bname="([^"]+)"[^>]*>(.*?)</select>', re.S)
_OPTION: Final = re.compile(r'<option[^>]*\bvalue="([^"]+)"')
_TYPED: Final[dict[str, tuple[str, ...]]] = {
    "user": ("seed-", "person-777"),
    "model": ("model-1", "no-such-model"),
    "prompt_version": ("103", "coach v4", "coach v999"),
    "error_code": ("any", "deadline_exceeded", "no_such_code"),
    "dialect": ("ag-ui", "none"),
    "feedback": ("good", "bad", "comment"),
    "status": ("failed", "completed", "queued"),
}
_WORDS: Final = ("stiff", "back sitting", "nowhereword", "seed-", "person-77", "coach", "thing 7")


def main(runs: int, word: str) -> None:
    with scratch_database():
        from benchmarks.seed_admin import seed as seed_rest
        from benchmarks.seed_metrics import seed
        from conversations.models import Interrupt, Run

        if not Run.objects.exists():
            seed(runs, say)
        if not Interrupt.objects.exists():
            seed_rest(say)
        username, token = _owner()
        pages = dict(_pages())
        with _server() as url, _signed_in(url, username) as browser:
            walk = _Walk(browser, word)
            for name, path in pages.items():
                walk.list(name, path)
            for name, path in _others():
                walk.page(name, path)
            _api(url, token, walk)
            walk.sum_up()


class _Walk:
    """Measures pages and keeps those that took too long."""

    def __init__(self, browser: httpx.Client, word: str) -> None:
        self._browser = browser
        self._word = word
        self._seen: set[str] = set()
        self._missed: list[str] = []
        self._count = 0
        self._worst = 0.0

    def list(self, name: str, path: str) -> None:
        """A list of admin: as it opens, and everything that it offers."""
        if self._word and self._word not in name:
            return
        answer = self._browser.get(path)
        if answer.status_code != 200:
            say(f"  {name}: {answer.status_code}")
            return
        self.page(name, path)
        for query in _offered(answer.text):
            self.page(f"{name} ?{query}", f"{path}?{query}")

    def page(self, name: str, path: str, http: httpx.Client | None = None) -> None:
        if (self._word and self._word not in name) or path in self._seen:
            return
        self._seen.add(path)
        took, size = [], 0
        for number in range(_WARM + _REQUESTS):
            since = time.perf_counter()
            answer = (http or self._browser).get(path)
            if number >= _WARM:
                took.append((time.perf_counter() - since) * 1000)
            if answer.status_code != 200:
                say(f"! {name}: {answer.status_code}")
                self._missed.append(f"{name}: {answer.status_code}")
                return
            size = len(answer.content)
            if took and took[0] > 5_000:
                break
        took.sort()
        p50, p95 = took[len(took) // 2], took[min(len(took) - 1, len(took) * 95 // 100)]
        line = f"{name[:100]:<100} p50 {p50:7.1f}  p95 {p95:7.1f} ms  {size >> 10:4d} KiB"
        say(("! " if p95 > GOAL_MS else "  ") + line)
        self._count += 1
        self._worst = max(self._worst, p95)
        if p95 > GOAL_MS:
            self._missed.append(line)

    def sum_up(self) -> None:
        say(f"{self._count} pages, worst p95 {self._worst:.0f} ms, {len(self._missed)} over the goal")
        for line in self._missed:
            say(f"! {line}")


def _offered(page: str) -> Iterator[str]:
    """The queries that a list leads to: its links, its selects, its text filters, search, last page."""
    for found in dict.fromkeys(_HREF.findall(page)):
        query = found.replace("&amp;", "&")
        if not query.startswith("_popup"):
            yield query
    for name, options in _SELECT.findall(page):
        if name not in ("action", "language"):
            for value in dict.fromkeys(_OPTION.findall(options)):
                yield urlencode({name: value})
    typed = set(re.findall(r'<input[^>]*\bname="([^"]+)"', page))
    for name, values in _TYPED.items():
        if name in typed:
            yield from (urlencode({name: value}) for value in values)
    yield from _days(typed)
    if "q" in typed or 'id="searchbar"' in page:
        yield from (urlencode({"q": word}) for word in (*_WORDS, uuid4().hex))
    if "infinite" in page or "Next" in page or "?p=" in page:
        yield from ("p=2", "p=50", "p=1000")


def _days(typed: set[str]) -> Iterator[str]:
    """A range of days, recent and long ago."""
    today = datetime.now(UTC).date()
    for name in typed:
        if name.endswith("_from"):
            to = name.removesuffix("_from") + "_to"
            for ago in (1, 60):
                begin, end = today - timedelta(days=ago + 7), today - timedelta(days=ago)
                yield urlencode({name: begin.isoformat(), to: end.isoformat()})


def _pages() -> Iterator[tuple[str, str]]:
    """Every list that is registered."""
    from django.contrib import admin
    from django.urls import reverse

    admin.autodiscover()
    for model in admin.site._registry:
        meta = model._meta
        path = reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist")
        yield f"{meta.app_label}.{meta.model_name}", path


def _others() -> Iterator[tuple[str, str]]:
    """Pages of one thing, and those that are no list."""
    from benchmarks.seed_admin import LONG_THREAD
    from conversations.models import Run, Thread
    from prompts.models import Prompt

    yield "index", "/admin/"
    yield "runners", "/admin/agents/runnerbinding/runners/"
    thread = Thread.objects.exclude(pk=LONG_THREAD).order_by("-updated_at")[0].pk
    base = "/admin/conversations"
    yield "a conversation", f"{base}/thread/{thread}/change/"
    yield "a conversation of 1,000 turns", f"{base}/thread/{LONG_THREAD}/change/"
    yield "its beginning", f"{base}/thread/{LONG_THREAD}/change/?before=150"
    runs = Run.objects.order_by("-created_at")
    yield "a run", f"{base}/run/{runs.filter(status='completed')[0].pk}/change/"
    yield "a failed run", f"{base}/run/{runs.filter(status='failed')[0].pk}/change/"
    yield "a prompt", f"/admin/prompts/prompt/{Prompt.objects.order_by('pk')[0].pk}/change/"
    for status in ("failed", "cancelled"):
        query = {"status": status, "model": "model-2", "user": "seed-"}
        yield f"runs by three filters, {status}", f"{base}/run/?{urlencode(query)}"
        yield f"threads by three filters, {status}", f"{base}/thread/?{urlencode(query)}"
    yield "chat", "/chat/"


def _api(url: str, token: str, walk: _Walk) -> None:
    """What `/chat/` asks for as an account with many conversations."""
    headers = {"Authorization": f"Bearer {token}"}
    from benchmarks.seed_admin import LONG_THREAD

    with httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False) as http:
        threads = "/api/v1/agent/threads"
        walk.page("chat: conversations", f"{threads}?limit=30", http)
        walk.page("chat: a conversation of 1,000 turns", f"{threads}/{LONG_THREAD}?reasoning=true", http)
        walk.page("chat: search", "/api/v1/agent/history/search?q=stiff", http)


def _owner() -> tuple[str, str]:
    """A superuser who signs in, and a token of the account that has the long conversation."""
    from benchmarks.seed_admin import LONG_THREAD
    from config.auth.bearer import create_api_token
    from config.auth.models import User
    from conversations.models import Thread

    user = User.objects.create_superuser(f"bench-{uuid4().hex[:8]}", password=_PASSWORD)
    owner = Thread.objects.get(pk=LONG_THREAD).owner
    return user.username, create_api_token(owner, "bench", scopes=["run", "read"])[1]


@contextmanager
def _signed_in(url: str, username: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, timeout=120, trust_env=False, follow_redirects=True) as browser:
        login = "/admin/login/"
        found = re.search(r'csrfmiddlewaretoken" value="(\w+)"', browser.get(login).text)
        assert found
        given = {"csrfmiddlewaretoken": found[1], "username": username, "password": _PASSWORD}
        browser.post(login, data=given, headers={"Referer": url + login}).raise_for_status()
        yield browser


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 500_000,
        sys.argv[2] if len(sys.argv) > 2 else "",
    )
