"""Attached files: images that clients upload, by signed URLs (seed 001; specs/run-agent-input.md §6).

This is the public face; the rest of the room is behind it.
"""

from conversations.attachments.artifacts import find_artifact, keep_artifact
from conversations.attachments.files import (
    Opened,
    address,
    delete_thread_files,
    delete_user_files,
    exists,
    keep,
    opened,
    read_bytes,
    store_base64,
    store_bytes,
    sweep,
)
from conversations.attachments.objects import StoredObject, mime_type_of, place
from conversations.attachments.signed_urls import TokenRefused, parse_signed_url, sign, verify
from conversations.attachments.spool import Spool

__all__ = [
    "Opened",
    "Spool",
    "StoredObject",
    "TokenRefused",
    "address",
    "delete_thread_files",
    "delete_user_files",
    "exists",
    "find_artifact",
    "keep",
    "keep_artifact",
    "mime_type_of",
    "opened",
    "parse_signed_url",
    "place",
    "read_bytes",
    "sign",
    "store_base64",
    "store_bytes",
    "sweep",
    "verify",
]
