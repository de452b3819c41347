"""`manage.py up`: embedded Parley, everything in one process (DESIGN §8).

The first part, before the settings are imported, is `config/process/bootstrap.py`.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shlex
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException
from typing import Any, Final

import psycopg
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError

from config import database, errors
from config.auth import bearer
from config.auth.models import User
from config.process import bootstrap, installation, memory, server, watchdog
from config.process.bootstrap import Claim
from config.process.celery_parts import receive_wake_ups, schedule_chores
from config.process.supervision import supervise

_ADMIN: Final = "admin"
_CLIENT: Final = "demo"
_HEALTHY_S: Final = 30
_READY: Final = """
Parley is ready at {url} ({seconds:.1f} s).{elsewhere}

  Chat     {url}/chat/
  Admin    {url}/admin/      for both: user {admin}, password {password}
  API      {url}/api/docs/
  Token    {shown_token}      (user {client})
  All of this is also in {notes}.

Ask something, then watch the answer being written:

  TOKEN={token}
  RUN=$(curl -s {url}/api/v1/agent/runs -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" -d '{{"model": "demo", "text": "{question}"}}' | sed 's/.*"run_id": *"\\([^"]*\\)".*/\\1/')
  curl -N {url}/api/v1/agent/runs/$RUN/events -H "Authorization: Bearer $TOKEN"

It answers in the language of the question: 有哪些在家练臀的动作?  Ctrl-C stops everything.
"""  # noqa: E501 - to be pasted
_FROM_NOTES: Final = """$(sed -n 's/.*"client_token": *"\\([^"]*\\)".*/\\1/p' {})"""
_QUESTION: Final = "Which exercises train the glutes at home?"


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials for a first try; the password is "" after somebody has changed it.

    Only new credentials are printed, because output often ends up in a journal.
    """

    admin_password: str
    client_token: str
    is_new_password: bool
    is_new_token: bool


class Command(BaseCommand):
    help = "Start Parley with everything it needs, in one process; Ctrl-C stops it."
    requires_system_checks = ()

    def handle(self, *_: Any, **__: Any) -> None:
        claim = bootstrap.claim
        if claim is None:
            raise CommandError("`up` takes no options here: set PORT= and HOST= in the environment.")
        server.require_server(server.get_server_name())
        with bootstrap.report_step("Database is up to date"):
            _migrate()
        with bootstrap.report_step("Prompts, exercises and accounts are there"):
            _seed()
            notes = bootstrap.read_notes(claim.notes)
            credentials = _credentials(notes)
        with supervise(claim.database):
            server.run(lambda stop: _serve(stop, claim, credentials))
        bootstrap.write_notes(claim.notes, bootstrap.read_notes(claim.notes) | {"pid": None})
        if claim.database is not None:
            claim.database.stop()
        print("Parley has stopped.", flush=True)


def _migrate() -> None:
    try:
        with database.connect():  # fails at once, where Django's pool would try for ten seconds
            pass
        call_command("migrate", verbosity=0, interactive=False)
    except database.UnusablePooler as refusal:
        raise bootstrap.CannotStart(str(refusal)) from None
    except (OperationalError, psycopg.OperationalError):  # its text may have the password
        raise bootstrap.CannotStart(
            "The database of DATABASE_URL does not answer, or refuses its user or password. Look there, "
            "or leave DATABASE_URL unset: then Parley brings its own."
        ) from None


def _seed() -> None:
    from agents.tools.exercises.seed import seed_exercises
    from prompts.seeds import seed

    seed()
    seed_exercises()


def _credentials(notes: dict[str, Any]) -> Credentials:
    password, token = _admin_password(notes), _client_token(notes)
    return Credentials(
        admin_password=password,
        client_token=token,
        is_new_password=password != notes.get("admin", {}).get("password"),
        is_new_token=token != notes.get("client_token"),
    )


def _admin_password(notes: dict[str, Any]) -> str:
    """Return the password of `admin` from the notes, or a new one; "" if a person has changed it."""
    known: str | None = notes.get("admin", {}).get("password")
    user, created = User.objects.get_or_create(
        username=_ADMIN, defaults={"is_staff": True, "is_superuser": True}
    )
    if not created and known is not None:
        return known if known and user.check_password(known) else ""
    password = known or secrets.token_urlsafe(12)
    user.set_password(password)
    user.save(update_fields=["password"])
    return password


def _client_token(notes: dict[str, Any]) -> str:
    """Return the demo user's token from the notes if it is valid, or else a new one."""
    user = User.objects.filter(username=_CLIENT).first() or User.objects.create_user(_CLIENT)
    known = notes.get("client_token", "")
    with suppress(errors.Unauthorized):
        if bearer.authenticate_sync(f"Bearer {known}").user_id == user.pk:
            return str(known)
    _row, token = bearer.create_api_token(user, "manage.py up")
    return token


async def _serve(stop: asyncio.Event, claim: Claim, credentials: Credentials) -> None:
    from agents.worker.loop import serve_worker
    from config.asgi import application, turn_away

    async with server.lifespan(application), asyncio.TaskGroup() as tasks:
        worker = tasks.create_task(serve_worker(stop))
        tasks.create_task(_announce(stop, claim, credentials))
        async with receive_wake_ups(), schedule_chores():
            await server.serve(
                application,
                listener=claim.listener,
                server=server.get_server_name(),
                stop=stop,
                turn_away=turn_away,
                linger=lambda: asyncio.wait({worker}),
            )


async def _announce(stop: asyncio.Event, claim: Claim, credentials: Credentials) -> None:
    """Write and print the notes when the server responds."""
    deadline = time.monotonic() + _HEALTHY_S
    while not await asyncio.to_thread(_healthy, claim):
        if stop.is_set():
            return
        if time.monotonic() > deadline:
            print(f"Parley has started but GET {claim.address}/health does not respond: see the log.")
            return
        await asyncio.sleep(0.05)
    with watchdog.exclude_block():
        memory.freeze_heap()
    notes = {
        "url": claim.address,
        "admin": {"username": _ADMIN, "password": credentials.admin_password},
        "client_token": credentials.client_token,
        "pid": os.getpid(),
        "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    bootstrap.write_notes(claim.notes, notes)
    print(_words(claim, credentials), flush=True)


def _healthy(claim: Claim) -> bool:
    connection = HTTPConnection(*claim.local, timeout=5)
    with closing(connection), suppress(OSError, HTTPException):
        connection.request("GET", "/health")
        return connection.getresponse().status < 500
    return False


def _words(claim: Claim, credentials: Credentials) -> str:
    token, notes = credentials.client_token, claim.notes
    if not credentials.is_new_token:
        token = _FROM_NOTES.format(shlex.quote(str(notes)))
    return _READY.format(
        url=claim.address,
        seconds=time.monotonic() - claim.since,
        elsewhere="".join(f"\nFrom other machines: {other}" for other in claim.others),
        admin=_ADMIN,
        password=_shown_password(credentials),
        shown_token=token if credentials.is_new_token else "as first printed",
        token=token,
        client=_CLIENT,
        notes=notes,
        question=_QUESTION,
    ).rstrip()


def _shown_password(credentials: Credentials) -> str:
    if not credentials.admin_password:
        return "as you changed it"
    if credentials.is_new_password:
        return credentials.admin_password
    return f"as first printed (`{installation.MANAGE} changepassword {_ADMIN}` sets another)"
