"""Every regular expression of the product takes linear time, and so does what loops over foreign text.

A pattern that backtracks holds the event loop for minutes, and everybody with it. The tests find the
patterns by themselves: each is compiled in an assignment at the top of its module.
"""

from __future__ import annotations

import ast
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from typing import Any, Final, NamedTuple
from uuid import UUID

import pytest

from agents.knowledge.chunks import chunks_of
from agents.providers.sse import EventSplitter
from agents.requests import ClientTool, InputMessage, RunRequest
from agents.runners.base import RunContext
from agents.runners.conversation import chat_messages
from agents.runners.demo import runner, shows, tool_use
from agents.runners.thinkingml import Repair, validate_thinkingml
from agents.tools.exercises import words
from config.logs import mask
from conversations.threads.search_terms import make_terms
from prompts.wordings import template
from tests.hostile.adversarial import METHODS, SIZES, too_slow
from tests.support.paths import ROOT
from tests.support.product import MODULES

BUILT: Final[dict[str, re.Pattern[str]]] = {
    "conversations/threads/search_terms.py": make_terms("ab aab a 卧 卧推 a1 aaaaaaaa")._pattern,
}
"""One of the patterns that a module compiles in a function, because a user writes them."""
LONG: Final = 30_000
RUN_ID: Final = UUID("0199c3c0-1111-7222-8333-444455556666")


class Use(NamedTuple):
    """A pattern of the product, where it is, and by which methods it is used on which length."""

    place: str
    pattern: re.Pattern[Any]
    methods: frozenset[str] = frozenset({"search"})
    longest: int = SIZES[-1]


def test_patterns_are_compiled_once_at_the_top_of_their_module() -> None:
    hidden = {
        place
        for place, tree in _trees()
        for statement in tree.body
        if _compiles(statement) and not isinstance(statement, ast.Assign | ast.AnnAssign)
    }
    assert hidden == set(BUILT)


def test_the_test_finds_a_pattern_in_every_such_assignment() -> None:
    assert [
        f"{place}: {name}"
        for place, tree in _trees()
        for name in _compiled_names(tree)
        if not list(_inside(getattr(_module(place), name)))
    ] == []


@pytest.mark.timeout(300)
def test_every_pattern_is_linear() -> None:
    problems = {
        f"{use.place}: {use.pattern.pattern!r}": problem
        for use in _uses()
        if (problem := too_slow(use.pattern, use.methods, longest=use.longest))
    }
    assert problems == {}


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (re.compile(r"data:([^;,]*)[^,]*;base64,", re.IGNORECASE), "sub"),  # cubic
        (re.compile(r"data:([^;,]*)[^,]*;base64,", re.IGNORECASE), "match"),
        (re.compile(r"\s*\bdemo\.(?:think|card)\b[:：]?\s*", re.ASCII), "sub"),
        (re.compile(r"(?<![\w-])[A-Z0-9][^\u3000-\u9fff:]*: [^\u3000-\u9fff]+$"), "search"),
        (re.compile(r"\{.*\}", re.DOTALL), "search"),
        (re.compile(r"\s*(?:[\u3000-\u9fff]|[^\s\u3000-\u9fff]+)\s*"), "findall"),
        (re.compile(r"(?P<name>.+?)\s+v(?P<number>\d{1,9})"), "fullmatch"),
        (re.compile(r"(?:a|aa)+$"), "fullmatch"),  # exponential
        (re.compile(rb"(\w+)+:"), "match"),
        (re.compile(r"x(?:,?[a-z]+)*;"), "match"),
    ],
)
def test_a_pattern_that_is_not_linear_is_found(pattern: re.Pattern[Any], method: str) -> None:
    assert too_slow(pattern, {method}) is not None


# --- where the patterns are ----------------------------------------------------------------------


@cache
def _uses() -> tuple[Use, ...]:
    methods = _methods()
    compiled = {
        pattern: Use(place, pattern, frozenset(methods[pattern] or {"search"}))
        for place, tree in _trees()
        for name in _compiled_names(tree)
        for pattern in _inside(getattr(_module(place), name))
    }
    built = (Use(place, pattern) for place, pattern in BUILT.items())
    declared = (use for place, tree in _trees() for use in _declared(place, tree))
    return *compiled.values(), *built, *declared


def _methods() -> dict[re.Pattern[Any], set[str]]:
    """By which methods each pattern is called under its name."""
    found = defaultdict[re.Pattern[Any], set[str]](set)
    for place, tree in _trees():
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Attribute(ast.Name(name), method)) if (
                    method in METHODS and name.isupper()
                ):
                    pattern = getattr(_module(place), name, None)
                    if isinstance(pattern, re.Pattern):
                        found[pattern].add(method)
    return found


def _declared(place: str, tree: ast.Module) -> Iterator[Use]:
    """What msgspec and Django compile; pydantic's patterns run in an engine that is linear."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Name("Meta") | ast.Attribute(attr="Meta"), keywords=keywords):
                given = {keyword.arg: keyword.value for keyword in keywords}
                if "pattern" in given:  # msgspec looks at the length first
                    longest = ast.literal_eval(given.get("max_length", ast.Constant(SIZES[-1])))
                    yield Use(place, re.compile(ast.literal_eval(given["pattern"])), longest=longest)
            case ast.Call(ast.Name("RegexValidator"), [pattern, *_]):
                yield Use(place, re.compile(ast.literal_eval(pattern)))


@cache
def _trees() -> tuple[tuple[str, ast.Module], ...]:
    return tuple((str(path.relative_to(ROOT)), ast.parse(path.read_text())) for path in MODULES)


def _compiles(tree: ast.AST) -> bool:
    """Whether a pattern is compiled in it, or a name imported under which one could be."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(ast.Name("re"), "compile") | ast.ImportFrom("re"):
                return True
            case ast.Import(names=names) if any(one.name == "re" and one.asname for one in names):
                return True
    return False


def _compiled_names(tree: ast.Module) -> Iterator[str]:
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(name)]) | ast.AnnAssign(target=ast.Name(name)):
                if _compiles(statement):
                    yield name


def _module(place: str) -> Any:
    return import_module(place.removesuffix(".py").removesuffix("/__init__").replace("/", "."))


def _inside(value: Any) -> Iterator[re.Pattern[Any]]:
    """The patterns in a value, however deep in tuples, mappings and dataclasses."""
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        yield from _inside(tuple(value.values()))
    elif isinstance(value, tuple | list | frozenset | set):
        for item in value:
            yield from _inside(item)
    elif is_dataclass(value):
        yield from _inside(tuple(getattr(value, field.name) for field in fields(value)))


# --- loops over what others write ----------------------------------------------------------------


def _context(question: str) -> RunContext:
    schema = {
        "properties": {"n": {"type": "integer"}, "e": {"enum": ["x", "y"]}, "s": {"type": "string"}},
        "required": ["n", "e", "s"] * 100,
    }
    asked = InputMessage("user", question)
    tools = (ClientTool("toolx", "", schema),)
    request = RunRequest("text", "demo", (asked,), "req-1", tools=tools, server_tools=())
    return RunContext(RUN_ID, RUN_ID, RUN_ID, 1, 0, request, "", chat_messages([asked]), ())


def _called(text: str) -> object:
    return tool_use.requested_call(_context(f"toolx {text}"))


def _noted(text: str) -> object:
    return tool_use.requested_note(_context(f"demo.note approve {text}"))


def _repaired(text: str) -> str:
    repair = Repair()
    return "".join([repair.feed(text[at : at + 50]) for at in range(0, len(text), 50)]) + repair.finish()


def _cut(text: str) -> list[bytes]:
    cutter = EventSplitter()
    data = text.encode()
    return [found for at in range(0, len(data), 50) for found in cutter.feed(data[at : at + 50])]


_BLANKS: Final = (" ", "\n", "\u3000", "a ", " a")
_TOKENS: Final = ("token ", "token=\\")
_TAGS: Final = (
    "<", "<a", "<a ", "</", "<b>", "<a<br>", "<phase ", "<phase>", "<title>", "<think>", "</final>",
    "<!--", "<!-- ", "<serp_queries>", "<!-- <serp_queries>", "<!--<serp_queries>", "</serp_queries>  -",
    "标", "<标", "a" * 31 + "<", "`", "```\n",
)  # fmt: skip


@pytest.mark.parametrize(
    ("loop", "pieces"),
    [
        (runner.split_tokens, (*_BLANKS, "卧", "a卧 ")),
        (shows.strip_control_words, (*_BLANKS, "demo.", "demo.think", " demo.card:")),
        (lambda text: shows.thoughts(f"demo.think {text}"), _BLANKS),
        (
            lambda text: shows.split_languages({"name": "x", "description": f"卧 {text}"}),
            ("A ", "A: ", "A:"),
        ),
        (
            lambda text: shows.split_languages({"name": "x", "description": f"{text}卧"}),
            ("A ", "A: ", "A:"),
        ),
        (_called, (*_BLANKS, "{", "}", "{}", "9", '{"a":', "toolx", "-1.", "[")),
        (_noted, (*_BLANKS, "approve ", "批准", "demo.note", "a")),
        (_repaired, (*_BLANKS, *_TAGS)),
        (lambda text: _repaired(f"<thinking>{text}"), (*_BLANKS, *_TAGS)),
        (lambda text: _repaired(f'<thinking><phase id="1"><title>t</title>{text}'), (*_BLANKS, *_TAGS)),
        (lambda text: _repaired(f"<thinking></thinking><final>{text}"), (*_BLANKS, *_TAGS)),
        (
            lambda text: _repaired(f"<thinking></thinking><final><!-- <serp_queries>{text}"),
            (*_BLANKS, *_TAGS),
        ),
        (validate_thinkingml, (*_BLANKS, *_TAGS)),
        (lambda text: validate_thinkingml(f"<think>{text}</think>\n<thinking></thinking>"), _TAGS),
        (_cut, ("data: a", "\n", "\r", "\r\n", "data: a\n", "data: a\n\n", "data:\r\r")),
        (chunks_of, (*_BLANKS, "# ", "# a\n", "a. ", "。", "\n \n")),
        (words.words, (*_BLANKS, "push ", "push-", "卧", "no any ", "1 ")),
        (words.read_query, (*_BLANKS, "push ", "push-", "卧", "no any ", "1 ")),
        (
            mask,
            (*_BLANKS, "secret", "secret=", 'secret="', "eyJ", "_eyJ", "eyJ.", "://a:", "sk-", *_TOKENS),
        ),
        (lambda text: template.fill(text, {}), (*_BLANKS, "{{", "{{ date ", "{{a.", "{{a|", "\\")),
        (lambda text: make_terms("ab aab 卧推 a").snippet(text), (*_BLANKS, "aa", "卧")),
    ],
)  # fmt: skip
def test_a_loop_over_foreign_text_is_linear(
    loop: Callable[[str], object], pieces: tuple[str, ...]
) -> None:
    for piece in pieces:
        text = piece * (LONG // len(piece))
        begun = time.thread_time()
        loop(text)
        assert time.thread_time() - begun < 0.6, piece
