#!/usr/bin/env python
"""Parley's command line: `manage.py up` starts everything; `manage.py help` lists the rest."""

import os
import sys

from config import embedded


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    embedded.provide_database(sys.argv[1:])
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
