"""The storage that STORAGES["attachments"] configures: a local folder or S3."""

from __future__ import annotations

from django.core.files.storage import FileSystemStorage, storages

from config.file_storage import ALIAS
from conversations.attachments.backends import Storage


def get_storage() -> Storage:
    """Return the configured storage; boto3 is loaded only where it is S3."""
    backend = storages[ALIAS]
    if isinstance(backend, FileSystemStorage):
        from conversations.attachments.local import LocalStorage

        return LocalStorage(backend)
    from conversations.attachments.s3 import S3Storage

    return S3Storage(backend)
