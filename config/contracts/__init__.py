"""The published JSON Schemas of the seeds' documents, each `NAME.schema.json` in this folder."""

from __future__ import annotations

import functools
from importlib import resources
from typing import Final

_SUFFIX: Final = ".schema.json"


@functools.cache
def read_all() -> dict[str, bytes]:
    """Return each schema by name, as it is published."""
    files = [file for file in resources.files(__name__).iterdir() if file.name.endswith(_SUFFIX)]
    return {file.name.removesuffix(_SUFFIX): file.read_bytes() for file in files}
