"""AG-UI's schemas are those of the types that render it: each object, with the members of its type."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import pytest

from agents.dialects.ag_ui.dialect import AgUiAccepted
from agents.dialects.ag_ui.event_types import AgUiEvent
from agents.dialects.ag_ui.message_types import AgUiFacts, AgUiMessage, AgUiObject
from tests.schema_true.document import published
from tests.support.paths import ROOT

pytestmark = pytest.mark.once

BASES: Final = (AgUiEvent, AgUiMessage, AgUiFacts)
BY_HAND: Final = {"AgUiCapabilities"}  # of the constant that is the answer
BUILT: Final = re.compile(r"record\(|\bpart\(|open_object\(|\"properties\"|\"type\"")


def extending(*bases: Any) -> Iterator[Any]:
    """All types of the document that extend one of these."""
    for base in bases:
        for kind in base.__subclasses__():
            if kind.__name__.startswith("AgUi"):
                yield kind
            yield from extending(kind)


def wire_members(kind: Any) -> list[str]:
    config = kind.__struct_config__
    return [*([config.tag_field] if config.tag_field else []), *kind.__struct_encode_fields__]


def test_every_object_has_the_members_of_its_type_in_their_order() -> None:
    schemas = published().raw["components"]["schemas"]
    kinds = {kind.__name__: kind for kind in (*extending(AgUiObject, AgUiFacts), AgUiAccepted)}
    ours = {name for name in schemas if name.startswith("AgUi") and not name.startswith("AgUiInput")}
    assert ours - BY_HAND == kinds.keys() | {"AgUiFacts"}
    for name in kinds.keys() - {base.__name__ for base in BASES}:
        assert schemas[name]["additionalProperties"] is False
        assert list(schemas[name]["properties"]) == wire_members(kinds[name]), name


@pytest.mark.parametrize("base", BASES)
def test_a_base_has_the_schema_of_one_of_its_kinds(base: Any) -> None:
    schema = published().raw["components"]["schemas"][base.__name__]
    (said,) = (schema[key] for key in ("oneOf", "anyOf") if key in schema)
    kinds = {kind.__name__ for kind in extending(base) if not kind.__subclasses__()}
    assert {one["$ref"].rpartition("/")[2] for one in said} == kinds
    assert schema.keys() <= {"oneOf", "anyOf", "description"}


def test_no_schema_of_an_object_is_built_by_hand() -> None:
    source = (ROOT / "config/openapi/ag_ui.py").read_text()
    assert BUILT.findall(source) == ["record("], "which is that of a constant"
