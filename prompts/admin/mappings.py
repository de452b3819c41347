"""Admin of model mappings: public model names and their candidates."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.db.models import Count, Exists, OuterRef, QuerySet
from django.http import HttpRequest
from unfold.admin import StackedInline
from unfold.decorators import display

from config.staff.lists import ModelAdmin
from prompts.admin.generation import CandidateForm, explain_ignored
from prompts.endpoints import published_prices
from prompts.endpoints.routing import routable_candidates
from prompts.models import OWN_PRICE, ModelCandidate, ModelMapping, Tier


class CandidateFormSet(forms.BaseInlineFormSet):  # type: ignore[type-arg]
    """The candidates of a mapping, of which there is at least one."""

    default_error_messages: ClassVar = forms.BaseInlineFormSet.default_error_messages | {
        "too_few_forms": "Add a candidate: the endpoint that is asked, and its name for the model."
    }


class CandidateInline(StackedInline):  # type: ignore[misc]
    """The candidates of a mapping."""

    model = ModelCandidate
    form = CandidateForm
    formset = CandidateFormSet
    readonly_fields = ("shown_price",)
    extra = 0
    min_num = 1
    verbose_name_plural = "Candidates, tried in order of position"
    fieldsets = (
        (None, {"fields": (("position", "endpoint"), "model")}),
        (
            "Parameters",
            {
                "description": explain_ignored(),
                "fields": (
                    ("temperature", "top_p"),
                    ("max_tokens", "seed"),
                    ("frequency_penalty", "presence_penalty"),
                    ("reasoning_effort", "reasoning_budget"),
                    "stop",
                ),
            },
        ),
        ("Price", {"fields": (OWN_PRICE[:2], OWN_PRICE[2:], "shown_price")}),
    )

    def get_formset(self, *args: Any, **options: Any) -> Any:
        return super().get_formset(*args, **options | {"validate_min": True})

    def get_queryset(self, request: HttpRequest) -> QuerySet[ModelCandidate]:
        found: QuerySet[ModelCandidate] = super().get_queryset(request)
        return found.select_related("endpoint")

    @admin.display(description="Price in use (USD)")
    def shown_price(self, candidate: ModelCandidate) -> str:
        """The price of calls; without a price only tokens are counted."""
        if candidate._state.adding:
            return "–"
        if candidate.input_price is not None:
            return "own price"
        served_by = candidate.endpoint
        published = published_prices.quote(served_by.provider, served_by.base_url, candidate.model)
        return published or "unknown: only tokens are counted"


class MappingForm(forms.ModelForm):  # type: ignore[type-arg]
    """A mapping; its tier must exist."""

    class Meta:
        labels: ClassVar = {"key": "Public name"}
        help_texts: ClassVar = {"key": "What clients ask for, with or without global: before it."}

    def clean_required_tier(self) -> str:
        tier: str = self.cleaned_data["required_tier"]
        if tier and not Tier.objects.filter(pk=tier).exists():
            raise forms.ValidationError("There is no tier of this name. Create it first.")
        return tier


@admin.register(ModelMapping)
class ModelMappingAdmin(ModelAdmin):
    """Public model names and their candidates."""

    form = MappingForm
    inlines = (CandidateInline,)
    list_display = ("name", "label", "shown_state", "shown_count", "required_tier", "updated_at")
    list_filter = ("is_active", "supports_vision", "supports_tools")
    search_fields = ("key", "label")
    ordering = ("key",)
    fieldsets = (
        (None, {"fields": ("key", "label", "required_tier", "family", "is_active")}),
        ("Capabilities", {"fields": ("supports_vision", "supports_tools", "context_tokens")}),
    )

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
