"""Model mappings: the names that clients ask for, and who serves them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Count, Exists, OuterRef, QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin, TabularInline
from unfold.decorators import display

from prompts.models import ModelCandidate, ModelMapping
from prompts.routing import routable_candidates


class CandidateInline(TabularInline):  # type: ignore[misc]
    """Tried from the top."""

    model = ModelCandidate
    fields = ("position", "endpoint", "model", "temperature", "max_tokens")
    extra = 0
    hide_title = True
    verbose_name_plural = "Candidates, tried in order of position"

    def get_queryset(self, request: HttpRequest) -> QuerySet[ModelCandidate]:
        found: QuerySet[ModelCandidate] = super().get_queryset(request)
        return found.select_related("endpoint")


@admin.register(ModelMapping)
class ModelMappingAdmin(ModelAdmin):  # type: ignore[misc]
    """A public name and its candidates."""

    inlines = (CandidateInline,)
    list_display = ("name", "label", "shown_state", "shown_count", "required_tier", "updated_at")
    list_filter = ("is_active",)
    search_fields = ("key", "label")
    ordering = ("key",)
    fieldsets = ((None, {"fields": ("key", "label", "required_tier", "is_active")}),)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ModelMapping]:
        found: QuerySet[ModelMapping] = super().get_queryset(request)
        routable = Exists(routable_candidates().filter(mapping=OuterRef("pk")))
        return found.annotate(count=Count("candidates"), has_route=routable)

    @display(  # type: ignore[untyped-decorator]
        description="State",
        label={"routable": "success", "no endpoint with a key": "warning", "inactive": "danger"},
    )
    def shown_state(self, mapping: Any) -> str:
        if not mapping.is_active:
            return "inactive"
        return "routable" if mapping.has_route else "no endpoint with a key"

    @admin.display(description="Candidates", ordering="count")
    def shown_count(self, mapping: Any) -> int:
        return int(mapping.count)
