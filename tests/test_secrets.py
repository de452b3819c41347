"""Keys: sealed at rest, shown masked, rotated without loss, never in a log."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from django.db import transaction
from pytest_django import Settings
from structlog.testing import capture_logs

from config.errors import InvalidRequest
from prompts import actions, secrets
from prompts.models import Endpoint, Secret

KEY = "sk-proj-abcdefghijklmnop-0123"


@contextmanager
def undone() -> Iterator[None]:
    """A transaction that leaves nothing behind, for what reaches beyond the test's own rows."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def new_key() -> str:
    return Fernet.generate_key().decode()


def make_endpoint() -> Endpoint:
    return Endpoint.objects.create(
        name=uuid4().hex, provider="acme", base_url="https://api.example.com/v1"
    )


def test_what_is_sealed_opens_again_and_is_not_readable() -> None:
    sealed = secrets.seal("鍵 and key")
    assert secrets.open_sealed(sealed) == "鍵 and key"
    assert "key" not in sealed
    assert secrets.seal("鍵 and key") != sealed


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
    sealed = secrets.seal(KEY)
    settings.SEALING_KEYS = [new, old]
    assert secrets.open_sealed(sealed) == KEY
    assert not secrets.is_newest(sealed)
    assert secrets.is_newest(secrets.seal(KEY))


@pytest.mark.parametrize("sealed", ["", "nonsense", "ключ", secrets.seal(KEY)])
def test_without_the_right_sealing_key_the_error_names_the_setting(
    settings: Settings, sealed: str
) -> None:
    settings.SEALING_KEYS = [new_key()]
    with pytest.raises(secrets.SecretUnreadable, match="SEALING_KEYS") as refusal:
        secrets.open_sealed(sealed)
    assert refusal.value.error_code == "secret_unreadable"
    assert KEY not in str(refusal.value)


def test_storing_again_replaces_the_key_under_its_name() -> None:
    name = uuid4().hex
    first = secrets.store(name, KEY)
    second = secrets.store(name, "sk-another-key-9999")
    assert (second.pk, second.mask) == (first.pk, "sk-a***9999")
    assert secrets.open_sealed(Secret.objects.get(name=name).sealed) == "sk-another-key-9999"


@pytest.mark.parametrize("text", ["", "two\nlines", "nul\x00", "kéy", "x" * 4097])
def test_what_no_header_could_carry_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        secrets.store(uuid4().hex, text)
    assert refusal.value.error_code == "key_invalid"
    assert not text or text not in refusal.value.detail


def test_an_endpoints_key_is_set_changed_and_removed_and_never_logged() -> None:
    endpoint = make_endpoint()
    with capture_logs() as lines:
        actions.rotate_secret(endpoint, f"  {KEY}\n")
        endpoint.refresh_from_db()
        assert endpoint.secret is not None
        assert (endpoint.secret.mask, secrets.open_sealed(endpoint.secret.sealed)) == (
            "sk-p***0123",
            KEY,
        )
        actions.rotate_secret(endpoint, "")
    assert Endpoint.objects.get(pk=endpoint.pk).secret is None
    assert not Secret.objects.filter(name=f"endpoint:{endpoint.pk}").exists()
    assert [(line["event"], line["endpoint"], line["removed"], line["by"]) for line in lines] == [
        ("endpoint key changed", endpoint.name, False, "parley"),
        ("endpoint key changed", endpoint.name, True, "parley"),
    ]
    assert KEY not in str(lines)


def test_deleting_an_endpoint_deletes_its_sealed_key() -> None:
    endpoint = make_endpoint()
    actions.rotate_secret(endpoint, KEY)
    name = f"endpoint:{endpoint.pk}"
    actions.delete_endpoint(endpoint, by=None)
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
            secrets.store(f"s{number}", f"{KEY}-{number}")
        settings.SEALING_KEYS = [new, old]
        first = rotate()
        settings.SEALING_KEYS = [new]
        sealed = dict(Secret.objects.values_list("name", "sealed"))
        opened = {name: secrets.open_sealed(text) for name, text in sealed.items()}
        second = rotate()
        unchanged = dict(Secret.objects.values_list("name", "sealed")) == sealed
    assert opened == {f"s{number}": f"{KEY}-{number}" for number in range(8)}
    assert first.splitlines() == [
        "3 of 8 keys looked at, 3 sealed again",
        "6 of 8 keys looked at, 6 sealed again",
        "8 of 8 keys looked at, 8 sealed again",
        "Done: 8 sealed again, 0 already newest.",
    ]
    assert second.splitlines()[-1] == "Done: 0 sealed again, 8 already newest."
    assert unchanged
    assert not re.search("|".join(map(re.escape, (KEY, old, new))), first + second)


def test_rotate_keys_names_what_it_cannot_open_and_rotates_the_rest(settings: Settings) -> None:
    old, new = new_key(), new_key()
    with undone():
        Secret.objects.all().delete()
        settings.SEALING_KEYS = [old]
        secrets.store("readable", KEY)
        Secret.objects.create(name="lost", sealed=Fernet(new_key()).encrypt(b"x").decode(), mask="*")
        settings.SEALING_KEYS = [new, old]
        with pytest.raises(CommandError, match=r"1 cannot be opened by any of SEALING_KEYS: lost\."):
            rotate()
        assert secrets.is_newest(Secret.objects.get(name="readable").sealed)


def rotate() -> str:
    out = io.StringIO()
    call_command("rotate_keys", stdout=out)
    return out.getvalue()
