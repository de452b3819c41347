"""`manage.py doctor` where Parley itself would not start: that is its purpose."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import ROOT

pytestmark = pytest.mark.once

HUSH = "hush-hush-1234"
NOWHERE = f"postgresql://me:{HUSH}@127.0.0.1:1/nowhere"


def test_every_refused_setting_is_named_and_the_rest_is_looked_at(tmp_path: Path) -> None:
    code, told = _doctor(
        tmp_path,
        PORT="eighty",
        DATABASE_URL=f"mysql://me:{HUSH}@h/parley",
        RUN_ATTEMPTS="7",
        S3_ACCESS_KEY_ID="alone",
        ATTACHMENT_STORAGE="s3",
        JWT_JWKS_URL="https://issuer.invalid/keys",
        SEALING_KEYS=HUSH,
        REDIS_URL="6379",
        LOG_LEVEL="loud",
    )
    faults = {one["thing"]: one for one in told["findings"] if one["state"] == "fault"}
    assert {"PORT", "DATABASE_URL", "RUN_ATTEMPTS", "JWT_ISSUERS", "SEALING_KEYS", "LOG_LEVEL"} <= set(
        faults
    )
    assert {"S3_ACCESS_KEY_ID", "ATTACHMENT_STORAGE"} & set(faults)  # the latter without the extra
    assert all(one["fix"] for one in faults.values())
    assert "not looked at" in faults["server"]["text"]
    assert code == 1
    texts = {one["thing"]: one["text"] for one in told["findings"]}
    assert texts["files"].startswith("not looked at: ")
    assert texts["Redis"] == texts["broker"].replace(", CELERY_BROKER_URL", "")
    assert texts["scanner"] == "none: files are not scanned"


def test_no_database_and_no_broker_are_faults_and_nothing_waits_long(tmp_path: Path) -> None:
    code, told = _doctor(tmp_path, DATABASE_URL=NOWHERE, REDIS_URL=f"redis://:{HUSH}@127.0.0.1:1/0")
    states = {one["thing"]: one["state"] for one in told["findings"]}
    assert (code, states["server"], states["Redis"]) == (1, "fault", "fault")
    assert states["endpoints"] == "warning"


@pytest.mark.parametrize("content", ["{", "[]", '{"SECRET_KEY": 1}'])
def test_a_file_of_keys_that_cannot_be_used_is_named_and_left_as_it_is(
    tmp_path: Path, content: str
) -> None:
    (tmp_path / "keys.json").write_text(content)
    code, told = _doctor(tmp_path, DATABASE_URL=NOWHERE)
    first = told["findings"][0]
    assert (code, first["thing"], first["state"]) == (1, "VAR_DIR", "fault")
    assert str(tmp_path / "keys.json") in first["text"]
    assert (tmp_path / "keys.json").read_text() == content
    done = _run(tmp_path, "check", DATABASE_URL=NOWHERE)
    assert (done.returncode, done.stderr.count("\n"), "keys.json" in done.stderr) == (1, 1, True)


def _doctor(folder: Path, **variables: str) -> tuple[int, dict[str, Any]]:
    """The exit status and what is said; nothing else stands on either stream, and no secret."""
    done = _run(folder, "doctor", "--json", **variables)
    assert done.stderr == ""
    assert HUSH not in done.stdout
    told: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, told


def _run(folder: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "VAR_DIR": str(folder)}
    return subprocess.run(
        [sys.executable, "manage.py", *command],
        cwd=ROOT,
        env=environment | variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
