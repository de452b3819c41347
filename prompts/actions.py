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
    _check_text("note", note, longest=LONGEST_NOTE)
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
    log.info("prompt version published", prompt=prompt.name, number=version.number, by=_name(author))
    return version


@transaction.atomic
def activate_version(version: PromptVersion, *, by: User | None) -> Prompt:
    """Make this version the one in use for its prompt, and its prompt the one in use for its kind."""
    prompt = Prompt.objects.get(pk=version.prompt_id)
    _lock_kind(prompt.kind)
    Prompt.objects.filter(kind=prompt.kind, is_active=True).exclude(pk=prompt.pk).update(is_active=False)
    Prompt.objects.filter(pk=prompt.pk).update(is_active=True, active_version=version)
    transaction.on_commit(active.forget)
    log.info("prompt version activated", prompt=prompt.name, number=version.number, by=_name(by))
    prompt.refresh_from_db()
    return prompt


@transaction.atomic
def deactivate(prompt: Prompt, *, by: User | None) -> None:
    """Take the prompt out of use; until another is activated its kind adds nothing to a run."""
    _lock_kind(prompt.kind)
    Prompt.objects.filter(pk=prompt.pk).update(is_active=False)
    transaction.on_commit(active.forget)
    log.info("prompt deactivated", prompt=prompt.name, by=_name(by))
    prompt.refresh_from_db()


@transaction.atomic
def rotate_secret(endpoint: Endpoint, key: str, *, by: User | None = None) -> None:
    """Seal a new key for the endpoint; an empty one removes it. White space round it is dropped."""
    key = key.strip()
    if key:
        endpoint.secret = secrets.store(f"endpoint:{endpoint.pk}", key)
        endpoint.save(update_fields=["secret", "updated_at"])
    else:
        _remove_secret(endpoint)
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
    _check_text("content", content, longest=LONGEST_PROMPT)


def check_tools(tools_json: Any) -> None:
    """Raise `InvalidRequest` for tool definitions that cannot be published."""
    try:
        text = json.dumps(tools_json, ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise InvalidRequest("tools_json is not valid JSON.", field="tools_json") from None
    _check_text("tools_json", _ESCAPED_NUL.sub("\x00", text), longest=LONGEST_PROMPT)


def _remove_secret(endpoint: Endpoint) -> None:
    removed, endpoint.secret = endpoint.secret_id, None
    endpoint.save(update_fields=["secret", "updated_at"])
    if removed is not None:
        Secret.objects.filter(pk=removed).delete()


def _lock_kind(kind: str) -> None:
    """Until the transaction ends, nobody else activates a prompt of this kind.

    Row locks would not do: the prompt of a concurrent transaction may not be visible yet.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtext('prompts.activate'), hashtext(%s))", [kind]
        )


def _check_text(field: str, text: str, *, longest: int) -> None:
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
