"""The files of `deploy/`, judged by the programs that read them or by those programs' own schemas."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.clients import environments
from tests.support.doc_pages import page
from tests.support.paths import ROOT

pytestmark = [pytest.mark.once, pytest.mark.timeout(300)]

DEPLOY: Final = ROOT / "deploy"
KUBERNETES: Final = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
NO_RESOURCES: Final = {"kustomization.yaml", "prometheus-adapter.yaml"}
OLDEST: Final = "1.27"
SETTINGS: Final = set(re.findall(r"`([A-Z][A-Z0-9_]+)`", page("reference/settings.md")))
SECRETS: Final = {
    "DATABASE_URL",
    "DIRECT_DATABASE_URL",
    "REDIS_URL",
    "SECRET_KEY",
    "JWT_SECRET",
    "SEALING_KEYS",
    "S3_ACCESS_KEY_ID",
    "S3_SECRET_ACCESS_KEY",
}
_JUDGE_OF_COMPOSE: Final = "import sys, compose_spec; compose_spec.PyCompose.from_json(sys.stdin.read())"
_JUDGE_OF_KUBERNETES: Final = (
    "import json, sys, kubernetes_validate\n"
    f"for one in json.load(sys.stdin): kubernetes_validate.validate(one, {OLDEST!r}, strict=True)"
)


@pytest.fixture(scope="module")
def judges() -> Path:
    """The folder of the programs of an environment with the judges."""
    try:
        return environments.python("deploy").parent
    except environments.Unavailable as reason:
        environments.missing(str(reason))


def judge(judges: Path, program: str, value: Any) -> str:
    """What the judge has against the value."""
    done = subprocess.run(
        [judges / "python", "-c", program],
        input=json.dumps(value),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stderr if done.returncode else ""


def compose() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return read


def resources() -> list[dict[str, Any]]:
    return [
        one
        for path in KUBERNETES
        if path.name not in NO_RESOURCES
        for one in yaml.safe_load_all(path.read_text())
    ]


def pods() -> list[dict[str, Any]]:
    """The pods of every Deployment and Job."""
    return [one["spec"]["template"]["spec"] for one in resources() if "template" in one["spec"]]


def named(kind: str) -> dict[str, Any]:
    return {one["metadata"]["name"]: one["spec"] for one in resources() if one["kind"] == kind}


# --- the image and compose ------------------------------------------------------------------------


def test_hadolint_has_nothing_to_say_of_the_dockerfile(judges: Path) -> None:
    done = subprocess.run(
        [judges / "hadolint", DEPLOY / "Dockerfile"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_compose_follows_its_specification(judges: Path) -> None:
    whole = compose()
    assert judge(judges, _JUDGE_OF_COMPOSE, whole) == ""
    whole["services"]["web"]["helthcheck"] = {"disable": True}
    assert "helthcheck" in judge(judges, _JUDGE_OF_COMPOSE, whole)


def test_the_names_that_compose_mentions_are_declared() -> None:
    whole = compose()
    services = whole["services"]
    assert {"caddy", "web", "worker", "beat", "migrate", "postgres", "redis", "minio"} < services.keys()
    for name, service in services.items():
        assert set(service.get("depends_on", ())) <= services.keys(), name
        assert set(service.get("networks", ())) <= whole["networks"].keys(), name
        kept = {volume.split(":")[0] for volume in service.get("volumes", ())}
        assert {one for one in kept if not one.startswith(".")} <= whole["volumes"].keys(), name


def test_only_caddy_is_reached_from_outside_and_only_caddy_names_clients() -> None:
    services = compose()["services"]
    assert [name for name, service in services.items() if "ports" in service] == ["caddy"]
    assert [name for name, service in services.items() if "front" in service["networks"]] == [
        "caddy",
        "web",
    ]
    address = services["caddy"]["networks"]["front"]["ipv4_address"]
    assert services["web"]["environment"]["TRUSTED_PROXIES"] == address


def test_every_setting_that_is_set_exists() -> None:
    example = set(re.findall(r"(?m)^#?([A-Z][A-Z0-9_]+)=", (DEPLOY / "env.example").read_text()))
    assert example - SETTINGS == {"POSTGRES_PASSWORD"}
    for name, service in compose()["services"].items():
        if service["image"] == "parley":
            assert service["environment"].keys() <= SETTINGS, name
    units = "\n".join(path.read_text() for path in (DEPLOY / "systemd").iterdir())
    assert set(re.findall(r"(?m)^Environment=([A-Z_]+)=", units)) <= SETTINGS
    assert {literal.partition("=")[0] for literal in literals()} <= SETTINGS


# --- Kubernetes -----------------------------------------------------------------------------------


def kustomization() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((DEPLOY / "kubernetes" / "kustomization.yaml").read_text())
    return read


def literals() -> list[str]:
    return [literal for made in kustomization()["configMapGenerator"] for literal in made["literals"]]


def test_every_resource_follows_the_schema_of_its_kind(judges: Path) -> None:
    every = resources()
    assert judge(judges, _JUDGE_OF_KUBERNETES, every) == ""
    every[0]["spec"]["replica"] = 1
    assert "replica" in judge(judges, _JUDGE_OF_KUBERNETES, every)


def test_every_file_of_resources_is_in_the_kustomization() -> None:
    assert set(kustomization()["resources"]) | NO_RESOURCES == {path.name for path in KUBERNETES}


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl here")
def test_kustomize_renders_them_and_each_is_what_it_was(judges: Path) -> None:
    command = ["kubectl", "kustomize", str(DEPLOY / "kubernetes")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    rendered = list(yaml.safe_load_all(done.stdout))
    assert judge(judges, _JUDGE_OF_KUBERNETES, rendered) == ""
    assert {one["metadata"]["namespace"] for one in rendered} == {"parley"}
    assert len(rendered) == len(resources()) + 1  # the ConfigMap
    [made] = [one["metadata"]["name"] for one in rendered if one["kind"] == "ConfigMap"]
    sources = [
        container["envFrom"][0]["configMapRef"]["name"]
        for one in rendered
        if "template" in one.get("spec", {})
        for container in one["spec"]["template"]["spec"]["containers"]
    ]
    assert sources == [made] * 4


def test_no_secret_is_in_a_file_and_every_pod_refers_to_it() -> None:
    assert "Secret" not in {one["kind"] for one in resources()}
    assert not SECRETS & {literal.partition("=")[0] for literal in literals()}
    for pod in pods():
        [container] = pod["containers"]
        assert {"secretRef": {"name": "parley"}} in container["envFrom"]
        assert "env" not in container


def test_pods_have_no_rights_that_they_do_not_need() -> None:
    assert len(pods()) == 4
    for pod in pods():
        [container] = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_what_selects_pods_finds_them() -> None:
    deployments, labels = named("Deployment"), {"app.kubernetes.io/name": "web"}
    assert named("Service")["web"]["selector"] == labels
    for name, budget in named("PodDisruptionBudget").items():
        assert budget["selector"] == deployments[name]["selector"]
    for name, deployment in deployments.items():
        found = deployment["template"]["metadata"]["labels"]
        assert found == deployment["selector"]["matchLabels"] == {"app.kubernetes.io/name": name}
    scaled = named("HorizontalPodAutoscaler")["worker"]
    assert scaled["scaleTargetRef"]["name"] in deployments
    asked = {metric["external"]["metric"]["name"] for metric in scaled["metrics"]}
    rules = yaml.safe_load((DEPLOY / "kubernetes" / "prometheus-adapter.yaml").read_text())
    assert asked == {rule["name"]["as"] for rule in rules["rules"]["external"]}
    exported = re.findall(r"`(parley_\w+)`", page("operating/watching.md"))
    for rule in rules["rules"]["external"]:
        assert rule["seriesQuery"].removesuffix("_bucket") in exported


# --- systemd --------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze here")
def test_systemd_has_nothing_to_say_of_the_units(tmp_path: Path) -> None:
    program = tmp_path / "parley"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)

    def verify(*more: str) -> str:
        units = tmp_path / f"units{len(more)}"
        units.mkdir()
        for path in (DEPLOY / "systemd").iterdir():
            text = path.read_text().replace("/opt/parley/bin/parley", str(program))
            (units / path.name.replace("@.", "@8000.")).write_text("\n".join([text, *more]))
        names = sorted(str(path) for path in units.iterdir())
        command = ["systemd-analyze", "verify", "--man=no", *names]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        return "\n".join(line for line in done.stderr.splitlines() if str(units) in line)

    assert verify() == ""
    assert "Wrong" in verify("[Wrong]")
