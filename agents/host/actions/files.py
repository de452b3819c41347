"""Small calls: a file that a binding names, the system prompt, the version of LangBot's API."""

from __future__ import annotations

from typing import Final

from agents.host.action_registry import action
from agents.host.session import Session
from agents.host_protocol import parameters, replies
from agents.host_protocol.errors import not_found
from config import sql

LANGBOT_VERSION: Final = "4.11.2"
HOLDER: Final = "files"
_FILE: Final = """
SELECT content FROM agents_hostblob WHERE area = 'workspace' AND holder = %s AND key = %s
"""


@action("get_config_file", "files", "config", resource="file_key", seconds=15)
async def get(session: Session, params: parameters.GetFile) -> replies.FileContent:
    """Return the file that staff stored under this key (Runner storage, workspace, holder `files`)."""
    found = await sql.one(_FILE, (HOLDER, params.file_key.replace("\x00", "")))
    if found is None:
        raise not_found(f"File {params.file_key} not found")
    return replies.FileContent(bytes(found[0]))


@action("get_prompt", seconds=15)
async def prompt(session: Session, params: parameters.GetPrompt) -> replies.SystemPrompt:
    """Return the system prompt of this run's model."""
    system = session.scene.system
    return replies.SystemPrompt([{"role": "system", "content": system}] if system else [])


@action("get_langbot_version", seconds=15)
async def version(session: Session, params: parameters.GetVersion) -> replies.Version:
    """Return the version by which plugins know the API that they may use; it is not Parley's own."""
    return replies.Version(LANGBOT_VERSION)
