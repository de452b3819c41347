"""Alerts and dashboards: judged by Prometheus's own program, and against what /metrics really says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from config import database
from conversations.metrics import rollups
from tests.conftest import Server
from tests.support import metrics_seed
from tests.support.doc_pages import page
from tests.support.paths import ROOT
from tests.support.product import MODULES

pytestmark = pytest.mark.once

RULES: Final = ROOT / "deploy" / "prometheus"
BOARD: Final = json.loads((ROOT / "deploy" / "grafana" / "operations.json").read_text())
ALERTS: Final = [
    rule
    for group in yaml.safe_load((RULES / "alerts.yml").read_text())["groups"]
    for rule in group["rules"]
]
TARGETS: Final = [(one["title"], target["expr"]) for one in BOARD["panels"] for target in one["targets"]]
QUERIES: Final = [(rule["alert"], rule["expr"]) for rule in ALERTS] + TARGETS
OF_PROMETHEUS: Final = {"up", "job", "instance", "le"}
needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed (Debian: prometheus)"
)
_NAME: Final = re.compile(r"\b(?:parley|process)_[a-z_]+\b|\bup\b")
_LABELS: Final = re.compile(r"(?:by|without|on) \(([^)]*)\)|(\w+)(?:=~|!~|!=|=)\"")


def promtool(*arguments: str | Path) -> str:
    done = subprocess.run(
        ["promtool", *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def exported(server: Server) -> dict[str, set[str]]:
    """What a scrape finds while there is some of everything: names of series, each with its labels."""
    from django.conf import settings

    seeded = metrics_seed.seed()
    database.run_sync(rollups.roll_up())
    settings.METRICS_TOKEN = "of this test"
    try:
        answer = httpx.get(
            f"{server.url}/metrics", headers={"Authorization": "Bearer of this test"}, trust_env=False
        )
    finally:
        settings.METRICS_TOKEN = ""
        metrics_seed.forget(seeded)
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    assert len(found) > 30
    return found


@needs_promtool
def test_promtool_has_nothing_to_say_of_the_alerts_and_the_scrape_job() -> None:
    promtool("check", "rules", "--lint=all", "--lint-fatal", RULES / "alerts.yml")
    promtool("check", "config", "--syntax-only", RULES / "prometheus.yml")


@needs_promtool
def test_every_alert_fires_on_what_it_is_for_and_not_before() -> None:
    files = sorted(RULES.glob("*_test.yml"))
    assert promtool("test", "rules", *files).count("SUCCESS") == len(files) == 2
    fired: set[str] = set()
    quiet: set[str] = set()
    for path in files:
        for test in yaml.safe_load(path.read_text())["tests"]:
            for case in test["alert_rule_test"]:
                (fired if case.get("exp_alerts") else quiet).add(case["alertname"])
    assert fired == quiet == {rule["alert"] for rule in ALERTS}


@needs_promtool
def test_prometheus_reads_every_query_of_the_dashboard(tmp_path: Path) -> None:
    written = [
        {"record": f"parley:panel{number}", "expr": _without_variables(query)}
        for number, (_, query) in enumerate(TARGETS)
    ]
    rules = tmp_path / "panels.yml"
    rules.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": written}]}))
    promtool("check", "rules", rules)


def _without_variables(query: str) -> str:
    for variable, value in (("$__rate_interval", "5m"), ("$model", ".*"), ("$job", "parley")):
        query = query.replace(variable, value)
    assert "$" not in query
    return query


@pytest.mark.parametrize(("title", "query"), QUERIES)
def test_a_query_names_only_series_and_labels_that_are_exported(
    title: str, query: str, exported: dict[str, set[str]]
) -> None:
    names = set(_NAME.findall(query))
    assert names, title
    assert names - OF_PROMETHEUS - exported.keys() == set()
    labels = {
        label.strip()
        for listed, matched in _LABELS.findall(query)
        for label in (listed or matched).split(",")
        if label.strip()
    }
    assert labels - OF_PROMETHEUS - set().union(*(exported.get(name, set()) for name in names)) == set()


def test_the_variables_of_the_dashboard_name_what_is_exported(exported: dict[str, set[str]]) -> None:
    asked = [one["query"]["query"] for one in BOARD["templating"]["list"][1:]]
    for query in asked:
        series, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", query).groups()  # type: ignore[union-attr]
        assert label in exported[series] | OF_PROMETHEUS


def test_panels_have_places_of_their_own() -> None:
    taken: dict[tuple[int, int], Any] = {}
    for panel in BOARD["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        for x in range(at["x"], at["x"] + at["w"]):
            for y in range(at["y"], at["y"] + at["h"]):
                assert taken.setdefault((x, y), panel["id"]) == panel["id"]
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])


def test_each_alert_has_a_chapter_that_says_what_to_do() -> None:
    text = page("operating/incidents.md")
    chapters = re.findall(r"^## (Parley\w+)\n\n(.+?)(?=\n## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert [name for name, _ in chapters] == [rule["alert"] for rule in ALERTS]
    severities = {rule["alert"]: rule["labels"]["severity"] for rule in ALERTS}
    for name, chapter in chapters:
        means, look, do = re.findall(r"^\*\*(Means|Look|Do)\*\*( \(\w+\))?:", chapter, re.MULTILINE)
        assert (means[0], look[0], do[0]) == ("Means", "Look", "Do"), name
        assert means[1] == f" ({severities[name]})", name
    for rule in ALERTS:
        address = rule["annotations"]["runbook_url"]
        assert address.endswith(f"/operating/incidents/#{rule['alert'].lower()}")


def test_the_log_lines_of_the_guide_are_there() -> None:
    code = "\n".join(path.read_text() for path in MODULES)
    named = [
        line
        for look in re.findall(
            r"\*\*Look\*\*:(.+?)\*\*Do\*\*", page("operating/incidents.md"), re.DOTALL
        )
        for line in re.findall(r"`([a-z]+ [a-z :]+)`", look)
    ]
    assert len(named) >= 8
    assert [line for line in named if f'"{line}"' not in code] == []
