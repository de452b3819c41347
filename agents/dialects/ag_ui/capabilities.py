"""The capabilities of this agent, as `AgentCapabilities` (specs/ag-ui.md §1.3)."""

from __future__ import annotations

from typing import Any, Final

CAPABILITIES: Final[dict[str, Any]] = {
    "identity": {"name": "Parley", "type": "parley"},
    "transport": {"streaming": True, "websocket": True, "resumable": True},
    "tools": {"supported": True, "clientProvided": True, "parallelCalls": True},
    "state": {"snapshots": True, "deltas": True, "persistentState": True},
    "reasoning": {"supported": True, "streaming": True, "encrypted": False},
    "multimodal": {
        "input": {"image": True, "audio": False, "video": False, "pdf": False, "file": False},
        "output": {"image": False, "audio": False},
    },
    "humanInTheLoop": {"supported": True, "interrupts": True, "approvals": True},
    "output": {"structuredOutput": True, "supportedMimeTypes": ["text/plain", "application/json"]},
    "custom": {"parley": {"uiSchema": "2.0"}},
}
