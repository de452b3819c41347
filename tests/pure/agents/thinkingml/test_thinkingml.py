"""What ThinkingML v4.5 is, and the first thing that is wrong with what is not (specs/text-run.md §5)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from agents.runners.thinkingml import validate_thinkingml
from tests.support.properties.effort import examples
from tests.support.properties.thinkingml import (
    FINAL,
    PHASE,
    QUERIES,
    REPLY,
    THINKING,
    VALID,
    answer,
    asking,
    phase,
    replies,
    thinking,
    valid_replies,
)

INVALID = {
    "empty_reply": ["", " \n\t\u3000"],
    "parsing_error_marker": [
        "<<ParsingError>>",
        f"\n<<ParsingError>>{REPLY}",
        answer("<<ParsingError>>"),
    ],
    "invalid_thinking_block_count": [
        "hello",
        FINAL,
        f"<thinking>{PHASE}{FINAL}",
        f"{PHASE}</thinking>{FINAL}",
        f"{THINKING}{THINKING}{FINAL}",
        f"<thinking>{THINKING}</thinking>{FINAL}",
        f"<think>I shall write <thinking> first</think>{REPLY}",
    ],
    "invalid_final_block_count": [
        THINKING,
        f"{THINKING}<final>x",
        f"{THINKING}x</final>",
        f"{REPLY}{FINAL}",
        answer("<final>x</final>", QUERIES),
    ],
    "invalid_serp_block_count": [
        f"<serp>a</serp><serp>b</serp>{REPLY}",
        f"<serp>a{REPLY}",
        f"a</serp>{REPLY}",
    ],
    "invalid_think_block_count": [
        f"<think>a</think><think>b</think>{REPLY}",
        f"<think>a{REPLY}",
        f"a</think>{REPLY}",
    ],
    "missing_required_blocks": [
        REPLY.replace("thinking>", "Thinking>"),
        REPLY.replace("<final>", "<final >"),
        REPLY.replace("<thinking>", '<thinking mode="x">'),
    ],
    "invalid_thinking_order": [
        f"</thinking>{PHASE}<thinking>{FINAL}",
        f"Sure: {REPLY}",
        f"<think>a</think> so {REPLY}",
        f"</think>a<think>{REPLY}",
        answer("<think>late</think>", QUERIES),
        f"<think><serp>a</serp></think>{REPLY}",
    ],
    "invalid_final_order": [
        f"{THINKING}</final>x<final>",
        f"{REPLY} and more",
        f"{REPLY}\n```",
    ],
    "invalid_sequence_serp_thinking": [
        f"{THINKING}<serp>q</serp>{FINAL}",
        answer("<serp>q</serp>", QUERIES),
        f"<thinking><serp>q</serp>{PHASE}</thinking>{FINAL}",
    ],
    "invalid_sequence_thinking_final": [
        f"{FINAL}{THINKING}",
        f"<thinking>{PHASE}<final>x</thinking>{QUERIES}</final>",
        f"<thinking>{FINAL}{PHASE}</thinking>",
    ],
    "final_not_immediately_after_thinking": [
        f"{THINKING} so {FINAL}",
        f"{THINKING}<br>{FINAL}",
        f"{THINKING}{PHASE}{FINAL}",
    ],
    "unexpected_tag:b": [answer("<b>x</b>", QUERIES), thinking(phase(1, "<title><b>t</b></title>"))],
    "unexpected_tag:br": [answer("x<br/>", QUERIES)],
    "unexpected_tag:a": [answer('<a href="x">y</a>', QUERIES)],
    "unexpected_tag:Title": [thinking(phase(1, "<Title>t</Title>"))],
    "unexpected_tag:title": [thinking(phase(1, "<title >t</title>"))],
    "unexpected_tag:标题": [thinking(phase(1, "<标题>t</标题>")), answer("<标题>", QUERIES)],
    "unexpected_tag:y": [answer("x <y> z", QUERIES), asking(["<y>"]), f"<think><y></think>{REPLY}"],
    "missing_thinking_content": [f"<thinking> \n</thinking>{FINAL}", f"<thinking></thinking>{FINAL}"],
    "missing_phase": [
        thinking("just words"),
        thinking("<phase><title>t</title></phase>"),
        thinking("<phase id=1><title>t</title></phase>"),
        thinking("<phase id='1'><title>t</title></phase>"),
        thinking("<title>t</title>x"),
    ],
    "phase_id_not_start_from_1": [thinking(phase(2)), thinking(phase(0), phase(1))],
    "phase_id_not_strict_increment": [
        thinking(phase(1), phase(1)),
        thinking(phase(1), phase(3)),
        thinking(phase(1), phase(2), phase(1)),
    ],
    "phase_block_mismatch": [
        thinking('<phase id="1"><title>t</title>'),
        thinking(phase(1), "</phase>"),
        thinking(f'<phase id="1"><title>t</title>{phase(2)}</phase>'),
        thinking(phase(1), "<phase><title>u</title></phase>"),
        thinking(phase(1), " and ", phase(2)),
        thinking("so ", phase(1)),
        thinking(phase(1)[: -len("</phase>")] + "</phase >"),
        answer(phase(2), QUERIES),
        answer("</phase>", QUERIES),
    ],
    "invalid_title_count_in_phase": [
        thinking(phase(1, "x")),
        thinking(phase(1, "<title>a</title><title>b</title>")),
        thinking(phase(1), phase(2, "x")),
        thinking(phase(1, "<title>t")),
        thinking(phase(1, "</title>t<title>")),
        thinking(phase(1, "x<title>t</title>")),
        answer("<title>t</title>", QUERIES),
    ],
    "missing_final_content": [answer(" \n"), answer()],
    "missing_or_invalid_serp_queries_block": [
        answer("x"),
        answer(QUERIES, "x"),
        answer("x", '<serp_queries>["a"]</serp_queries>'),
        answer("x", '<!-- <serp_queries>["a"] -->'),
        answer("x", '<!-- <serp_queries>["a"]</serp_queries>'),
        answer("x", QUERIES, QUERIES),
    ],
    "serp_queries_json_parse_error": [asking(""), asking("a, b"), asking('["a"'), asking("[" * 5000)],
    "serp_queries_not_array": [asking({"q": 1}), asking('"a"'), asking("null")],
    "serp_queries_too_many": [asking(list("abcdef")), asking([1] * 6)],
    "serp_queries_not_deduped": [asking(["a", "b", "a"]), asking([1, 1])],
    "serp_queries_item_not_string": [
        asking(["a", 1]),
        asking([1, True]),
        asking([None]),
        asking([["a"]]),
    ],
    "serp_queries_item_too_long": [asking(["x" * 81])],
}


@pytest.mark.parametrize("reply", VALID.values(), ids=VALID)
def test_a_reply_of_the_protocol_is_valid(reply: str) -> None:
    assert validate_thinkingml(reply) is None


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        pytest.param(reply, reason, id=f"{reason}-{number}")
        for reason, some in INVALID.items()
        for number, reply in enumerate(some)
    ],
)
def test_a_reply_with_this_fault_is_told_so(reply: str, reason: str) -> None:
    assert validate_thinkingml(reply) == reason


REASONS = """
empty_reply, parsing_error_marker, invalid_thinking_block_count, invalid_final_block_count,
invalid_serp_block_count, invalid_think_block_count, missing_required_blocks, invalid_thinking_order,
invalid_final_order, invalid_sequence_serp_thinking, invalid_sequence_thinking_final,
final_not_immediately_after_thinking, unexpected_tag, missing_thinking_content, missing_phase,
phase_id_not_start_from_1, phase_id_not_strict_increment, phase_block_mismatch,
invalid_title_count_in_phase, missing_final_content, missing_or_invalid_serp_queries_block,
serp_queries_json_parse_error, serp_queries_not_array, serp_queries_too_many,
serp_queries_not_deduped, serp_queries_item_not_string, serp_queries_item_too_long
"""
KNOWN = [reason.strip() for reason in REASONS.replace("\n", " ").split(",")]


def test_every_reason_has_its_case_and_there_is_no_other() -> None:
    assert list(dict.fromkeys(reason.partition(":")[0] for reason in INVALID)) == KNOWN


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (f"{THINKING}{THINKING}<final>", "invalid_thinking_block_count"),
        (f"<serp><think>{THINKING}{FINAL}{FINAL}", "invalid_final_block_count"),
        (f"<serp><think>{REPLY}", "invalid_serp_block_count"),
        (f"x{THINKING}y{FINAL}z", "invalid_thinking_order"),
        (f"{THINKING}<b>y</b>{FINAL}", "final_not_immediately_after_thinking"),
        (thinking(phase(2), "<b>"), "unexpected_tag:b"),
        (thinking(phase(2, "x"), phase(4)), "phase_id_not_start_from_1"),
        (thinking("so ", phase(1, "x")), "phase_block_mismatch"),
        (f"<thinking>{phase(1, 'x')}</thinking><final></final>", "invalid_title_count_in_phase"),
        (asking([1, 1, 1, 1, 1, 1]), "serp_queries_too_many"),
        (asking([1, 1, "x" * 81]), "serp_queries_not_deduped"),
        (asking([1, "x" * 81]), "serp_queries_item_not_string"),
    ],
)
def test_of_several_faults_the_first_in_the_order_of_the_checks_is_told(reply: str, reason: str) -> None:
    assert validate_thinkingml(reply) == reason


@given(valid_replies())
@settings(max_examples=examples(300))
def test_whatever_the_grammar_gives_is_valid(reply: str) -> None:
    assert validate_thinkingml(reply) is None


@given(replies())
@settings(max_examples=examples(300))
def test_any_text_gets_ok_or_a_known_reason(reply: str) -> None:
    reason = validate_thinkingml(reply)
    assert reason is None or reason.partition(":")[0] in KNOWN
