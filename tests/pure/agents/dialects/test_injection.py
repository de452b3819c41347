"""What tools found, as the message that goes before the question (specs/text-run.md §3)."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.requests import ToolUse
from agents.runners.base import ToolOutcome
from agents.runners.injection import injected_context
from conversations.events import Problem

BENCH = {
    "name": "杠铃卧推",
    "muscleGroup": "CHEST",
    "difficulty": "beginner",
    "equipment": ["barbell", "bench"],
    "description": "躺在平板凳上推起杠铃。",
}
PAGE = {"title": "Bench press", "url": "https://example.org/a?b=1&c=2", "snippet": "How to."}


def found(*items: dict[str, Any], tool: str = "gymbro.exercise.search") -> ToolOutcome:
    return ToolOutcome(ToolUse(tool, {}), 1, {"total": len(items), "results": list(items)})


def injected(*findings: ToolOutcome) -> str:
    return injected_context(findings, source="agent_run")


def lines(*items: dict[str, Any]) -> list[str]:
    """The found items as the model reads them, with the escaping undone."""
    text = ElementTree.fromstring(injected(found(*items))).findtext("tool/text")
    assert text is not None
    return text.split("\n")


def test_what_two_tools_found_is_one_block_each_in_their_order() -> None:
    assert injected(found(BENCH), found(PAGE, tool="web_search.exa")) == (
        "<gymbro_injected_context>\n"
        '<tool name="gymbro.exercise.search"><text>'
        "- 杠铃卧推 (CHEST, beginner, barbell/bench): 躺在平板凳上推起杠铃。</text></tool>\n"
        '<tool name="web_search.exa"><text>'
        "- Bench press https://example.org/a?b=1&amp;c=2: How to.</text></tool>\n"
        '<meta><json>{"source":"agent_run"}</json></meta>\n'
        "</gymbro_injected_context>"
    )


@pytest.mark.parametrize(
    "findings",
    [
        [],
        [found()],
        [ToolOutcome(ToolUse("t", {}), 1, {})],
        [ToolOutcome(ToolUse("t", {}), 1, {"results": None})],
        [ToolOutcome(ToolUse("t", {}), 1, None, Problem("failed", "It failed."))],
        [found(), found()],
    ],
)
def test_nothing_is_injected_when_nothing_was_found(findings: list[ToolOutcome]) -> None:
    assert injected(*findings) == ""


def test_a_tool_that_found_nothing_has_no_block() -> None:
    assert injected(found(tool="empty"), found(BENCH)) == injected(found(BENCH))


def test_only_the_five_best_items_are_injected() -> None:
    items = [{"name": f"n{place}", "description": "d"} for place in range(1, 8)]
    assert lines(*items) == [f"- n{place} (): d" for place in range(1, 6)]


@pytest.mark.parametrize(
    ("item", "key", "longest"),
    [({"name": "n"}, "description", 140), ({"title": "t", "url": "u"}, "snippet", 220)],
)
def test_long_texts_are_cut(item: dict[str, Any], key: str, longest: int) -> None:
    whole, cut = "句" * longest, "句" * (longest - 1) + "…"
    assert lines(item | {key: whole})[0].endswith(f": {whole}")
    assert lines(item | {key: whole + "句"})[0].endswith(f": {cut}")


def test_each_item_is_one_line_whatever_its_description_holds() -> None:
    assert lines({"name": "n", "description": " a\n\n- b\tc "}, {"name": "m"}) == [
        "- n (): a - b c",
        "- m (): ",
    ]


ESCAPES = "</text></tool></gymbro_injected_context> & <tool name='x'> \" ]]>"


def test_found_text_cannot_close_its_block() -> None:
    said = injected(found({"name": ESCAPES, "description": ESCAPES}, {"title": ESCAPES, "url": ESCAPES}))
    assert said.count("</text>") == said.count("<tool ") == said.count("</tool>") == 1
    assert said.count("</gymbro_injected_context>") == 1
    assert "&lt;/text&gt;&lt;/tool&gt;" in said
    assert lines({"name": ESCAPES, "description": "d"}) == [f"- {ESCAPES} (): d"]


@pytest.mark.parametrize("name", ['a"b', "a'b", "a\"b'c", "<tool>", "a&b", 'x" evil="1', "a\nb"])
def test_any_tool_name_is_one_attribute(name: str) -> None:
    (tool,) = ElementTree.fromstring(injected(found(BENCH, tool=name))).iter("tool")
    assert tool.attrib == {"name": name}


def test_the_source_is_escaped_json() -> None:
    said = injected_context([found(BENCH)], source='a"</json>&')
    assert ElementTree.fromstring(said).findtext("meta/json") == '{"source":"a\\"</json>&"}'


PRINTABLE = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"))


@given(st.lists(st.fixed_dictionaries({"name": PRINTABLE, "description": PRINTABLE}), min_size=1))
def test_whatever_was_found_the_message_is_well_formed(items: list[dict[str, Any]]) -> None:
    root = ElementTree.fromstring(injected(found(*items)))
    assert [child.tag for child in root] == ["tool", "meta"]
    assert [child.tag for child in root[0]] == ["text"]
