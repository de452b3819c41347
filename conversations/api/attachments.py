"""Attachments over REST: upload an image, download it by a signed URL (specs/run-agent-input.md §6)."""

from __future__ import annotations

from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils.cache import get_conditional_response
from django.utils.http import http_date

from config.auth.bearer import Caller
from config.auth.requirements import RUN
from config.errors import InvalidRequest, ParleyError
from config.http.async_views import allow, api, error_response, json_response
from config.http.documentation import groups, headers
from config.http.documentation.json_types import Shown
from config.http.documentation.operations import (
    body,
    described,
    operation,
    public_operation,
    query,
    response,
)
from config.http.documentation.schema_builders import TEXT, ref
from config.http.multipart import Part, parts
from config.http.slow_readers import patiently
from config.http.streamed_body import incoming
from conversations import attachments
from conversations.api.byte_ranges import Unsatisfiable, parse_range
from conversations.attachments import ConcurrencyLimit, OpenedFile, Spool, StoredObject, TokenRefused

_LONGEST_FIELD: Final = 256
_FIELDS: Final = ("threadId", "runId")
_AT_ONCE: Final = 256
_AT_ONCE_PER_USER: Final = 8


class StoredUpload(Shown, frozen=True):
    """An uploaded file, and a URL that is valid for an hour."""

    bucket: str
    path: str
    mime_type: str
    url: str


class StorageError(Shown, frozen=True, rename="camel"):
    """An error in the form of Supabase's storage."""

    status_code: str
    error: str
    message: str


# --- POST /api/v1/agent/attachments -------------------------------------------------------------


@described(
    operation(
        "POST /api/v1/agent/attachments",
        "agent_attachments_create",
        "Upload an image for a message",
        {"201": response("The image is stored; its url is valid for an hour.", ref("Attachment"))},
        (404, 415, 507),
        group=groups.FILES,
        requestBody=body(
            ref("Upload"), "multipart/form-data", image={"file": "squat.png", "threadId": "chest-day"}
        ),
    )
)
@api(POST=RUN)
async def upload(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """Store multipart `file`, optional `threadId` and `runId` → 201 `{bucket, path, mime_type, url}`."""
    with _uploads.hold(caller.user_id):
        async with Spool() as sent:
            fields = await _receive(request, sent)
            thread, run = (attachments.normalize_path_part(fields[name], field=name) for name in _FIELDS)
            stored = await attachments.store_upload(
                sent, owner_id=caller.user_id, thread=thread, run=run
            )
    url = attachments.sign_url(stored.bucket, stored.path)
    made = StoredUpload(stored.bucket, stored.path, attachments.mime_type_of(stored), url)
    return json_response(made, 201, {"Location": url})


async def _receive(request: HttpRequest, sent: Spool) -> dict[str, str]:
    """Read the form: write the file to the spool, and return the other fields."""
    fields: dict[str, bytes] = {}
    name = ""
    async for event in parts(incoming(request), request.headers.get("Content-Type", "")):
        if isinstance(event, Part):
            name = event.name
            if name in fields:
                raise InvalidRequest(f"{name} is given twice.")
            fields[name] = b""
        elif name == "file":
            await sent.write(event)
        elif name in _FIELDS:
            fields[name] += event
            if len(fields[name]) > _LONGEST_FIELD:
                raise InvalidRequest(f"{name} is too long.")
    if "file" not in fields:
        raise InvalidRequest("The form needs a part named file.", code="file_required")
    return {name: fields.get(name, b"").decode("utf-8", "replace") for name in _FIELDS}


_uploads: Final = ConcurrencyLimit(
    "too_many_uploads", "Too many uploads at once.", limit=_AT_ONCE, limit_per_user=_AT_ONCE_PER_USER
)


# --- GET /storage/v1/object/sign/{bucket}/{path} ------------------------------------------------


_TAGGED: Final = {"headers": headers.named("ETag")}
_FILE: Final = {"*/*": {"schema": TEXT | {"format": "binary"}}}


@described(
    public_operation(
        "GET /storage/v1/object/sign/{bucket}/{path}",
        "attachment_retrieve",
        "Download an attachment by its signed URL",
        {
            "200": {"description": "The whole file.", "content": _FILE} | _TAGGED,
            "206": {"description": "A range of the file.", "content": _FILE},
            "302": {"description": "A redirect to the file in the object store."},
            "304": {"description": "The caller's copy is current."},
            "400": response("The token or the object is not valid.", ref("StorageError")),
            "412": {"description": "The file is another version than the caller's."},
            "416": {"description": "The file does not have this range."},
        },
        group=groups.FILES,
        parameters=[
            query("token", "The token of the signed URL.") | {"required": True},
            *headers.sends("Range", "If-None-Match"),
        ],
    )
)
async def download(request: HttpRequest, bucket: str, path: str) -> HttpResponseBase:
    """Answer with the bytes, for a valid URL; errors have the form of those of Supabase's storage."""
    stored = StoredObject(bucket, path)
    try:
        allow(request, "GET", "HEAD")
        seconds = attachments.verify(request.GET.get("token", ""), stored)
        if settings.ATTACHMENT_SERVE == "redirect" and (to := await attachments.make_direct_url(stored)):
            return HttpResponse(status=302, headers={"Location": to, "Cache-Control": "no-store"})
        found = await attachments.open_file(stored)
    except TokenRefused as refusal:
        return _refusal("400", refusal.error, refusal.message)
    except ParleyError as error:
        return error_response(error)
    if found is None:
        return _refusal("404", "NoSuchKey", "Object not found")
    return _response(request, found, seconds)


def _refusal(code: str, error: str, message: str) -> HttpResponse:
    return json_response(StorageError(code, error, message), 400)


def _response(request: HttpRequest, found: OpenedFile, seconds: int) -> HttpResponseBase:
    """Return 200, 206, 304, 412 or 416 (RFC 9110 §13 and §14)."""
    stat, headers = found.stat, _headers(found, seconds)
    modified = int(stat.modified.timestamp())
    unchanged = get_conditional_response(request, stat.etag, modified, None)
    if unchanged is not None:
        for name in ("ETag", "Last-Modified", "Cache-Control"):
            unchanged.headers[name] = headers[name]
        return unchanged
    try:
        part = parse_range(_range(request, found), stat.size)
    except Unsatisfiable:
        return HttpResponse(status=416, headers={"Content-Range": f"bytes */{stat.size}"})
    start, end = part or (0, stat.size)
    headers["Content-Length"] = str(end - start)
    if part:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{stat.size}"
    status = 206 if part else 200
    if request.method == "HEAD":
        return HttpResponse(status=status, headers=headers)
    body = patiently(found.stream(start, end - start))
    return StreamingHttpResponse(body, status=status, headers=headers)


def _range(request: HttpRequest, found: OpenedFile) -> str:
    """Return the requested range; "" where `If-Range` names another version of the file."""
    condition = request.headers.get("If-Range")
    same = (found.stat.etag, http_date(found.stat.modified.timestamp()))
    return request.headers.get("Range", "") if condition is None or condition in same else ""


def _content_type(stored: StoredObject) -> str:
    """Return the type: texts are stored in UTF-8, whatever their original charset."""
    mime_type = attachments.mime_type_of(stored)
    return f"{mime_type}; charset=utf-8" if mime_type.startswith("text/") else mime_type


def _headers(found: OpenedFile, seconds: int) -> dict[str, str]:
    """Return the headers that keep an uploaded file from being more than a picture in a browser."""
    return {
        "Content-Type": _content_type(found.stored),
        "Content-Disposition": f'inline; filename="{found.stored.name}"',
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cross-Origin-Resource-Policy": "cross-origin",
        "X-Content-Type-Options": "nosniff",
        "Accept-Ranges": "bytes",
        "ETag": found.stat.etag,
        "Last-Modified": http_date(found.stat.modified.timestamp()),
        "Cache-Control": f"private, max-age={seconds}",
    }
