"""What staff may do to prompts and keys; each is one transaction and one line in the log.

A version, once published, never changes: the database refuses it too (migration 0002). What is
logged says who and what, never a wording or a key.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import structlog
from django.db import connection, transaction
from django.utils import timezone

from config.audit.recording import record
from config.auth.models import User
from config.errors import InvalidRequest
from prompts import active, secrets
from prompts.models import Endpoint, Prompt, PromptVersion, Secret

log = structlog.get_logger(__name__)

LONGEST_PROMPT: Final = 200_000
LONGEST_NOTE: Final = 500
_ESCAPED_NUL: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


@transaction.atomic
def publish_version(
    prompt: Prompt, content: str, *, author: User | None, note: str = "", tools_json: Any = None
) -> PromptVersion:
    """Add the next version; the newest one is returned instead when it says the same.

    Publishing does not activate. `author` is None for what Parley itself writes.
    """
    check_wording(content)
    check_tools(tools_json)
    check_text("note", note, longest=LONGEST_NOTE)
    Prompt.objects.select_for_update().get(pk=prompt.pk)
    newest = prompt.versions.order_by("-number").first()
    if newest is not None and (newest.content, newest.tools_json) == (content, tools_json):
        return newest
    version = prompt.versions.create(
        number=newest.number + 1 if newest else 1,
        content=content,
        note=note,
        tools_json=tools_json,
        author=author,
    )
    told = {"version": version.number, "note": note, "characters": len(content)}
    record("published", prompt, by=author, after=told)
    log.info("prompt version published", prompt=prompt.name, number=version.number, by=_name(author))
    return version


@transaction.atomic
def activate_version(version: PromptVersion, *, by: User | None) -> Prompt:
    """Make this version the one in use for its prompt, and its prompt the one in use for its kind.

    A split of the prompt ends; what was active is remembered, to roll back to.
    """
    kind = Prompt.objects.values_list("kind", flat=True).get(pk=version.prompt_id)
    _lock_kind(kind)
    prompt = Prompt.objects.select_related("active_version").get(pk=version.prompt_id)
    before = _in_use(kind)
    was = prompt.active_version
    previous = was if was is not None and was.pk != version.pk else prompt.previous_version
    Prompt.objects.filter(kind=kind, is_active=True).exclude(pk=prompt.pk).update(
        is_active=False, split_version=None, split_percent=0
    )
    Prompt.objects.filter(pk=prompt.pk).update(
        is_active=True,
        active_version=version,
        previous_version=previous,
        split_version=None,
        split_percent=0,
    )
    transaction.on_commit(active.forget)
    rolls_back = was is not None and version.number < was.number
    record(
        "rolled back" if rolls_back else "activated",
        prompt,
        by=by,
        before={"in use": before},
        after={"in use": f"{prompt.name} v{version.number}"},
    )
    log.info("prompt version activated", prompt=prompt.name, number=version.number, by=_name(by))
    prompt.refresh_from_db()
    return prompt


@transaction.atomic
def deactivate(prompt: Prompt, *, by: User | None) -> None:
    """Take the prompt out of use; until another is activated its kind adds nothing to a run."""
    _lock_kind(prompt.kind)
    before = _in_use(prompt.kind)
    Prompt.objects.filter(pk=prompt.pk).update(is_active=False, split_version=None, split_percent=0)
    transaction.on_commit(active.forget)
    record("deactivated", prompt, by=by, before={"in use": before}, after={"in use": ""})
    log.info("prompt deactivated", prompt=prompt.name, by=_name(by))
    prompt.refresh_from_db()


@transaction.atomic
def delete_prompt(prompt: Prompt, *, by: User | None) -> None:
    """Take the prompt out of use and out of sight, and free its name; what runs were told stays."""
    name = prompt.name
    Prompt.objects.filter(pk=prompt.pk).update(
        is_active=False,
        deleted_at=timezone.now(),
        name=f"{name[:170]} (deleted {prompt.pk})",
        split_version=None,
        split_percent=0,
    )
    transaction.on_commit(active.forget)
    record("deleted", prompt, by=by, before={"name": name}, name=name)
    prompt.refresh_from_db()
    log.info("prompt deleted", prompt=name, by=_name(by))


@transaction.atomic
def rotate_secret(endpoint: Endpoint, key: str, *, by: User | None = None) -> None:
    """Seal a new key for the endpoint; an empty one removes it. White space round it is dropped."""
    key = key.strip()
    before = endpoint.secret.mask if endpoint.secret else ""
    if key:
        endpoint.secret = secrets.store(secrets.Purpose.MODEL_ENDPOINT.of(endpoint.pk), key)
        endpoint.save(update_fields=["secret", "updated_at"])
    else:
        _remove_secret(endpoint)
    after = endpoint.secret.mask if endpoint.secret else ""
    record(
        "key changed" if key else "key removed",
        endpoint,
        by=by,
        before={"key": before},
        after={"key": after},
    )
    log.info("endpoint key changed", endpoint=endpoint.name, removed=not key, by=_name(by))


@transaction.atomic
def delete_endpoint(endpoint: Endpoint, *, by: User | None) -> None:
    """Delete the endpoint, its candidates and its sealed key."""
    _remove_secret(endpoint)
    name = endpoint.name
    endpoint.delete()
    log.info("endpoint deleted", endpoint=name, by=_name(by))


def check_wording(content: str) -> None:
    """Raise `InvalidRequest` for a wording that cannot be published."""
    check_text("content", content, longest=LONGEST_PROMPT)


def check_tools(tools_json: Any) -> None:
    """Raise `InvalidRequest` for tool definitions that cannot be published."""
    try:
        text = json.dumps(tools_json, ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise InvalidRequest("tools_json is not valid JSON.", field="tools_json") from None
    check_text("tools_json", _ESCAPED_NUL.sub("\x00", text), longest=LONGEST_PROMPT)


def _remove_secret(endpoint: Endpoint) -> None:
    removed, endpoint.secret = endpoint.secret_id, None
    endpoint.save(update_fields=["secret", "updated_at"])
    if removed is not None:
        Secret.objects.filter(pk=removed).delete()


def _in_use(kind: str) -> str:
    """The prompt and version in use for this kind, for people."""
    held = Prompt.objects.filter(kind=kind, is_active=True).select_related("active_version").first()
    return f"{held.name} v{held.active_version.number}" if held and held.active_version else ""


def _lock_kind(kind: str) -> None:
    """Until the transaction ends, nobody else activates a prompt of this kind.

    Row locks would not do: the prompt of a concurrent transaction may not be visible yet.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtext('prompts.activate'), hashtext(%s))", [kind]
        )


def check_text(field: str, text: str, *, longest: int) -> None:
    """Raise `InvalidRequest` for a text that is too long or that no row can hold."""
    if len(text) > longest:
        raise InvalidRequest(f"{field} is longer than {longest} characters.", field=field)
    if "\x00" in text or not _is_unicode(text):
        raise InvalidRequest(f"{field} holds characters that cannot be stored.", field=field)


def _is_unicode(text: str) -> bool:
    """False for half of a surrogate pair, which JSON can express and UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _name(user: User | None) -> str:
    return user.get_username() if user else "parley"
