"""The old name of `agents.host_protocol`, kept importable for runners of other authors; deprecated."""

import sys
import warnings
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from agents import host_protocol

_RENAMED: Final = {"host_api": "api", "parameters": "asks", "replies": "records"}

_RENAMED_CLASSES: Final = {
    "replies": {"PromptTold": "SystemPrompt"},
    "results": {
        "ActionSaid": "ActionRequestedData",
        "ArtifactSaid": "ArtifactCreatedData",
        "Completed": "RunCompletedData",
        "Failed": "RunFailedData",
        "Said": "MessageDeltaData",
        "SaidWhole": "MessageCompletedData",
        "StateSaid": "StateUpdatedData",
        "ToolBegun": "ToolStartedData",
        "ToolEnded": "ToolCompletedData",
    },
}

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
for _name, _classes in _RENAMED_CLASSES.items():
    _module_with_new_names = import_module(f"{host_protocol.__name__}.{_name}")
    for _old, _new in _classes.items():
        setattr(_module_with_new_names, _old, getattr(_module_with_new_names, _new))
globals()["actions"] = sys.modules[f"{__name__}.actions"] = import_module("agents.host.action_registry")
