"""The policies of tools in admin: on or off, for whom, and whether each call needs approval."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db import transaction
from django.http import HttpRequest

from agents.models import ToolPolicy
from agents.tools import offered_tools, registry, show
from config.staff.lists import ModelAdmin


@admin.register(ToolPolicy)
class ToolPolicyAdmin(ModelAdmin):
    """One row per tool; a change applies to runs half a second later."""

    list_display = ("tool", "enabled", "requires_approval", "allowed_to", "tier", "expires_after_s")
    list_filter = ("enabled", "requires_approval", "allowed_to")
    list_select_related = ("tier",)
    search_fields = ("tool",)

    def get_form(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Return the form, whose help names the installed tools."""
        names = ", ".join(tool.name for tool in registry.all_tools())
        shown = f"{show.TOOL.name} (cards, offered only with a row here)"
        kwargs["help_texts"] = {"tool": f"Its name. Installed: {names}, {shown}."}
        return super().get_form(request, *args, **kwargs)

    def save_model(self, request: HttpRequest, obj: ToolPolicy, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        transaction.on_commit(offered_tools.clear_cache)

    def delete_model(self, request: HttpRequest, obj: ToolPolicy) -> None:
        super().delete_model(request, obj)
        transaction.on_commit(offered_tools.clear_cache)
