"""Releases of prompt versions: labels, and splits between two versions.

Each change is one transaction with an entry in the audit log, and takes effect in every process
within half a second (`active`).
"""

from __future__ import annotations

from typing import Any, Final

import structlog
from django.core.exceptions import ValidationError
from django.db import transaction

from config.audit.recording import record
from config.auth.models import User
from config.errors import InvalidRequest
from prompts.models import Prompt, PromptLabel, PromptVersion
from prompts.wordings import active

log = structlog.get_logger(__name__)
MOST_LABELS: Final = 20


@transaction.atomic
def move_label(prompt: Prompt, name: str, version: PromptVersion, *, by: User | None) -> PromptLabel:
    """Point the label to the version; raise `InvalidRequest` for an invalid name."""
    Prompt.objects.select_for_update().get(pk=prompt.pk)
    label = prompt.labels.select_related("version").filter(name=name).first()
    before = label.version.number if label else None
    label = label or PromptLabel(prompt=prompt, name=name)
    label.version = version
    if before is None and prompt.labels.count() >= MOST_LABELS:
        raise InvalidRequest(f"A prompt has at most {MOST_LABELS} labels.", field="label")
    try:
        label.full_clean(validate_unique=False, validate_constraints=False)
    except ValidationError as problem:
        raise InvalidRequest(f"Invalid label. {' '.join(problem.messages)}", field="label") from None
    if before == version.number:
        return label
    label.save()
    was, now = {name: _format_version(before)}, {name: _format_version(version.number)}
    _record_change(prompt, "label moved", by, was, now)
    return label


@transaction.atomic
def remove_label(prompt: Prompt, name: str, *, by: User | None) -> None:
    """Remove the label if it exists."""
    label = prompt.labels.select_related("version").filter(name=name).first()
    if label is not None:
        label.delete()
        _record_change(prompt, "label removed", by, {name: _format_version(label.version.number)}, {})


@transaction.atomic
def split(prompt: Prompt, version: PromptVersion, percent: int, *, by: User | None) -> Prompt:
    """Give this version to `percent` of 100 threads, and the active one to the others.

    A thread keeps its version as long as the split is between the same two versions; a larger share
    moves threads only towards this version. Raise `InvalidRequest` unless the prompt is in use with
    another version and the share is 1 to 99.
    """
    held = _lock(prompt)
    if not held.is_active or held.active_version_id is None:
        raise InvalidRequest("Only a prompt in use can be split. Activate it first.", field="version")
    if version.prompt_id != held.pk or version.pk == held.active_version_id:
        raise InvalidRequest("Choose another version than the active one.", field="version")
    if not 1 <= percent <= 99:
        raise InvalidRequest("The share is 1 to 99 of 100 threads.", field="percent")
    before = _describe_split(held)
    held.split_version, held.split_percent = version, percent
    held.save(update_fields=["split_version", "split_percent"])
    _record_change(held, "split set", by, before, _describe_split(held))
    return held


@transaction.atomic
def end_split(prompt: Prompt, *, by: User | None) -> Prompt:
    """End the split, so that every thread gets the active version."""
    held = _lock(prompt)
    before = _describe_split(held)
    if before:
        held.split_version, held.split_percent = None, 0
        held.save(update_fields=["split_version", "split_percent"])
        _record_change(held, "split ended", by, before, {})
    return held


def _lock(prompt: Prompt) -> Prompt:
    """Return the prompt as it is stored, locked until the transaction ends."""
    locked = Prompt.objects.select_for_update(of=("self",))
    return locked.select_related("split_version").get(pk=prompt.pk)


def _describe_split(prompt: Prompt) -> dict[str, Any]:
    if prompt.split_version is None:
        return {}
    return {"split": f"{_format_version(prompt.split_version.number)} for {prompt.split_percent} %"}


def _format_version(number: int | None) -> str:
    return f"v{number}" if number is not None else ""


def _record_change(
    prompt: Prompt, action: str, by: User | None, before: dict[str, Any], after: dict[str, Any]
) -> None:
    transaction.on_commit(active.clear_cache)
    record(action, prompt, by=by, before=before, after=after)
    log.info(action, prompt=prompt.name, before=before, after=after, by=by.get_username() if by else "")
