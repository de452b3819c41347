"""UiSchemaRenderer 2.0: what a card is made of (specs/run-agent-input.md §5).

These are the same words as `docs/api-contracts/schemas/ui_schema_renderer_2_0.schema.json`, which is
what clients are promised; a test keeps the two equal. A left out field has the default that stands
here; `role` of a text and `status` of a badge are the two that we always say.

All text is text: a renderer escapes it, and gives markup only to `format: "markdown"`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

Status = Literal["info", "success", "warning", "error", "pending"]
Theme = Literal["default", "light", "dark"]
Appearance = Literal["plain", "card", "section", "inset"]
Gap = Literal["none", "xs", "sm", "md", "lg"]
TextRole = Literal["title", "subtitle", "body", "caption", "label", "code"]
ButtonStyle = Literal["primary", "secondary", "danger", "link"]

Label = Annotated[str, Meta(min_length=1, max_length=80)]
Caption = Annotated[str, Meta(max_length=80)]
Value = Annotated[str, Meta(max_length=1000)]
ItemTitle = Annotated[str, Meta(min_length=1, max_length=200)]
ImageText = Annotated[str, Meta(max_length=200)]
Link = Annotated[str, Meta(pattern="^https://", max_length=2048)]
Fraction = Annotated[float, Meta(ge=0, le=1)]
Columns = Annotated[tuple[Label, ...], Meta(min_length=1, max_length=8)]
Cell = Annotated[str, Meta(max_length=500)]
Row = Annotated[tuple[Cell, ...], Meta(min_length=1, max_length=8)]
Rows = Annotated[tuple[Row, ...], Meta(max_length=100)]


class Part(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Anything in a card: an unknown key is an error, a default is left out."""


class OpenUrl(Part, frozen=True, tag="open_url"):
    """Open a page outside the app."""

    url: Link


class Navigate(Part, frozen=True, tag="navigate"):
    """Go to a place inside the app."""

    path: Annotated[str, Meta(pattern="^/", max_length=500)]


class SendMessage(Part, frozen=True, tag="send_message"):
    """Say this in the user's name."""

    text: Annotated[str, Meta(min_length=1, max_length=2000)]


class Copy(Part, frozen=True, tag="copy"):
    """Put this on the clipboard."""

    text: Annotated[str, Meta(min_length=1, max_length=4000)]


UiAction = OpenUrl | Navigate | SendMessage | Copy


class Node(Part, frozen=True):
    """What stands at a place in the card."""

    id: Annotated[str, Meta(max_length=64)] | UnsetType = UNSET


class Stack(Node, frozen=True, tag="stack", kw_only=True):
    """Children one after another."""

    direction: Literal["vertical", "horizontal"] = "vertical"
    appearance: Appearance = "plain"
    gap: Gap = "sm"
    align: Literal["start", "center", "end", "stretch"] = "stretch"
    wrap: bool = False
    children: Children


class Grid(Node, frozen=True, tag="grid", kw_only=True):
    """Children in 1 to 4 columns."""

    columns: Annotated[int, Meta(ge=1, le=4)] = 2
    appearance: Appearance = "plain"
    gap: Gap = "sm"
    children: Children


class Text(Node, frozen=True, tag="text", kw_only=True):
    """Words; of role `body` and plain if not said otherwise."""

    content: Annotated[str, Meta(min_length=1, max_length=4000)]
    role: TextRole | UnsetType = UNSET
    format: Literal["plain", "markdown"] = "plain"
    status: Status | UnsetType = UNSET


class Badge(Node, frozen=True, tag="badge", kw_only=True):
    """A short mark; of status `info` if not said otherwise."""

    label: Label
    status: Status | UnsetType = UNSET


class Icon(Node, frozen=True, tag="icon", kw_only=True):
    """A named picture of the client's own set."""

    name: Annotated[str, Meta(pattern="^[a-z0-9_]{1,40}$")]
    status: Status | UnsetType = UNSET
    label: Caption | UnsetType = UNSET


class Image(Node, frozen=True, tag="image", kw_only=True):
    """A picture from the web; `alt` is read to those who do not see it."""

    url: Link
    alt: ImageText
    aspect: Literal["auto", "square", "wide"] = "auto"


class Divider(Node, frozen=True, tag="divider"):
    """A line between its neighbours."""


class KeyValueItem(Part, frozen=True):
    label: Label
    value: Value
    copyable: bool = False


class KeyValue(Node, frozen=True, tag="key_value", kw_only=True):
    """Facts with their names."""

    items: Annotated[tuple[KeyValueItem, ...], Meta(min_length=1, max_length=50)]


class ListItem(Part, frozen=True, kw_only=True):
    title: ItemTitle
    description: Value | UnsetType = UNSET
    badge: Badge | UnsetType = UNSET
    action: UiAction | UnsetType = UNSET


class ItemList(Node, frozen=True, tag="list", kw_only=True):
    """Things of one kind, numbered if `ordered`."""

    ordered: bool = False
    items: Annotated[tuple[ListItem, ...], Meta(min_length=1, max_length=50)]


class Table(Node, frozen=True, tag="table", kw_only=True):
    """Rows of text under headings."""

    columns: Columns
    rows: Rows


class Progress(Node, frozen=True, tag="progress", kw_only=True):
    """How much is done: 0 is nothing, 1 is all."""

    value: Fraction
    label: Caption | UnsetType = UNSET
    status: Status | UnsetType = UNSET


class Button(Node, frozen=True, tag="button", kw_only=True):
    """Something that the user may do."""

    label: Label
    style: ButtonStyle = "secondary"
    disabled: bool = False
    action: UiAction


UiLayoutNode = Stack | Grid
UiNode = (
    Stack
    | Grid
    | Text
    | Badge
    | Icon
    | Image
    | Divider
    | KeyValue
    | ItemList
    | Table
    | Progress
    | Button
)
Children = Annotated[tuple[UiNode, ...], Meta(min_length=1, max_length=50)]


class RendererMeta(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, rename="camel"):
    """Where a card came from; `tool_id` is the tool's name."""

    request_id: str | UnsetType = UNSET
    tool_id: str | UnsetType = UNSET
    trace_id: str | UnsetType = UNSET
    user_id: str | UnsetType = UNSET


class UiSchemaRenderer(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A whole card."""

    version: Literal["2.0"]
    locale: Annotated[str, Meta(pattern="^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$")]
    status: Status
    theme: Theme
    meta: RendererMeta | UnsetType = UNSET
    root: UiLayoutNode
