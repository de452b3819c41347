"""Result modes: what of a run's facts is delivered (specs/text-run.md §1, §2, §5)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.requests import ResultMode
from agents.runners.delivery import delivery_for
from agents.runners.thinkingml import Repair, validate_thinkingml
from conversations import events
from conversations.events import Fact, MessageBody, MessageCompleted, MessageDelta, Terminal, UpstreamRaw
from tests.support.properties.effort import examples
from tests.support.properties.strategies import FACTS, TERMINALS
from tests.support.properties.thinkingml import REPLY, cuts, replies

DONE = events.RunCompleted("stop")
FAILED = events.RunFailed("provider_stream_interrupted", "It broke off.", retryable=True)
ROUTED = events.ModelRouted("xai", "grok", 1)
MODES: list[ResultMode | None] = [None, "raw_passthrough", "xml_plaintext", "auto"]


def delivered(mode: ResultMode | None, *facts: Fact, end: Terminal = DONE) -> list[Fact]:
    delivery = delivery_for(mode)
    taken = [out for fact in facts for out in delivery.take(fact)]
    rest, last = delivery.end(end)
    return [*taken, *rest, last]


def said(*texts: str, message_id: str = "m") -> list[Fact]:
    return [MessageDelta(message_id, text) for text in texts]


def raw(number: int = 1, text: str = "{}") -> list[Fact]:
    return [UpstreamRaw("openai.chat_completions", text)] * number


def words(facts: list[Fact]) -> str:
    return "".join(fact.text for fact in facts if isinstance(fact, MessageDelta))


def repaired(text: str) -> str:
    repair = Repair()
    return repair.feed(text) + repair.finish()


def judged(verdict: str) -> events.RunCompleted:
    return events.RunCompleted("stop", metadata={"thinkingml": verdict})


# --- raw_passthrough ------------------------------------------------------------------------------


@given(st.lists(st.one_of(list(FACTS.values())), max_size=10), TERMINALS)
def test_without_a_mode_and_in_the_raw_one_facts_pass_as_they_are(
    facts: list[Fact], end: Terminal
) -> None:
    assert delivered(None, *facts, end=end) == delivered("raw_passthrough", *facts, end=end)
    assert delivered(None, *facts, end=end) == [*facts, end]


# --- xml_plaintext --------------------------------------------------------------------------------


@given(replies().flatmap(lambda reply: st.tuples(st.just(reply), cuts(reply))))
@settings(max_examples=examples(200), deadline=None)
def test_the_words_are_the_repaired_ones_and_the_verdict_is_of_the_models(
    cut: tuple[str, list[str]],
) -> None:
    reply, pieces = cut
    *facts, last = delivered("xml_plaintext", *said(*pieces))
    assert words(facts) == repaired(reply)
    assert all(isinstance(fact, MessageDelta) and fact.text for fact in facts)
    assert last == judged(validate_thinkingml(reply) or "ok")


def test_a_valid_reply_passes_delta_by_delta() -> None:
    deltas = said("<thinking>", '<phase id="1">', "<title>", "t", "</title>", "x")
    assert delivered("xml_plaintext", *deltas)[: len(deltas)] == deltas


def test_a_run_that_fails_leaves_whole_thinkingml_and_no_verdict() -> None:
    *facts, last = delivered("xml_plaintext", *said('<thinking><phase id="1"><tit'), end=FAILED)
    assert validate_thinkingml(words(facts)) is None
    assert last == FAILED


@pytest.mark.parametrize("end", [DONE, FAILED])
def test_a_run_that_says_nothing_delivers_nothing(end: Terminal) -> None:
    *facts, last = delivered("xml_plaintext", ROUTED, end=end)
    assert facts == [ROUTED]
    assert last == (judged("empty_reply") if end is DONE else FAILED)


def test_a_message_told_as_a_whole_goes_out_as_deltas_and_is_stored_as_it_went_out() -> None:
    body = MessageBody("m", "assistant", "Hello", ui_hints={"component": "x"})
    wrapped = repaired("Hello")
    assert delivered("xml_plaintext", MessageCompleted(body)) == [
        MessageDelta("m", wrapped),
        MessageCompleted(MessageBody("m", "assistant", wrapped, ui_hints={"component": "x"})),
        judged("invalid_thinking_block_count"),
    ]


def test_a_message_completed_after_its_deltas_is_stored_as_they_went_out() -> None:
    body = MessageBody("m", "assistant", "something else")
    facts = delivered("xml_plaintext", *said(REPLY[:30], REPLY[30:]), MessageCompleted(body))
    assert words(facts) == REPLY
    assert facts[-2:] == [MessageCompleted(MessageBody("m", "assistant", REPLY)), judged("ok")]


def test_each_message_of_a_run_is_whole_and_the_first_fault_is_told() -> None:
    facts = delivered("xml_plaintext", *said("a"), *said(REPLY, message_id="n"))
    told = [fact for fact in facts if isinstance(fact, MessageDelta)]
    assert "".join(fact.text for fact in told if fact.message_id == "m") == repaired("a")
    assert "".join(fact.text for fact in told if fact.message_id == "n") == REPLY
    assert facts[-1] == judged("invalid_thinking_block_count")


def test_raw_pieces_do_not_belong_to_mended_words() -> None:
    assert delivered("xml_plaintext", *raw(9), *said(REPLY)) == [*said(REPLY), judged("ok")]


# --- auto -----------------------------------------------------------------------------------------


def test_words_first_are_mended_and_the_raw_pieces_before_and_after_dropped() -> None:
    facts = delivered("auto", ROUTED, *raw(3), *said("Hello"), *raw(9))
    assert facts == [ROUTED, *said(repaired("Hello")), judged("invalid_thinking_block_count")]


def test_four_raw_pieces_without_words_are_flushed_and_the_rest_passes_as_it_is() -> None:
    given_in = [ROUTED, *raw(4), *said("Hello"), *raw(1), *said("<b>")]
    assert delivered("auto", *given_in) == [*given_in, DONE]


def test_nothing_raw_goes_out_before_the_decision() -> None:
    delivery = delivery_for("auto")
    assert [list(delivery.take(fact)) for fact in raw(4)] == [[], [], [], raw(4)]


@pytest.mark.parametrize(("size", "mode"), [(4_095, "xml_plaintext"), (4_096, "raw_passthrough")])
def test_so_many_raw_characters_without_words_decide_too(size: int, mode: str) -> None:
    facts = delivered("auto", *raw(1, "x" * (size - 2000)), *raw(1, "y" * 2000), *said("Hello"))
    assert words(facts) == ("Hello" if mode == "raw_passthrough" else repaired("Hello"))


@pytest.mark.parametrize("end", [DONE, FAILED])
def test_a_run_that_ends_undecided_delivers_what_raw_pieces_there_are(end: Terminal) -> None:
    assert delivered("auto", *raw(2), end=end) == [*raw(2), end]
    assert delivered("auto", *said(""), end=end) == [end]


def test_raw_pieces_of_an_endpoint_that_failed_do_not_count() -> None:
    facts = delivered("auto", ROUTED, *raw(3, "first"), ROUTED, *raw(3, "second"))
    assert facts == [ROUTED, ROUTED, *raw(3, "second"), DONE]


@given(
    st.sampled_from(MODES),
    st.lists(
        st.builds(MessageDelta, st.just("m"), replies())
        | st.builds(UpstreamRaw, st.just("d"), st.text(max_size=2000))
        | st.just(ROUTED),
        max_size=12,
    ),
    st.sampled_from([DONE, FAILED]),
)
@settings(max_examples=examples(200), deadline=None)
def test_words_delivered_are_either_the_models_or_valid(
    mode: ResultMode | None, facts: list[Fact], end: Terminal
) -> None:
    out = delivered(mode, *facts, end=end)
    kinds = [type(fact) for fact in out if isinstance(fact, MessageDelta | UpstreamRaw)]
    if mode == "xml_plaintext" or (mode == "auto" and kinds[:1] == [MessageDelta]):
        assert set(kinds) <= {MessageDelta}
        assert words(out) == "" or validate_thinkingml(words(out)) is None
    else:
        assert words(out) == words(facts) or not kinds


def announced(number: int, kind: str = "response.created") -> list[Fact]:
    return [UpstreamRaw("openai.responses", "{" + "x" * 5_000, kind)] * number


def test_announcements_decide_nothing_but_are_not_held_for_ever() -> None:
    assert words(delivered("auto", *announced(63), *said("Hel", "lo"))) == repaired("Hello")
    assert delivered("auto", *announced(64), *said("Hel")) == [*announced(64), *said("Hel"), DONE]
    assert delivered("auto", *announced(63), *raw(1), *said("a")) == [
        *announced(63),
        *raw(1),
        *said("a"),
        DONE,
    ]
