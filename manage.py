#!/usr/bin/env python
"""Parley's command line: `manage.py up` starts everything; `manage.py help` lists the rest."""

import sys

from config.process.command_line import manage

if __name__ == "__main__":
    manage(sys.argv)
