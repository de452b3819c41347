"""Django's admin as an app, without its pages in the processes that serve none."""

from __future__ import annotations

import sys
from typing import Final

from django.contrib.admin import autodiscover
from django.contrib.admin.apps import SimpleAdminConfig

_WITHOUT_PAGES: Final = (["worker"], ["beat"])


class AdminConfig(SimpleAdminConfig):
    """Import the pages of all apps, except in `manage.py worker` and `beat`.

    The pages and what they need are a fifth of what a process imports.
    """

    default = False

    def ready(self) -> None:
        super().ready()
        if sys.argv[1:2] not in _WITHOUT_PAGES:
            autodiscover()
