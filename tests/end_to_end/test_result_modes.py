"""The result modes through the whole stack: streamed = stored = read again (text-run.md §2, §5)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from pytest_django import Settings

from agents.runners.thinkingml import Repair, validate_thinkingml
from agents.runners.thinkingml.form import FORM
from prompts import app_settings
from tests.support.client import Client, ScriptedModel, Seen, read_sse, reply
from tests.support.fakes.fake_model import DONE, Answer, End, FakeModel, Finish, Step, text
from tests.support.properties.thinkingml import PHASE, REPLY, answer, wrap

pytestmark = pytest.mark.once

Scripted = Callable[..., ScriptedModel]
WRONG = (
    "```xml\n<thinking><pha", 'se id="3"><Title>目标</标', "题>想<b>想</b><br>", "好</thinking>",
    " \n<fin", "al>答：", "<div>1 < 2</div>", " <thinking>", "</final> bye\n```",
)  # fmt: skip


def script(provider: FakeModel, *answers: Answer) -> str:
    name = uuid4().hex
    provider.script(*answers, name=name)
    return f"script:{name}"


def reasoning(*thoughts: str) -> tuple[Step, ...]:
    return tuple({"reasoning_content": thought} for thought in thoughts)


class Modes:
    """Runs of one client on the scripted provider."""

    def __init__(self, client: Client, scripted: Scripted, provider: FakeModel) -> None:
        self.client = client
        self._scripted = scripted
        self._provider = provider

    def run(self, mode: str | None, said: Answer | str) -> list[Seen]:
        """All frames of a run; what was streamed is what is stored and what is read again, anywhere."""
        model = said if isinstance(said, str) else script(self._provider, said)
        accepted = self.client.start(
            "How do I squat?",
            self._scripted(model).name,
            result_mode=mode,
            enable_exercise_search=False,
        )
        frames = self.client.watch(accepted["run_id"])
        self._check(accepted, frames)
        return frames

    def _check(self, accepted: dict[str, Any], frames: list[Seen]) -> None:
        for place, frame in enumerate(frames, 1):
            if frame.id is not None:
                assert self.client.watch(accepted["run_id"], after=frame.id) == frames[place:]
        messages = self.client.history(accepted["conversation_id"])["messages"]
        stored = [message["content"] for message in messages if message["role"] == "assistant"]
        assert stored == [words for words in [reply(frames)] if words]
        if frames[-1].event == "completed":
            assert frames[-1].data["reply_len"] == len(reply(frames))


@pytest.fixture
def modes(client: Client, scripted: Scripted, provider: FakeModel) -> Modes:
    return Modes(client, scripted, provider)


def told(frames: list[Seen]) -> tuple[str, str | None]:
    """The mode asked for and the one it came to."""
    last = frames[-1].data
    return last["result_mode"], last["result_mode_effective"]


def raw(frames: list[Seen]) -> list[str]:
    pieces = [frame.data for frame in frames if frame.event == "upstream_raw"]
    assert [piece["seq"] for piece in pieces] == list(range(1, len(pieces) + 1))
    assert {piece["dialect"] for piece in pieces} <= {"openai.chat_completions"}
    return [piece["raw"] for piece in pieces]


# --- raw_passthrough ------------------------------------------------------------------------------


def test_raw_passthrough_streams_the_models_words_untouched(modes: Modes) -> None:
    frames = modes.run("raw_passthrough", text(*WRONG))
    assert (reply(frames), raw(frames)) == ("".join(WRONG), [])
    assert told(frames) == ("raw_passthrough", "raw_passthrough")
    assert "thinkingml" not in frames[-1].data["metadata"]


# --- xml_plaintext --------------------------------------------------------------------------------


def test_valid_thinkingml_streams_as_the_model_says_it(modes: Modes) -> None:
    pieces = [REPLY[at : at + 7] for at in range(0, len(REPLY), 7)]
    frames = modes.run("xml_plaintext", text(*pieces))
    assert (reply(frames), raw(frames)) == (REPLY, [])
    assert told(frames) == ("xml_plaintext", "xml_plaintext")
    assert frames[-1].data["metadata"]["thinkingml"] == "ok"
    assert len([frame for frame in frames if frame.event == "content_delta"]) > 5


def test_broken_thinkingml_is_mended_while_it_streams(modes: Modes) -> None:
    frames = modes.run("xml_plaintext", text(*WRONG))
    repair = Repair()
    assert reply(frames) == "".join([*map(repair.feed, WRONG), repair.finish()])
    assert validate_thinkingml(reply(frames)) is None
    assert "<title>目标</title>想**想**\n好</phase></thinking>" in reply(frames)
    assert frames[-1].data["metadata"]["thinkingml"] == validate_thinkingml("".join(WRONG))


def test_a_reply_without_structure_is_streamed_in_its_wrap(modes: Modes) -> None:
    frames = modes.run("xml_plaintext", text("Sit ", "<down>", " & stand up."))
    assert reply(frames) == wrap("Sit &lt;down&gt; &amp; stand up.")
    assert frames[-1].data["metadata"]["thinkingml"] == "invalid_thinking_block_count"


def test_a_long_reply_in_one_piece_is_cut_into_frames(modes: Modes) -> None:
    said = answer("句子。" * 2000, REPLY[REPLY.index("<!--") : REPLY.index("</final>")])
    frames = modes.run("xml_plaintext", text(said))
    assert reply(frames) == said
    assert max(len(f.data["delta"]) for f in frames if f.event == "content_delta") <= 256


def test_a_model_that_says_nothing_is_told_so(modes: Modes) -> None:
    frames = modes.run("xml_plaintext", "silent")
    assert (reply(frames), frames[-1].data["metadata"]["thinkingml"]) == ("", "empty_reply")


@pytest.mark.parametrize("end", [(End.CUT,), (Finish("length"), DONE)], ids=["broken", "too long"])
def test_a_stream_that_stops_in_the_middle_of_a_tag_leaves_whole_thinkingml(
    modes: Modes, end: tuple[Step, ...]
) -> None:
    begun: tuple[Step, ...] = (
        {"content": f"<thinking>{PHASE}</thinking><final>答"},
        {"content": "</fin"},
    )
    frames = modes.run("xml_plaintext", Answer((*begun, *end)))
    assert frames[-1].event == ("error" if End.CUT in end else "completed")
    assert told(frames) == ("xml_plaintext", "xml_plaintext")
    assert reply(frames).startswith(f"<thinking>{PHASE}</thinking><final>答\n<!--")
    assert validate_thinkingml(reply(frames)) is None


def test_a_run_cancelled_in_the_middle_leaves_whole_thinkingml(
    client: Client, scripted: Scripted, provider: FakeModel
) -> None:
    steps = ({"content": f"<thinking>{PHASE}"}, {"content": "</think"}, End.HANG)
    model = scripted(script(provider, Answer(steps))).name
    accepted = client.start("hi", model, result_mode="xml_plaintext", enable_exercise_search=False)
    seen = client.watch(accepted["run_id"], stop_after=4)
    assert seen[-1].event == "content_delta"
    client.http.post(f"/api/v1/agent/runs/{accepted['run_id']}/cancel").raise_for_status()
    frames = client.watch(accepted["run_id"])
    assert (frames[-1].event, frames[-1].data["code"]) == ("error", "cancelled")
    assert validate_thinkingml(reply(frames)) is None
    messages = client.history(accepted["conversation_id"])["messages"]
    assert messages[-1]["content"] == reply(frames)


# --- what the model is told -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "is_told"), [("xml_plaintext", True), ("auto", True), ("raw_passthrough", False)]
)
def test_the_model_is_told_the_form_in_the_modes_that_need_it(
    modes: Modes, provider: FakeModel, mode: str, is_told: bool
) -> None:
    model = script(provider, text(REPLY))
    modes.run(mode, model)
    (asked,) = provider.requests_for(model)
    system = asked.body["messages"][0]["content"]
    assert ("ThinkingML v4.5" in system, system.count(FORM)) == (is_told, int(is_told))


def test_a_form_that_a_model_copies_is_valid() -> None:
    """The example within what the model is told."""
    begin, end = FORM.index("<thinking>"), FORM.index("</final>") + len("</final>")
    assert validate_thinkingml(FORM[begin:end]) is None


def test_passing_everything_through_tells_no_form(modes: Modes, provider: FakeModel) -> None:
    model = script(provider, text(REPLY))
    app_settings.change("prompt_mode", "passthrough", by=None)
    app_settings.clear_cache()
    try:
        modes.client.outlast_claims()
        modes.run("xml_plaintext", model)
    finally:
        app_settings.change("prompt_mode", "server", by=None)
        app_settings.clear_cache()
        modes.client.outlast_claims()
    (asked,) = provider.requests_for(model)
    assert "ThinkingML" not in json.dumps(asked.body)


QUESTIONS = [
    "卧推怎么做？",
    "Which exercises train my chest?",
    "say <b>hi</b> &amp; <final> </thinking>",
    "x",
]


@pytest.mark.parametrize("mode", ["xml_plaintext", "auto"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_offline_model_speaks_thinkingml_that_needs_no_repair(
    client: Client, question: str, mode: str
) -> None:
    accepted = client.start(question, result_mode=mode)
    frames = client.watch(accepted["run_id"])
    assert (frames[-1].event, frames[-1].data["metadata"]["thinkingml"]) == ("completed", "ok")
    said = reply(frames)
    assert (validate_thinkingml(said), "格式修复" in said) == (None, False)
    assert said.startswith('<thinking>\n<phase id="1">\n<title>')
    assert len([frame for frame in frames if frame.event == "content_delta"]) > 20


def test_the_offline_models_thinkingml_streams_while_the_run_goes_on(
    client: Client, settings: Settings
) -> None:
    settings.DEMO_TOKEN_S = 0.1
    accepted = client.start("卧推怎么做？", result_mode="xml_plaintext")
    path = f"/api/v1/agent/runs/{accepted['run_id']}/events"
    with client.http.stream("GET", path) as response:
        deltas = (frame for frame in read_sse(response) if frame.event == "content_delta")
        begun = "".join(next(deltas).data["delta"] for _ in range(3))
        assert client.run(accepted["run_id"])["status"] == "running"
    assert begun.startswith("<thinking>")
    settings.DEMO_TOKEN_S = 0
    client.wait_for(accepted["run_id"], "completed")


# --- auto -----------------------------------------------------------------------------------------


def test_auto_with_words_first_is_xml_plaintext_without_raw_pieces(modes: Modes) -> None:
    frames = modes.run("auto", Answer((*reasoning("a", "b"), *text(REPLY[:20], REPLY[20:]).steps)))
    assert (reply(frames), raw(frames)) == (REPLY, [])
    assert told(frames) == ("auto", "xml_plaintext")
    assert frames[-1].data["metadata"]["thinkingml"] == "ok"


def test_auto_with_four_raw_pieces_first_is_raw_passthrough(modes: Modes) -> None:
    thoughts = tuple("abcdef")
    frames = modes.run("auto", Answer((*reasoning(*thoughts), *text("Sit <b>down</b>.").steps)))
    assert reply(frames) == "Sit <b>down</b>."
    assert told(frames) == ("auto", "raw_passthrough")
    assert "thinkingml" not in frames[-1].data["metadata"]
    chunks = [json.loads(piece)["choices"] for piece in raw(frames)]
    heard = [c[0]["delta"].get("reasoning_content") for c in chunks[: len(thoughts)]]
    assert heard == list(thoughts)
    assert len(chunks) > len(thoughts) + 1


def test_auto_with_one_long_raw_piece_first_is_raw_passthrough_and_the_piece_is_cut(
    modes: Modes,
) -> None:
    frames = modes.run("auto", Answer((*reasoning("x" * 20_000), *text("ok").steps)))
    assert told(frames) == ("auto", "raw_passthrough")
    cut = next(frame.data for frame in frames if frame.event == "upstream_raw")
    assert (len(cut["raw"]), cut["raw_truncated"]) == (16_384, True)


def test_auto_on_a_silent_model_delivers_what_raw_pieces_there_are(modes: Modes) -> None:
    frames = modes.run("auto", "silent")
    assert (reply(frames), told(frames)) == ("", ("auto", "raw_passthrough"))
    assert raw(frames)


def test_auto_on_a_provider_that_refuses_comes_to_no_mode(modes: Modes) -> None:
    frames = modes.run("auto", "status-401")
    assert (frames[-1].event, told(frames), raw(frames)) == ("error", ("auto", None), [])


def test_auto_on_the_offline_model_is_xml_plaintext(client: Client) -> None:
    accepted = client.start("Which exercises train my chest?", result_mode="auto")
    frames = client.watch(accepted["run_id"])
    assert told(frames) == ("auto", "xml_plaintext")
    assert validate_thinkingml(reply(frames)) is None


def test_raw_pieces_of_a_first_endpoint_that_fails_do_not_keep_the_second_from_answering(
    client: Client, scripted: Scripted, provider: FakeModel
) -> None:
    first = script(provider, Answer((*reasoning(), {"role": "assistant", "content": ""}, End.CUT)))
    model = scripted(first, script(provider, text(REPLY))).name
    accepted = client.start("hi", model, result_mode="auto", enable_exercise_search=False)
    frames = client.watch(accepted["run_id"])
    assert (frames[-1].event, reply(frames), raw(frames)) == ("completed", REPLY, [])


# --- the default ----------------------------------------------------------------------------------


def test_a_run_that_names_no_mode_is_delivered_in_the_default_one(modes: Modes) -> None:
    app_settings.change("default_result_mode", "xml_plaintext", by=None)
    app_settings.clear_cache()
    try:
        frames = modes.run(None, text("Hello"))
    finally:
        app_settings.change("default_result_mode", "raw_passthrough", by=None)
        app_settings.clear_cache()
    assert told(frames) == ("xml_plaintext", "xml_plaintext")
    assert reply(frames) == wrap("Hello")
