"""Prompts as files: JSON with every version and label, Markdown with one wording.

A file comes from anywhere, so it is read into values and judged whole before a row is written:
what cannot be stored is refused by name, and either all of a file is taken or nothing. An import
never activates and never changes a version: what is new is published on top.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import msgspec
from django.db import transaction
from msgspec import Meta, Struct

from config import depth
from config.audit.recording import record
from config.auth.models import User
from config.errors import InvalidRequest
from prompts import actions, releases
from prompts.models import Prompt, PromptKind, PromptVersion

LARGEST_FILE: Final = 3 * 1024 * 1024
MOST_VERSIONS: Final = 2_000
_MARK: Final = "---"
_NAMED: Final = ("name", "kind", "category", "description", "note")
_Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f]*\S[^\x00-\x1f]*\Z")]
_Label = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}\Z")]
_Number = Annotated[int, Meta(ge=1, le=1_000_000)]
Kind = Literal["agent_system", "agent_tools", "system", "tools"]


class FiledVersion(Struct, frozen=True, omit_defaults=True):
    """One wording; `author` and `created_at` are for readers of the file only."""

    number: _Number
    content: Annotated[str, Meta(max_length=actions.LONGEST_PROMPT)]
    tools: Any = None
    note: Annotated[str, Meta(max_length=actions.LONGEST_NOTE)] = ""
    author: str = ""
    created_at: str = ""


class FiledPrompt(Struct, frozen=True):
    """A prompt with its versions, the oldest first."""

    name: _Name
    kind: Kind
    versions: Annotated[tuple[FiledVersion, ...], Meta(min_length=1, max_length=1_000)]
    category: Annotated[str, Meta(max_length=100)] = ""
    description: Annotated[str, Meta(max_length=4_000)] = ""
    labels: dict[_Label, _Number] = {}
    active: int | None = None


class PromptFile(Struct, frozen=True):
    """What a JSON file holds; `parley_prompts` is the version of this form."""

    parley_prompts: Literal[1]
    prompts: Annotated[tuple[FiledPrompt, ...], Meta(min_length=1, max_length=500)]


@dataclass(frozen=True, slots=True)
class Brought:
    """What an import did to one prompt."""

    name: str
    made: bool
    published: int
    prompt_id: int


def filed(prompts: Iterable[Prompt]) -> PromptFile:
    """The prompts as a file holds them; they need their versions and labels at hand."""
    return PromptFile(1, tuple(_filed(prompt) for prompt in prompts))


def _filed(prompt: Prompt) -> FiledPrompt:
    versions = sorted(prompt.versions.all(), key=lambda version: version.number)
    numbers = {version.pk: version.number for version in versions}
    return FiledPrompt(
        prompt.name,
        prompt.kind,  # type: ignore[arg-type]
        tuple(_filed_version(version) for version in versions),
        prompt.category,
        prompt.description,
        {label.name: numbers[label.version_id] for label in prompt.labels.all()},
        numbers.get(prompt.active_version_id or 0) if prompt.is_active else None,
    )


def _filed_version(version: PromptVersion) -> FiledVersion:
    return FiledVersion(
        version.number,
        version.content,
        version.tools_json,
        version.note,
        version.author.get_username() if version.author else "",
        version.created_at.isoformat(),
    )


def to_json(file: PromptFile) -> bytes:
    """The file's bytes, for people to read."""
    return msgspec.json.format(msgspec.json.encode(file), indent=2) + b"\n"


def to_markdown(prompt: FiledPrompt, version: FiledVersion) -> bytes:
    """One wording under a head of `name: value` lines; the wording stands as it is, to the last byte."""
    facts: dict[str, Any] = {
        "name": prompt.name,
        "kind": prompt.kind,
        "category": prompt.category,
        "description": prompt.description,
        "note": version.note,
    }
    if version.tools is not None:
        facts["tools"] = version.tools
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in facts.items()]
    return "\n".join([_MARK, *lines, _MARK, version.content]).encode()


def read(raw: bytes, *, filename: str = "") -> PromptFile:
    """The file, whichever of the two it is; InvalidRequest says what is wrong with it."""
    if len(raw) > LARGEST_FILE:
        raise _refused(f"The file is larger than {LARGEST_FILE // 1024 // 1024} MiB.")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _refused("The file is not UTF-8 text.") from None
    if "\x00" in text:
        raise _refused("The file holds NUL characters.")
    file = _from_json(text) if text.lstrip().startswith("{") else _from_markdown(text, filename)
    if sum(len(prompt.versions) for prompt in file.prompts) > MOST_VERSIONS:
        raise _refused(f"The file holds more than {MOST_VERSIONS} versions: cut it into several.")
    for prompt in file.prompts:
        _check(prompt)
    return file


def _from_json(text: str) -> PromptFile:
    try:
        return msgspec.json.decode(text, type=PromptFile)
    except msgspec.ValidationError as problem:
        raise _refused(f"The file is no export of prompts: {problem}.") from None
    except (msgspec.DecodeError, RecursionError):
        raise _refused("The file is not valid JSON.") from None


def _from_markdown(text: str, filename: str) -> PromptFile:
    if text.startswith(f"{_MARK}\r\n"):
        text = text.replace("\r\n", "\n")
    head, parted, content = "", "", text
    if text.startswith(f"{_MARK}\n"):
        head, parted, content = text[len(_MARK) :].partition(f"\n{_MARK}\n")
        if not parted:
            raise _refused(f"The head of the file does not end: write {_MARK} on a line below it.")
    if not content.strip():
        raise _refused("The file holds no wording.")
    facts = dict(_fact(line) for line in head.split("\n") if line.strip())
    named = {name: facts[name] for name in _NAMED if name in facts}
    stem = filename.rpartition("/")[2].rpartition("\\")[2].partition(".")[0]
    version = {
        "number": 1,
        "content": content,
        "tools": facts.get("tools"),
        "note": named.pop("note", ""),
    }
    prompt = {"name": stem, "kind": PromptKind.SYSTEM.value} | named | {"versions": [version]}
    try:
        return msgspec.convert({"parley_prompts": 1, "prompts": [prompt]}, PromptFile)
    except msgspec.ValidationError as problem:
        raise _refused(f"The file is no prompt: {problem}.") from None


def _fact(line: str) -> tuple[str, Any]:
    """A line of the head: its value is JSON, or else the text as it stands."""
    name, parted, value = line.partition(":")
    if not parted or name.strip() not in (*_NAMED, "tools"):
        raise _refused(f"The head knows {', '.join(_NAMED)} and tools, not “{name.strip()[:40]}”.")
    try:
        return name.strip(), json.loads(value)
    except (ValueError, RecursionError):
        return name.strip(), value.strip()


def _check(prompt: FiledPrompt) -> None:
    """What no row can hold, and what does not fit together."""
    for field in (prompt.name, prompt.category, prompt.description):
        actions.check_text("name, category or description", field, longest=4_000)
    numbers = [version.number for version in prompt.versions]
    if numbers != sorted(set(numbers)):
        raise _refused(f"The versions of {prompt.name} are not in order, each number once.")
    if set(prompt.labels.values()) - set(numbers):
        raise _refused(f"A label of {prompt.name} points at a version that the file does not hold.")
    if len(prompt.labels) > releases.MOST_LABELS:
        raise _refused(f"{prompt.name} has more than {releases.MOST_LABELS} labels.")
    for version in prompt.versions:
        depth.check(version.tools)
        actions.check_wording(version.content)
        actions.check_tools(version.tools)
        actions.check_text("note", version.note, longest=actions.LONGEST_NOTE)


@transaction.atomic
def bring_in(file: PromptFile, *, by: User) -> list[Brought]:
    """Make the prompts that are missing, and publish what is new of the others."""
    names = [prompt.name for prompt in file.prompts]
    if len(set(names)) != len(names):
        raise _refused("Two prompts of the file have the same name.")
    return [_bring_in(filed_prompt, by) for filed_prompt in file.prompts]


def _bring_in(filed_prompt: FiledPrompt, by: User) -> Brought:
    prompt = Prompt.objects.filter(name=filed_prompt.name).first()
    if prompt is not None and prompt.kind != filed_prompt.kind:
        raise _refused(f"{prompt.name} is here of the kind {prompt.kind}, which stays: rename one.")
    made = prompt is None
    if prompt is None:
        prompt = Prompt.objects.create(
            name=filed_prompt.name,
            kind=filed_prompt.kind,
            category=filed_prompt.category,
            description=filed_prompt.description,
        )
    published = {}
    for version in _new(prompt, filed_prompt):
        published[version.number] = actions.publish_version(
            prompt, version.content, author=by, note=version.note, tools_json=version.tools
        )
    if made:
        for label, number in filed_prompt.labels.items():
            releases.move_label(prompt, label, published[number], by=by)
    record("imported", prompt, by=by, after={"versions published": len(published), "made": made})
    return Brought(prompt.name, made, len(published), prompt.pk)


def _new(prompt: Prompt, filed_prompt: FiledPrompt) -> list[FiledVersion]:
    """Of a prompt that is here: what follows the versions that both have, or of another history
    the newest wording alone."""
    here = list(prompt.versions.order_by("number").values_list("content", "tools_json"))
    there = [(version.content, version.tools) for version in filed_prompt.versions]
    if there[: len(here)] == here:
        return list(filed_prompt.versions[len(here) :])
    return [] if there[-1] in here else [filed_prompt.versions[-1]]


def _refused(sentence: str) -> InvalidRequest:
    return InvalidRequest(sentence, field="file")
