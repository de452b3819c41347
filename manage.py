#!/usr/bin/env python
"""Parley's command line: `manage.py up` starts everything; `manage.py help` lists the rest."""

import gc
import os
import sys

from django.core.exceptions import ImproperlyConfigured

from config.process import bootstrap, embedded_postgres

_OBJECTS = 100_000  # a start makes some hundred thousand objects, nearly all of which live to the end


def main() -> None:
    gc.set_threshold(_OBJECTS)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        if sys.argv[1:] == ["up"]:
            bootstrap.prepare()
        else:
            embedded_postgres.provide_database(sys.argv[1:])
        from django.core.management import execute_from_command_line

        execute_from_command_line(sys.argv)
    except (
        embedded_postgres.DatabaseUnavailable,
        bootstrap.CannotStart,
        ImproperlyConfigured,
    ) as refusal:
        sys.exit(str(refusal))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
