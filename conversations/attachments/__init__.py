"""Attached files: images that clients upload, by signed URLs (seed 001; specs/run-agent-input.md §6).

This is the public interface; the package's other modules are behind it.
"""

from conversations.attachments.concurrency import ConcurrencyLimit
from conversations.attachments.files import (
    OpenedFile,
    delete_orphans,
    delete_thread_files,
    delete_user_files,
    exists,
    find_upload,
    make_direct_url,
    open_file,
    read_bytes,
    store_upload,
)
from conversations.attachments.incoming_file import IncomingFile, StoredFile, decode_base64
from conversations.attachments.object_names import StoredObject, mime_type_of, normalize_path_part
from conversations.attachments.signed_urls import (
    TokenRefused,
    is_signed_url,
    parse_signed_url,
    sign_url,
    verify,
)
from conversations.attachments.spool import Spool
from conversations.attachments.tool_results import find_artifact, store_artifact

__all__ = [
    "ConcurrencyLimit",
    "IncomingFile",
    "OpenedFile",
    "Spool",
    "StoredFile",
    "StoredObject",
    "TokenRefused",
    "decode_base64",
    "delete_orphans",
    "delete_thread_files",
    "delete_user_files",
    "exists",
    "find_artifact",
    "find_upload",
    "is_signed_url",
    "make_direct_url",
    "mime_type_of",
    "normalize_path_part",
    "open_file",
    "parse_signed_url",
    "read_bytes",
    "sign_url",
    "store_artifact",
    "store_upload",
    "verify",
]
