"""Prompts as items of the REST API: the content is the newest wording (specs/text-run.md §4).

No wording is ever lost: a PUT saves the next version, and the versions of a deleted prompt stay
for the runs that used them.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from django.db import IntegrityError, transaction
from django.db.models import F, OuterRef, QuerySet, Subquery
from msgspec import UNSET, Meta, Struct, UnsetType

from config.auth.models import User
from config.errors import Conflict, InvalidRequest, NotFound
from config.http.documentation.json_types import Shown, Time, component
from prompts.models import Prompt, PromptVersion
from prompts.wordings import staff_actions

LARGEST_PAGE: Final = 100
_Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00]*\S[^\x00]*\Z")]
_Line = Annotated[str, Meta(max_length=100, pattern=r"^[^\x00]*\Z")]
_Text = Annotated[str, Meta(max_length=4_000, pattern=r"^[^\x00]*\Z")]
Tools = Annotated[Any, component("PromptTools")]
Kind = Literal["agent_system", "agent_tools", "system", "tools"]


class PromptBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The writable fields; `id`, `version` and the times of a read item are accepted and ignored."""

    name: _Name | UnsetType = UNSET
    content: str | UnsetType = UNSET
    prompt_type: Kind | UnsetType = UNSET
    category: _Line | UnsetType | None = UNSET
    description: _Text | UnsetType | None = UNSET
    tools_json: Any = UNSET
    is_active: bool | UnsetType = UNSET
    note: Annotated[str, Meta(max_length=staff_actions.LONGEST_NOTE)] = ""
    id: Any = None
    version: Any = None
    active_version: Any = None
    created_at: Any = None
    updated_at: Any = None


class PromptItem(Shown, frozen=True):
    """A prompt with its newest wording."""

    id: int
    name: str
    content: str
    version: int | None
    category: str
    description: str
    tools_json: Tools
    prompt_type: str
    is_active: bool
    active_version: int | None
    created_at: Time
    updated_at: Time


class ActivePrompt(Shown, frozen=True):
    """The active version of a prompt."""

    id: int
    name: str
    version: int
    content: str
    tools_json: Tools


def parse_body(raw: Any) -> PromptBody:
    """Return the parsed body; raise `InvalidRequest`."""
    try:
        body = msgspec.convert(raw, PromptBody)
    except msgspec.ValidationError as problem:
        raise InvalidRequest(f"The body is not a prompt: {problem}.") from None
    for field in (body.name, body.category, body.description):
        if isinstance(field, str):
            staff_actions.check_text("name, category or description", field, longest=4_000)
    if body.tools_json is not UNSET and body.tools_json is not None:
        check_tools(body.tools_json)
    return body


def check_tools(tools_json: Any) -> None:
    """Raise `InvalidRequest` unless tools are a list of objects, or one object."""
    items = tools_json if isinstance(tools_json, list) else [tools_json]
    if not all(isinstance(get_item, dict) for get_item in items):
        raise InvalidRequest("tools_json must be a list of tool definitions.", field="tools_json")
    staff_actions.check_tools(tools_json)


def list_page(
    *, number: int, size: int, kind: str | None, is_active: bool | None
) -> tuple[int, list[PromptItem]]:
    """Return the number of prompts, and those of one page, by name."""
    found = _query_prompts().order_by("name")
    if kind:
        found = found.filter(kind=kind)
    if is_active is not None:
        found = found.filter(is_active=is_active)
    start = (number - 1) * size
    return found.count(), [_show(prompt) for prompt in found[start : start + size]]


def get_item(prompt_id: int) -> PromptItem:
    """Return one prompt; raise `NotFound`."""
    return _show(_get(prompt_id))


def get_active(kind: str) -> ActivePrompt | None:
    """Return the active version of this kind."""
    prompt = Prompt.objects.filter(is_active=True, kind=kind).select_related("active_version").first()
    if prompt is None or prompt.active_version is None:
        return None
    version = prompt.active_version
    return ActivePrompt(prompt.pk, prompt.name, version.number, version.content, version.tools_json)


@transaction.atomic
def create(body: PromptBody, *, by: User) -> PromptItem:
    """Create a prompt with its first version; raise `Conflict` if the name is taken."""
    if body.name is UNSET or body.content is UNSET or body.prompt_type is UNSET:
        raise InvalidRequest("name, content and prompt_type are required.")
    prompt = Prompt(name=body.name.strip(), kind=body.prompt_type)
    _save(prompt, body)
    _add_version(prompt, body, by=by)
    return get_item(prompt.pk)


@transaction.atomic
def update(prompt_id: int, body: PromptBody, *, by: User) -> PromptItem:
    """Change the given fields; a new wording becomes the next version, active if the prompt is."""
    prompt = Prompt.objects.select_for_update().filter(deleted_at=None, pk=prompt_id).first()
    if prompt is None:
        raise _not_found()
    if body.prompt_type is not UNSET and body.prompt_type != prompt.kind:
        raise InvalidRequest("A prompt cannot change its type.", field="prompt_type")
    if body.name is not UNSET:
        prompt.name = body.name.strip()
    _save(prompt, body)
    _add_version(prompt, body, by=by)
    return get_item(prompt_id)


@transaction.atomic
def delete(prompt_id: int, *, by: User) -> None:
    """Delete the prompt but not its versions, which runs used; raise `Conflict` if it is active."""
    prompt = _get(prompt_id)
    if prompt.is_active:
        raise Conflict("The prompt is in use. Activate another one first.", code="prompt_active")
    staff_actions.delete_prompt(prompt, by=by)


def activate(prompt_id: int, number: int | None, *, by: User) -> PromptItem:
    """Activate the newest version, or the one with this number."""
    prompt = _get(prompt_id)
    versions = prompt.versions.order_by("-number")
    version = (versions.filter(number=number) if number is not None else versions).first()
    if version is None:
        raise NotFound("The prompt has no such version.", code="prompt_version_not_found")
    staff_actions.activate_version(version, by=by)
    return get_item(prompt_id)


def _save(prompt: Prompt, body: PromptBody) -> None:
    if body.category is not UNSET:
        prompt.category = body.category or ""
    if body.description is not UNSET:
        prompt.description = body.description or ""
    try:
        with transaction.atomic():
            prompt.save()
    except IntegrityError:
        raise Conflict("There is a prompt of this name already.", code="prompt_name_taken") from None


def _add_version(prompt: Prompt, body: PromptBody, *, by: User) -> None:
    newest = prompt.versions.first()
    content = body.content if body.content is not UNSET else newest.content if newest else ""
    tools = body.tools_json if body.tools_json is not UNSET else newest.tools_json if newest else None
    version = staff_actions.save_version(prompt, content, author=by, note=body.note, tools_json=tools)
    is_active = body.is_active if body.is_active is not UNSET else prompt.is_active
    if is_active and not (prompt.is_active and prompt.active_version_id == version.pk):
        staff_actions.activate_version(version, by=by)
    elif prompt.is_active and not is_active:
        staff_actions.deactivate(prompt, by=by)


def _query_prompts() -> QuerySet[Prompt]:
    """Return a query of the prompts with their newest versions."""
    newest = PromptVersion.objects.filter(prompt=OuterRef("pk")).order_by("-number")
    return Prompt.objects.filter(deleted_at=None).annotate(
        version=Subquery(newest.values("number")[:1]),
        content=Subquery(newest.values("content")[:1]),
        tools_json=Subquery(newest.values("tools_json")[:1]),
        updated_at=Subquery(newest.values("created_at")[:1]),
        active_number=F("active_version__number"),
    )


def _get(prompt_id: int) -> Any:
    found = _query_prompts().filter(pk=prompt_id).first()
    if found is None:
        raise _not_found()
    return found


def _not_found() -> NotFound:
    return NotFound("There is no such prompt.", code="prompt_not_found")


def _show(prompt: Any) -> PromptItem:
    return PromptItem(
        id=prompt.pk,
        name=prompt.name,
        content=prompt.content or "",
        version=prompt.version,
        category=prompt.category,
        description=prompt.description,
        tools_json=prompt.tools_json,
        prompt_type=prompt.kind,
        is_active=prompt.is_active,
        active_version=prompt.active_number if prompt.is_active else None,
        created_at=prompt.created_at.isoformat(),
        updated_at=(prompt.updated_at or prompt.created_at).isoformat(),
    )
