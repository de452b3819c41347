"""Small calls: a file that a binding names, the system prompt, the version whose API we speak."""

from __future__ import annotations

from typing import Final

from agents import rows
from agents.hostcalls.session import Session
from agents.hosting import asks, records
from agents.hosting.errors import not_found

LANGBOT_VERSION: Final = "4.11.2"
HOLDER: Final = "files"
_FILE: Final = """
SELECT content FROM agents_hostblob WHERE area = 'workspace' AND holder = %s AND key = %s
"""


async def get(session: Session, ask: asks.GetFile) -> records.FileContent:
    """A file that staff stored under this key (Runner storage, workspace, holder `files`)."""
    found = await rows.one(_FILE, (HOLDER, ask.file_key.replace("\x00", "")))
    if found is None:
        raise not_found(f"File {ask.file_key} not found")
    return records.FileContent(bytes(found[0]))


async def prompt(session: Session, ask: asks.GetPrompt) -> records.PromptTold:
    """What a model of this run would be told first."""
    system = session.scene.system
    return records.PromptTold([{"role": "system", "content": system}] if system else [])


async def version(session: Session, ask: asks.GetVersion) -> records.Version:
    """Not Parley's own: plugins ask it to know which API they may use."""
    return records.Version(LANGBOT_VERSION)
