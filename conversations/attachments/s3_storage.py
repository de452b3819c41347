"""Files in an S3 bucket, through django-storages and boto3; Supabase has such an endpoint too.

boto3 blocks, and its sessions are per operating-system thread: another reason to use few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from boto3.exceptions import Boto3Error
from botocore.exceptions import BotoCoreError, ClientError
from django.core.files import File

from conversations.attachments.io_threads import storage_unavailable
from conversations.attachments.storage_interface import Reader, Stat

_MISSING: Final = {"404", "NoSuchKey", "NotFound"}
_AT_ONCE: Final = 1_000  # what one DeleteObjects takes
_ADDRESS_S: Final = 60


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise Unavailable for any failure of S3, without details for the client."""
    try:
        yield
    except (BotoCoreError, ClientError, Boto3Error) as error:
        raise storage_unavailable() from error


class S3Storage:
    """`Storage` on a bucket."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    @_translate_errors()
    def save(self, path: str, file: Path, mime_type: str) -> None:
        with file.open("rb") as opened:
            content = File(opened, path)
            content.content_type = mime_type  # type: ignore[attr-defined]
            self._backend.save(path, content)

    @_translate_errors()
    def stat(self, path: str) -> Stat | None:
        found = self._call(self._client().head_object, Key=path)
        if found is None:
            return None
        return Stat(found["ContentLength"], found["ETag"], found["LastModified"].replace(microsecond=0))

    @_translate_errors()
    def open(self, path: str, start: int) -> Reader | None:
        found = self._call(self._client().get_object, Key=path, Range=f"bytes={start}-")
        return _Body(found["Body"]) if found else None

    @_translate_errors()
    def delete(self, paths: Sequence[str]) -> None:
        for start in range(0, len(paths), _AT_ONCE):
            keys = [{"Key": path} for path in paths[start : start + _AT_ONCE]]
            self._client().delete_objects(
                Bucket=self._backend.bucket_name, Delete={"Objects": keys, "Quiet": True}
            )

    @_translate_errors()
    def delete_below(self, prefix: str) -> int:
        count = 0
        pages = self._client().get_paginator("list_objects_v2")
        for page in pages.paginate(Bucket=self._backend.bucket_name, Prefix=prefix):
            keys = [found["Key"] for found in page.get("Contents", ())]
            if keys:
                self.delete(keys)
            count += len(keys)
        return count

    @_translate_errors()
    def direct_url(self, path: str, mime_type: str) -> str | None:
        parameters = {
            "ResponseContentType": mime_type,
            "ResponseContentDisposition": f'inline; filename="{path.rpartition("/")[2]}"',
        }
        return str(self._backend.url(path, parameters=parameters, expire=_ADDRESS_S))

    def _client(self) -> Any:
        return self._backend.connection.meta.client

    def _call(self, ask: Callable[..., Any], **arguments: Any) -> Any:
        try:
            return ask(Bucket=self._backend.bucket_name, **arguments)
        except ClientError as error:
            if error.response["Error"]["Code"] in _MISSING:
                return None
            raise


class _Body:
    """An S3 body that raises our errors."""

    def __init__(self, body: Any) -> None:
        self._body = body

    @_translate_errors()
    def read(self, count: int, /) -> bytes:
        return bytes(self._body.read(count))

    def close(self) -> None:
        self._body.close()
