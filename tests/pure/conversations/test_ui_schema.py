"""Cards (specs §5): what compiles is valid, what is valid compiles, nothing raises."""

from __future__ import annotations

import copy
import json
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conversations import events
from conversations.cards.card_compiler import SIZE_LIMIT, compile_ui_schema, ui_schema_for
from conversations.cards.ui_hints import BadgeHint, ProgressHint, UiHints
from conversations.cards.ui_nodes import UiSchemaRenderer
from conversations.cards.ui_safety import is_safe_markdown, is_safe_url, make_storable
from conversations.events import Fact
from conversations.log.transcript import fold
from tests.support.log_lines import lines_about
from tests.support.paths import SCHEMAS, shared
from tests.support.properties import json_schemas
from tests.support.properties.strategies import numbered

SHARED = shared("specs", "schemas")
NAMES = ("ui_hints_1", "ui_schema_renderer_2_0")
RENDERER = json_schemas.validator("ui_schema_renderer_2_0")
HINTS = json_schemas.validator("ui_hints_1")
slow = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)

SEED_HINTS = {"status": "success", "title": "日程已创建", "body": "您的会议日程创建成功"}
SEED_CARD = """{
        "version": "2.0",
        "locale": "zh-CN",
        "status": "success",
        "theme": "default",
        "root": {
          "type": "stack",
          "appearance": "card",
          "children": [
            {"type": "text", "content": "日程已创建", "role": "title"},
            {"type": "badge", "label": "SUCCESS", "status": "success"},
            {"type": "text", "content": "您的会议日程创建成功", "role": "body"}
          ]
        }
      }"""
GO = {"label": "Go", "action": {"type": "navigate", "path": "/plans/7"}}
EVERYTHING: dict[str, Any] = {
    "actions": [GO, {"label": "Buy", "style": "primary", "action": {"type": "open_url", "url": "https://e.com"}}],
    "table": {"columns": ["Day", "Load"], "rows": [["Mon", "60"], ["Tue"], ["Wed", "70", "lost"]]},
    "items": [
        {"title": "Squat", "description": "", "badge": {"label": "new"}, "url": "https://e.com/squat"},
        {"title": "Row", "description": "Slowly"},
    ],
    "ordered": True,
    "fields": [{"label": "Code", "value": "", "copyable": True}, {"label": "Place", "value": "Hall"}],
    "images": [{"url": "https://e.com/a.png", "alt": ""}],
    "progress": {"value": 1, "label": "Week"},
    "body": "**Go** to [the plan](/plans/7)",
    "markdown": True,
    "badges": [{"label": "fresh", "status": "pending"}, {"label": "plain"}],
    "subtitle": "Four weeks",
    "title": "Plan",
    "status": "warning",
    "locale": "en",
    "theme": "dark",
}  # fmt: skip


def compiled(hints: object, **meta: Any) -> tuple[dict[str, Any] | None, list[Any]]:
    """The card and the warnings; what every card must hold is checked here."""
    with lines_about("ui_schema") as lines:
        card = compile_ui_schema(hints, **meta)
    if card is not None:
        RENDERER.validate(card)
        assert len(msgspec.json.encode(card)) <= SIZE_LIMIT
        assert nodes(card["root"]) <= 200
        assert depth(card["root"]) <= 8
        assert "\\u0000" not in json.dumps(card).replace("\\\\", "")
    assert len(lines) == (card is None and hints is not None)
    return card, lines


def shown(hints: object) -> list[Any]:
    """The nodes of the card."""
    card, _ = compiled(hints)
    assert card is not None
    children: list[Any] = card["root"]["children"]
    return children


def parts(node: dict[str, Any]) -> list[dict[str, Any]]:
    """The nodes directly inside a node; a list item's badge is one too."""
    inside: list[dict[str, Any]] = node.get("children", [])
    return inside + [item["badge"] for item in node.get("items", ()) if "badge" in item]


def nodes(node: dict[str, Any]) -> int:
    return 1 + sum(nodes(part) for part in parts(node))


def depth(node: dict[str, Any]) -> int:
    return 1 + max((depth(part) for part in parts(node)), default=0)


def test_the_seeds_example_comes_out_key_by_key() -> None:
    card, _ = compiled(SEED_HINTS)
    assert json.dumps(card) == json.dumps(json.loads(SEED_CARD))


def test_everything_is_shown_in_the_order_of_the_specification() -> None:
    card, _ = compiled(EVERYTHING, request_id="q", tool_id="t", trace_id="c", user_id="u")
    assert json.dumps(card) == json.dumps(
        {
            "version": "2.0",
            "locale": "en",
            "status": "warning",
            "theme": "dark",
            "meta": {"requestId": "q", "toolId": "t", "traceId": "c", "userId": "u"},
            "root": {
                "type": "stack",
                "appearance": "card",
                "children": [
                    {"type": "text", "content": "Plan", "role": "title"},
                    {"type": "text", "content": "Four weeks", "role": "subtitle"},
                    {"type": "badge", "label": "WARNING", "status": "warning"},
                    {"type": "badge", "label": "fresh", "status": "pending"},
                    {"type": "badge", "label": "plain", "status": "info"},
                    {
                        "type": "text",
                        "content": "**Go** to [the plan](/plans/7)",
                        "role": "body",
                        "format": "markdown",
                    },
                    {"type": "progress", "value": 1.0, "label": "Week"},
                    {"type": "image", "url": "https://e.com/a.png", "alt": ""},
                    {
                        "type": "key_value",
                        "items": [
                            {"label": "Code", "value": "", "copyable": True},
                            {"label": "Place", "value": "Hall"},
                        ],
                    },
                    {
                        "type": "list",
                        "ordered": True,
                        "items": [
                            {
                                "title": "Squat",
                                "badge": {"type": "badge", "label": "new", "status": "info"},
                                "action": {"type": "open_url", "url": "https://e.com/squat"},
                            },
                            {"title": "Row", "description": "Slowly"},
                        ],
                    },
                    {
                        "type": "table",
                        "columns": ["Day", "Load"],
                        "rows": [["Mon", "60"], ["Tue", ""], ["Wed", "70"]],
                    },
                    {
                        "type": "stack",
                        "direction": "horizontal",
                        "wrap": True,
                        "children": [
                            {
                                "type": "button",
                                "label": "Go",
                                "action": {"type": "navigate", "path": "/plans/7"},
                            },
                            {
                                "type": "button",
                                "label": "Buy",
                                "style": "primary",
                                "action": {"type": "open_url", "url": "https://e.com"},
                            },
                        ],
                    },
                ],
            },
        }
    )


@slow
@given(json_schemas.valid("ui_hints_1"))
def test_valid_hints_give_a_card_unless_they_show_nothing_or_too_much(hints: Any) -> None:
    before = copy.deepcopy(hints)
    card, lines = compiled(hints)
    assert hints == before
    assert compiled(hints)[0] == card
    if card is None and lines[0]["reason"] == "too_large":
        assert len(json.dumps(hints)) > SIZE_LIMIT // 2
    elif card is None:
        assert lines[0]["reason"] == "nothing_to_show"
        assert not {"title", "fields", "items", "table", "progress"} & hints.keys()
        assert not hints.get("body")
        assert hints.get("status", "info") == "info"


@slow
@given(json_schemas.nearly_valid("ui_hints_1"))
def test_hints_are_invalid_exactly_where_the_published_schema_says_so(hints: Any) -> None:
    card, lines = compiled(hints)
    invalid = card is None and lines[0]["reason"].startswith("invalid")
    if hints != {}:
        assert invalid == (not HINTS.is_valid(hints))


@slow
@given(
    json_schemas.valid("ui_schema_renderer_2_0") | json_schemas.nearly_valid("ui_schema_renderer_2_0")
)
def test_the_nodes_are_the_published_ones(card: Any) -> None:
    """The types accept what the schema accepts, and what they accept they say in its words."""
    try:
        accepted = msgspec.convert(card, UiSchemaRenderer)
    except (msgspec.ValidationError, UnicodeEncodeError):
        assert not RENDERER.is_valid(card)
    else:
        said = msgspec.json.encode(make_storable(msgspec.to_builtins(accepted)))
        RENDERER.validate(json.loads(said))


class Trap(dict[str, Any]):
    """A value that does not want to be read; but who asks for its class is hypothesis, to print it."""

    def __getattribute__(self, name: str) -> Any:
        if name in {"__class__", "__dict__"}:
            return super().__getattribute__(name)
        raise RuntimeError("canary")


WORDS = st.sampled_from(
    [*UiHints.__struct_fields__, "label", "value", "url", "type", "text", "columns", "rows"]
)
ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(),
    st.dates(),
    st.decimals(),
    st.builds(object),
    st.builds(Trap),
    st.sampled_from([msgspec.UNSET, "\ud800", "https://e.com", "info", BadgeHint(label=5)]),  # type: ignore[arg-type]
)
ANYTHING = st.recursive(
    ATOMS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(WORDS | st.text(max_size=3) | st.integers(), inner, max_size=6)
        | st.lists(inner, max_size=3).map(tuple)
    ),
    max_leaves=20,
)


@slow
@given(ANYTHING, ATOMS, ATOMS)
def test_whatever_comes_in_nothing_is_raised(hints: Any, one_id: Any, another: Any) -> None:
    compiled(hints, request_id=one_id, user_id=another)
    compiled({"title": "x"}, tool_id=hints)
    ui_schema_for({"worker_agent_output": {"ui_hints": hints}, "trace_id": one_id}, "assistant")
    ui_schema_for({"tool_agent_output": hints}, "tool")
    ui_schema_for(hints, "assistant")


def test_a_stored_output_that_does_not_want_to_be_read_has_no_card() -> None:
    assert ui_schema_for({"tool_agent_output": Trap(ui_hints=SEED_HINTS)}, "tool") is None
    assert ui_schema_for(Trap(), "assistant") is None


def deep(levels: int) -> Any:
    value: Any = "canary"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("hints", "reason"),
    [
        ([], "invalid"),
        ("canary", "invalid"),
        ({}, "nothing_to_show"),
        ({"theme": "dark"}, "nothing_to_show"),
        ({"status": "info", "subtitle": "", "badges": []}, "nothing_to_show"),
        ({"canary": 1, "title": "x"}, "invalid"),
        ({"canary - at `$.title": 1}, "invalid: title"),
        ({7: "canary"}, "invalid"),
        ({"title": None}, "invalid: title"),
        ({"title": "canary" * 40}, "invalid: title"),
        ({"title": "x" * 10**7}, "invalid: title"),
        ({"body": "x" * 4001}, "invalid: body"),
        ({"body": deep(100_000)}, "invalid: body"),
        ({"canary": deep(100_000)}, "invalid"),
        ({"status": "canary"}, "invalid: status"),
        ({"status": "\ud800"}, "invalid"),
        ({"\ud800": "canary"}, "invalid"),
        ({"progress": {"value": float("nan")}}, "invalid: progress"),
        ({"progress": {"value": float("inf")}}, "invalid: progress"),
        ({"progress": {"value": 10**400}}, "invalid: progress"),
        ({"progress": {"value": True}}, "invalid: progress"),
        ({"items": [{"title": "canary"}] * 10**6}, "invalid: items"),
        ({"fields": []}, "invalid: fields"),
        ({"table": {"columns": ["a"], "rows": [["canary"]] * 101}}, "invalid: table"),
        ({"table": {"columns": ["a"], "rows": [["好" * 500]] * 100}}, "too_large"),
        ({"images": [{"url": "javascript:canary()", "alt": ""}]}, "invalid: images"),
        ({"images": [{"url": "data:image/png;base64,canary", "alt": ""}]}, "invalid: images"),
        ({"images": [{"url": "http://canary", "alt": ""}]}, "invalid: images"),
        ({"images": [{"url": "https://user@canary", "alt": ""}]}, "nothing_to_show"),
        ({"actions": [{"label": "x", "action": {"type": "canary"}}]}, "invalid: actions"),
        ({"actions": [{"label": "x", "action": {"type": "navigate", "path": "//"}}]}, "nothing_to_show"),
        ({"badges": [BadgeHint(label=5)]}, "invalid"),  # type: ignore[arg-type]
        ({"progress": ProgressHint(value=float("nan"))}, "invalid"),
    ],
)  # fmt: skip
def test_hints_without_a_card_are_one_warning_that_does_not_repeat_them(hints: Any, reason: str) -> None:
    card, lines = compiled(hints)
    assert card is None
    assert lines == [
        {"event": "ui_schema: hints without a card", "reason": reason, "log_level": "warning"}
    ]


def test_no_hints_are_no_card_and_no_warning() -> None:
    assert compiled(None) == (None, [])


def test_html_in_text_stays_text() -> None:
    html = "<script>alert(1)</script>"
    assert shown({"title": html, "body": html, "markdown": True}) == [
        {"type": "text", "content": html, "role": "title"},
        {"type": "text", "content": html, "role": "body"},
    ]


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("**a** `b` 1 < 2 > 0 and a[0] = (b)", True),
        ("[a](https://e.com) [b](/x) [c](#d) ![e](https://e.com/f.png) <https://e.com>", True),
        ("[a]\n\n[a]: <https://e.com>", True),
        ("<b>", False),
        ("</p", False),
        ("<!-- x", False),
        ("[a](javascript:alert(1))", False),
        ("[a](\n javascript:alert(1))", False),
        ("[a](<javascript:alert(1)>)", False),
        ("[a](java&#115;cript:alert(1))", False),
        ("[a](data:text/html,x)", False),
        ("![a](http://tracker)", False),
        ("[a](//host)", False),
        ("[a](/\\host)", False),
        ("[a]: javascript:alert(1)", False),
        ("<javascript:alert(1)>", False),
    ],
)
def test_markdown_that_could_do_something_is_shown_as_plain_text(text: str, safe: bool) -> None:
    assert is_safe_markdown(text) == safe
    node = {"type": "text", "content": text, "role": "body"}
    assert shown({"body": text, "markdown": True}) == [node | ({"format": "markdown"} if safe else {})]


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("https://e.com", True),
        ("https://例子.cn:8443/图?q=[1]#x", True),
        ("https://[::1]/", True),
        ("https://e.com/@me", True),
        ("https://", False),
        ("https:///x", False),
        ("https://:443/", False),
        ("https://bank.com@evil.com/", False),
        ("https://bank.com\\@evil.com/", False),
        ("https://e.com/a b", False),
        ("https://e.com/\n", False),
        ("https://e.com/\x00", False),
        ("https://e.com/\ud800", False),
        ("https://e.com/\u202egpj.exe", False),
        ('https://e.com/"onload="x', False),
        ("https://e.com/<b>", False),
    ],
)
def test_a_misleading_url_costs_only_the_part_that_has_it(url: str, safe: bool) -> None:
    assert is_safe_url(url) == safe
    action = {"type": "open_url", "url": url}
    hints = {
        "title": "x",
        "images": [{"url": url, "alt": "a"}],
        "items": [{"title": "i", "url": url}],
        "actions": [{"label": "b", "action": action}, GO],
    }
    button = {"type": "button", "label": "b", "action": action}
    go = {"type": "button", **GO}
    assert shown(hints)[1:] == [
        *([{"type": "image", "url": url, "alt": "a"}] if safe else []),
        {"type": "list", "items": [{"title": "i"} | ({"action": action} if safe else {})]},
        {
            "type": "stack",
            "direction": "horizontal",
            "wrap": True,
            "children": [button, go] if safe else [go],
        },
    ]


@pytest.mark.parametrize(
    ("path", "kept"),
    [("/", True), ("/a?b=c#d", True), ("//h", False), ("/\\h", False), ("/\t/h", False)],
)
def test_a_path_cannot_lead_out_of_the_app(path: str, kept: bool) -> None:
    button = {"label": "b", "action": {"type": "navigate", "path": path}}
    assert len(shown({"title": "x", "actions": [button]})) == 1 + kept


@pytest.mark.parametrize("locale", ["", "zh_CN", "en\n", "e", "zh" + "-abcd" * 9, "<b>"])
def test_a_locale_that_is_none_gives_way_to_the_default(locale: str) -> None:
    card, _ = compiled({"title": "x", "locale": locale})
    assert card is not None
    assert card["locale"] == "zh-CN"


def test_characters_that_no_wire_carries_are_replaced() -> None:
    hints = {"title": "a\x00b\ud83dc", "fields": [{"label": "\udc00", "value": "\\u0000"}]}
    assert shown(hints) == [
        {"type": "text", "content": "a\ufffdb\ufffdc", "role": "title"},
        {"type": "key_value", "items": [{"label": "\ufffd", "value": "\\u0000"}]},
    ]


def test_a_card_shares_nothing_with_the_hints_or_another_card() -> None:
    hints = copy.deepcopy(EVERYTHING)
    first = compile_ui_schema(hints)
    assert first is not None
    first["root"]["children"][10]["rows"].clear()
    assert hints == EVERYTHING
    assert compile_ui_schema(hints) != first


@pytest.mark.parametrize("unusable", ["", "x" * 257, 7, None, ["x"], uuid4()])
def test_meta_has_only_texts_of_some_length(unusable: Any) -> None:
    card, _ = compiled(SEED_HINTS, request_id=unusable, user_id="u\x00")
    assert card is not None
    assert card["meta"] == {"userId": "u\ufffd"}
    assert compile_ui_schema(SEED_HINTS, trace_id=unusable) == json.loads(SEED_CARD)


def test_stored_messages_get_their_cards() -> None:
    body = events.MessageBody("m", "assistant", "done", {"trace_id": "tr"}, SEED_HINTS)
    said: list[Fact] = [
        events.MessageCompleted(body),
        events.ToolCallStarted("c", "plan", {}),
        events.ToolCallCompleted("c", "plan", True, 3, {"id": 7}, ui_hints=SEED_HINTS),
        events.RunCompleted("stop"),
    ]
    stored = fold(uuid4(), numbered(said)).messages()
    cards = [ui_schema_for(json.loads(message.metadata), message.role) for message in stored]
    seed = json.loads(SEED_CARD)
    assert cards == [seed | {"meta": {"traceId": "tr"}}, seed | {"meta": {"toolId": "plan"}}]


@pytest.mark.parametrize(
    ("metadata", "role"),
    [
        ({"worker_agent_output": {"ui_hints": SEED_HINTS}}, "tool"),
        ({"tool_agent_output": {"ui_hints": SEED_HINTS}}, "assistant"),
        ({"worker_agent_output": {"ui_hints": SEED_HINTS}}, "user"),
        ({"worker_agent_output": {"answer": "x"}}, "assistant"),
        ({"worker_agent_output": {"ui_hints": None}}, "assistant"),
        ({"worker_agent_output": "x"}, "assistant"),
        ({}, "assistant"),
        (None, "assistant"),
    ],
)
def test_a_message_without_hints_has_no_card_and_no_warning(metadata: Any, role: str) -> None:
    with lines_about("ui_schema") as lines:
        assert ui_schema_for(metadata, role) is None
    assert lines == []


@pytest.mark.skipif(not SHARED.exists(), reason="the specifications are not here")
@pytest.mark.parametrize("name", NAMES)
def test_the_schemas_are_those_of_the_specification(name: str) -> None:
    file = f"{name}.schema.json"
    assert (SCHEMAS / file).read_bytes() == (SHARED / file).read_bytes()
