"""The page of metrics in admin: the numbers of REST, each with a link to the runs behind it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client as Pages

from tests.support import metrics_seed
from tests.support.metrics_seed import RANGE, Seeded

pytestmark = pytest.mark.once

PATH = "/admin/conversations/metrics/"


@pytest.fixture
def seeded(database: None) -> Iterator[Seeded]:
    made = metrics_seed.seed()
    yield made
    metrics_seed.forget(made)


@pytest.fixture
def pages() -> Pages:
    """Signed in as an analyst."""
    user: Any = get_user_model().objects.create(username=f"analyst-{uuid4().hex[:8]}", is_staff=True)
    names = ("view_metrics", "view_run")
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    found = Pages()
    found.force_login(user)
    return found


def text(pages: Pages, **asked: str) -> str:
    answer = pages.get(PATH, asked)
    assert answer.status_code == 200
    return html.unescape(answer.content.decode())


def test_the_page_says_what_was_counted_by_hand(pages: Pages, seeded: Seeded) -> None:
    shown = text(pages, model=seeded.model, bucket="day", **RANGE)
    cards = dict(re.findall(r"<span>([^<]+)</span>\s*<strong>([^<]+)</strong>", shown))
    assert cards["Runs"] == "7"
    assert cards["Success rate"] == "60.0%"
    assert cards["Active users"] == "2"
    assert cards["Turns a conversation"] == "1.75"
    assert cards["Duration p95"] == "5,087 ms"
    assert cards["Feedback score"] == "0.33"
    for said in ("gym.search", "provider_error", seeded.ada.username, f"coach v{seeded.old % 100}"):
        assert said in shown
    assert '"data": [2.0, 1.0]' in shown  # completed, by day


def test_every_link_opens_the_runs_that_were_counted(pages: Pages, seeded: Seeded) -> None:
    shown = text(pages, model=seeded.model, bucket="day", **RANGE)
    row = re.search(r"<tr><td>provider_error</td><td><a href=\"([^\"]+)\">1</a>", shown)
    assert row
    assert listed(pages, row[1]) == {seeded.runs[2].pk.hex[-8:]}
    days = re.findall(r"<td><a href=\"([^\"]+)\">0[56] Jan</a></td>", shown)
    first, second = (listed(pages, link) for link in days[:2])
    assert first == {run.pk.hex[-8:] for run in seeded.runs[:5]}
    assert second == {run.pk.hex[-8:] for run in seeded.runs[5:]}


def listed(pages: Pages, link: str) -> set[str]:
    """The short ids of the runs that admin lists at a link."""
    answer = pages.get(link)
    assert answer.status_code == 200, link
    found = re.findall(r"/run/([0-9a-f-]{36})/change/", answer.content.decode())
    return {UUID(one).hex[-8:] for one in found}


@pytest.mark.parametrize("group", ["model", "prompt_version", "dialect", "runner"])
def test_charts_are_drawn_by_every_group(pages: Pages, seeded: Seeded, group: str) -> None:
    shown = text(pages, model=seeded.model, group_by=group, **RANGE)
    names = {"model": seeded.model, "prompt_version": "coach v", "dialect": "ag-ui", "runner": "demo"}
    drawn = re.findall(r"data-value=\"(\{.*?\})\" data-options", shown)
    assert any(f'"label": "{names[group]}' in one for one in drawn)


def test_wrong_input_is_said_and_the_usual_page_is_shown(pages: Pages) -> None:
    assert "from must be before to" in text(pages, **{"from": "2026-02-01", "to": "2026-01-01"})


def test_who_may_not_see_metrics_does_not_see_the_page() -> None:
    user: Any = get_user_model().objects.create(username=f"other-{uuid4().hex[:8]}", is_staff=True)
    found = Pages()
    found.force_login(user)
    assert found.get(PATH).status_code == 403
    assert PATH not in found.get("/admin/").content.decode()
