"""`ui_hints`: the flat description of a card by a model or a tool (specs/run-agent-input.md §5).

The same words as `docs/api-contracts/schemas/ui_hints_1.schema.json`; a test keeps the two equal.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from conversations.cards import ui_nodes as ui


class Hint(Struct, frozen=True, forbid_unknown_fields=True):
    """Any part of the hints: an unknown key is an error."""


class BadgeHint(Hint, frozen=True):
    label: ui.Label
    status: ui.Status = "info"


class FieldHint(Hint, frozen=True):
    label: ui.Label
    value: ui.Value
    copyable: bool = False


class ItemHint(Hint, frozen=True):
    title: ui.ItemTitle
    description: ui.Value = ""
    badge: BadgeHint | UnsetType = UNSET
    url: ui.Link = ""


class TableHint(Hint, frozen=True):
    columns: ui.Columns
    rows: ui.Rows


class ImageHint(Hint, frozen=True):
    url: ui.Link
    alt: ui.ImageText


class ProgressHint(Hint, frozen=True):
    value: ui.Fraction
    label: ui.Caption = ""


class ActionHint(Hint, frozen=True):
    label: ui.Label
    action: ui.UiAction
    style: ui.ButtonStyle = "secondary"


class UiHints(Hint, frozen=True, kw_only=True):
    """What to show; every field is optional and what is empty is not shown."""

    status: ui.Status = "info"
    title: Annotated[str, Meta(min_length=1, max_length=200)] = ""
    subtitle: Annotated[str, Meta(max_length=200)] = ""
    body: Annotated[str, Meta(max_length=4000)] = ""
    markdown: bool = False
    badges: Annotated[tuple[BadgeHint, ...], Meta(max_length=8)] = ()
    fields: Annotated[tuple[FieldHint, ...], Meta(min_length=1, max_length=50)] = ()
    items: Annotated[tuple[ItemHint, ...], Meta(min_length=1, max_length=50)] = ()
    ordered: bool = False
    table: TableHint | UnsetType = UNSET
    images: Annotated[tuple[ImageHint, ...], Meta(max_length=8)] = ()
    progress: ProgressHint | UnsetType = UNSET
    actions: Annotated[tuple[ActionHint, ...], Meta(max_length=6)] = ()
    locale: str = ""
    theme: ui.Theme = "default"
