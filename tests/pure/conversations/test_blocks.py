"""Blocks of a message: what was sent comes back in its order, and nothing odd breaks a reading."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.blocks import arrange, layout_of
from tests.support.properties.strategies import OBJECTS

BLOCKS = st.lists(st.text(max_size=5) | st.integers(0, 9), max_size=8)


@given(BLOCKS.filter(bool))
def test_blocks_come_back_in_their_order(blocks: list[Any]) -> None:
    texts = [block for block in blocks if isinstance(block, str)]
    files = [block for block in blocks if isinstance(block, int)]
    layout = layout_of(block if isinstance(block, str) else None for block in blocks)
    found = arrange("\n".join(texts), files, list(layout))
    assert [block for block in found if block != ""] == [block for block in blocks if block != ""]


@pytest.mark.parametrize(
    ("blocks", "layout"),
    [
        ([], ()),
        (["a"], ()),
        ([None], ()),
        ([None, None], ()),
        (["a", None, None], ()),
        ([None, "a"], (None, 1)),
        (["a", "bc"], (1, 2)),
        (["a", None, ""], (1, None, 0)),
    ],
)
def test_only_an_order_that_would_be_lost_is_kept(
    blocks: list[str | None], layout: tuple[int | None, ...]
) -> None:
    assert layout_of(blocks) == layout


@given(
    st.text(max_size=5), st.lists(st.integers(0, 9), max_size=3), OBJECTS | st.lists(OBJECTS) | BLOCKS
)
def test_any_layout_gives_all_that_there_is(content: str, files: list[int], layout: Any) -> None:
    found = arrange(content, files, layout)
    assert [block for block in found if isinstance(block, int)] == files
    assert "\n".join(block for block in found if isinstance(block, str)) == content


def test_a_layout_whose_file_is_gone_gives_the_text_first() -> None:
    assert arrange("a\nb", ["f"], [1, None, 1, None]) == ["a\nb", "f"]
    assert arrange("a\nb", [], [1, None, 1]) == ["a\nb"]
    assert arrange("", [], None) == [""]
