"""The trial of a prompt version in one run: staff send `X-Prompt-Version`, and the run records it."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from agents.requests import PromptUse, RunRequest
from config.auth.bearer import Caller
from config.auth.permissions import is_staff_with
from config.errors import Forbidden, InvalidRequest, NotFound
from prompts.wordings.active import ActiveVersion, override_label, override_version

PERMISSION: Final = "prompts.view_prompt"
_LABEL: Final = re.compile(r"label:[a-z0-9][a-z0-9_-]{0,31}")


async def find_versions(name: str | None, caller: Caller) -> tuple[PromptUse, ...]:
    """Return all the versions of a run that tries one, named by its id or as `label:staging`.

    Raise InvalidRequest for another form, Forbidden for those who may not see prompts, NotFound for an
    unknown version.
    """
    if name is None:
        return ()
    is_label = _LABEL.fullmatch(name) is not None
    if not is_label and not (name.isascii() and name.isdigit() and len(name) <= 9):
        raise InvalidRequest(
            "X-Prompt-Version must be the id of a prompt version, or label: and a label.",
            code="invalid_prompt_version",
        )
    if not await is_staff_with(caller, PERMISSION):
        raise Forbidden("Only staff who see prompts may try a version.")
    if is_label:
        return _uses(await override_label(name.removeprefix("label:")))
    return _uses(await override_version(int(name)))


async def with_prompt(request: RunRequest, version_id: int) -> RunRequest:
    """Return the request with this version in the place of the active one; raise NotFound."""
    return msgspec.structs.replace(request, prompts=_uses(await override_version(version_id)))


def _uses(versions: tuple[ActiveVersion, ...] | None) -> tuple[PromptUse, ...]:
    if versions is None:
        raise NotFound("There is no such prompt version.", code="prompt_version_not_found")
    return tuple(map(_use, versions))


def _use(version: ActiveVersion) -> PromptUse:
    return PromptUse(version.version_id, version.kind, version.prompt_id, version.name, version.number)
