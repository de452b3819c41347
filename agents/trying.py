"""Try a prompt version with one run: asked for by staff in `X-Prompt-Version`, recorded on the run."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from agents.requests import PromptUse, RunRequest
from config.auth.bearer import Caller
from config.auth.permissions import has_permission
from config.errors import Forbidden, InvalidRequest, NotFound
from prompts.active import ActiveVersion, with_label, with_version

PERMISSION: Final = "prompts.view_prompt"
_LABEL: Final = re.compile(r"label:[a-z0-9][a-z0-9_-]{0,31}")


def wanted(given: str | None) -> tuple[PromptUse, ...]:
    """The version that a header names, by its id or as `label:staging`; InvalidRequest for neither."""
    if given is None:
        return ()
    if _LABEL.fullmatch(given):
        return (PromptUse(0, name=given.removeprefix("label:")),)
    if not (given.isascii() and given.isdigit() and len(given) <= 9):
        raise InvalidRequest(
            "X-Prompt-Version must be the id of a prompt version, or label: and a label.",
            code="invalid_prompt_version",
        )
    return (PromptUse(int(given)),)


async def completed(caller: Caller, asked: RunRequest) -> RunRequest:
    """The request with all the versions that its run is to use.

    Forbidden for those who may not see prompts, NotFound for an unknown version.
    """
    if not asked.prompts:
        return asked
    if caller.is_guest or not caller.is_staff or not await has_permission(caller.user_id, PERMISSION):
        raise Forbidden("Only staff who see prompts may try a version.")
    tried = asked.prompts[0]
    if tried.version_id:
        return await with_prompt(asked, tried.version_id)
    return _with(asked, await with_label(tried.name))


async def with_prompt(asked: RunRequest, version_id: int) -> RunRequest:
    """The request with this version in the place of the active one. NotFound."""
    return _with(asked, await with_version(version_id))


def _with(asked: RunRequest, versions: tuple[ActiveVersion, ...] | None) -> RunRequest:
    if versions is None:
        raise NotFound("There is no such prompt version.", code="prompt_version_not_found")
    return msgspec.structs.replace(asked, prompts=tuple(map(_use, versions)))


def _use(version: ActiveVersion) -> PromptUse:
    return PromptUse(version.version_id, version.kind, version.prompt_id, version.name, version.number)
