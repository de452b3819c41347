"""uiSchema: `ui_hints` compiled into a card when it is read or sent, never stored (specs §5).

A card is an extra: whatever the hints are, the message itself must arrive. So this never raises.

- No card (None, and one warning that does not repeat the hints) if they are not valid by
  `ui_hints_1.schema.json` (wrong types, unknown keys, too long, too many, NaN, a link that is not
  https), if they show nothing, or if the card is above 64 KiB of JSON.
- A card without the one bad part where that schema is silent. An image, an item's link or a button is
  left out if its URL or path is malformed or misleading (spaces, controls, `\\`, a user, `//host`). A
  locale that is no language tag gives way to `zh-CN`. Markdown with an HTML tag, or with a link to
  elsewhere than https, a path or `#`, is shown as plain text. NUL and half surrogates become U+FFFD.
  A table's rows get as many cells as there are columns.
- HTML in text is just text, and stays: renderers escape.

Depth (at most 3 of 8) and nodes (at most 82 of 200) follow from the limits of the hints.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec
import structlog
from msgspec import UNSET, UnsetType

from conversations.cards import ui_nodes as ui
from conversations.cards.ui_hints import ItemHint, TableHint, UiHints
from conversations.cards.ui_safety import (
    is_locale,
    is_safe_action,
    is_safe_markdown,
    is_safe_url,
    make_storable,
)

DEFAULT_LOCALE: Final = "zh-CN"
SIZE_LIMIT: Final = 64 * 1024
_META_LIMIT: Final = 256  # characters of one entry of `meta`
_OUTPUTS: Final = {"assistant": "worker_agent_output", "tool": "tool_agent_output"}

_encoder: Final = msgspec.json.Encoder()
_checker: Final = msgspec.json.Decoder(ui.UiSchemaRenderer)
_decoder: Final = msgspec.json.Decoder(dict[str, Any])

log = structlog.get_logger(__name__)


class NoCard(Exception):
    """The hints cannot be shown."""


def compile_ui_schema(
    hints: object,
    *,
    request_id: object = None,
    tool_id: object = None,
    trace_id: object = None,
    user_id: object = None,
) -> dict[str, Any] | None:
    """Return the `UiSchemaRenderer` 2.0 for the hints as fresh JSON values, or None (see the module).

    None as hints gives no warning. `meta` has those of the four that are texts of 1 to 256 characters.
    """
    if hints is None:
        return None
    try:
        meta = _meta(request_id, tool_id, trace_id, user_id)
        return _json(_card(msgspec.convert(hints, UiHints), meta))
    except NoCard as error:
        reason = str(error)
    except Exception as error:  # hints are foreign values: no message may be lost for its card
        reason = _reason(error)
    log.warning("ui_schema: hints without a card", reason=reason)
    return None


def ui_schema_for(message_metadata: object, role: str) -> dict[str, Any] | None:
    """Return a stored message's card, from `ui_hints` of `worker_agent_output` or `tool_agent_output`.

    `meta` has `toolId` (the tool's name) for a tool's message, and `requestId`, `traceId` and
    `userId` where the metadata has `request_id`, `trace_id` and `user_id`.
    """
    metadata = _object(message_metadata)
    output = _object(metadata.get(_OUTPUTS.get(role, "")))
    hints = output.get("ui_hints")
    if hints is None:
        return None
    return compile_ui_schema(
        hints,
        request_id=metadata.get("request_id"),
        tool_id=output.get("tool_name") if role == "tool" else None,
        trace_id=metadata.get("trace_id"),
        user_id=metadata.get("user_id"),
    )


def _card(hints: UiHints, meta: ui.RendererMeta | UnsetType) -> ui.UiSchemaRenderer:
    nodes = tuple(_nodes(hints))
    if not nodes:
        raise NoCard("nothing_to_show")
    return ui.UiSchemaRenderer(
        version="2.0",
        locale=hints.locale if is_locale(hints.locale) else DEFAULT_LOCALE,
        status=hints.status,
        theme=hints.theme,
        meta=meta,
        root=ui.Stack(appearance="card", children=nodes),
    )


def _nodes(hints: UiHints) -> Iterator[ui.UiNode]:
    """Return the nodes to show, in the order of specs §5."""
    if hints.title:
        yield ui.Text(content=hints.title, role="title")
    if hints.subtitle:
        yield ui.Text(content=hints.subtitle, role="subtitle")
    if hints.status != "info":
        yield ui.Badge(label=hints.status.upper(), status=hints.status)
    for badge in hints.badges:
        yield ui.Badge(label=badge.label, status=badge.status)
    if hints.body:
        marked = hints.markdown and is_safe_markdown(hints.body)
        yield ui.Text(content=hints.body, role="body", format="markdown" if marked else "plain")
    if hints.progress:
        yield ui.Progress(value=hints.progress.value, label=hints.progress.label or UNSET)
    for image in hints.images:
        if is_safe_url(image.url):
            yield ui.Image(url=image.url, alt=image.alt)
    yield from _collections(hints)
    if buttons := _buttons(hints):
        yield ui.Stack(direction="horizontal", wrap=True, children=buttons)


def _collections(hints: UiHints) -> Iterator[ui.UiNode]:
    if hints.fields:
        fields = (ui.KeyValueItem(field.label, field.value, field.copyable) for field in hints.fields)
        yield ui.KeyValue(items=tuple(fields))
    if hints.items:
        yield ui.ItemList(ordered=hints.ordered, items=tuple(_item(item) for item in hints.items))
    if hints.table:
        yield _table(hints.table)


def _item(item: ItemHint) -> ui.ListItem:
    badge = item.badge
    return ui.ListItem(
        title=item.title,
        description=item.description or UNSET,
        badge=ui.Badge(label=badge.label, status=badge.status) if badge else UNSET,
        action=ui.OpenUrl(item.url) if is_safe_url(item.url) else UNSET,
    )


def _table(table: TableHint) -> ui.Table:
    """Return a rectangular table: clients' widgets fail on rows shorter or longer than the heading."""
    width = len(table.columns)
    rows = tuple((*row[:width], *[""] * (width - len(row))) for row in table.rows)
    return ui.Table(columns=table.columns, rows=rows)


def _buttons(hints: UiHints) -> tuple[ui.Button, ...]:
    return tuple(
        ui.Button(label=action.label, style=action.style, action=action.action)
        for action in hints.actions
        if is_safe_action(action.action)
    )


def _meta(*ids: object) -> ui.RendererMeta | UnsetType:
    """Return `meta` of request, tool, trace and user; UNSET if it would be empty."""
    meta = ui.RendererMeta(*(one if _is_id(one) else UNSET for one in ids))  # type: ignore[arg-type]
    return UNSET if meta == ui.RendererMeta() else meta


def _is_id(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _META_LIMIT


def _json(card: ui.UiSchemaRenderer) -> dict[str, Any]:
    """Return the card as JSON values. Raise NoCard above 64 KiB.

    It is read back by its own type: `convert` trusts a ready made `Hint`, whatever is in it.
    """
    try:
        encoded = _encoder.encode(card)
        clean = b"\\u0000" not in encoded
    except UnicodeEncodeError:
        clean = False
    if not clean:
        encoded = _encoder.encode(make_storable(msgspec.to_builtins(card)))
    if len(encoded) > SIZE_LIMIT:
        raise NoCard("too_large")
    _checker.decode(encoded)
    return _decoder.decode(encoded)


def _reason(error: Exception) -> str:
    """Return the place where hints are invalid, in the names of our fields only."""
    if not isinstance(error, msgspec.ValidationError):
        return "invalid"
    place = str(error)[-200:].rpartition(" - at `$.")[2]
    known = (name for name in UiHints.__struct_fields__ if place.startswith(name))
    return f"invalid: {name}" if (name := next(known, None)) else "invalid"


def _object(value: object) -> dict[str, Any]:
    """Return the value if it is a plain JSON object: a subclass may run any code when it is read."""
    return value if type(value) is dict else {}
