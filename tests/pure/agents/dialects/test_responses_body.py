"""What a body of OpenAI's Responses API asks for: obeyed, or refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from agents.dialects.openai_responses import dialect as responses
from agents.requests import (
    AskedCall,
    InputMessage,
    Reference,
    RunRequest,
    ServerTools,
    ToolChoice,
    Upload,
)
from config.errors import InvalidRequest

WEATHER = {
    "type": "function",
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {}},
    "strict": True,
}
CLOCK = {"type": "function", "name": "clock", "parameters": {"type": "object", "properties": {}}}
OURS = {"type": "mcp", "server_label": "parley"}
DOCS = {"type": "mcp", "server_label": "docs", "server_url": "http://x.example", "headers": {"k": "v"}}
SEARCH = {"type": "web_search"}


def parsed(**body: Any) -> RunRequest:
    return responses.parse({"model": "demo", "input": "Hi."} | body, request_id="r")


def refused(**body: Any) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        parsed(**body)
    return caught.value


def test_instructions_are_for_the_system_message_of_this_run() -> None:
    asked = parsed(instructions="Talk like a pirate.")
    assert (asked.instructions, asked.context) == ("Talk like a pirate.", ())
    assert asked.messages == (InputMessage("user", "Hi."),)


def test_the_choice_of_tools() -> None:
    both = [WEATHER, CLOCK]
    free = parsed(tools=both)
    assert [(tool.name, tool.strict) for tool in free.tools] == [("get_weather", True), ("clock", False)]
    assert (free.tool_choice, free.server_tools) == (ToolChoice(), None)
    none = parsed(tools=both, tool_choice="none")
    assert (none.tools, none.server_tools) == ((), ())
    required = parsed(tools=both, tool_choice="required")
    assert (required.tool_choice, required.server_tools) == (ToolChoice(required=True), ())
    named = parsed(tools=both, tool_choice={"type": "function", "name": "clock"})
    assert (named.tool_choice, named.server_tools) == (ToolChoice(True, "clock"), ())
    assert [tool.name for tool in named.tools] == ["get_weather", "clock"]


def test_allowed_tools_are_all_that_is_offered() -> None:
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "clock"}]}
    asked = parsed(tools=[WEATHER, CLOCK], tool_choice=allowed)
    assert [tool.name for tool in asked.tools] == ["clock"]
    assert (asked.server_tools, asked.tool_choice.required) == ((), False)
    must = parsed(tools=[WEATHER, CLOCK], tool_choice=allowed | {"mode": "required"})
    assert must.tool_choice == ToolChoice(required=True, listed_only=True)
    ours = allowed | {"tools": [{"type": "mcp", "server_label": "docs"}, {"type": "web_search"}]}
    asked = parsed(tools=[WEATHER, OURS, DOCS, SEARCH], tool_choice=ours)
    assert (asked.tools, asked.server_tools) == ((), None)
    assert asked.servers == (ServerTools("docs"), ServerTools("parley", ("web_search.exa",)))


def test_tools_of_the_server_are_named_by_its_label() -> None:
    asked = parsed(tools=[OURS | {"require_approval": "always", "allowed_tools": ["a"]}, DOCS])
    assert asked.servers == (ServerTools("parley", ("a",), None), ServerTools("docs"))
    some = {"always": {"tool_names": ["a"]}, "never": {"tool_names": ["b"]}}
    told = parsed(tools=[OURS | {"require_approval": some, "allowed_tools": {"tool_names": ["a", "b"]}}])
    assert told.servers == (ServerTools("parley", ("a", "b"), ("a",)),)
    must = parsed(
        tools=[WEATHER, DOCS], tool_choice={"type": "mcp", "server_label": "docs", "name": "n"}
    )
    assert must.tool_choice == ToolChoice(True, "n", "docs")
    assert parsed(tools=[SEARCH]).needs == ("web_search.exa",)
    search = parsed(tools=[SEARCH], tool_choice=SEARCH).tool_choice
    assert search == ToolChoice(True, "web_search.exa", "parley")
    echo = asked.wire["echo"]["tools"]
    assert "headers" not in echo[1], "what opens another server is not kept"


@pytest.mark.parametrize(
    ("choice", "tools"),
    [
        ("required", []),
        ("sometimes", [WEATHER]),
        ({"type": "function", "name": "other"}, [WEATHER]),
        ({"type": "function"}, [WEATHER]),
        ({"type": "mcp", "server_label": "docs"}, [OURS]),
        ({"type": "file_search"}, [WEATHER]),
        ({"type": "web_search"}, [WEATHER]),
        ({"type": "allowed_tools", "mode": "auto", "tools": [OURS]}, [CLOCK]),
        ({"type": "allowed_tools", "mode": "auto", "tools": [7]}, [CLOCK]),
        (7, [WEATHER]),
    ],
)  # fmt: skip
def test_a_choice_that_cannot_be_obeyed_is_refused(choice: Any, tools: list[Any]) -> None:
    error = refused(tools=tools, tool_choice=choice)
    assert (error.error_code, error.facts["param"]) == ("invalid_tool_choice", "tool_choice")


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "file_search"},
        {"type": "local_shell"},
        {"type": "custom"},
        {
            "type": "custom",
            "name": "x",
            "format": {"type": "grammar", "syntax": "ebnf", "definition": ""},
        },
        {"type": "namespace", "tools": [CLOCK]},
        {"type": "namespace", "name": "a", "tools": [CLOCK, {"type": "local_shell"}]},
        {"type": "namespace", "name": "a", "tools": [{"type": "namespace", "name": "b", "tools": []}]},
        {"type": "namespace", "name": "a", "tools": [{"type": "web_search"}]},
        {"type": "no such " * 100},
        {"type": "function"},
        {"type": "mcp"},
        {"type": "mcp", "server_label": "a", "connector_id": "connector_gmail"},
        {"type": "mcp", "server_label": "a", "allowed_tools": {"read_only": True}},
        {"type": "mcp", "server_label": "a", "require_approval": "perhaps"},
        {"type": "web_search", "filters": {"allowed_domains": ["a.example"]}},
        {"type": "web_search", "search_context_size": "high"},
        {"type": "web_search", "user_location": {"type": "approximate", "city": "Ulm"}},
    ],
)
def test_a_tool_that_cannot_be_offered_is_refused_by_its_place(tool: Any) -> None:
    error = refused(tools=[WEATHER, tool])
    assert (error.error_code, error.facts["param"]) == ("tool_not_supported", "tools")
    assert error.detail.startswith("tools[1]")
    assert "no such" not in error.detail


def test_a_search_as_the_sdks_of_openai_write_it_is_taken() -> None:
    location = {"type": "approximate", "city": None}
    usual = {"search_context_size": "medium", "user_location": location, "filters": None}
    assert parsed(tools=[SEARCH | usual]).needs == ("web_search.exa",)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("service_tier", "flex"),
        ("top_logprobs", 5),
        ("prompt", {"id": "pmpt_1"}),
        ("context_management", [{"type": "compaction"}]),
        ("moderation", {"model": "x"}),
        ("image", {"context_compression": "enabled"}),
        ("background_options", {"completion_window": "8h"}),
        ("include", ["message.output_text.logprobs"]),
    ],
)
def test_what_would_only_be_passed_over_is_refused_by_name(field: str, value: Any) -> None:
    error = refused(**{field: value})
    assert (error.error_code, error.facts["param"]) == ("unsupported_parameter", field)
    assert error.detail.startswith(field)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"stop": "x"}, ["body", "stop"]),
        ({"n": 3}, ["body", "n"]),
        ({"text": {"colour": "red"}}, ["body", "text", "colour"]),
        ({"reasoning": {"mode": "pro"}}, ["body", "reasoning", "mode"]),
        ({"truncation": "none"}, ["body", "truncation"]),
        ({"max_tool_calls": -1}, ["body", "max_tool_calls"]),
    ],
)
def test_what_nobody_knows_is_refused_by_its_place(body: dict[str, Any], place: list[str]) -> None:
    assert refused(**body).facts["errors"][0]["loc"] == place


def test_what_changes_no_answer_is_taken_and_repeated() -> None:
    inert = {
        "metadata": {"a": "b"},
        "user": "u",
        "safety_identifier": "s",
        "prompt_cache_key": "k",
        "store": True,
    }
    more = {
        "service_tier": "auto",
        "stream_options": {"include_obfuscation": False},
        "include": ["reasoning.encrypted_content", "web_search_call.action.sources"],
        "top_logprobs": 0,
        "client_metadata": {"x": "y"},
        "prompt_cache_retention": "24h",
    }
    asked = parsed(**inert, **more)
    echo = asked.wire["echo"]
    assert {name: echo[name] for name in inert} == inert
    assert "service_tier" not in echo, "the response says which one served"


def test_what_changes_the_answer_is_asked_for() -> None:
    asked = parsed(
        parallel_tool_calls=False,
        max_tool_calls=2,
        truncation="disabled",
        text={"verbosity": "low", "format": {"type": "text"}},
        reasoning={"effort": "high", "summary": "concise"},
    )
    assert (asked.tool_choice.one_by_one, asked.tool_choice.most_calls) == (True, 2)
    assert asked.truncation == "disabled"
    wanted = asked.generation
    assert (wanted.verbosity, wanted.reasoning, wanted.reasoning_summary) == ("low", "high", "concise")
    usual = parsed(text={"verbosity": "medium"}, reasoning={"summary": "auto"}).generation
    assert (usual.verbosity, usual.reasoning_summary) == (None, None)
    form = {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "description": "A plan."}
    assert parsed(text={"format": form}).generation.json_schema == {
        "type": "object",
        "description": "A plan.",
    }


def test_what_is_not_stored_cannot_run_in_the_background() -> None:
    assert parsed(store=False).stored is False
    assert parsed(store=None).stored is True
    error = refused(store=False, background=True)
    assert (error.error_code, error.facts["param"]) == ("unsupported_parameter", "background")


@pytest.mark.parametrize("empty", ["", [], None])
def test_nothing_is_asked_only_where_something_goes_on(empty: Any) -> None:
    assert refused(input=empty).facts["param"] == "input"
    assert parsed(input=empty, previous_response_id="resp_1").messages == ()
    assert parsed(input=empty, conversation="c").messages == ()
    blank = [{"role": "user", "content": ""}]
    assert refused(input=blank).detail == "input[0].content must say something."
    said = [{"role": "assistant", "content": []}, {"role": "user", "content": "x"}]
    assert parsed(input=said).messages == (InputMessage("user", "x"),)


@pytest.mark.parametrize("item", [{"type": "item_reference", "id": "msg_a"}, {"id": "msg_a"}])
def test_a_reference_is_kept_with_its_place(item: dict[str, Any]) -> None:
    asked = parsed(input=[{"role": "user", "content": "a"}, item])
    assert asked.messages[1].refers == Reference("msg_a", "input[1]")


def test_a_call_of_the_server_is_told_with_its_answer() -> None:
    run = "0" * 31 + "1"
    call = {"type": "mcp_call", "id": f"mcp_c1-{run}", "name": "f", "arguments": "{}", "output": "5"}
    open_ = call | {"id": f"mcp_c2-{run}", "output": None}
    asked = parsed(input=[{"role": "user", "content": "a"}, call, open_])
    _, made, answer = asked.messages
    assert made.tool_calls == (AskedCall(f"c1-{run}", "f", "{}"),)
    assert (answer.role, answer.tool_call_id, answer.content) == ("tool", f"c1-{run}", "5")


@pytest.mark.parametrize(
    ("item", "where"),
    [
        ({"type": "compaction", "encrypted_content": "x"}, "input[0]"),
        ({"type": "web_search_call", "id": "ws_1"}, "input[0]"),
        (
            {
                "role": "system",
                "content": [{"type": "input_image", "image_url": "data:image/png;base64,"}],
            },
            "input[0].content[0]",
        ),
    ],
)
def test_an_item_that_we_cannot_carry_is_refused_by_its_place(item: Any, where: str) -> None:
    error = refused(input=[item])
    assert (error.error_code, error.facts["param"]) == ("invalid_input", where)


def output_of(output: Any) -> InputMessage:
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    answer = {"type": "function_call_output", "call_id": "c", "output": output}
    told = parsed(input=[{"role": "user", "content": "a"}, call, answer]).messages[-1]
    assert (told.role, told.tool_call_id) == ("tool", "c")
    return told


def test_a_function_s_output_has_its_images_and_files_apart() -> None:
    parts = [
        {"type": "input_image", "image_url": "data:image/png;base64,QUJD"},
        {"type": "input_text", "text": "t"},
        {"type": "input_file", "file_data": "YQ==", "filename": "a.txt"},
    ]
    told = output_of(parts)
    assert (told.content, told.layout) == ("t", (None, 1, None))
    assert told.uploads == (
        Upload("image/png", data="QUJD", place="input[2].output[0].image_url"),
        Upload("", data="YQ==", name="a.txt", takes="any", place="input[2].output[2].file_data"),
    )


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "data": "QUJD", "mimeType": "image/png"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
        {"type": "image", "image_url": "data:image/png;base64,QUJD"},
    ],
)
def test_the_blocks_of_other_kits_are_known_as_images_and_never_told_in_base64(block: Any) -> None:
    for output in ([block, {"type": "text", "text": "t"}], {"content": [block]}):
        told = output_of(output)
        assert [upload.data for upload in told.uploads] == ["QUJD"]
        assert "QUJD" not in told.content


def test_what_of_an_output_is_no_image_is_told_to_be_left_out() -> None:
    told = output_of([{"type": "audio", "data": "QUJD", "mimeType": "audio/wav"}, {"type": "x", "a": 1}])
    assert told.content == (
        '{"type":"x","a":1}\n{"left_out":[{"type":"audio","mime_type":"audio/wav","size_bytes":3}]}'
    )


def test_who_approves_without_a_conversation_says_only_what_is_new() -> None:
    run = "0" * 31 + "1"
    given = {"type": "mcp_approval_response", "approval_request_id": run, "approve": True}
    led = [
        {"role": "user", "content": "old"},
        {"type": "mcp_approval_request", "id": run, "name": "f", "arguments": "{}"},
    ]
    named = [led[0], {"type": "item_reference", "id": run}]
    for before in (led, named):
        asked = parsed(input=[*before, given, {"role": "user", "content": "new"}])
        assert [said.content for said in asked.messages] == ["new"]
        assert [answer.interrupt_id for answer in asked.answers] == [run]
    kept = parsed(input=[*led, given], store=False)
    assert [said.content for said in kept.messages] == ["old"], "nothing here holds it"
