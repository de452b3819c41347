"""Keys: sealed at rest, shown masked, rotated without loss, never in a log."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from uuid import uuid4

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from django.db import transaction
from pytest_django import Settings

from config.audit import key_openings
from config.audit.models import AuditEntry
from config.database import run_sync
from config.errors import InvalidRequest
from prompts.endpoints import secrets
from prompts.endpoints.secrets import (
    Owner,
    Purpose,
    SealedSecret,
    SecretForeign,
    SecretUnreadable,
    open_secret,
)
from prompts.models import Endpoint, Secret
from prompts.wordings import staff_actions
from tests.support.fakes.mcp_host import wait_until
from tests.support.log_lines import lines_about

pytestmark = pytest.mark.once

KEY = "sk-proj-abcdefghijklmnop-0123"


@contextmanager
def undone() -> Iterator[None]:
    """A transaction that leaves nothing behind, for what reaches beyond the test's own rows."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def new_key() -> str:
    return Fernet.generate_key().decode()


def new_owner() -> Owner:
    """An owner whose secret nobody else has."""
    return Purpose.MODEL_ENDPOINT.of(uuid4().hex)


def sealed(text: str, owner: Owner) -> SealedSecret:
    return SealedSecret(owner.secret_name, secrets.seal(text))


def opened(name: str, owner: Owner) -> str:
    return open_secret(secrets.get_sealed(Secret.objects.get(name=name)), owner)


def openings_of(owner: Owner, count: int) -> list[AuditEntry]:
    """So many entries about the owner's secret; a server of this process may be writing them."""
    run_sync(key_openings.write())
    found = AuditEntry.objects.filter(object_name=owner.secret_name, action=key_openings.ACTION)
    wait_until(lambda: found.count() >= count)
    return list(found.order_by("id"))


def make_endpoint() -> Endpoint:
    return Endpoint.objects.create(
        name=uuid4().hex, provider="acme", base_url="https://api.example.com/v1"
    )


def test_what_is_sealed_opens_again_and_is_not_readable() -> None:
    owner = new_owner()
    one, two = sealed("鍵 and key", owner), sealed("鍵 and key", owner)
    assert open_secret(one, owner) == open_secret(two, owner) == "鍵 and key"
    assert "key" not in one.text
    assert one != two
    assert open_secret(None, owner) == ""


OTHERS = [
    Purpose.MODEL_ENDPOINT.of(2),
    Purpose.MODEL_ENDPOINT.of(12),
    Purpose.RUNNER_BINDING.of(1, "key"),
    Purpose.RUNNER_BINDING.of(1, "2-key"),
    Purpose.RUNNER_BINDING.of(12, "key"),
    Purpose.PLUGIN_RUNTIME.of(1),
    Purpose.MCP_SERVER.of(1, "headers"),
    Purpose.MCP_SERVER.of(1, "env"),
    Purpose.WEB_SEARCH.of("web_search_exa"),
]


@pytest.mark.parametrize("owner", OTHERS)
def test_a_secret_is_opened_for_its_own_purpose_row_and_item_and_for_no_other(owner: Owner) -> None:
    own = sealed(KEY, owner)
    for other in OTHERS:
        if other == owner:
            assert open_secret(own, other) == KEY
            continue
        with pytest.raises(SecretForeign) as refusal:
            open_secret(own, other)
        assert refusal.value.error_code == "secret_foreign"
        assert not any(text in refusal.value.detail for text in (KEY, own.name, other.secret_name))


def test_each_opening_stands_in_the_audit_log_once_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    owner, unread = new_owner(), new_owner()
    for _ in range(3):
        open_secret(sealed(KEY, owner), owner)
    with pytest.raises(SecretForeign):
        open_secret(sealed(KEY, owner), unread)
    (entry,) = openings_of(owner, 1)
    assert (entry.object_type, entry.object_id) == ("prompts.endpoint", owner.pk)
    assert entry.after["purpose"] == "model endpoint"
    assert entry.after["process"].endswith(f":{os.getpid()}")
    assert KEY not in str(list(AuditEntry.objects.filter(pk=entry.pk).values()))
    assert openings_of(unread, 0) == []
    monkeypatch.setattr(key_openings, "EVERY_S", 0.0)
    open_secret(sealed(KEY, owner), owner)
    assert len(openings_of(owner, 2)) == 2


def test_what_could_not_be_written_of_an_opening_is_written_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def away(*_: object) -> None:
        tries.append("write")
        raise OSError

    tries: list[str] = []
    owner = new_owner()
    with monkeypatch.context() as patch, suppress(OSError):
        patch.setattr(key_openings, "sql", SimpleNamespace(change=away))
        open_secret(sealed(KEY, owner), owner)
        run_sync(key_openings.write())
    assert tries
    assert len(openings_of(owner, 1)) == 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("a", "*"),
        ("12345678", "********"),
        ("123456789", "1234***6789"),
        (KEY, "sk-p***0123"),
    ],
)
def test_a_mask_shows_the_ends_of_long_keys_only(text: str, shown: str) -> None:
    assert secrets.mask(text) == shown


def test_an_older_sealing_key_still_opens(settings: Settings) -> None:
    old, new = new_key(), new_key()
    settings.SEALING_KEYS = [old]
    owner = new_owner()
    held = sealed(KEY, owner)
    settings.SEALING_KEYS = [new, old]
    assert open_secret(held, owner) == KEY
    row = Secret(pk=0, name=held.name, sealed=held.text)
    assert [secrets.reseal(row), secrets.reseal(row)] == [True, False]
    assert open_secret(secrets.get_sealed(row), owner) == KEY


@pytest.mark.parametrize("text", ["", "nonsense", "ключ", secrets.seal(KEY)])
def test_without_the_right_sealing_key_the_error_names_the_setting(
    settings: Settings, text: str
) -> None:
    settings.SEALING_KEYS = [new_key()]
    owner = new_owner()
    with pytest.raises(SecretUnreadable, match="SEALING_KEYS") as refusal:
        open_secret(SealedSecret(owner.secret_name, text), owner)
    assert refusal.value.error_code == "secret_unreadable"
    assert KEY not in str(refusal.value)


def test_storing_again_replaces_the_key_under_its_name() -> None:
    owner = new_owner()
    first = secrets.store(owner, KEY)
    second = secrets.store(owner, "sk-another-key-9999")
    assert (second.pk, second.mask) == (first.pk, "sk-a***9999")
    assert opened(owner.secret_name, owner) == "sk-another-key-9999"


@pytest.mark.parametrize("text", ["", "two\nlines", "nul\x00", "kéy", "x" * 4097])
def test_what_no_header_could_carry_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        secrets.store(new_owner(), text)
    assert refusal.value.error_code == "key_invalid"
    assert not text or text not in refusal.value.detail


def test_an_endpoints_key_is_set_changed_and_removed_and_never_logged() -> None:
    endpoint = make_endpoint()
    with lines_about("endpoint") as lines:
        staff_actions.rotate_secret(endpoint, f"  {KEY}\n")
        endpoint.refresh_from_db()
        assert endpoint.secret is not None
        owner = Purpose.MODEL_ENDPOINT.of(endpoint.pk)
        assert (endpoint.secret.mask, opened(f"endpoint:{endpoint.pk}", owner)) == ("sk-p***0123", KEY)
        staff_actions.rotate_secret(endpoint, "")
    assert Endpoint.objects.get(pk=endpoint.pk).secret is None
    assert not Secret.objects.filter(name=f"endpoint:{endpoint.pk}").exists()
    assert [(line["event"], line["endpoint"], line["removed"], line["by"]) for line in lines] == [
        ("endpoint key changed", endpoint.name, False, "parley"),
        ("endpoint key changed", endpoint.name, True, "parley"),
    ]
    assert KEY not in str(lines)


def test_deleting_an_endpoint_deletes_its_sealed_key() -> None:
    endpoint = make_endpoint()
    staff_actions.rotate_secret(endpoint, KEY)
    name = f"endpoint:{endpoint.pk}"
    staff_actions.delete_endpoint(endpoint, by=None)
    assert not Secret.objects.filter(name=name).exists()


def test_rotate_keys_seals_every_secret_again_and_a_second_time_changes_nothing(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prompts.management.commands.rotate_keys._BATCH", 3)
    old, new = new_key(), new_key()
    with undone():
        Secret.objects.all().delete()
        settings.SEALING_KEYS = [old]
        for number in range(8):
            secrets.store(Purpose.PLUGIN_RUNTIME.of(number), f"{KEY}-{number}")
        settings.SEALING_KEYS = [new, old]
        first = rotate()
        settings.SEALING_KEYS = [new]
        held = dict(Secret.objects.values_list("name", "sealed"))
        texts = [opened(f"plugin:{n}", Purpose.PLUGIN_RUNTIME.of(n)) for n in range(8)]
        second = rotate()
        unchanged = dict(Secret.objects.values_list("name", "sealed")) == held
    assert texts == [f"{KEY}-{number}" for number in range(8)]
    assert first.splitlines() == [
        "3 of 8 keys checked, 3 sealed again",
        "6 of 8 keys checked, 6 sealed again",
        "8 of 8 keys checked, 8 sealed again",
        "Done: 8 sealed again, 0 already up to date.",
    ]
    assert second.splitlines()[-1] == "Done: 0 sealed again, 8 already up to date."
    assert unchanged
    assert not re.search("|".join(map(re.escape, (KEY, old, new))), first + second)


def test_rotate_keys_names_what_it_cannot_open_and_rotates_the_rest(settings: Settings) -> None:
    old, new = new_key(), new_key()
    with undone():
        Secret.objects.all().delete()
        settings.SEALING_KEYS = [old]
        owner = new_owner()
        secrets.store(owner, KEY)
        Secret.objects.create(name="lost", sealed=Fernet(new_key()).encrypt(b"x").decode(), mask="*")
        settings.SEALING_KEYS = [new, old]
        with pytest.raises(CommandError, match=r"1 cannot be opened by any of SEALING_KEYS: lost\."):
            rotate()
        settings.SEALING_KEYS = [new]
        assert opened(owner.secret_name, owner) == KEY


def rotate() -> str:
    out = io.StringIO()
    call_command("rotate_keys", stdout=out)
    return out.getvalue()
