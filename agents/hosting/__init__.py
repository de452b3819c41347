"""The old name of `agents.host_protocol`, kept importable for runners of other authors; deprecated."""

import sys
import warnings
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from agents import host_protocol

_RENAMED: Final = {"host_api": "api", "parameters": "asks", "replies": "records"}

warnings.warn(
    "agents.hosting is called agents.host_protocol now; the old name goes with Parley 1.0.",
    DeprecationWarning,
    stacklevel=2,
)
for _module in iter_modules(host_protocol.__path__):
    _old = _RENAMED.get(_module.name, _module.name)
    globals()[_old] = sys.modules[f"{__name__}.{_old}"] = import_module(
        f"{host_protocol.__name__}.{_module.name}"
    )
globals()["actions"] = sys.modules[f"{__name__}.actions"] = import_module("agents.host.actions")
