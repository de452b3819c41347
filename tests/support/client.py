"""A client as an app would write it, and the readers that tests compare."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self
from uuid import uuid4

import httpx
import jsonschema_rs

from tests.support.paths import SCHEMAS

FRAME = jsonschema_rs.Draft202012Validator(
    json.loads((SCHEMAS / "agent_run_sse_frame.schema.json").read_text())
)


@dataclass(frozen=True)
class Seen:
    """A frame as a client got it."""

    event: str
    data: dict[str, Any]
    id: int | None


class Client:
    """Bearer-authenticated HTTP to the running server."""

    def __init__(self, url: str, token: str, user: Any) -> None:
        self.url = url
        self.token = token
        self.user = user
        self.http = httpx.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=60,
            trust_env=False,
            verify=False,  # there is no TLS on loopback, and reading the certificates takes 30 ms
        )

    def close(self) -> None:
        self.http.close()

    def start(self, text: str = "练胸有什么动作？", model: str = "demo", **more: Any) -> dict[str, Any]:
        response = self.http.post("/api/v1/agent/runs", json={"model": model, "text": text} | more)
        assert response.status_code == 202, response.text
        accepted: dict[str, Any] = response.json()
        return accepted

    def outlast_claims(self) -> None:
        """Return when no claim is under way any more that began before.

        A worker reads the prompts just before it claims: a claim that began before they were changed may
        still start runs with the old ones.
        """
        self.watch(self.start("hello", enable_exercise_search=False)["run_id"])

    def watch(
        self,
        run_id: str,
        *,
        after: int | None = None,
        stop_after: int | None = None,
        validate: bool = True,
    ) -> list[Seen]:
        """All frames to the end (or the first `stop_after`), each checked against the schema."""
        headers = {} if after is None else {"Last-Event-ID": str(after)}
        seen: list[Seen] = []
        path = f"/api/v1/agent/runs/{run_id}/events"
        with self.http.stream("GET", path, headers=headers) as response:
            assert response.status_code == 200, response.read()
            for frame in read_sse(response):
                if validate:
                    FRAME.validate({"event": frame.event, "data": frame.data})
                if frame.event != "heartbeat":
                    seen.append(frame)
                if stop_after is not None and len(seen) >= stop_after:
                    break
        return seen

    def poll(self, run_id: str, *, after: int = 0, wait: float = 25) -> dict[str, Any]:
        response = self.http.get(
            f"/api/v1/agent/runs/{run_id}/events",
            params={"after": after, "wait": wait},
            headers={"Accept": "application/json"},
        )
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def run(self, run_id: str) -> dict[str, Any]:
        response = self.http.get(f"/api/v1/agent/runs/{run_id}")
        assert response.status_code == 200, response.text
        detail: dict[str, Any] = response.json()
        return detail

    def wait_for(self, run_id: str, *statuses: str, seconds: float = 30) -> dict[str, Any]:
        """The run, once it has one of the statuses."""
        until = time.monotonic() + seconds
        while (detail := self.run(run_id))["status"] not in statuses:
            assert time.monotonic() < until, f"still {detail['status']}"
            time.sleep(0.02)
        return detail

    def history(self, thread_id: str | None = None, **more: str) -> dict[str, Any]:
        params = ({"threadId": thread_id} if thread_id else {}) | more
        response = self.http.get("/api/v1/agent/history", params=params)
        assert response.status_code == 200, response.text
        day: dict[str, Any] = response.json()
        return day


def read_sse(response: httpx.Response) -> Iterator[Seen]:
    """The named events of a response, as any EventSource would cut them."""
    event, data, place = "message", list[str](), None
    for line in _lines(response):
        if not line:
            if data:
                yield Seen(event, json.loads("\n".join(data)), place)
            event, data, place = "message", [], None
        elif line.startswith("event: "):
            event = line[7:]
        elif line.startswith("data: "):
            data.append(line[6:])
        elif line.startswith("id: "):
            place = int(line[4:])


def _lines(response: httpx.Response) -> Iterator[str]:
    """The lines of a response; httpx's own would also end them at U+2028 and its like."""
    rest = ""
    for some in response.iter_text():
        *lines, rest = (rest + some).split("\n")
        yield from lines


def reply(frames: list[Seen]) -> str:
    """The text that the deltas give."""
    return "".join(frame.data["delta"] for frame in frames if frame.event == "content_delta")


@dataclass(frozen=True)
class ScriptedModel:
    """A mapping whose candidates are models of the loopback provider."""

    name: str
    endpoint_ids: tuple[int, ...]

    @classmethod
    def make(
        cls, base_url: str, models: tuple[str, ...], *, dialect: str = "openai.chat_completions"
    ) -> Self:
        from prompts.endpoints import routing
        from prompts.models import Endpoint, ModelCandidate, ModelMapping
        from prompts.wordings.staff_actions import rotate_secret

        key = f"m{uuid4().hex[:12]}"
        mapping = ModelMapping.objects.create(key=key)
        ids = []
        for position, model in enumerate(models, 1):
            endpoint = Endpoint.objects.create(
                name=f"{key}-{position}", provider="fake", base_url=base_url, dialect=dialect
            )
            rotate_secret(endpoint, "sk-test-key-of-the-suite-0123456789")
            ModelCandidate.objects.create(
                mapping=mapping, position=position, endpoint=endpoint, model=model
            )
            ids.append(endpoint.pk)
        routing.clear_cache()
        return cls(f"global:{key}", tuple(ids))
