"""Where attachments lie and when they go: disk faults, scanners, threads, users, orphans."""

from __future__ import annotations

import errno
import os
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from config import database, storage_settings
from conversations import attachments
from conversations.attachments import StoredObject, file_rows, spool
from conversations.attachments.local_storage import LocalStorage
from conversations.models import Attachment, Message
from conversations.upkeep.retention import erase_user
from tests.conversations.attachments.uploads import MIB, fetch, left_over, noted, say, send, upload
from tests.support.client import Client
from tests.support.pictures import large_jpeg, picture
from tests.support.refusals import check_error


def in_storage(answer: dict[str, str]) -> bool:
    return database.run_sync(attachments.exists(answer["bucket"], answer["path"]))


# --- faults of the disk -------------------------------------------------------------------------


@pytest.fixture
def tiny_disk(tmp_path: Path, settings: Any) -> Iterator[Path]:
    """VAR_DIR on a disk of 4 MiB."""
    if (
        os.geteuid() != 0
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(tmp_path)],
            capture_output=True,
            check=False,
        ).returncode
    ):
        pytest.skip("only root can mount a small disk")
    settings.VAR_DIR = tmp_path
    settings.STORAGES = settings.STORAGES | {
        storage_settings.ALIAS: storage_settings.local_options(tmp_path / "attachments" / "agent-files")
    }
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def test_a_full_disk_is_507_and_nothing_partial_is_left(client: Client, tiny_disk: Path) -> None:
    kept = upload(client, picture())
    check_error(send(client, large_jpeg(6 * MIB)), 507, "storage_full")  # while it arrives
    check_error(send(client, large_jpeg(3 * MIB)), 507, "storage_full")  # while it is cleaned
    assert left_over() == []
    assert noted(client) == {kept["path"]}
    assert [path.name for path in tiny_disk.rglob("*.*") if path.is_file()] == [
        kept["path"].rpartition("/")[2]
    ]
    assert upload(client, picture("PNG"))


@pytest.mark.parametrize(
    ("number", "status", "code"),
    [
        (errno.ENOSPC, 507, "storage_full"),
        (errno.EDQUOT, 507, "storage_full"),
        (errno.EIO, 503, "storage_unavailable"),
        (errno.EROFS, 503, "storage_unavailable"),
    ],
)
def test_a_storage_that_fails_in_the_middle_leaves_no_file_and_no_row(
    client: Client, monkeypatch: pytest.MonkeyPatch, number: int, status: int, code: str
) -> None:
    saved: list[str] = []

    def fail(self: LocalStorage, path: str, file: Path, mime_type: str) -> None:
        target = Path(self._backend.path(path))
        target.parent.mkdir(parents=True)
        target.write_bytes(file.read_bytes()[:100])
        saved.append(path)
        raise OSError(number, "secret path")

    monkeypatch.setattr(LocalStorage, "save", fail)
    response = send(client, picture())
    check_error(response, status, code)
    assert "secret" not in response.text
    assert not in_storage({"bucket": "agent-files", "path": saved[0]})
    assert noted(client) == set()
    assert left_over() == []


def test_what_a_killed_process_left_in_the_spool_goes_after_an_hour(client: Client) -> None:
    upload(client, picture())
    old, new = spool.spool_folder() / "old.sent", spool.spool_folder() / "new.sent"
    for path in (old, new):
        path.write_bytes(b"x")
    os.utime(old, (0, 0))
    spool.delete_stale()
    assert (old.exists(), new.exists()) == (False, True)
    new.unlink()


# --- the scan hook ------------------------------------------------------------------------------

SCANNED: list[tuple[bytes, str]] = []


def suspicious(path: Path, mime_type: str) -> str | None:
    SCANNED.append((path.read_bytes(), mime_type))
    return "a-finding" if mime_type == "image/png" else None


def broken(path: Path, mime_type: str) -> str | None:
    raise RuntimeError("secret of the scanner")


def test_a_scanner_may_refuse_a_file(client: Client, settings: Any) -> None:
    settings.ATTACHMENT_SCANNER = f"{__name__}.suspicious"
    data = picture()
    upload(client, data)
    assert SCANNED[-1] == (data, "image/jpeg")
    response = send(client, picture("PNG"))
    check_error(response, 422, "attachment_refused")
    assert "a-finding" not in response.text
    assert len(noted(client)) == 1


def test_a_scanner_that_fails_refuses_too(client: Client, settings: Any) -> None:
    settings.ATTACHMENT_SCANNER = f"{__name__}.broken"
    response = send(client, picture())
    check_error(response, 503, "scanner_unavailable")
    assert "secret" not in response.text
    assert noted(client) == set()


@contextmanager
def clamd(answer: bytes) -> Iterator[tuple[str, bytearray]]:
    """A daemon that speaks INSTREAM, as the manual page of clamd describes it."""
    got = bytearray()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            line, _ = listener.accept()
            with line, line.makefile("rb") as said:
                assert said.read(10) == b"zINSTREAM\0"
                while count := struct.unpack(">I", said.read(4))[0]:
                    got.extend(said.read(count))
                line.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}", got
        thread.join(10)


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (b"stream: OK\0", 201),
        (b"stream: Eicar-Signature FOUND\0", 422),
        (b"INSTREAM size limit exceeded. ERROR\0", 503),
        (b"", 503),
    ],
)
def test_clamd_is_asked_with_the_whole_file(
    client: Client, settings: Any, answer: bytes, status: int
) -> None:
    data = picture(size=(900, 700))
    settings.ATTACHMENT_SCANNER = "conversations.attachments.clamav.scan"
    with clamd(answer) as (settings.CLAMAV_ADDRESS, got):
        assert send(client, data).status_code == status
    assert bytes(got) == data


def test_without_clamd_nothing_is_stored(client: Client, settings: Any) -> None:
    settings.ATTACHMENT_SCANNER = "conversations.attachments.clamav.scan"
    settings.CLAMAV_ADDRESS = "127.0.0.1:1"
    check_error(send(client, picture()), 503, "scanner_unavailable")


# --- for the other rooms ------------------------------------------------------------------------


def test_inline_images_pass_the_same_checks(client: Client) -> None:
    from base64 import b64encode

    from config.errors import InvalidRequest, UnsupportedMedia

    data, owner = picture("PNG"), client.user.pk

    async def kept(sent: str, *, thread: str, run: str) -> StoredObject:
        async with attachments.IncomingFile(texts=False) as inbox:
            await inbox.write(attachments.decode_base64(sent))
            return (await inbox.store(owner_id=owner, thread=thread, run=run)).stored

    async def work() -> StoredObject:
        stored = await kept(b64encode(data).decode(), thread=str(uuid4()), run="a.b/c")
        for wrong, error in (
            ("%%%", InvalidRequest),
            (b64encode(b"<svg>" * 9).decode(), UnsupportedMedia),
        ):
            with pytest.raises(error):
                await kept(wrong, thread="_", run="_")
        assert await attachments.read_bytes(stored.bucket, stored.path, limit=len(data)) == data
        assert await attachments.read_bytes(stored.bucket, stored.path, limit=len(data) - 1) is None
        assert await attachments.read_bytes(stored.bucket, "../../keys.json", limit=10**6) is None
        assert await attachments.read_bytes("other", stored.path, limit=10**6) is None
        assert not await attachments.exists(stored.bucket, stored.path + "x")
        return stored

    stored = database.run_sync(work())
    assert stored.path.split("/")[3] == "_"
    assert attachments.mime_type_of(stored) == "image/png"
    assert attachments.parse_signed_url(attachments.sign_url(stored.bucket, stored.path), owner_id=owner)


def test_a_threads_files_go_with_it_and_no_others(make_client: Callable[..., Client]) -> None:
    client, other = make_client(), make_client()
    thread, another = uuid4(), uuid4()
    of_thread, of_another = (upload(client, picture(), threadId=str(one)) for one in (thread, another))
    alone, in_array, shared, unnamed = (upload(client, picture()) for _ in range(4))
    foreign = upload(other, picture(), threadId=str(thread))
    say(client, thread, alone)
    say(client, thread, in_array, shared, foreign)
    say(client, another, shared)
    database.run_sync(attachments.delete_thread_files(client.user.pk, thread))
    assert not any(map(in_storage, (of_thread, alone, in_array)))
    assert all(map(in_storage, (of_another, shared, unnamed, foreign)))
    assert noted(client) == {one["path"] for one in (of_another, shared, unnamed)}
    database.run_sync(attachments.delete_thread_files(client.user.pk, thread))


def test_a_thread_deleted_by_its_owner_takes_its_files_along(client: Client) -> None:
    thread = uuid4()
    for_thread, named = upload(client, picture(), threadId=str(thread)), upload(client, picture())
    say(client, thread, named)
    assert client.http.delete(f"/api/v1/agent/threads/{thread}").status_code == 204
    assert not in_storage(for_thread)
    assert not in_storage(named)
    assert noted(client) == set()


def test_erasing_a_user_erases_the_files(make_client: Callable[..., Client], settings: Any) -> None:
    client, other = make_client(), make_client()
    mine = [upload(client, picture(), threadId=str(uuid4())), upload(client, picture())]
    theirs = upload(other, picture())
    erased = erase_user(client.user.pk)
    assert erased.files == 2
    assert not any(map(in_storage, mine))
    assert noted(client) == set()
    assert in_storage(theirs)
    assert fetch(other, mine[0]["url"]).json()["error"] == "NoSuchKey"
    root = Path(settings.STORAGES[storage_settings.ALIAS]["OPTIONS"]["location"])
    assert not (root / "agent-inputs" / str(client.user.pk)).exists()


def test_a_file_that_no_message_names_goes_after_its_days(client: Client, settings: Any) -> None:
    answers = [upload(client, picture()) for _ in range(4)]
    _orphan, alone, in_array, new = answers
    message = say(client, uuid4(), alone)
    say(client, uuid4(), in_array, alone)
    rows = Attachment.objects.filter(owner_id=client.user.pk)
    days = timedelta(days=settings.ATTACHMENT_ORPHAN_DAYS)
    for row in rows:
        assert timedelta(0) <= row.check_at - row.created_at - days < timedelta(seconds=1)

    def later() -> None:
        rows.exclude(path=new["path"]).update(check_at=timezone.now())
        database.run_sync(_swept())

    later()
    assert [in_storage(answer) for answer in answers] == [False, True, True, True]
    assert noted(client) == {one["path"] for one in (alone, in_array, new)}
    assert rows.get(path=alone["path"]).check_at > timezone.now() + days - timedelta(hours=1)
    message.delete()
    later()
    assert in_storage(alone), "the other message still names it"
    Message.objects.filter(thread__owner=client.user).delete()
    later()
    assert noted(client) == {new["path"]}


async def _swept() -> None:
    more = True
    while more:
        _, more = await attachments.delete_orphans()


def test_looking_for_orphans_uses_the_index() -> None:
    from django.db import connection, transaction

    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        arguments: Any = (200, timedelta(days=7))
        cursor.execute(f"EXPLAIN {file_rows._CHECK}", arguments)
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert plan.count("Bitmap Index Scan on message_by_attachment") == 2, plan
