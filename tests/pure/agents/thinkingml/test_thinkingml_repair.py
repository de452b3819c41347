# ruff: noqa: E501 (replies are read best on one line)
"""The streaming repair of ThinkingML: what comes out is valid, however it came (specs/text-run.md §5)."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agents.runners.thinkingml import Repair, validate_thinkingml
from agents.runners.thinkingml.opening import LONGEST_PREAMBLE, WRAP_HEAD, WRAP_TAIL
from agents.runners.thinkingml.tags import LONGEST_QUERIES, LONGEST_TAG
from tests.support.properties.effort import examples
from tests.support.properties.thinkingml import (
    FINAL,
    PHASE,
    QUERIES,
    REPLY,
    THINKING,
    VALID,
    answer,
    cuts,
    phase,
    replies,
    thinking,
    valid_replies,
    wrap,
)

NO_QUERIES = "\n<!-- <serp_queries>\n[]\n</serp_queries> -->\n"


def repaired(*pieces: str) -> str:
    repair = Repair()
    return "".join([*map(repair.feed, pieces), repair.finish()])


# --- properties ---------------------------------------------------------------------------------


@given(replies().flatmap(lambda reply: st.tuples(st.just(reply), cuts(reply))))
@settings(max_examples=examples(400), deadline=None)
def test_the_result_does_not_depend_on_the_cuts(cut: tuple[str, list[str]]) -> None:
    reply, pieces = cut
    assert repaired(*pieces) == repaired(reply) == repaired(*reply)


@given(replies())
@settings(max_examples=examples(800), deadline=None)
@example("<a<br>b>")
@example("<think>x <y </t<think>hink></think>")
@example("<final><a<!-- <serp_queries>[]</serp_queries> -->b></final>")
@example("<thinking></thinking>x<a<final>b>")
def test_whatever_a_model_says_the_result_is_valid_or_nothing(reply: str) -> None:
    result = repaired(reply)
    if reply.strip():
        assert validate_thinkingml(result) is None
    else:
        assert result == ""


@given(valid_replies())
@settings(max_examples=examples(200), deadline=None)
def test_a_valid_reply_passes_unchanged(reply: str) -> None:
    assert repaired(*reply) == reply


@given(replies())
@settings(max_examples=examples(300), deadline=None)
def test_a_result_that_is_repaired_again_stays_as_it_is(reply: str) -> None:
    result = repaired(reply)
    assert repaired(result) == result


@given(replies())
@settings(max_examples=examples(200), deadline=None)
def test_a_reply_has_faults_exactly_if_the_repair_changes_it(reply: str) -> None:
    blank = not reply.strip()
    assert (validate_thinkingml(reply) is None) == (repaired(reply) == reply and not blank)


@pytest.mark.parametrize("reply", VALID.values(), ids=VALID)
def test_every_written_valid_reply_passes_unchanged(reply: str) -> None:
    assert repaired(reply) == repaired(*reply) == reply


# --- what is mended -----------------------------------------------------------------------------

TITLED = '<thinking><phase id="1"><title>t</title>'
REST = f"</phase></thinking>{FINAL}"


@pytest.mark.parametrize(
    ("reply", "mended"),
    [
        pytest.param(f"```xml\n{REPLY}\n```", REPLY + "", id="a fence round the whole"),
        pytest.param(f"\n ```\n{REPLY}```\n", REPLY, id="a fence without a language"),
        pytest.param(
            thinking(phase(1, "<Title>a</Title>"), phase(2, "<标题>b</标题>"), phase(3, "<TITLE>c</标题>")),
            thinking(phase(1, "<title>a</title>"), phase(2, "<title>b</title>"), phase(3, "<title>c</title>")),
            id="other spellings of title",
        ),
        pytest.param(
            f"{TITLED}a<thinking>b</title>c<title>d<final>e</final>f{REST}",
            f"{TITLED}a&lt;thinking&gt;b&lt;/title&gt;c&lt;title&gt;d&lt;final&gt;e&lt;/final&gt;f{REST}",
            id="nested tags",
        ),
        pytest.param(
            answer("<thinking>a</thinking><title>b</title><final>c", QUERIES),
            answer("&lt;thinking&gt;a&lt;/thinking&gt;&lt;title&gt;b&lt;/title&gt;&lt;final&gt;c", QUERIES),
            id="tags in the answer",
        ),
        pytest.param(
            thinking('<phase id="1"><title>a</phase>', '<phase id="2"><title>b</title>c'),
            thinking('<phase id="1"><title>a</title></phase>', '<phase id="2"><title>b</title>c</phase>'),
            id="missing closings",
        ),
        pytest.param(
            thinking('<phase id="1"><title>a', '<phase id="2"><title>b'),
            thinking('<phase id="1"><title>a</title></phase>', '<phase id="2"><title>b</title></phase>'),
            id="two missing closings at once",
        ),
        pytest.param(
            thinking(phase(1, "\nwords"), phase(2, " ")),
            thinking(phase(1, "\n<title>阶段1</title>words"), phase(2, " <title>阶段2</title>")),
            id="a missing title",
        ),
        pytest.param(
            thinking("<phase><title>a</title></phase>", phase(7), phase(1)),
            thinking(phase(1, "<title>a</title>"), phase(2), phase(3)),
            id="phases that do not count",
        ),
        pytest.param(
            thinking("so ", phase(1), "then"),
            thinking(
                phase(1, "<title>阶段1</title>so "), phase(2), phase(3, "<title>阶段3</title>then")
            ),
            id="words between phases",
        ),
        pytest.param(
            thinking("<title>a</title>x"), thinking(phase(1, "<title>a</title>x")), id="a missing phase"
        ),
        pytest.param(f"{PHASE}</thinking>\n{FINAL}", REPLY, id="a missing opening of thinking"),
        pytest.param(f"<thinking>{PHASE}\n{FINAL}", f"<thinking>{PHASE}\n</thinking>{FINAL}", id="a missing end of thinking"),
        pytest.param(
            f"{TITLED}x\n{FINAL}", f"{TITLED}x\n</phase></thinking>{FINAL}", id="all missing before final"
        ),
        pytest.param(f"{THINKING}\nx{QUERIES}</final>", f"{THINKING}\n<final>x{QUERIES}</final>", id="a missing final"),
        pytest.param(
            f"{THINKING}\nHere: <final>x{QUERIES}</final>",
            f"{THINKING}\n<final>Here: \nx{QUERIES}</final>",
            id="words before final",
        ),
        pytest.param(
            answer("<b>bold</b> one<br>two<br/>three<BR />", QUERIES),
            answer("**bold** one\ntwo\nthree\n", QUERIES),
            id="bold and break",
        ),
        pytest.param(
            answer('<div><a href="x">y</a>', QUERIES),
            answer('&lt;div&gt;&lt;a href="x"&gt;y&lt;/a&gt;', QUERIES),
            id="other tags",
        ),
        pytest.param(f"{REPLY}\n\nAnything else? <b>", REPLY, id="words after the end"),
        pytest.param(f"Sure!\n{REPLY}", f"<think>Sure!\n</think>{REPLY}", id="words before the beginning"),
        pytest.param(
            f"<think>a</think>b <i><serp>c</serp>{REPLY}",
            f"<think>ab &lt;i&gt;</think><serp>c</serp>{REPLY}",
            id="words between the blocks",
        ),
        pytest.param(f"hm</think>{REPLY}", f"<think>hm</think>{REPLY}", id="think without its opening"),
        pytest.param(
            f"<think>first <thinking> then <final></think>{REPLY}",
            f"<think>first &lt;thinking&gt; then &lt;final&gt;</think>{REPLY}",
            id="think that speaks of the format",
        ),
        pytest.param(answer("x"), answer("x", NO_QUERIES), id="no queries"),
        pytest.param(answer(QUERIES, "x"), answer(f"<!-- -->x\n{QUERIES}\n"), id="words after the queries"),
        pytest.param(
            answer('x<serp_queries>["a","a",1,"", "b<i>"]</serp_queries>'),
            answer('x<!-- <serp_queries>\n["a", "b\\u003ci\\u003e"]\n</serp_queries> -->'),
            id="queries that are not as they should be",
        ),
        pytest.param(
            answer('x<!-- <serp_queries>["a"]'),
            answer('x<!-- <serp_queries>\n["a"]\n</serp_queries> -->'),
            id="queries without their end",
        ),
        pytest.param(answer("</serp_queries>x", QUERIES), answer("&lt;/serp_queries&gt;x", QUERIES), id="an end of queries alone"),
    ],
)  # fmt: skip
def test_a_fault_is_mended(reply: str, mended: str) -> None:
    assert repaired(reply) == repaired(*reply) == mended
    assert validate_thinkingml(mended) is None


@pytest.mark.parametrize(
    ("begun", "whole"),
    [
        ("<thinking>", f'<thinking><phase id="1"><title>格式修复</title></phase></thinking><final>{NO_QUERIES}</final>'),
        (f"{TITLED}half a wo", f"{TITLED}half a wo</phase></thinking><final>{NO_QUERIES}</final>"),
        (f"{TITLED}x</phas", f"{TITLED}x</phase></thinking><final>{NO_QUERIES}</final>"),
        ('<thinking><phase id="1"><ti', f'<thinking><phase id="1"><title>阶段1</title></phase></thinking><final>{NO_QUERIES}</final>'),
        (f"{THINKING}<final>x <!-- <serp_qu", f"{THINKING}<final>x {NO_QUERIES}</final>"),
        (f"{THINKING}<final>x < ", f"{THINKING}<final>x < {NO_QUERIES}</final>"),
        ("<think>hm", f'<think>hm</think><thinking><phase id="1"><title>格式修复</title></phase></thinking><final>{NO_QUERIES}</final>'),
        (REPLY[:-4], REPLY),
    ],
)  # fmt: skip
def test_a_reply_that_breaks_off_is_made_whole(begun: str, whole: str) -> None:
    assert repaired(begun) == repaired(*begun) == whole
    assert validate_thinkingml(whole) is None


@pytest.mark.parametrize(
    ("reply", "result"),
    [
        ("Hello <b>you</b> & me", wrap("Hello &lt;b&gt;you&lt;/b&gt; &amp; me")),
        ("<<ParsingError>>", wrap("&lt;&lt;ParsingError&gt;&gt;")),
        ("```py\nx < 1\n```", wrap("```py\nx &lt; 1\n```")),
        ("ends in <thin", wrap("ends in &lt;thin")),
        ("<title>t</title>", wrap("&lt;title&gt;t&lt;/title&gt;")),
        ("<think>hm</think>Hello", "<think>hm</think>" + wrap("Hello")),
        ("", ""),
        (" \n", ""),
    ],
)
def test_a_reply_without_structure_is_wrapped_whole(reply: str, result: str) -> None:
    assert repaired(reply) == repaired(*reply) == result


# --- streaming ----------------------------------------------------------------------------------


def test_nothing_of_a_reply_goes_out_before_its_structure_is_known() -> None:
    repair = Repair()
    assert repair.feed("Hello, this is plain. ") == ""
    assert repair.feed("And more.") == ""
    assert repair.finish() == wrap("Hello, this is plain. And more.")


def test_a_long_reply_without_structure_streams_in_its_wrap_and_stays_so() -> None:
    repair = Repair()
    assert repair.feed("x" * LONGEST_PREAMBLE) == ""
    assert repair.feed("y") == WRAP_HEAD + "x" * LONGEST_PREAMBLE + "y"
    assert repair.feed("<thinking>") == "&lt;thinking&gt;"
    assert repair.finish() == WRAP_TAIL


def test_structure_at_the_last_moment_is_structure() -> None:
    words = "x" * LONGEST_PREAMBLE
    assert repaired(words, REPLY) == f"<think>{words}</think>{REPLY}"
    assert repaired(words + "x" + REPLY).startswith(WRAP_HEAD)


def test_words_go_out_at_once_and_a_cut_tag_waits_until_it_is_whole() -> None:
    repair = Repair()
    given_out = [repair.feed(piece) for piece in (TITLED, "卧推", " a <", "b", ">x", "</ph", "ase", ">")]
    assert given_out == [TITLED, "卧推", " a ", "", "**x", "", "", "</phase>"]


@given(valid_replies())
@settings(max_examples=examples(200), deadline=None)
def test_after_the_opening_only_a_tag_is_held_back(reply: str) -> None:
    repair, said = Repair(), 0
    begin, end = reply.index("<thinking>") + len("<thinking>"), reply.index("<!--")
    for place, character in enumerate(reply, 1):
        said += len(repair.feed(character))
        assert said <= place
        assert place - said <= 2 * LONGEST_TAG or not begin < place < end


def test_queries_too_long_to_be_any_are_shown() -> None:
    body = "x" * (LONGEST_QUERIES + 1)
    reply = answer(f"a<!-- <serp_queries>{body}</serp_queries> -->")
    result = repaired(reply)
    assert result == repaired(*reply)
    assert f"a<!-- -->&lt;!-- &lt;serp_queries&gt;{body}" in result
    assert validate_thinkingml(result) is None
