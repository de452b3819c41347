"""The reference package of the Agent API, of which only models, builders and client are needed.

Its packages import their servers when they are imported, and these need forty packages more; so the
two packages on the way are made here, empty, and the modules below them are the real ones.
"""

from __future__ import annotations

import importlib
import sys
from importlib.metadata import distribution
from types import ModuleType
from typing import Any, Final

_ROOT: Final = "agentscope_runtime"


def _module(name: str) -> Any:
    where = distribution("agentscope-runtime").locate_file("")
    for package in (_ROOT, f"{_ROOT}.engine"):
        if package not in sys.modules:
            made = ModuleType(package)
            made.__path__ = [str(where / package.replace(".", "/"))]
            sys.modules[package] = made
    return importlib.import_module(f"{_ROOT}.engine.{name}")


models = _module("schemas.agent_schemas")
builders = _module("helpers.agent_api_builder")
clients = _module("helpers.agent_api_client")
