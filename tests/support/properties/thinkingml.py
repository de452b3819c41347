# ruff: noqa: E501 (words for fuzzing, in one place)
"""Random replies for property tests: valid ThinkingML, ThinkingML gone wrong, and anything at all."""

from __future__ import annotations

import json

from hypothesis import strategies as st

from agents.runners.thinkingml.opening import WRAP_HEAD, WRAP_TAIL
from agents.runners.thinkingml.tags import TAG

_WORDS = st.sampled_from(
    ["卧推", "squat ", "a < b", "x <y ", "\n", "- 1. ", "`<!--`", "3<4>2 ", "&amp;", "<1>", "</ ", "🏋️",
     "-->", "<h1>", "<https://a.b>", "  ", "\u3000", "#", "<a-b>", "“”", "<"]
)  # fmt: skip
_PROSE = st.lists(_WORDS, max_size=6).map("".join).filter(lambda prose: not TAG.search(prose))
_BLANK = st.sampled_from(["", "\n", " ", "\n\n  "])
_QUERY = st.text(st.characters(exclude_characters="<", exclude_categories=["Cs"]), max_size=80)


@st.composite
def valid_replies(draw: st.DrawFn) -> str:
    """A reply that the validator accepts."""
    prelude = [
        f"<{name}>{draw(_PROSE)}</{name}>{draw(_BLANK)}"
        for name in draw(
            st.sampled_from([(), ("think",), ("serp",), ("think", "serp"), ("serp", "think")])
        )
    ]
    phases = [
        f'<phase id="{number}">{draw(_BLANK)}<title>{draw(_PROSE)}</title>{draw(_PROSE)}</phase>{draw(_BLANK)}'
        for number in range(1, draw(st.integers(1, 4)) + 1)
    ]
    found = json.dumps(draw(st.lists(_QUERY, max_size=5, unique=True)), ensure_ascii=draw(st.booleans()))
    queries = f"<!--{draw(_BLANK)}<serp_queries>{draw(_BLANK)}{found}</serp_queries>{draw(_BLANK)}-->"
    return (
        f"{draw(_BLANK)}{''.join(prelude)}<thinking>{draw(_BLANK)}{''.join(phases)}</thinking>"
        f"{draw(_BLANK)}<final>{draw(_PROSE)}{queries}{draw(_BLANK)}</final>{draw(_BLANK)}"
    )


PIECES = (
    "<think>", "</think>", "<serp>", "</serp>", "<thinking>", "</thinking>", "<final>", "</final>",
    '<phase id="1">', '<phase id="2">', '<phase  id="1" >', "<phase>", "<phase id=7>", "</phase>", "</phase >",
    "<title>", "</title>", "<Title>", "</TITLE>", "<标题>", "</标题 >", "<Thinking>", "<final/>", "<think a='b'>",
    "<!-- <serp_queries>", "<serp_queries>", "</serp_queries> -->", "</serp_queries>", "-->", '["a","b"]',
    '["a","a",1,"<b>"]', "[", "<b>", "</b>", "<br>", "<br />", "<div>", '<a href="x">', "</p>", "<<ParsingError>>",
    "```", "```xml\n", "<", "</", "<a", "<a ", "b>", ">", "nking>", "<fi", "nal>", "<!--", "标题>", "\n", " ",
    "words", "你好", "&lt;", "x" * 40, " " * 40,
)  # fmt: skip
_SOUP = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=40).map("".join)


@st.composite
def broken_replies(draw: st.DrawFn) -> str:
    """A valid reply with some things taken out, put in and doubled."""
    reply = draw(valid_replies())
    for _ in range(draw(st.integers(1, 4))):
        begin = draw(st.integers(0, len(reply)))
        end = min(len(reply), begin + draw(st.integers(0, 12)))
        put = draw(st.sampled_from([*PIECES, "", reply[begin : begin + 30]]))
        reply = reply[:begin] + put + reply[end:]
    return reply


def replies() -> st.SearchStrategy[str]:
    """What a model may say."""
    return st.one_of(_SOUP, broken_replies(), valid_replies(), st.text(max_size=60))


def cuts(text: str) -> st.SearchStrategy[list[str]]:
    """The text in pieces, some of them empty."""
    places = st.lists(st.integers(0, len(text)), max_size=12).map(sorted)
    return places.map(lambda at: [text[a:b] for a, b in zip([0, *at], [*at, len(text)], strict=True)])


PHASE = '<phase id="1"><title>目标</title>想想</phase>'
THINKING = f"<thinking>{PHASE}</thinking>"
QUERIES = '<!-- <serp_queries>\n["q1","q2"]\n</serp_queries> -->'
FINAL = f"<final># 答\n好。\n{QUERIES}</final>"
REPLY = f"{THINKING}\n{FINAL}"


def thinking(*phases: str) -> str:
    return f"<thinking>{''.join(phases)}</thinking>\n{FINAL}"


def phase(number: object, body: str = "<title>t</title>x") -> str:
    return f'<phase id="{number}">{body}</phase>'


def answer(*parts: str) -> str:
    return f"{THINKING}\n<final>{''.join(parts)}</final>"


def asking(queries: object) -> str:
    written = queries if isinstance(queries, str) else json.dumps(queries, ensure_ascii=False)
    return answer("x", f"<!-- <serp_queries>{written}</serp_queries> -->")


VALID = {
    "the least": REPLY,
    "white space round it": f"\n {REPLY}\n\n",
    "think": f"<think>hm</think>{REPLY}",
    "serp": f"<serp>q</serp>\n{REPLY}",
    "think and serp": f"<think>hm</think>\n<serp>q</serp>\n{REPLY}",
    "serp and think": f"<serp>q</serp><think>hm</think>{REPLY}",
    "no white space between": f"{THINKING}{FINAL}",
    "three phases": thinking(phase(1), "\n", phase(2), phase(3), "\n"),
    "an empty title": thinking(phase(1, "<title></title>")),
    "white space in a phase's tag": thinking('<phase \n id="1" ><title>t</title></phase>'),
    "a leading zero": thinking(phase("01")),
    "no queries": asking([]),
    "five queries": asking(list("abcde")),
    "a query of 80": asking(["长" * 80]),
    "an empty query": asking([""]),
    "only queries": answer(QUERIES),
    "white space after the queries": answer("x", QUERIES, " \n"),
    "comparisons": answer("1 <2, a< b, x<y and z", QUERIES),
    "digits and dashes": answer("<h1> <a-b> <https://a.b> <1> <标签>", QUERIES),
    "a comment": answer("<!-- note -->", QUERIES),
    "half the marker": answer("<ParsingError", QUERIES),
    "queries in a phase": thinking(phase(1, f"<title>t</title>{QUERIES}")),
}


def wrap(escaped: str) -> str:
    return WRAP_HEAD + escaped + WRAP_TAIL
