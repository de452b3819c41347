"""A card (`uiSchema` 2.0) as HTML for admin. Everything in it is escaped; an image is a link."""

from __future__ import annotations

from typing import Any, Final

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from conversations.cards.ui_safety import is_safe_url

_STATUSES: Final = frozenset(("info", "success", "warning", "error", "pending"))


def card_html(card: dict[str, Any] | None) -> SafeString | None:
    """Return the card, if there is one."""
    if not card:
        return None
    inner = _node(card.get("root", {}))
    return format_html('<div class="told-card {}">{}</div>', _status(card.get("status")), inner)


def _node(node: dict[str, Any]) -> SafeString:
    match node:
        case {"type": "stack" | "grid" as kind, "children": list(children)}:
            across = "across" if kind == "grid" or node.get("direction") == "horizontal" else "down"
            return format_html('<div class="told-{}">{}</div>', across, _nodes(children))
        case {"type": "text", "content": str(content)}:
            return format_html('<p class="told-{}">{}</p>', str(node.get("role", "body")), content)
        case {"type": "badge", "label": str(label)}:
            return format_html(
                '<span class="told-badge {}">{}</span>', _status(node.get("status")), label
            )
        case {"type": "image", "url": str(url), "alt": str(alt)}:
            return format_html("<p>🖼 {}</p>", _link(alt or url, url))
        case {"type": "divider"}:
            return SafeString("<hr>")
        case {"type": "key_value", "items": list(items)}:
            rows = ((item.get("label", ""), item.get("value", "")) for item in items)
            return format_html("<dl>{}</dl>", format_html_join("", "<dt>{}</dt><dd>{}</dd>", rows))
        case {"type": "list", "items": list(items)}:
            return _list(items, ordered=bool(node.get("ordered")))
        case {"type": "table", "columns": list(columns), "rows": list(rows)}:
            return _table(columns, rows)
        case {"type": "progress", "value": float() | int() as value}:
            return format_html(
                '<progress value="{}" max="1"></progress> {}', value, node.get("label", "")
            )
        case {"type": "button", "label": str(label)}:
            return format_html('<span class="told-button">{}</span>', label)
    return format_html("<p>[{}]</p>", str(node.get("type", "?")))


def _nodes(children: list[Any]) -> SafeString:
    return format_html_join("", "{}", ((_node(child),) for child in children if isinstance(child, dict)))


def _list(items: list[dict[str, Any]], *, ordered: bool) -> SafeString:
    shown = format_html_join("", "<li>{} {}<br>{}</li>", map(_item, items))
    return format_html("<ol>{}</ol>" if ordered else "<ul>{}</ul>", shown)


def _item(item: dict[str, Any]) -> tuple[SafeString, SafeString | str, str]:
    badge = item.get("badge")
    mark = _node({"type": "badge"} | badge) if isinstance(badge, dict) else ""
    action = item.get("action")
    url = action.get("url", "") if isinstance(action, dict) else ""
    title = str(item.get("title", ""))
    return _link(title, url), mark, str(item.get("description", ""))


def _table(columns: list[Any], rows: list[Any]) -> SafeString:
    head = format_html_join("", "<th>{}</th>", ((name,) for name in columns))
    lines = ((format_html_join("", "<td>{}</td>", ((cell,) for cell in row)),) for row in rows)
    body = format_html_join("", "<tr>{}</tr>", lines)
    return format_html("<table><tr>{}</tr>{}</table>", head, body)


def _link(text: str, url: str) -> SafeString:
    if not is_safe_url(url):
        return format_html("<strong>{}</strong>", text)
    return format_html('<a href="{}" rel="noopener noreferrer" target="_blank">{}</a>', url, text)


def _status(status: object) -> str:
    return status if isinstance(status, str) and status in _STATUSES else "info"
