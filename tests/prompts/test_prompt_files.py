"""Prompts as files: what goes out comes in again, and what is hostile is refused whole."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from hypothesis import given, settings
from hypothesis import strategies as st

from config.errors import InvalidRequest
from prompts.admin.prompt_pages import _query_exported
from prompts.models import Prompt, PromptKind
from prompts.wordings import file_format, releases, staff_actions
from tests.support.properties.effort import examples

pytestmark = pytest.mark.once

PAGE = "/admin/prompts/prompt/"


@pytest.fixture
def owner() -> Any:
    return get_user_model().objects.create_superuser(f"files-{uuid4().hex}", password="x" * 20)


@pytest.fixture
def browser(owner: Any) -> Client:
    client = Client()
    client.force_login(owner)
    return client


@pytest.fixture
def prompt() -> Prompt:
    made = Prompt.objects.create(name=uuid4().hex, kind=PromptKind.SYSTEM, description="Of tests.")
    one = staff_actions.save_version(made, "First.\n", author=None, note="Start.")
    staff_actions.save_version(made, "Second: 练胸\n---\n", author=None, tools_json=[{"name": "a"}])
    releases.move_label(made, "production", one, by=None)
    return made


def exported(prompt: Prompt) -> file_format.PromptFile:
    return file_format.export_prompts(_query_exported().filter(pk=prompt.pk))


def what_counts(file: file_format.PromptFile) -> list[Any]:
    """All of a file but who wrote it when, which an import does not take over."""
    return [
        (
            prompt.kind,
            prompt.category,
            prompt.description,
            [(version.content, version.tools, version.note) for version in prompt.versions],
            prompt.labels,
        )
        for prompt in file.prompts
    ]


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=60)
NAMES = st.text("abcdefghijklmnopqrstuvwxyz 练-_", min_size=1, max_size=20).filter(str.strip)
TOOLS = st.none() | st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
).map(lambda value: [{"name": "tool", "value": value}])
VERSIONS = st.lists(st.tuples(TEXTS, TOOLS, TEXTS), min_size=1, max_size=4)


@given(NAMES, st.sampled_from(PromptKind.values), TEXTS, VERSIONS, st.data())
@settings(max_examples=examples(25), deadline=None)
def test_what_is_exported_comes_in_again_as_it_was(
    name: str, kind: str, description: str, wordings: list[Any], data: Any
) -> None:
    by = get_user_model().objects.create_user(f"files-{uuid4().hex}")
    made = Prompt.objects.create(name=f"{uuid4().hex} {name}", kind=kind, description=description)
    for content, tools, note in wordings:
        staff_actions.save_version(made, content, author=None, note=note, tools_json=tools)
    pointed = data.draw(st.sampled_from(list(made.versions.all())))
    releases.move_label(made, "staging", pointed, by=None)
    before = exported(made)
    made.name = f"{uuid4().hex} moved"
    made.save()
    (brought,) = file_format.import_prompts(file_format.parse(file_format.to_json(before)), by=by)
    assert (brought.created, brought.versions) == (True, len(before.prompts[0].versions))
    again = exported(Prompt.objects.get(name=brought.name))
    assert what_counts(again) == what_counts(before)
    (same,) = file_format.import_prompts(file_format.parse(file_format.to_json(before)), by=by)
    assert (same.created, same.versions) == (False, 0)


@given(NAMES, TEXTS, TEXTS.filter(str.strip), TOOLS, TEXTS)
def test_one_wording_as_markdown_comes_back_to_the_last_character(
    name: str, description: str, content: str, tools: Any, note: str
) -> None:
    version = file_format.ExportedVersion(1, content, tools, note)
    prompt = file_format.ExportedPrompt(name, "system", (version,), "", description)
    (read,) = file_format.parse(file_format.to_markdown(prompt, version)).prompts
    assert read == prompt


def test_plain_text_is_a_wording_under_the_name_of_its_file() -> None:
    (read,) = file_format.parse(b"You are kind.\r\nAlways.", filename="C:\\x\\kind agent.txt").prompts
    assert (read.name, read.kind, read.versions[0].content) == (
        "kind agent",
        "system",
        "You are kind.\r\nAlways.",
    )
    hand_written = b"---\r\nname: Coach\r\nkind: agent_system\r\n---\r\nBe brief.\r\n"
    (read,) = file_format.parse(hand_written).prompts
    assert (read.name, read.kind, read.versions[0].content) == ("Coach", "agent_system", "Be brief.\n")


HOSTILE = {
    "not utf-8": b"\xff\xfe\x00",
    "nul": b"a\x00b",
    "too large": b"x" * (file_format.LARGEST_FILE + 1),
    "not json": b'{"parley_prompts": 1, "prompts": [',
    "too deep": b'{"parley_prompts": 1, "prompts": ' + b"[" * 100_000,
    "another form": b'{"parley_prompts": 2, "prompts": []}',
    "nothing in it": b'{"parley_prompts": 1, "prompts": []}',
    "empty": b"",
    "head without end": b"---\nname: x\n",
    "unknown head": b"---\nowner: me\n---\ntext",
    "a name of wrong type": b'---\nname: {"a": 1}\n---\ntext',
    "an unknown kind": b"---\nname: x\nkind: root\n---\ntext",
    "a line in the name": b'---\nname: "a\\nb"\n---\ntext',
    "too long": b"---\nname: x\n---\n" + b"x" * (staff_actions.LONGEST_PROMPT + 1),
    "half a surrogate": b'---\nname: x\nnote: "\\ud800"\n---\ntext',
}


@pytest.mark.parametrize("raw", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_refused_with_a_reason(raw: bytes) -> None:
    with pytest.raises(InvalidRequest) as refused:
        file_format.parse(raw, filename="x.json")
    assert refused.value.detail


def test_a_file_of_too_many_versions_is_refused() -> None:
    version = [{"number": number, "content": "x"} for number in range(1, 1_001)]
    prompts = [{"name": str(n), "kind": "system", "versions": version} for n in range(3)]
    with pytest.raises(InvalidRequest, match="more than 2000 versions"):
        file_format.parse(json.dumps({"parley_prompts": 1, "prompts": prompts}).encode())


def as_json(*versions: dict[str, Any], **more: Any) -> bytes:
    prompt = {"name": uuid4().hex, "kind": "system", "versions": list(versions)} | more
    return json.dumps({"parley_prompts": 1, "prompts": [prompt]}).encode()


@pytest.mark.parametrize(
    "raw",
    [
        as_json(),
        as_json({"number": 0, "content": "x"}),
        as_json({"number": 2, "content": "x"}, {"number": 1, "content": "y"}),
        as_json({"number": 1, "content": "x"}, {"number": 1, "content": "y"}),
        as_json({"number": 1, "content": "x"}, labels={"staging": 2}),
        as_json({"number": 1, "content": "x"}, labels={"Bad Label": 1}),
        as_json({"number": 1, "content": "x", "tools": "\x00"}),
        as_json({"number": 1, "content": "x" * (staff_actions.LONGEST_PROMPT + 1)}),
        as_json({"number": 1, "content": "x", "note": "n" * 501}),
        as_json({"number": 1, "content": 7}),
        as_json({"number": 1, "content": "x"}, name="n" * 201),
    ],
)
def test_json_that_does_not_fit_together_is_refused(raw: bytes) -> None:
    with pytest.raises(InvalidRequest):
        file_format.parse(raw)


def test_versions_that_follow_are_added_and_another_history_adds_its_newest(
    prompt: Prompt, owner: Any
) -> None:
    file = exported(prompt)
    (filed,) = file.prompts
    third = file_format.ExportedVersion(3, "Third.")
    longer = file_format.PromptFile(
        1, (file_format.ExportedPrompt(filed.name, filed.kind, (*filed.versions, third)),)
    )
    assert file_format.import_prompts(longer, by=owner)[0].versions == 1
    assert prompt.versions.count() == 3
    strange = (file_format.ExportedVersion(1, "Else."), file_format.ExportedVersion(2, "Newer."))
    other = file_format.PromptFile(1, (file_format.ExportedPrompt(filed.name, filed.kind, strange),))
    assert file_format.import_prompts(other, by=owner)[0].versions == 1
    newest = prompt.versions.latest("number")
    assert (newest.number, newest.content, newest.author) == (4, "Newer.", owner)


def test_either_all_of_a_file_is_taken_or_nothing(prompt: Prompt, owner: Any) -> None:
    name = uuid4().hex
    version = (file_format.ExportedVersion(1, "x"),)
    file = file_format.PromptFile(
        1,
        (
            file_format.ExportedPrompt(name, "system", version),
            file_format.ExportedPrompt(prompt.name, "tools", version),
        ),
    )
    with pytest.raises(InvalidRequest, match="with the kind system"):
        file_format.import_prompts(file, by=owner)
    assert not Prompt.objects.filter(name=name).exists()


def test_an_import_never_puts_anything_into_use(prompt: Prompt, owner: Any) -> None:
    (filed,) = exported(prompt).prompts
    named = file_format.ExportedPrompt(
        uuid4().hex, filed.kind, filed.versions, labels=filed.labels, active=2
    )
    (brought,) = file_format.import_prompts(file_format.PromptFile(1, (named,)), by=owner)
    made = Prompt.objects.get(name=brought.name)
    assert (made.is_active, made.active_version) == (False, None)


# --- the pages ----------------------------------------------------------------------------------


def test_a_file_is_downloaded_and_uploaded_again(browser: Client, prompt: Prompt) -> None:
    response = browser.get(f"{PAGE}{prompt.pk}/export.json")
    assert response.headers["Content-Disposition"] == f'attachment; filename="{prompt.name}.json"'
    prompt.name = uuid4().hex
    prompt.save()
    uploaded = SimpleUploadedFile("p.json", response.content)
    page = browser.post(f"{PAGE}import/", {"file": uploaded}, follow=True)
    assert "created with 2 versions" in page.content.decode()
    one = browser.get(f"{PAGE}{prompt.pk}/versions/2.md")
    assert one.content.decode().endswith("---\nSecond: 练胸\n---\n")
    assert browser.get(f"{PAGE}{prompt.pk}/versions/9.md").status_code == 404
    everything = json.loads(browser.get(f"{PAGE}export/").content)
    assert prompt.name in {one["name"] for one in everything["prompts"]}
    sent = {"action": "export_selected", "_selected_action": str(prompt.pk)}
    selected = json.loads(browser.post(PAGE, sent).content)
    assert [one["name"] for one in selected["prompts"]] == [prompt.name]


def test_a_file_that_is_refused_says_why_on_the_page(browser: Client) -> None:
    before = Prompt.objects.count()
    for label, content in HOSTILE.items():
        uploaded = SimpleUploadedFile("x.json", content or b" ")
        page = browser.post(f"{PAGE}import/", {"file": uploaded})
        assert page.status_code == 200
        assert "file" in page.context["form"].errors, label
    assert browser.post(f"{PAGE}import/", {}).context["form"].errors["file"]
    assert Prompt.objects.count() == before
