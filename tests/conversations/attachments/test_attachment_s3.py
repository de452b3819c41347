"""Attachments in S3 (moto's server) and at Supabase (the same behind a server that checks tokens)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import boto3
import httpx
import jwt
import pytest
from moto.server import ThreadedMotoServer

from config import database, storage_settings
from config.errors import InvalidRequest
from conversations import attachments
from conversations.upkeep.retention import erase_user
from tests.conversations.attachments.uploads import MIB, fetch, left_over, noted, say, send, upload
from tests.support.client import Client
from tests.support.pictures import large_jpeg, picture
from tests.support.refusals import check_error

pytestmark = pytest.mark.once

BUCKET = "agent-files"


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    """The address of a real S3 server on loopback, with our bucket in it."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    _client(address).create_bucket(Bucket=BUCKET)
    yield address
    server.stop()


def _client(address: str) -> Any:
    return boto3.client(
        "s3",
        endpoint_url=address,
        aws_access_key_id="k",
        aws_secret_access_key="s",
        region_name="us-east-1",
    )


def _use(settings: Any, address: str) -> None:
    options = {"access_key": "k", "secret_key": "s", "region": "us-east-1", "bucket": BUCKET}
    settings.STORAGES = settings.STORAGES | {
        storage_settings.ALIAS: storage_settings.s3_options(endpoint_url=address, **options)
    }


@pytest.fixture
def s3(moto: str, settings: Any) -> Any:
    settings.ATTACHMENT_STORAGE = "s3"
    _use(settings, moto)
    return _client(moto)


def test_files_are_kept_in_the_bucket_and_streamed_from_it(client: Client, s3: Any) -> None:
    data = large_jpeg(2 * MIB)
    answer = upload(client, data, threadId=str(uuid4()))
    stored = s3.get_object(Bucket=BUCKET, Key=answer["path"])
    assert (stored["Body"].read(), stored["ContentType"]) == (data, "image/jpeg")
    found = fetch(client, answer["url"])
    assert (found.status_code, found.content) == (200, data)
    part = fetch(client, answer["url"], Range="bytes=1000000-1499999")
    assert (part.status_code, part.content) == (206, data[1_000_000:1_500_000])
    tag = found.headers["etag"]
    assert fetch(client, answer["url"], **{"If-None-Match": tag}).status_code == 304
    assert fetch(client, answer["url"], "HEAD").headers["content-length"] == str(len(data))
    assert left_over() == []


def test_a_file_that_is_gone_is_no_such_key(client: Client, s3: Any) -> None:
    answer = upload(client, picture())
    s3.delete_object(Bucket=BUCKET, Key=answer["path"])
    assert fetch(client, answer["url"]).json()["error"] == "NoSuchKey"
    read = attachments.read_bytes(BUCKET, answer["path"], limit=10**6)
    assert database.run_sync(read) is None


def test_by_setting_the_reader_is_sent_to_the_bucket(client: Client, s3: Any, settings: Any) -> None:
    settings.ATTACHMENT_SERVE = "redirect"
    data = picture("WEBP")
    answer = upload(client, data)
    response = fetch(client, answer["url"])
    assert (response.status_code, response.headers["cache-control"]) == (302, "no-store")
    there = httpx.get(response.headers["location"], trust_env=False)
    assert (there.content, there.headers["content-type"]) == (data, "image/webp")
    assert there.headers["content-disposition"].startswith("inline; filename=")
    bad = fetch(client, answer["url"] + "x")
    assert (bad.status_code, bad.json()["error"]) == (400, "InvalidJWT")


def test_threads_and_users_are_deleted_there_too(make_client: Callable[..., Client], s3: Any) -> None:
    client, other, thread = make_client(), make_client(), uuid4()
    of_thread, named = upload(client, picture(), threadId=str(thread)), upload(client, picture())
    kept, theirs = upload(client, picture()), upload(other, picture())
    say(client, thread, named)
    database.run_sync(attachments.delete_thread_files(client.user.pk, thread))

    def there() -> set[str]:
        listed = s3.list_objects_v2(Bucket=BUCKET, Prefix="agent-inputs/").get("Contents", ())
        mine = {one["path"] for one in (of_thread, named, kept, theirs)}
        return {one["Key"] for one in listed} & mine

    assert there() == {kept["path"], theirs["path"]}
    assert erase_user(client.user.pk).files == 1
    assert there() == {theirs["path"]}


@pytest.mark.parametrize("fault", ["nobody listens", "no such bucket"])
def test_a_storage_that_is_away_is_503_and_leaves_nothing(
    client: Client, s3: Any, settings: Any, fault: str
) -> None:
    answer = upload(client, picture())
    _use(settings, "http://127.0.0.1:1") if fault == "nobody listens" else _rename_bucket(settings)
    check_error(send(client, picture()), 503, "storage_unavailable")
    assert left_over() == []
    if fault == "nobody listens":
        check_error(fetch(client, answer["url"]), 503, "storage_unavailable")


def _rename_bucket(settings: Any) -> None:
    alias = settings.STORAGES[storage_settings.ALIAS]
    renamed = alias | {"OPTIONS": alias["OPTIONS"] | {"bucket_name": "no-such-bucket"}}
    settings.STORAGES = settings.STORAGES | {storage_settings.ALIAS: renamed}


# --- Supabase -----------------------------------------------------------------------------------

SECRET = "super-secret-jwt-token-with-at-least-32-characters-long"


@pytest.fixture
def supabase(moto: str, settings: Any) -> Iterator[str]:
    """`GET /storage/v1/object/sign/…` as Supabase's storage answers it, in front of moto.

    It verifies HS256 with the project's secret and compares the claim `url`, and nothing else.
    """

    class Storage(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            address = urlsplit(self.path)
            place = address.path.removeprefix("/storage/v1/object/sign/")
            try:
                claims = jwt.decode(parse_qs(address.query)["token"][0], SECRET, algorithms=["HS256"])
            except jwt.PyJWTError:
                claims = {}
            if claims.get("url") != place:
                self.send_error(400)
                return
            bucket, _, key = place.partition("/")
            body = _client(moto).get_object(Bucket=bucket, Key=key)["Body"].read()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Storage)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    settings.ATTACHMENT_STORAGE = "supabase"
    settings.SUPABASE_URL = f"http://127.0.0.1:{server.server_port}"
    settings.SUPABASE_JWT_SECRET = SECRET
    _use(settings, moto)
    yield settings.SUPABASE_URL
    server.shutdown()
    server.server_close()


def test_supabase_answers_the_urls_that_we_sign(client: Client, supabase: str) -> None:
    data = picture()
    answer = upload(client, data)
    assert answer["url"].startswith(
        f"{supabase}/storage/v1/object/sign/{answer['bucket']}/{answer['path']}?"
    )
    assert httpx.get(answer["url"], trust_env=False).content == data
    owner = client.user.pk
    assert attachments.parse_signed_url(answer["url"], owner_id=owner).path == answer["path"]
    assert noted(client) == {answer["path"]}


def test_urls_that_supabase_signs_itself_are_accepted_below_the_callers_prefix(
    client: Client, supabase: str
) -> None:
    """storage-js `createSignedUrl`: claims url, iat and exp, signed with the project's secret."""

    def signed(path: str, secret: str = SECRET) -> str:
        claims = {"url": f"{BUCKET}/{path}", "iat": 1_700_000_000, "exp": 4_000_000_000}
        token = jwt.encode(claims, secret, algorithm="HS256")
        return f"{supabase}/storage/v1/object/sign/{BUCKET}/{path}?token={token}"

    owner = client.user.pk
    path = f"agent-inputs/{owner}/t/r/img.jpg"
    assert attachments.parse_signed_url(signed(path), owner_id=owner).path == path
    login = jwt.encode({"sub": str(owner), "exp": 4_000_000_000, "iat": 1}, SECRET, algorithm="HS256")
    for wrong in (
        signed(path, "x" * 40),
        signed(f"agent-inputs/{uuid4()}/t/r/img.jpg"),
        signed(path).partition("?")[0] + f"?token={login}",
        signed(path).replace(supabase, "https://other.supabase.co"),
    ):
        with pytest.raises(InvalidRequest):
            attachments.parse_signed_url(wrong, owner_id=owner)
