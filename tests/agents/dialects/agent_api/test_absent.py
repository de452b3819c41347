"""What OpenAI's API has and we have not is refused by name, in the form that its SDK reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import openai
import pytest
from openai import OpenAI

from tests.support.client import Client

pytestmark = pytest.mark.once


@pytest.fixture
def sdk(client: Client) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{client.url}/v1", api_key=client.token, max_retries=0) as made:
        yield made


CALLS: dict[str, Callable[[OpenAI], Any]] = {
    "Tokens are not counted": lambda sdk: sdk.responses.input_tokens.count(model="demo", input="x"),
    "no compaction": lambda sdk: sdk.responses.compact(model="demo", input="x"),
    "Conversations API": lambda sdk: sdk.conversations.create(),
    "no Conversations API": lambda sdk: sdk.conversations.items.list("conv_1"),
    "no files": lambda sdk: sdk.files.list(),
    "Embeddings": lambda sdk: sdk.embeddings.create(model="demo", input="x"),
    "vector stores": lambda sdk: sdk.vector_stores.list(),
    "Batches": lambda sdk: sdk.batches.list(),
    "legacy completions": lambda sdk: sdk.completions.create(model="demo", prompt="x"),
}


@pytest.mark.parametrize("words", CALLS)
def test_what_is_not_here_is_refused_by_name(sdk: OpenAI, words: str) -> None:
    with pytest.raises(openai.NotFoundError) as refused:
        CALLS[words](sdk)
    assert words in refused.value.message
    assert (refused.value.code, refused.value.type) == (
        "endpoint_not_supported",
        "invalid_request_error",
    )


UNKNOWN = (
    "/v1",
    "/v1/",
    "/v1/no/such",
    "/v1/responses/",
    "/v1//responses",
    "/v1/a%00b",
    "/v1/filesystem",
    "/compatible-mode",
    "/compatible-mode/v1/nothing",
)


@pytest.mark.parametrize("path", UNKNOWN)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
def test_an_unknown_address_has_openai_s_error(client: Client, method: str, path: str) -> None:
    answer = client.http.request(method, path)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/json")
    assert answer.json()["error"] == {
        "message": "There is no such thing here.",
        "type": "invalid_request_error",
        "param": None,
        "code": "not_found",
    }


def test_under_the_other_base_it_is_the_same(client: Client) -> None:
    answer = client.http.get("/compatible-mode/v1/embeddings")
    assert answer.json()["error"]["code"] == "endpoint_not_supported"
