"""What a process of its own writes to its standard error: every line, and no secret (promise P12)."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

CANARY = "cAnArY0123456789abcdefGHIJKLMNOPqrstuv"
JWT = f"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxIn0.{CANARY}"

# Everything a process may do with a secret, each written to a real stderr.
PROGRAM = f"""
import asyncio, logging, sys
from config import logs
logs.configure({{"level": "DEBUG", "format": sys.argv[1]}})
import structlog
secret, jwt = {CANARY!r}, {JWT!r}
log, old = structlog.get_logger("new"), logging.getLogger("old")

class Client:
    def __repr__(self):
        return f"Client(base_url='https://api.example', api_key='{{secret}}')"

class Unprintable:
    def __str__(self):
        raise ValueError(secret)

loop = {{"password": secret}}
loop["again"] = loop

structlog.contextvars.bind_contextvars(request_id="r1", authorization=f"Bearer {{secret}}")
log.info(f"calling with Bearer {{secret}}")
log.info("named", password=secret, api_token=secret, accessToken=secret, API_KEY=secret)
log.info("nested", body={{"a": [{{"client_secret": secret}}, ("x", {{"Cookie": secret}})]}})
log.info("object", client=Client())
log.info("headers", headers=[(b"authorization", b"Basic " + secret.encode()), ("x-api-key", secret)])
log.info("circular", body=loop)
log.info("bytes", body=b'{{"password": "' + secret.encode() + b'"}}')
old.info("GET /storage/v1/object/sign/a/b?token=%s HTTP/1.1", secret)
old.warning("connecting to redis://:%s@redis:6379/0 and postgresql://u:%s@h/db", secret, secret)
old.info("extra", extra={{"password": secret, "request": Client()}})
old.info("too many arguments", Unprintable(), jwt)
old.info("number %d", f"sk-{{secret}}")
old.info("%s", Unprintable())
log.info("unprintable", value=Unprintable())
try:
    try:
        raise ValueError(f"401 for {{jwt}}")
    except ValueError as error:
        error.add_note(f"sent x-api-key: {{secret}}")
        raise RuntimeError({{"headers": {{"Authorization": f"Bearer {{secret}}"}}}}) from error
except RuntimeError:
    log.exception("failed")
    old.exception("failed", stack_info=True)
log.info("the end")
"""


@pytest.mark.parametrize("style", ["json", "console"])
def test_no_secret_reaches_standard_error(style: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, style],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert CANARY not in done.stdout + done.stderr
    assert "the end" in done.stderr
    assert "RuntimeError" in done.stderr  # what is left can still be read
    assert "api.example" in done.stderr


def test_a_line_that_cannot_be_rendered_names_its_place_only() -> None:
    program = (
        "import logging\nfrom config import logs\n"
        "logs.configure({'level': 'INFO', 'format': 'json'})\n"
        f"logging.getLogger('billing').info('%d', {CANARY!r})\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stderr == "log line lost: billing <string>:4\n"


@pytest.mark.parametrize("loss", ["os.dup2(writer, 2)", "sys.stderr.close()"])
def test_who_writes_a_line_does_not_fail_for_a_lost_standard_error(loss: str) -> None:
    program = (
        "import logging, os, sys\nfrom config import logs\n"
        "logs.configure({'level': 'INFO', 'format': 'json'})\n"
        f"reader, writer = os.pipe()\nos.close(reader)\n{loss}\n"
        "logging.getLogger('billing').info('paid')\n"
        "print('went on')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, timeout=60)
    assert done.stdout == "went on\n"


OUTAGE = """
import logging
from config import logs
logs.configure({"level": "INFO", "format": "json"})
log = logging.getLogger("psycopg.pool")
for number in range(9):
    log.warning("error connecting in %r: %s", "parley", f"refused {number}")
log.warning("discarding closed connection: %s", "it")
"""


def test_the_pool_tells_of_an_outage_once_and_why() -> None:
    ended = subprocess.run([sys.executable, "-c", OUTAGE], capture_output=True, text=True, check=True)
    lines = [json.loads(line)["event"] for line in ended.stderr.splitlines()]
    assert lines == ["error connecting in 'parley': refused 0", "discarding closed connection: it"]
