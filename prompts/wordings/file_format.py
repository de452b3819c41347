"""Prompt files: JSON with all versions and labels, or Markdown with one wording.

Files are untrusted: a file is parsed and validated completely before a row is written, errors name
what cannot be stored, and an import is all or nothing. It never activates or changes a version; new
wordings are saved as new versions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import msgspec
from django.db import transaction
from msgspec import Meta, Struct

from config.audit.recording import record
from config.auth.models import User
from config.errors import InvalidRequest
from config.http import json_limits
from prompts.models import Prompt, PromptKind, PromptVersion
from prompts.wordings import releases, staff_actions
from prompts.wordings.prompt_crud import Kind

LARGEST_FILE: Final = 3 * 1024 * 1024
MOST_VERSIONS: Final = 2_000
_MARK: Final = "---"
_OF_PROMPT: Final = ("name", "kind", "category", "description")
_NAMED: Final = (*_OF_PROMPT, "note")
_Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f]*\S[^\x00-\x1f]*\Z")]
_Label = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}\Z")]
_Number = Annotated[int, Meta(ge=1, le=1_000_000)]


class ExportedVersion(Struct, frozen=True, omit_defaults=True):
    """A version in a file; `author` and `created_at` are only for information."""

    number: _Number
    content: Annotated[str, Meta(max_length=staff_actions.LONGEST_PROMPT)]
    tools: Any = None
    note: Annotated[str, Meta(max_length=staff_actions.LONGEST_NOTE)] = ""
    author: str = ""
    created_at: str = ""


class ExportedPrompt(Struct, frozen=True):
    """A prompt with its versions, oldest first."""

    name: _Name
    kind: Kind
    versions: Annotated[tuple[ExportedVersion, ...], Meta(min_length=1, max_length=1_000)]
    category: Annotated[str, Meta(max_length=100)] = ""
    description: Annotated[str, Meta(max_length=4_000)] = ""
    labels: dict[_Label, _Number] = {}
    active: int | None = None


class PromptFile(Struct, frozen=True):
    """The content of a JSON file; `parley_prompts` is the version of the format."""

    parley_prompts: Literal[1]
    prompts: Annotated[tuple[ExportedPrompt, ...], Meta(min_length=1, max_length=500)]


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The effect of an import on one prompt."""

    name: str
    created: bool
    versions: int


def export_prompts(prompts: Iterable[Prompt]) -> PromptFile:
    """Return the prompts as a file; their versions and labels should be prefetched."""
    return PromptFile(1, tuple(_export_prompt(prompt) for prompt in prompts))


def _export_prompt(prompt: Prompt) -> ExportedPrompt:
    versions = sorted(prompt.versions.all(), key=lambda version: version.number)
    numbers = {version.pk: version.number for version in versions}
    return ExportedPrompt(
        prompt.name,
        prompt.kind,  # type: ignore[arg-type]
        tuple(_export_version(version) for version in versions),
        prompt.category,
        prompt.description,
        {label.name: numbers[label.version_id] for label in prompt.labels.all()},
        numbers.get(prompt.active_version_id or 0) if prompt.is_active else None,
    )


def _export_version(version: PromptVersion) -> ExportedVersion:
    return ExportedVersion(
        version.number,
        version.content,
        version.tools_json,
        version.note,
        version.author.get_username() if version.author else "",
        version.created_at.isoformat(),
    )


def to_json(file: PromptFile) -> bytes:
    """Return the file as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(file), indent=2) + b"\n"


def to_markdown(prompt: ExportedPrompt, version: ExportedVersion) -> bytes:
    """Return one wording, unchanged, below a header of `name: value` lines."""
    facts: dict[str, Any] = {name: getattr(prompt, name) for name in _OF_PROMPT}
    facts["note"] = version.note
    if version.tools is not None:
        facts["tools"] = version.tools
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in facts.items()]
    return "\n".join([_MARK, *lines, _MARK, version.content]).encode()


def parse(raw: bytes, *, filename: str = "") -> PromptFile:
    """Parse a file of either format; raise `InvalidRequest` with the error."""
    if len(raw) > LARGEST_FILE:
        raise _invalid_file(f"The file is larger than {LARGEST_FILE // 1024 // 1024} MiB.")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _invalid_file("The file is not UTF-8 text.") from None
    if "\x00" in text:
        raise _invalid_file("The file contains NUL characters.")
    file = _parse_json(text) if text.lstrip().startswith("{") else _parse_markdown(text, filename)
    if sum(len(prompt.versions) for prompt in file.prompts) > MOST_VERSIONS:
        raise _invalid_file(f"The file contains more than {MOST_VERSIONS} versions. Split it.")
    for prompt in file.prompts:
        _check(prompt)
    return file


def _parse_json(text: str) -> PromptFile:
    try:
        return msgspec.json.decode(text, type=PromptFile)
    except msgspec.ValidationError as problem:
        raise _invalid_file(f"The file is not an export of prompts: {problem}.") from None
    except (msgspec.DecodeError, RecursionError):
        raise _invalid_file("The file is not valid JSON.") from None


def _parse_markdown(text: str, filename: str) -> PromptFile:
    if text.startswith(f"{_MARK}\r\n"):
        text = text.replace("\r\n", "\n")
    head, parted, content = "", "", text
    if text.startswith(f"{_MARK}\n"):
        head, parted, content = text[len(_MARK) :].partition(f"\n{_MARK}\n")
        if not parted:
            raise _invalid_file(f"The header does not end. Write {_MARK} on a line below it.")
    if not content.strip():
        raise _invalid_file("The file contains no wording.")
    facts = dict(_parse_header_line(line) for line in head.split("\n") if line.strip())
    named = {name: facts[name] for name in _NAMED if name in facts}
    stem = filename.rpartition("/")[2].rpartition("\\")[2].partition(".")[0]
    note = named.pop("note", "")
    version = {"number": 1, "content": content, "tools": facts.get("tools"), "note": note}
    prompt = {"name": stem, "kind": PromptKind.SYSTEM.value} | named | {"versions": [version]}
    try:
        return msgspec.convert({"parley_prompts": 1, "prompts": [prompt]}, PromptFile)
    except msgspec.ValidationError as problem:
        raise _invalid_file(f"The file is not a prompt: {problem}.") from None


def _parse_header_line(line: str) -> tuple[str, Any]:
    """Return the name and value of a header line; the value is JSON, or else plain text."""
    name, parted, value = line.partition(":")
    if not parted or name.strip() not in (*_NAMED, "tools"):
        raise _invalid_file(
            f"The header has no “{name.strip()[:40]}”, only {', '.join(_NAMED)} and tools."
        )
    try:
        return name.strip(), json.loads(value)
    except (ValueError, RecursionError):
        return name.strip(), value.strip()


def _check(prompt: ExportedPrompt) -> None:
    """Raise `InvalidRequest` for values that cannot be stored or that contradict each other."""
    for field in (prompt.name, prompt.category, prompt.description):
        staff_actions.check_text("name, category or description", field, longest=4_000)
    numbers = [version.number for version in prompt.versions]
    if numbers != sorted(set(numbers)):
        raise _invalid_file(f"The version numbers of {prompt.name} are not in ascending order.")
    if set(prompt.labels.values()) - set(numbers):
        raise _invalid_file(f"A label of {prompt.name} points to a version that is not in the file.")
    if len(prompt.labels) > releases.MOST_LABELS:
        raise _invalid_file(f"{prompt.name} has more than {releases.MOST_LABELS} labels.")
    for version in prompt.versions:
        json_limits.check_depth(version.tools)
        staff_actions.check_wording(version.content)
        staff_actions.check_tools(version.tools)
        staff_actions.check_text("note", version.note, longest=staff_actions.LONGEST_NOTE)


@transaction.atomic
def import_prompts(file: PromptFile, *, by: User) -> list[ImportResult]:
    """Create missing prompts and save new versions of existing ones."""
    names = [prompt.name for prompt in file.prompts]
    if len(set(names)) != len(names):
        raise _invalid_file("Two prompts of the file have the same name.")
    return [_import_prompt(filed_prompt, by) for filed_prompt in file.prompts]


def _import_prompt(filed_prompt: ExportedPrompt, by: User) -> ImportResult:
    facts = {name: getattr(filed_prompt, name) for name in ("kind", "category", "description")}
    prompt, created = Prompt.objects.get_or_create(name=filed_prompt.name, defaults=facts)
    if prompt.kind != filed_prompt.kind:
        raise _invalid_file(f"{prompt.name} exists with the kind {prompt.kind}. Rename one of them.")
    saved = {}
    for version in _find_new_versions(prompt, filed_prompt):
        saved[version.number] = staff_actions.save_version(
            prompt, version.content, author=by, note=version.note, tools_json=version.tools
        )
    if created:
        for label, number in filed_prompt.labels.items():
            releases.move_label(prompt, label, saved[number], by=by)
    record("imported", prompt, by=by, after={"versions added": len(saved), "created": created})
    return ImportResult(prompt.name, created, len(saved))


def _find_new_versions(prompt: Prompt, filed_prompt: ExportedPrompt) -> list[ExportedVersion]:
    """Return the versions that follow the common history, or only the newest if histories differ."""
    stored = list(prompt.versions.order_by("number").values_list("content", "tools_json"))
    exported = [(version.content, version.tools) for version in filed_prompt.versions]
    if exported[: len(stored)] == stored:
        return list(filed_prompt.versions[len(stored) :])
    return [] if exported[-1] in stored else [filed_prompt.versions[-1]]


def _invalid_file(sentence: str) -> InvalidRequest:
    return InvalidRequest(sentence, field="file")
