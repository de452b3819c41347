"""Attachments over HTTP: upload, what is kept, what is refused (specs/run-agent-input.md §6)."""

from __future__ import annotations

import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from PIL import Image

from config.http import streamed_body
from conversations.models import Attachment
from tests.conftest import Server
from tests.conversations.attachments.uploads import ADDRESS, MIB, fetch, left_over, send, upload
from tests.support.client import Client
from tests.support.pictures import (
    CAMERA,
    ORIENTATION,
    SVG,
    exif,
    large_jpeg,
    many_scans,
    picture,
    png,
    webp_canvas,
)
from tests.support.refusals import check_error

TYPES = {"JPEG": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp", "GIF": "image/gif"}


# --- what is taken ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TYPES)
def test_an_upload_is_answered_with_what_the_seed_says_and_served(client: Client, kind: str) -> None:
    thread, run = str(uuid4()), "run_1773286460762"
    data = picture(kind)
    answer = upload(client, data, name="x.exe", threadId=thread, runId=run)
    assert answer.keys() == {"bucket", "path", "mime_type", "url"}
    assert (answer["bucket"], answer["mime_type"]) == ("agent-files", TYPES[kind])
    folder, _, name = answer["path"].rpartition("/")
    assert folder == f"agent-inputs/{client.user.pk}/{thread}/{run}"
    UUID(name.partition(".")[0])
    found = fetch(client, answer["url"])
    assert (found.status_code, found.headers["content-type"]) == (200, TYPES[kind])
    assert found.content == data
    assert found.headers["content-disposition"] == f'inline; filename="{name}"'
    assert found.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in found.headers["content-security-policy"]


def test_without_thread_and_run_an_underscore_stands_for_them(client: Client) -> None:
    path = upload(client, picture())["path"]
    assert path.startswith(f"agent-inputs/{client.user.pk}/_/_/")


def test_a_thread_has_one_folder_however_its_id_is_written(client: Client) -> None:
    thread = uuid4()
    paths = [
        upload(client, picture(), threadId=text)["path"] for text in (str(thread).upper(), thread.hex)
    ]
    assert {path.split("/")[2] for path in paths} == {str(thread)}


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_position_and_camera_go_orientation_and_pixels_stay(client: Client, kind: str) -> None:
    data = picture(kind, exif=exif())
    assert CAMERA in data
    kept = fetch(client, upload(client, data)["url"]).content
    assert CAMERA not in kept
    with Image.open(BytesIO(data)) as before, Image.open(BytesIO(kept)) as after:
        assert dict(after.getexif()) == {ORIENTATION: 6}
        assert not after.getexif().get_ifd(0x8825)
        assert before.tobytes() == after.tobytes()


def test_xmp_comments_and_what_hides_behind_the_end_go(client: Client) -> None:
    xmp = b'<x:xmpmeta exif:GPSLatitude="48,8.2N"/>'
    for kind in ("JPEG", "WEBP"):
        assert b"GPSLatitude" not in fetch(client, upload(client, picture(kind, xmp=xmp))["url"]).content
    for data in (
        picture("GIF", comment=b"GPSLatitude"),
        picture("JPEG", comment=b"GPSLatitude"),
        picture("JPEG") + b"<script>GPSLatitude</script>",
        picture("PNG") + b"PK\x03\x04 GPSLatitude",
        picture("GIF") + b"GPSLatitude",
        picture("WEBP") + b"GPSLatitude",
    ):
        assert b"GPSLatitude" in data
        kept = fetch(client, upload(client, data)["url"]).content
        assert b"GPSLatitude" not in kept
        Image.open(BytesIO(kept)).load()


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "GIF"])
def test_animations_keep_their_frames(client: Client, kind: str) -> None:
    frames = [Image.effect_noise((64, 64), spread) for spread in (20, 60, 100)]
    made = BytesIO()
    frames[0].save(made, kind, save_all=True, append_images=frames[1:], duration=100, loop=0)
    kept = fetch(client, upload(client, made.getvalue())["url"]).content
    with Image.open(BytesIO(kept)) as image:
        assert (getattr(image, "n_frames", 1), image.info["loop"]) == (3, 0)


def test_a_file_of_exactly_the_limit_is_taken(client: Client) -> None:
    data = large_jpeg(10 * MIB)
    assert len(data) == 10 * MIB
    assert fetch(client, upload(client, data)["url"]).content == data


def test_the_fields_may_come_after_the_file(client: Client) -> None:
    parts: Any = [("file", ("a.jpg", picture())), ("threadId", (None, "thread-1"))]
    response = client.http.post(ADDRESS, files=parts)
    assert response.json()["path"].split("/")[2] == "thread-1"


# --- what is refused ----------------------------------------------------------------------------

HTML = b"<html><script>alert(1)</script></html>"
BAD = {
    "svg named png": SVG,
    "html": HTML,
    "text": b"hello, world",
    "empty": b"",
    "one byte": b"\xff",
    "only the magic bytes of a jpeg": b"\xff\xd8\xff\xe0" + bytes(20),
    "only those of a png": b"\x89PNG\r\n\x1a\n" + bytes(20),
    "html behind a gif's beginning": b"GIF89a" + HTML,
    "html behind a webp's beginning": b"RIFF\x00\x00\x00\x00WEBP" + HTML,
    "a bmp": b"BM" + bytes(100),
    "a tiff": b"II*\0" + bytes(100),
    "half a jpeg": picture()[:4000],
    "half a png": picture("PNG")[:4000],
    "half a webp": picture("WEBP")[:4000],
    "half a gif": picture("GIF")[:4000],
    "a jpeg without its end": picture()[:-2],
    "a png whose pixels are missing": png(64, 64),
    "a png of 50k x 50k": png(50_000, 50_000, bytes(1000)),
    "a png of 2 billion squared": png(2**31 - 1, 2**31 - 1),
    "a webp canvas of 16k x 16k": webp_canvas(16_384, 16_384),
    "a gif frame far outside": picture("GIF").replace(b"\x2c\0\0\0\0", b"\x2c\xff\xff\xff\xff", 1),
    "a jpeg of too many scans": many_scans(200),
    "a png of a million chunks": png(1, 1, b"\0\0")[:33] + b"\0\0\0\0abcd\0\0\0\0" * 700_000,
    "a png with a broken checksum": picture("PNG").replace(b"IDAT", b"IDAt", 1),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_no_sound_image_is_415_and_leaves_nothing(client: Client, what: str) -> None:
    response = send(client, BAD[what], "photo.png")
    check_error(response, 415, "unsupported_media_type")
    assert not Attachment.objects.filter(owner_id=client.user.pk).exists()


@pytest.mark.parametrize("extra", [1, 100_000, 50 * MIB])
def test_a_file_over_the_limit_is_413(client: Client, extra: int) -> None:
    plain = picture()
    data = plain + bytes(10 * MIB + extra - len(plain))
    check_error(send(client, data), 413, "payload_too_large")


def test_a_body_of_unknown_length_is_cut_off_at_the_limit(client: Client) -> None:
    """The body has no end: the request ends because the server does not read on."""

    def endless() -> Any:
        yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n' + picture()
        while True:
            yield bytes(65_536)

    try:
        response = client.http.post(
            ADDRESS, content=endless(), headers={"Content-Type": "multipart/form-data; boundary=b"}
        )
    except httpx.WriteError:  # the server hung up before the answer was read
        pass
    else:
        check_error(response, 413, "payload_too_large")


def test_a_body_that_announces_too_much_is_refused_before_it_is_sent(client: Client) -> None:
    head = (
        f"POST {ADDRESS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {client.token}\r\n"
        "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 99999999999\r\n"
        "Expect: 100-continue\r\n\r\n"
    )
    answer = _speak(client, head.encode())
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_nobody_is_asked_for_a_body_before_he_has_said_who_he_is(server: Server) -> None:
    head = (
        f"POST {ADDRESS} HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\n"
        "Content-Length: 1000000\r\nExpect: 100-continue\r\n\r\n"
    )
    assert _speak(server, head.encode()).startswith(b"HTTP/1.1 401 ")


def _speak(server: Client | Server, said: bytes) -> bytes:
    address = httpx.URL(server.url)
    with socket.create_connection((address.host, address.port or 80), 10) as line:
        line.sendall(said)
        return line.makefile("rb").read()


@pytest.mark.parametrize("field", ["threadId", "runId"])
@pytest.mark.parametrize(
    "given", ["a/b", "..", ".", "a.b", "%2e%2e", "a\\b", "x" * 129, "x" * 100_000, "ü", "a b", "a\nb"]
)
def test_a_thread_or_run_that_is_no_plain_name_is_422(client: Client, field: str, given: str) -> None:
    check_error(send(client, picture(), **{field: given}), 422, "invalid_request")


@pytest.mark.parametrize(
    ("content_type", "body", "code"),
    [
        ("application/json", b"{}", "multipart_required"),
        ("multipart/form-data", b"", "multipart_required"),
        ("multipart/form-data; boundary=b", b"", "invalid_multipart"),
        ("multipart/form-data; boundary=b", b"--b\r\n", "invalid_multipart"),
        ("multipart/form-data; boundary=b", b"--b\r\nX: y\r\n\r\nz\r\n--b--", "invalid_multipart"),
        ("multipart/form-data; boundary=b", b"--b--\r\n", "file_required"),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="other"\r\n\r\nz\r\n--b--\r\n',
            "file_required",
        ),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nz\r\n' * 9 + b"--b--\r\n",
            "invalid_multipart",
        ),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="runId"\r\n\r\nz\r\n' * 2 + b"--b--\r\n",
            "invalid_request",
        ),
    ],
)
def test_a_form_that_cannot_be_read_gets_its_code(
    client: Client, content_type: str, body: bytes, code: str
) -> None:
    response = client.http.post(ADDRESS, content=body, headers={"Content-Type": content_type})
    check_error(response, 422, code)


def test_other_methods_are_405_and_strangers_401(client: Client, server: Server) -> None:
    check_error(client.http.get(ADDRESS), 405, "method_not_allowed")
    response = httpx.post(f"{server.url}{ADDRESS}", files={"file": b"x"}, trust_env=False)
    check_error(response, 401, "token_missing")


# --- slow and many ------------------------------------------------------------------------------


def _begin(client: Client) -> socket.socket:
    address = httpx.URL(client.url)
    line = socket.create_connection((address.host, address.port or 80), 10)
    line.sendall(
        f"POST {ADDRESS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {client.token}\r\n"
        "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 100000\r\n\r\n--b\r\n".encode()
    )
    return line


def test_slow_uploads_block_nobody_and_a_user_has_only_some_places(
    make_client: Callable[..., Client],
) -> None:
    slow, other = make_client(), make_client()
    lines = [_begin(slow) for _ in range(8)]
    try:
        while len(left_over()) < 8:
            slow.http.get("/health")
        check_error(send(slow, picture()), 429, "too_many_uploads")
        assert send(other, picture()).status_code == 201
    finally:
        for line in lines:
            line.close()
    assert _until(lambda: send(slow, picture()), 201).status_code == 201


def _until(ask: Callable[[], httpx.Response], status: int) -> httpx.Response:
    for _ in range(200):
        if (response := ask()).status_code == status:
            break
    return response


def test_a_body_that_stops_coming_is_408(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed_body, "SILENCE_S", 0.3)
    monkeypatch.setattr(streamed_body, "_LINGER_S", 0.1)
    with _begin(client) as line:
        answer = line.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 408 ")


def test_an_upload_given_up_leaves_nothing(client: Client) -> None:
    _begin(client).close()
    assert _until(lambda: send(client, picture()), 201).status_code == 201
    for _ in range(100):
        if not left_over():
            break
        client.http.get("/health")
    assert left_over() == []


def test_many_uploads_at_once_are_all_kept_apart(make_client: Callable[..., Client]) -> None:
    client = make_client()
    pictures = [picture(size=(64 + n, 64)) for n in range(16)]
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda data: upload(client, data), pictures))
    assert len({answer["path"] for answer in answers}) == 16
    for data, answer in zip(pictures, answers, strict=True):
        assert fetch(client, answer["url"]).content == data
