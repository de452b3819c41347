"""How many values JSON may hold: counted outside of strings, before anything is decoded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from config.errors import InvalidRequest
from config.http import json_limits

_TEXT = st.text(alphabet=st.sampled_from('a"\\,[{é\n'), max_size=20)
_JSON = st.recursive(
    st.none() | st.integers() | _TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(_TEXT, inner, max_size=5),
    max_leaves=30,
)


def _values(value: Any) -> int:
    match value:
        case list():
            return 1 + sum(map(_values, value))
        case dict():
            return 1 + sum(map(_values, value.values()))
    return 1


def _empty(value: Any) -> int:
    match value:
        case list():
            return (not value) + sum(map(_empty, value))
        case dict():
            return (not value) + sum(map(_empty, value.values()))
    return 0


@given(value=_JSON, ascii_only=st.booleans(), piece=st.integers(1, 40))
def test_every_value_is_counted_once_wherever_the_pieces_end(
    value: Any, ascii_only: bool, piece: int
) -> None:
    raw = json.dumps(value, ensure_ascii=ascii_only).encode()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(json_limits, "_PIECE", piece)
        assert json_limits.count_values(raw) + 1 == _values(value) + _empty(value)


@pytest.mark.parametrize(
    "bomb",
    [
        b"[" + b"[]," * 6_000 + b"[]]",
        b"[" + b"{}," * 6_000 + b"{}]",
        b"[" + b"1," * 10_001 + b"1]",
        b'["' + b'\\"","' * 10_001 + b'"]',
        b"[" * 10_001,
    ],
)
def test_too_many_values_are_refused(bomb: bytes, settings: Settings) -> None:
    settings.VALUES_PER_BODY = 10_000
    with pytest.raises(InvalidRequest) as refused:
        json_limits.check_value_count(bomb)
    assert (refused.value.error_code, "10,000" in refused.value.detail) == ("too_many_values", True)


@pytest.mark.parametrize("text", [b"[,{" * 100_000, b"\\\\" * 100_000 + b",[" * 100_000])
def test_what_stands_in_a_text_is_no_value(text: bytes, settings: Settings) -> None:
    settings.VALUES_PER_BODY = 1_000
    json_limits.check_value_count(b'{"text": "' + text + b'"}')
