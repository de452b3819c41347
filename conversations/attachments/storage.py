"""The choice of the storage of attachments, by `config.storage_settings`: a local folder or S3."""

from __future__ import annotations

from django.core.files.storage import FileSystemStorage, storages

from config.storage_settings import ALIAS
from conversations.attachments.storage_interface import Storage


def get_storage() -> Storage:
    """Return the storage of STORAGES["attachments"]; boto3 is loaded only where it is S3."""
    backend = storages[ALIAS]
    if isinstance(backend, FileSystemStorage):
        from conversations.attachments.local_storage import LocalStorage

        return LocalStorage(backend)
    from conversations.attachments.s3_storage import S3Storage

    return S3Storage(backend)
