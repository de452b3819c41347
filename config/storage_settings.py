"""The settings of the storage of attached files: a local folder, S3, or Supabase by its S3 endpoint.

This module builds Django's STORAGES from the environment; `conversations.attachments.files` uses it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from django.core.exceptions import ImproperlyConfigured

from config import env
from config.process import installation

ALIAS: Final = "attachments"
KIND: Final = env.choice("ATTACHMENT_STORAGE", "local", ("local", "s3", "supabase"))
BUCKET: Final = env.text("ATTACHMENT_BUCKET", "agent-files")
SUPABASE_URL: Final = env.url("SUPABASE_URL", schemes=("http", "https")).rstrip("/")

_BUCKET_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")
_CLAMAV_ADDRESS: Final = re.compile(r"/.+|[^/\s]+:[0-9]{1,5}")
_DJANGO: Final[dict[str, Any]] = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}


def storages(var_dir: Path) -> dict[str, Any]:
    """Return Django's STORAGES, including that of attachments."""
    if not _BUCKET_NAME.fullmatch(BUCKET):
        raise ImproperlyConfigured(
            "ATTACHMENT_BUCKET must be 3 to 63 lower-case letters, digits and hyphens, like agent-files."
        )
    return _DJANGO | {
        ALIAS: local_options(var_dir / "attachments" / BUCKET) if KIND == "local" else _remote_options()
    }


def local_options(folder: Path) -> dict[str, Any]:
    """Return the storage of a folder that only the server's user may read."""
    options = {
        "location": str(folder),
        "file_permissions_mode": 0o600,
        "directory_permissions_mode": 0o700,
    }
    return {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": options}


def s3_options(
    *, bucket: str, endpoint_url: str, access_key: str, secret_key: str, region: str
) -> dict[str, Any]:
    """Return the storage of an S3 bucket; without keys boto uses the machine's role."""
    from boto3.s3.transfer import TransferConfig
    from botocore.config import Config

    options = {
        "bucket_name": bucket,
        "endpoint_url": endpoint_url or None,
        "access_key": access_key or None,
        "secret_key": secret_key or None,
        "region_name": region,
        "transfer_config": TransferConfig(use_threads=False, multipart_threshold=16 * 2**20),
        "client_config": Config(
            s3={"addressing_style": "path" if endpoint_url else "auto"},
            signature_version="s3v4",
            connect_timeout=5,
            read_timeout=30,
            retries={"max_attempts": 3, "mode": "standard"},
            # not every S3-compatible server (Supabase, MinIO, Ceph) supports checksums
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    }
    return {"BACKEND": "storages.backends.s3.S3Storage", "OPTIONS": options}


def _remote_options() -> dict[str, Any]:
    installation.require_extra("s3", "storages.backends.s3", setting=f"ATTACHMENT_STORAGE={KIND}")
    endpoint_url = env.url("S3_ENDPOINT_URL", schemes=("http", "https"))
    access_key, secret_key = env.text("S3_ACCESS_KEY_ID"), env.text("S3_SECRET_ACCESS_KEY")
    if bool(access_key) != bool(secret_key):
        raise ImproperlyConfigured(
            "S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY belong together: set both, or neither to use "
            "the machine's own role."
        )
    if KIND == "supabase" and not (SUPABASE_URL and access_key):
        raise ImproperlyConfigured(
            "ATTACHMENT_STORAGE=supabase needs SUPABASE_URL (https://<project>.supabase.co), and "
            "S3_ACCESS_KEY_ID with S3_SECRET_ACCESS_KEY from the project's storage settings."
        )
    return s3_options(
        bucket=env.text("S3_BUCKET", BUCKET),
        endpoint_url=endpoint_url or (f"{SUPABASE_URL}/storage/v1/s3" if KIND == "supabase" else ""),
        access_key=access_key,
        secret_key=secret_key,
        region=env.text("S3_REGION", "us-east-1"),
    )


def supabase_secret() -> str:
    """Return the secret with which the project signs URLs; "" unless Supabase stores the files."""
    secret = env.text("SUPABASE_JWT_SECRET")
    if KIND == "supabase" and len(secret) < 32:
        raise ImproperlyConfigured(
            "SUPABASE_JWT_SECRET must be the project's JWT secret (32 characters or more) when "
            "ATTACHMENT_STORAGE=supabase: it signs and checks URLs."
        )
    return secret


def scanner() -> str:
    """Return the dotted name of the scanner, or ""; only the existence of its module is checked."""
    name = env.text("ATTACHMENT_SCANNER")
    module, _, function = name.rpartition(".")
    if name and not (function and env.is_installed(module)):
        raise ImproperlyConfigured(
            f"ATTACHMENT_SCANNER names no module that can be found: {name!r}. Set it like "
            "ATTACHMENT_SCANNER=conversations.attachments.clamav.scan, or leave it unset."
        )
    return name


def clamav_address() -> str:
    """Return `host:port` or the path of clamd's socket, for the included scanner."""
    address = env.text("CLAMAV_ADDRESS", "127.0.0.1:3310")
    if not _CLAMAV_ADDRESS.fullmatch(address):
        raise ImproperlyConfigured(
            "CLAMAV_ADDRESS must be host:port or the path of clamd's socket. Set it like "
            "CLAMAV_ADDRESS=127.0.0.1:3310, or leave it unset."
        )
    return address
