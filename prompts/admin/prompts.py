"""Admin of prompts: saving makes a new version; activating it is a separate step."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.paginator import Paginator
from django.db.models import Count, Max, OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from unfold.decorators import action, display

from prompts.admin.forms import get_staff
from prompts.admin.previewing import EXAMPLE_CONTEXT, EXAMPLE_TOOLS, preview
from prompts.admin.prompt_form import PromptForm
from prompts.admin.prompt_pages import LABELS, PromptPages, parse_number
from prompts.models import Prompt, PromptVersion
from prompts.wordings import staff_actions
from prompts.wordings.active import read_system_message

_EXAMPLE: Final = {"example_tools": EXAMPLE_TOOLS, "example_context": EXAMPLE_CONTEXT}


@admin.register(Prompt)
class PromptAdmin(PromptPages):
    """Pages to edit and activate prompts; versions are read-only."""

    form = PromptForm
    list_display = (
        "name",
        "kind",
        "shown_state",
        "shown_active",
        "shown_labels",
        "shown_count",
        "shown_updated",
        "shown_author",
    )
    list_filter = ("kind", "is_active")
    search_fields = ("name", "description")
    ordering = ("kind", "name")
    fieldsets = (
        (None, {"fields": ("name", "kind", "category", "description")}),
        ("Wording", {"fields": ("content", "note", "tools_json", "based_on")}),
    )
    actions = ("export_selected",)
    actions_list = ("import_file", "export_all")
    actions_submit_line = ("activate",)
    change_form_after_template = "prompts/preview.html"
    change_form_outer_after_template = "prompts/versions.html"
    warn_unsaved_form = True

    class Media:
        css: ClassVar = {"all": ["prompts/admin.css"]}
        js: ClassVar = ["prompts/editor.js"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Prompt]:
        found: QuerySet[Prompt] = super().get_queryset(request)
        newest = PromptVersion.objects.filter(prompt=OuterRef("pk")).order_by("-number")
        return (
            found.filter(deleted_at=None)
            .select_related("active_version", "previous_version", "split_version")
            .prefetch_related("labels__version")
            .annotate(
                count=Count("versions"),
                updated=Max("versions__created_at"),
                updated_by=Subquery(newest.values("author__username")[:1]),
            )
        )

    def get_readonly_fields(self, request: HttpRequest, obj: Prompt | None = None) -> tuple[str, ...]:
        return ("kind",) if obj else ()

    def has_delete_permission(self, request: HttpRequest, obj: Prompt | None = None) -> bool:
        """Return False: runs refer to versions, so prompts are deactivated instead."""
        return False

    @display(description="State", ordering="is_active", label={"active": "success"})  # type: ignore[untyped-decorator]
    def shown_state(self, prompt: Prompt) -> str:
        return "active" if prompt.is_active else "not in use"

    @admin.display(description="Active version")
    def shown_active(self, prompt: Prompt) -> str:
        if not prompt.is_active or prompt.active_version is None:
            return "–"
        active = f"v{prompt.active_version.number}"
        if prompt.split_version is None:
            return active
        return f"{active}, and v{prompt.split_version.number} for {prompt.split_percent} %"

    @admin.display(description="Labels")
    def shown_labels(self, prompt: Prompt) -> str:
        labels = (f"{label.name}: v{label.version.number}" for label in prompt.labels.all())
        return ", ".join(labels) or "–"

    @admin.display(description="By", ordering="updated_by")
    def shown_author(self, prompt: Any) -> str:
        return prompt.updated_by or "Parley"

    @admin.display(description="Versions", ordering="count")
    def shown_count(self, prompt: Any) -> int:
        return int(prompt.count)

    @admin.display(description="Updated", ordering="updated")
    def shown_updated(self, prompt: Any) -> str:
        return f"{timezone.localtime(prompt.updated):%Y-%m-%d %H:%M}" if prompt.updated else "–"

    @action(description="Save and activate…", permissions=["change"])  # type: ignore[untyped-decorator]
    def activate(self, request: HttpRequest, prompt: Prompt) -> None:
        """Add a button; `response_change` redirects to the confirmation."""

    def save_model(self, request: HttpRequest, obj: Prompt, form: PromptForm, change: bool) -> None:
        super().save_model(request, obj, form, change)
        wording = form.cleaned_data
        version = staff_actions.save_version(
            obj,
            wording["content"],
            author=get_staff(request),
            note=wording["note"],
            tools_json=wording["tools_json"],
        )
        if form.newest is None or version.number > form.newest.number:
            self.message_user(request, f"Version {version.number} is saved. Activate it to use it.")

    def response_change(self, request: HttpRequest, obj: Prompt) -> HttpResponse:
        if "prompts_prompt_activate" in request.POST:
            newest = obj.versions.latest("number")
            return HttpResponseRedirect(
                reverse("admin:prompts_prompt_activation", args=[obj.pk, newest.number])
            )
        response: HttpResponse = super().response_change(request, obj)
        return response

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        prompt_id = parse_number(unquote(object_id))
        of_prompt = PromptVersion.objects.filter(prompt_id=prompt_id)
        versions = of_prompt.select_related("author").prefetch_related("labels")
        shown = Paginator(versions, 20).get_page(request.GET.get("versions"))
        newest = of_prompt.select_related("prompt").first()
        context = {
            "versions": shown,
            "newest": newest,
            "label_names": LABELS,
            "effective_system_message": read_system_message(),
            "preview": preview(newest.content, kind=newest.prompt.kind) if newest else None,
            "may_activate": self.has_change_permission(request),
        } | _EXAMPLE
        response: HttpResponse = super().change_view(
            request, object_id, form_url, (extra_context or {}) | context
        )
        return response

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        context = {"preview": preview("", kind=""), "label_names": LABELS} | _EXAMPLE
        response: HttpResponse = super().add_view(request, form_url, (extra_context or {}) | context)
        return response
