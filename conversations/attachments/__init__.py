"""Attached files: images that clients upload, by signed URLs (seed 001; specs/run-agent-input.md §6).

This is the public interface; the package's other modules are behind it.
"""

from conversations.attachments.concurrency import Places
from conversations.attachments.file_store import (
    Opened,
    address,
    delete_thread_files,
    delete_user_files,
    exists,
    find_sent,
    keep,
    opened,
    read_bytes,
    sweep,
)
from conversations.attachments.incoming_file import Inbox, Kept, decoded_base64
from conversations.attachments.object_names import StoredObject, mime_type_of, place
from conversations.attachments.signed_urls import (
    TokenRefused,
    is_signed_url,
    parse_signed_url,
    sign,
    verify,
)
from conversations.attachments.spool import Spool
from conversations.attachments.tool_results import find_artifact, keep_artifact

__all__ = [
    "Inbox",
    "Kept",
    "Opened",
    "Places",
    "Spool",
    "StoredObject",
    "TokenRefused",
    "address",
    "decoded_base64",
    "delete_thread_files",
    "delete_user_files",
    "exists",
    "find_artifact",
    "find_sent",
    "is_signed_url",
    "keep",
    "keep_artifact",
    "mime_type_of",
    "opened",
    "parse_signed_url",
    "place",
    "read_bytes",
    "sign",
    "sweep",
    "verify",
]
