"""A template filter for indented JSON."""

from __future__ import annotations

import json
from typing import Any

from django import template

register = template.Library()


@register.filter
def as_json(value: Any) -> str:
    """Return the value as indented JSON."""
    return json.dumps(value, ensure_ascii=False, indent=2)
