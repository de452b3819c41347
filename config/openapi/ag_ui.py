"""The schemas of AG-UI (specs/ag-ui.md), made of the types that render it, and of the capabilities."""

from __future__ import annotations

from typing import Any, Final

from agents.dialects.ag_ui.capabilities import CAPABILITIES
from agents.dialects.ag_ui.event_types import AgUiEvent, MarkedEvent
from agents.dialects.ag_ui.message_types import AgUiFacts, AgUiMessage
from config.http.documentation.schema_builders import Schema, any_of, record, ref
from config.openapi.derived_schemas import derive_structs


def _kinds(base: type) -> list[type]:
    """Return the types that extend the base and that no other extends."""
    kinds: list[type] = []
    subclasses: list[type] = base.__subclasses__()
    for one in subclasses:
        kinds += _kinds(one) or [one]
    return [kind for kind in kinds if kind.__name__.startswith("AgUi")]


def _refs(base: type) -> list[Schema]:
    return [ref(kind.__name__) for kind in _kinds(base)]


def _described(base: type, schema: Schema) -> dict[str, Schema]:
    return {base.__name__: schema | {"description": base.__doc__}}


def _constant(value: Any) -> Schema:
    """Return the schema that only this value matches."""
    if isinstance(value, dict):
        return record(**{name: _constant(member) for name, member in value.items()})
    return {"const": value}


def _schemas() -> dict[str, Schema]:
    """Return the schemas by name; that of a base is one of those of its kinds."""
    bases = (AgUiEvent, AgUiMessage, AgUiFacts)
    found = derive_structs(*(kind for base in bases for kind in _kinds(base)))
    for kind in _kinds(MarkedEvent):
        found[kind.__name__]["required"].remove("metadata")  # a thread at rest has none
    return (
        found
        | _described(AgUiEvent, {"oneOf": _refs(AgUiEvent)})
        | _described(AgUiMessage, any_of(*_refs(AgUiMessage)))
        | _described(AgUiFacts, any_of(*_refs(AgUiFacts)))
        | {"AgUiCapabilities": _constant(CAPABILITIES)}
    )


SCHEMAS: Final = _schemas()
