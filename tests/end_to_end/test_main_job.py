"""The main job, end to end: POST a text run, watch it, find it again (issue 2)."""

from __future__ import annotations

from tests.support.client import Client, reply


def test_a_text_run_streams_its_search_and_its_answer_and_is_found_in_history(client: Client) -> None:
    accepted = client.start("练胸有什么动作？", metadata={"client": "test"})
    assert accepted["run_id"] == accepted["message_id"]
    frames = client.watch(accepted["run_id"])
    kinds = [frame.event for frame in frames]
    assert kinds[:5] == ["status", "status", "tool_start", "tool_result", "status"]
    assert [f.data["state"] for f in frames if f.event == "status"] == ["queued", "working", "routed"]
    assert set(kinds[5:-1]) == {"content_delta"}
    assert kinds[-1] == "completed"
    assert [f.data["seq"] for f in frames if f.event == "content_delta"] == list(
        range(1, len(kinds) - 5)
    )
    found = frames[3].data["result"]
    assert frames[3].data["ok"]
    assert found["results"][0]["name"] in reply(frames)
    assert frames[-1].data["reply_len"] == len(reply(frames))
    day = client.history(accepted["conversation_id"])
    assert [m["role"] for m in day["messages"]] == ["user", "tool", "assistant"]
    assert day["messages"][2]["content"] == reply(frames)
