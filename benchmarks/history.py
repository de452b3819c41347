"""How long a page of history, of threads and of a search takes through HTTP, in a seeded database.

    DATABASE_URL=postgresql:///scratch .venv/bin/python -m benchmarks.history [REQUESTS]

Run `benchmarks.seed_history` first; this starts web and worker in one process on that database and
sends REQUESTS (200) of each kind, one after the other, as the user with much and as one with 200
messages.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import django
import httpx

from benchmarks.ports import free_port
from benchmarks.seed_history import LARGE
from benchmarks.stack import PYTHON, Parts
from benchmarks.words import COMMON, RARE

_WARM: Final = 20
_SEARCHES: Final = {
    "very common": (COMMON["zh"], COMMON["en"]),
    "one character, two letters": ("我", "is"),
    "two common words": ("会议 报告", "meeting report"),
    "rare": ("江河", "wexyor"),
    "very rare": (RARE["zh"], RARE["en"]),
    "nowhere": ("不存在的词语", "nonexistentword"),
}
_HISTORY: Final = "/api/v1/agent/history"


def main(requests: int) -> None:
    print(f"{_messages():,} messages", flush=True)
    with _server() as url:
        for kind, (token, threads) in _people().items():
            headers = {"Authorization": f"Bearer {token}"}
            with httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False) as http:
                for title, ask in _questions(http, threads).items():
                    print(_line(f"{kind}: {title}", [_timed(ask) for _ in range(_WARM + requests)]))


def _questions(http: httpx.Client, threads: list[str]) -> dict[str, Callable[[], Any]]:
    """What is asked, by name; each asks something else every time where there is more than one."""
    places = cycle(threads)

    def get(path: str, **asked: str) -> Any:
        response = http.get(path, params=asked)
        response.raise_for_status()
        return response.json()

    def older() -> Any:
        thread = next(places)
        return get(_HISTORY, threadId=thread, before=get(_HISTORY, threadId=thread)["day"])

    asked: dict[str, Callable[[], Any]] = {
        "history, the newest": lambda: get(_HISTORY),
        "history, any thread": lambda: get(_HISTORY, threadId=next(places)),
        "history, blocks": lambda: get(_HISTORY, threadId=next(places), content="blocks"),
        "history, a day and the one before": older,
        "threads": lambda: get("/api/v1/agent/threads"),
    }
    for title, words in _SEARCHES.items():
        for word in words:
            asked[f"search, {title}: {word}"] = lambda word=word: get(f"{_HISTORY}/search", q=word)  # type: ignore[misc]
    return asked


def _timed(ask: Callable[[], Any]) -> float:
    since = time.perf_counter()
    ask()
    return (time.perf_counter() - since) * 1000


def _line(title: str, took: list[float]) -> str:
    ordered = sorted(took[_WARM:])
    shown = [f"p{q} {ordered[min(len(ordered) - 1, len(ordered) * q // 100)]:6.1f}" for q in (50, 99)]
    return f"  {title:<52} {'  '.join(shown)}  worst {ordered[-1]:6.1f} ms"


def _messages() -> int:
    from conversations.models import Message

    return Message.objects.count()


def _people() -> dict[str, tuple[str, list[str]]]:
    """A token and some threads of the user with much and of another."""
    from config.auth.bearer import create_api_token
    from config.auth.models import User
    from conversations.models import Thread

    users = User.objects.filter(username__startswith="history-")
    people = {"much": users.get(username=LARGE), "few": users.exclude(username=LARGE).order_by("pk")[0]}
    return {
        kind: (
            create_api_token(user, "bench", scopes=["read"])[1],
            [str(pk) for pk in Thread.objects.filter(owner=user).values_list("pk", flat=True)[:500]],
        )
        for kind, user in people.items()
    }


@contextmanager
def _server() -> Iterator[str]:
    folder = Path(tempfile.mkdtemp(prefix="parley-bench-"))
    port = free_port()
    env = {"HOST": "127.0.0.1", "PORT": str(port), "VAR_DIR": str(folder / "var")}
    try:
        with Parts(folder) as parts:
            parts.start("up", PYTHON, "manage.py", "up", env=env)
            parts.wait("up", lambda: _healthy(port))
            yield f"http://127.0.0.1:{port}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _healthy(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    os.environ.setdefault("LOG_LEVEL", "WARNING")
    django.setup()
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
