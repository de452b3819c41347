"""The page of metrics in a real Chromium."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.visits import Visit
from tests.support import metrics_seed
from tests.support.metrics_seed import Seeded

PATH = "/admin/conversations/metrics/"


@pytest.fixture
def seeded(database: None) -> Iterator[Seeded]:
    made = metrics_seed.seed()
    yield made
    metrics_seed.forget(made)


def test_a_chart_is_drawn_and_a_click_on_it_opens_its_runs(
    visit: Visit,
    seeded: Seeded,
) -> None:
    page = visit.go(
        f"{PATH}?from=2026-01-05&to=2026-01-06&model={seeded.model}&bucket=day&compare=previous"
    )
    canvas = page.locator("canvas.chart").first
    expect(canvas).to_be_visible()
    drawn = "canvas => Chart.getChart(canvas).data.datasets.map(one => one.data)"
    assert canvas.evaluate(drawn)[0] == [2, 1]
    visit.picture("metrics")
    page.get_by_text("As a table").first.click()
    visit.picture("metrics-table")
    box = canvas.bounding_box()
    assert box
    page.mouse.click(box["x"] + box["width"] * 0.3, box["y"] + box["height"] / 2)
    page.wait_for_url("**/admin/conversations/run/**")
    assert "created_at__gte=2026-01-05" in page.url
