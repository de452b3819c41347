"""Numbers as the metrics page writes them."""

from __future__ import annotations

from typing import Any

from django import template

from conversations.metrics.charts import said

register = template.Library()


@register.filter
def number(value: Any) -> str:
    return said(value)


@register.filter
def percent(value: Any) -> str:
    return said(value, "%")


@register.filter
def ms(value: Any) -> str:
    return said(value, "ms")


@register.filter
def dollars(value: Any) -> str:
    return said(value, "$")
