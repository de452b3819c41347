"""Attached files: images that clients upload, by signed URLs (seed 001; specs/run-agent-input.md §6).

This is the public interface; the package's other modules are behind it.
"""

from conversations.attachments.concurrency import ConcurrencyLimit as ConcurrencyLimit
from conversations.attachments.files import OpenedFile as OpenedFile
from conversations.attachments.files import delete_orphans as delete_orphans
from conversations.attachments.files import delete_thread_files as delete_thread_files
from conversations.attachments.files import delete_user_files as delete_user_files
from conversations.attachments.files import exists as exists
from conversations.attachments.files import find_artifact as find_artifact
from conversations.attachments.files import find_upload as find_upload
from conversations.attachments.files import make_direct_url as make_direct_url
from conversations.attachments.files import open_file as open_file
from conversations.attachments.files import read_bytes as read_bytes
from conversations.attachments.files import store_artifact as store_artifact
from conversations.attachments.files import store_upload as store_upload
from conversations.attachments.incoming_file import IncomingFile as IncomingFile
from conversations.attachments.incoming_file import StoredFile as StoredFile
from conversations.attachments.incoming_file import decode_base64 as decode_base64
from conversations.attachments.object_names import StoredObject as StoredObject
from conversations.attachments.object_names import mime_type_of as mime_type_of
from conversations.attachments.object_names import normalize_path_part as normalize_path_part
from conversations.attachments.signed_urls import TokenRefused as TokenRefused
from conversations.attachments.signed_urls import is_signed_url as is_signed_url
from conversations.attachments.signed_urls import parse_signed_url as parse_signed_url
from conversations.attachments.signed_urls import sign_url as sign_url
from conversations.attachments.signed_urls import verify as verify
from conversations.attachments.spool import Spool as Spool
