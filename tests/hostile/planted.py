"""Settings of a server that has faults planted in it; nothing of them is in the product."""

from __future__ import annotations

from config.settings import *  # noqa: F403

ROOT_URLCONF = "tests.hostile.planted_urls"
