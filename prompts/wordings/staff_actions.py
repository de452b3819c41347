"""Actions of staff on prompts and keys; each is one transaction and one log line.

A version never changes; the database enforces this too (migration 0002). The log contains
who did what, never a wording or a key.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import structlog
from django.db import transaction
from django.utils import timezone

from config import sql
from config.audit.recording import record
from config.auth.models import User
from config.errors import InvalidRequest
from prompts.endpoints import secrets
from prompts.models import Endpoint, Prompt, PromptVersion, Secret
from prompts.wordings import active

log = structlog.get_logger(__name__)

LONGEST_PROMPT: Final = 200_000
LONGEST_NOTE: Final = 500
_OUT_OF_USE: Final[dict[str, Any]] = {"is_active": False, "split_version": None, "split_percent": 0}
_UNSTORABLE: Final = re.compile(r"[\x00\ud800-\udfff]")  # JSON can express lone surrogates, UTF-8 cannot
_ESCAPED_NUL: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


@transaction.atomic
def save_version(
    prompt: Prompt, content: str, *, author: User | None, note: str = "", tools_json: Any = None
) -> PromptVersion:
    """Add and return the next version, or return the newest one if it is the same.

    Saving does not activate. `author` is None for Parley itself.
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
    after = {"version": version.number, "note": note, "characters": len(content)}
    record("saved", prompt, by=author, after=after)
    log.info("prompt version saved", prompt=prompt.name, number=version.number, by=_username(author))
    return version


@transaction.atomic
def activate_version(version: PromptVersion, *, by: User | None) -> Prompt:
    """Make this version the active one of its prompt, and the prompt the active one of its kind.

    This ends a split of the prompt. The previous version is stored for a rollback.
    """
    kind = Prompt.objects.values_list("kind", flat=True).get(pk=version.prompt_id)
    _lock_kind(kind)
    prompt = Prompt.objects.select_related("active_version").get(pk=version.prompt_id)
    before = _describe_active(kind)
    was = prompt.active_version
    previous = was if was is not None and was.pk != version.pk else prompt.previous_version
    Prompt.objects.filter(kind=kind, is_active=True).exclude(pk=prompt.pk).update(**_OUT_OF_USE)
    in_use = _OUT_OF_USE | {"is_active": True, "active_version": version, "previous_version": previous}
    Prompt.objects.filter(pk=prompt.pk).update(**in_use)
    transaction.on_commit(active.clear_cache)
    rolls_back = was is not None and version.number < was.number
    record(
        "rolled back" if rolls_back else "activated",
        prompt,
        by=by,
        before={"in use": before},
        after={"in use": f"{prompt.name} v{version.number}"},
    )
    log.info("prompt version activated", prompt=prompt.name, number=version.number, by=_username(by))
    prompt.refresh_from_db()
    return prompt


@transaction.atomic
def deactivate(prompt: Prompt, *, by: User | None) -> None:
    """Deactivate the prompt; until another is activated, runs get no prompt of its kind."""
    _lock_kind(prompt.kind)
    before = _describe_active(prompt.kind)
    Prompt.objects.filter(pk=prompt.pk).update(**_OUT_OF_USE)
    transaction.on_commit(active.clear_cache)
    record("deactivated", prompt, by=by, before={"in use": before}, after={"in use": ""})
    log.info("prompt deactivated", prompt=prompt.name, by=_username(by))
    prompt.refresh_from_db()


@transaction.atomic
def delete_prompt(prompt: Prompt, *, by: User | None) -> None:
    """Deactivate and hide the prompt, and free its name; its versions stay for their runs."""
    name = prompt.name
    Prompt.objects.filter(pk=prompt.pk).update(
        **_OUT_OF_USE, deleted_at=timezone.now(), name=f"{name[:170]} (deleted {prompt.pk})"
    )
    transaction.on_commit(active.clear_cache)
    record("deleted", prompt, by=by, before={"name": name}, name=name)
    prompt.refresh_from_db()
    log.info("prompt deleted", prompt=name, by=_username(by))


@transaction.atomic
def rotate_secret(endpoint: Endpoint, key: str, *, by: User | None = None) -> None:
    """Store a new key of the endpoint, without surrounding white space; an empty one removes it."""
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
    log.info("endpoint key changed", endpoint=endpoint.name, removed=not key, by=_username(by))


@transaction.atomic
def delete_endpoint(endpoint: Endpoint, *, by: User | None) -> None:
    """Delete the endpoint, its candidates and its sealed key."""
    _remove_secret(endpoint)
    name = endpoint.name
    endpoint.delete()
    log.info("endpoint deleted", endpoint=name, by=_username(by))


def check_wording(content: str) -> None:
    """Raise `InvalidRequest` for a wording that cannot be saved."""
    check_text("content", content, longest=LONGEST_PROMPT)


def check_tools(tools_json: Any) -> None:
    """Raise `InvalidRequest` for tool definitions that cannot be saved."""
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


def _describe_active(kind: str) -> str:
    """Return the active prompt and version of this kind, for people."""
    prompt = Prompt.objects.filter(kind=kind, is_active=True).select_related("active_version").first()
    return f"{prompt.name} v{prompt.active_version.number}" if prompt and prompt.active_version else ""


def _lock_kind(kind: str) -> None:
    """Lock activations of prompts of this kind until the transaction ends.

    Row locks are not enough: the prompt of a concurrent transaction may not be visible yet.
    """
    sql.fetch("SELECT pg_advisory_xact_lock(hashtext('prompts.activate'), hashtext(%s))", [kind])


def check_text(field: str, text: str, *, longest: int) -> None:
    """Raise `InvalidRequest` for a text that is too long or cannot be stored."""
    if len(text) > longest:
        raise InvalidRequest(f"{field} is longer than {longest} characters.", field=field)
    if _UNSTORABLE.search(text):
        raise InvalidRequest(f"{field} holds characters that cannot be stored.", field=field)


def _username(user: User | None) -> str:
    return user.get_username() if user else "parley"
