"""The commands `manage.py …` of a checkout and `parley …` of an installed Parley.

The embedded PostgreSQL starts, and DATABASE_URL is set, before Django's settings are imported.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import Final

from django.core.exceptions import ImproperlyConfigured

from config import __version__
from config.process import bootstrap, embedded_postgres, refused_settings

_OBJECTS: Final = 400_000  # a start makes fewer, and nearly all live to its end
_USAGE: Final = """\
Parley, a self-hosted conversational agent platform.

  parley up             start Parley with everything it needs, in one process; Ctrl-C stops it
  parley manage         list the other commands: serve, web, worker, migrate, createsuperuser, …
  parley manage NAME    run one of them; with --help, explain it
  parley --version

The environment holds all settings, like PORT=8001 parley up."""


def manage(arguments: list[str]) -> None:
    """Run a command of Django or Parley; end the process with a sentence if it cannot start."""
    gc.set_threshold(_OBJECTS)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        if arguments[1:] == ["up"]:
            bootstrap.prepare()
        elif arguments[1:2] == ["doctor"] and not {"-h", "--help"} & {*arguments}:
            refused_settings.collect()
        else:
            embedded_postgres.provide_database(arguments[1:])
        if arguments[1:] == ["beat"] and _runs_celery_beat():
            return
        from django.core.management import execute_from_command_line

        execute_from_command_line(arguments)
    except (
        embedded_postgres.DatabaseUnavailable,
        bootstrap.CannotStart,
        ImproperlyConfigured,
    ) as refusal:
        sys.exit(str(refusal))
    except KeyboardInterrupt:
        sys.exit(130)


def _runs_celery_beat() -> bool:
    """Run Celery's beat to its end, without Django's apps; return False if there is no broker."""
    from django.conf import settings

    if not settings.CELERY_BROKER_URL:
        return False
    from config.process.celery_beat import run_beat

    run_beat()
    return True


def parley() -> None:
    """Run the console script `parley`."""
    match sys.argv[1:]:
        case ["up"]:
            manage(["parley manage", "up"])
        case ["manage", *rest]:
            manage(["parley manage", *rest])
        case ["--version" | "version"]:
            print(__version__)
        case [] | ["--help" | "-h" | "help"]:
            print(_USAGE)
        case [name, *_]:
            sys.exit(f"parley has no command {name!r}.\n\n{_USAGE}")
